package chaos

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// frameBytesMax bounds one message of a connection: eight times the largest
// payload that a server accepts by default.
const frameBytesMax = 8 << 20

// frame is one operation of the NATS protocol, of a client or of a server.
type frame struct {
	op      string // PUB, HPUB, MSG, HMSG; else as it was sent: PING, +OK, INFO …
	subject string
	reply   string
	headers []byte // NATS/1.0 and lines, of HPUB and HMSG
	payload []byte
	raw     []byte // the whole operation, as it was read
}

// published reports whether a client publishes a message with it.
func (f *frame) published() bool { return f.op == "PUB" || f.op == "HPUB" }

// delivered reports whether a server delivers a message with it.
func (f *frame) delivered() bool { return f.op == "MSG" || f.op == "HMSG" }

func readFrame(r *bufio.Reader) (*frame, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	fields := bytes.Fields(line)
	f := &frame{raw: line}
	if len(fields) == 0 {
		return f, nil
	}
	f.op = string(bytes.ToUpper(fields[0]))
	sizes, err := f.arguments(fields[1:])
	if err != nil || sizes == nil {
		return f, err
	}
	head, total := sizes[0], sizes[len(sizes)-1]
	if len(sizes) == 1 {
		head = 0
	}
	if head < 0 || total < head || total > frameBytesMax {
		return nil, fmt.Errorf("a message of %d bytes, %d of them headers", total, head)
	}
	body := make([]byte, total+len("\r\n"))
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	f.raw = append(f.raw, body...)
	f.headers, f.payload = body[:head], body[head:total]
	return f, nil
}

// arguments parses the arguments of an operation, and returns the sizes of its
// payload: of the headers if it has any, and the total. nil: there is none.
func (f *frame) arguments(args [][]byte) (sizes []int, err error) {
	var fixed, numbers int
	switch f.op {
	case "PUB":
		fixed, numbers = 1, 1
	case "HPUB":
		fixed, numbers = 1, 2
	case "MSG":
		fixed, numbers = 2, 1
	case "HMSG":
		fixed, numbers = 2, 2
	default:
		return nil, nil
	}
	if n := len(args) - fixed - numbers; n != 0 && n != 1 {
		return nil, fmt.Errorf("%s with %d arguments", f.op, len(args))
	}
	f.subject = string(args[0])
	if len(args) == fixed+numbers+1 {
		f.reply = string(args[fixed])
	}
	for _, text := range args[len(args)-numbers:] {
		n, err := strconv.Atoi(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: size %q", f.op, text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// readLine reads a line, its end included.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > frameBytesMax {
			return nil, errors.New("a line without an end")
		}
	}
}
