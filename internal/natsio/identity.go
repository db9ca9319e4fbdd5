package natsio

import (
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// identity is what a connection knows about the log that it works for.
type identity struct {
	log atomic.Pointer[string]
}

// LogID returns the identity of the log that this connection works for; empty while it
// is not known. The package streams reads it.
func (c *Conn) LogID() string {
	if id := c.identity.log.Load(); id != nil {
		return *id
	}
	return ""
}

// SetLogID sets the identity of the log.
func (c *Conn) SetLogID(id string) { c.identity.log.Store(&id) }

// Stamp sets the header that names the log, if its identity is known.
func (c *Conn) Stamp(h nats.Header) {
	if id := c.LogID(); id != "" {
		h.Set(subjects.HeaderLog, id)
	}
}

// Foreign reports whether a message names another log than this connection's. A message
// that names none is not foreign, and nothing is while the identity is not known.
func (c *Conn) Foreign(h nats.Header) bool {
	of, own := h.Get(subjects.HeaderLog), c.LogID()
	return of != "" && own != "" && of != own
}
