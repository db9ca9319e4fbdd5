package jetmodel

import (
	"errors"
	"fmt"
	"time"
)

// ErrPin means that another client may have the consumer: 423, wrong pin id.
var ErrPin = errors.New("wrong pin id (423)")

// pin is the client that has a consumer to itself.
type pin struct {
	id    string // "": none
	until time.Time
	made  int
}

func (p *pin) tick(now time.Time) {
	if p.id != "" && !now.Before(p.until) {
		p.id = ""
	}
}

// keep refuses a request with an outdated pin, and extends the present one.
func (c *Consumer) keep(id string) error {
	switch {
	case c.cfg.Pinned == 0 || id == "" || c.pin.id == "":
		return nil
	case id != c.pin.id:
		return ErrPin
	}
	c.pin.until = c.stream.now().Add(c.cfg.Pinned)
	return nil
}

// Keep is a request of the pinned client that gets no message: it extends the
// pin. It returns ErrPin if the consumer is another client's.
func (c *Consumer) Keep(id string) error {
	c.tick()
	return c.keep(id)
}

// mayHave reports whether a client gets messages: if it is pinned, or none is.
func (c *Consumer) mayHave(id string) bool {
	return c.cfg.Pinned == 0 || c.pin.id == "" || id == c.pin.id
}

// assign pins the client that gets a message, if none is pinned.
func (c *Consumer) assign() {
	if c.cfg.Pinned == 0 || c.pin.id != "" {
		return
	}
	c.pin.made++
	c.pin.id, c.pin.until = fmt.Sprintf("pin%d", c.pin.made), c.stream.now().Add(c.cfg.Pinned)
}

// Unpin removes the pin, whichever client has it.
func (c *Consumer) Unpin() { c.pin.id = "" }
