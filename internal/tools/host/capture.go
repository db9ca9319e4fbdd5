package host

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// capture keeps the beginning and the end of an output of any length.
type capture struct {
	max   int // bytes kept
	head  []byte
	tail  []byte // a ring once it is full; next is the index of its oldest byte
	next  int
	total int64

	most  int64  // total after which flood is called, once; 0: never
	flood func() // stops the command
}

// ReadFrom reads r to its end, and then returns nil.
func (c *capture) ReadFrom(r io.Reader) (int64, error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.take(buf[:n])
		if c.most > 0 && c.total > c.most {
			c.most = 0
			c.flood()
		}
		if errors.Is(err, io.EOF) {
			return c.total, nil
		}
		if err != nil {
			return c.total, err
		}
	}
}

func (c *capture) take(b []byte) {
	c.total += int64(len(b))
	if room := c.max/2 - len(c.head); room > 0 {
		n := min(room, len(b))
		c.head = append(c.head, b[:n]...)
		b = b[n:]
	}
	size := c.max - c.max/2
	if len(b) >= size {
		c.tail, c.next = append(c.tail[:0], b[len(b)-size:]...), 0
		return
	}
	if room := size - len(c.tail); room > 0 {
		n := min(room, len(b))
		c.tail = append(c.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(c.tail[c.next:], b)
		c.next = (c.next + n) % size
		b = b[n:]
	}
}

// text returns the kept bytes as UTF-8, with a note of how many bytes are left
// out. It splits no character.
func (c *capture) text() string {
	tail := append(append([]byte(nil), c.tail[c.next:]...), c.tail[:c.next]...)
	if int64(len(c.head)+len(tail)) == c.total {
		return validText(string(c.head) + string(tail))
	}
	head := wholeEnd(c.head)
	for n := 0; n < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); n++ {
		tail = tail[1:]
	}
	left := c.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", validText(string(head)), left, validText(string(tail)))
}

// wholeEnd cuts off an incomplete character at the end.
func wholeEnd(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}
