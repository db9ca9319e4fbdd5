package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Statuses of answers to direct reads.
const (
	directEnd      = "204"
	directNotFound = "404"
)

// errHidden means that the answer to a direct read does not identify its message
// reliably, and that the leader must be asked.
var errHidden = errors.New("direct read: the publisher's headers hide the server's headers")

// parseDirect parses one answer to a direct read. end is true for the mark that ends
// a batch. A missing message is jetstream.ErrMsgNotFound.
//
// The answer is the stored message. After the publisher's headers the server appends
// the message's subject, sequence and time. A publisher may write the same headers,
// since NATS has no permissions for headers. So the last of several values counts; the
// sequence header marks a message, whatever its status is; and an answer with bytes that
// its headers don't account for is errHidden.
func parseDirect(msg *nats.Msg) (m stored, end bool, err error) {
	if !accounted(msg) {
		return stored{}, false, errHidden
	}
	sequence := lastHeader(msg, subjects.HeaderSequence)
	if sequence == "" {
		switch status := msg.Header.Get(subjects.HeaderStatus); status {
		case directEnd:
			return stored{}, true, nil
		case directNotFound:
			return stored{}, false, jetstream.ErrMsgNotFound
		case natsio.StatusNoResponders:
			return stored{}, false, nats.ErrNoResponders
		default:
			return stored{}, false, fmt.Errorf("direct read: %s %s", status, msg.Header.Get(subjects.HeaderDescription))
		}
	}
	m = stored{subject: lastHeader(msg, subjects.HeaderSubject), header: msg.Header, data: msg.Data}
	if m.seq, err = strconv.ParseUint(sequence, 10, 64); err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderSequence, err)
	}
	at, err := time.Parse(time.RFC3339Nano, lastHeader(msg, subjects.HeaderTimeStamp))
	if err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderTimeStamp, err)
	}
	m.time = at.UnixMilli()
	return m, false, nil
}

// directSeq returns the sequence of the message in the answer to a direct read, 0 if
// there is none.
func directSeq(msg *nats.Msg) (uint64, error) {
	m, _, err := parseDirect(msg)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = nil
	}
	return m.seq, err
}

// headerNumber parses a number that the server wrote.
func headerNumber(msg *nats.Msg, name string) (uint64, bool) {
	n, err := strconv.ParseUint(lastHeader(msg, name), 10, 64)
	return n, err == nil
}

// lastHeader returns the last value of a header, which is the server's if it wrote one.
func lastHeader(msg *nats.Msg, name string) string {
	if all := msg.Header[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// Bytes of headers as the server and clients write them.
const (
	headerFrame  = len("NATS/1.0\r\n") + len("\r\n")
	headerAround = len(": ") + len("\r\n")
)

// headersMax is the largest number of headers for which accounted is reliable. A
// publisher that omits the blank after the colon and the carriage return saves two bytes
// a header, and some 25 with a status in the first line. An empty line would hide the
// server's headers, which have at least a hundred bytes. Refold's messages have a dozen
// headers.
const headersMax = 32

// accounted reports whether a message is only its parsed headers and its payload. If
// not, its headers don't parse, or an empty line among them hides those after it.
func accounted(msg *nats.Msg) bool {
	n, lines := headerFrame, 0
	for name, values := range msg.Header {
		for _, value := range values {
			n += len(name) + headerAround + len(value)
			lines++
		}
	}
	has := msg.Size() - len(msg.Subject) - len(msg.Reply) - len(msg.Data)
	if n == has {
		return lines <= headersMax
	}
	// The server's own status stands in the first line: NATS/1.0 404 Message Not Found.
	status, text := lastHeader(msg, subjects.HeaderStatus), lastHeader(msg, subjects.HeaderDescription)
	if status == "" {
		return false
	}
	n -= len(subjects.HeaderStatus) + headerAround - len(" ")
	if text != "" {
		n -= len(subjects.HeaderDescription) + headerAround - len(" ")
	}
	return n == has && lines <= headersMax
}

// directMost is how many requests of directEach are outstanding at a time.
const directMost = 256

// directEach sends direct reads of a stream, and calls each with every answer, in any
// order. An error of each ends it.
func (j *Journal) directEach(ctx context.Context, stream string, requests [][]byte, each func(i int, msg *nats.Msg) error) error {
	subject := j.directSubject(stream)
	for start := 0; start < len(requests); start += directMost {
		some := requests[start:min(start+directMost, len(requests))]
		err := j.conn.Attempt(ctx, subject, func(ctx context.Context) error {
			return j.directSome(ctx, subject, some, func(i int, msg *nats.Msg) error { return each(start+i, msg) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) directSome(ctx context.Context, subject string, requests [][]byte, each func(i int, msg *nats.Msg) error) error {
	inbox, msgs, done, err := j.conn.Await(len(requests))
	if err != nil {
		return err
	}
	defer done()
	for i, request := range requests {
		if err := j.conn.NC.PublishRequest(subject, natsio.ReplySubject(inbox, uint64(i)), request); err != nil {
			return err
		}
	}
	for range requests {
		var msg *nats.Msg
		select {
		case msg = <-msgs:
		case <-ctx.Done():
			return ctx.Err()
		}
		i, err := strconv.Atoi(strings.TrimPrefix(msg.Subject, inbox+"."))
		if err != nil || i < 0 || i >= len(requests) {
			return fmt.Errorf("an answer on %s, which is no reply subject of a request", msg.Subject)
		}
		if err := each(i, msg); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) directSubject(stream string) string { return j.conn.API + "DIRECT.GET." + stream }
