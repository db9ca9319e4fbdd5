package natsio

import "sync/atomic"

// identity is what a connection knows about the log that it works for.
type identity struct {
	log       atomic.Pointer[string]
	domain    atomic.Pointer[string] // of JetStream
	account   atomic.Pointer[string]
	acksCross atomic.Bool // the acknowledgement of the latest delivery may count in another domain
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

// Domain returns the domain of this connection's JetStream, empty if it has no name.
// known is false for a user who may not ask.
func (c *Conn) Domain() (domain string, known bool) {
	if d := c.identity.domain.Load(); d != nil {
		return *d, true
	}
	return "", false
}

// Account returns the name of this user's account; empty until the server has told it.
func (c *Conn) Account() string {
	if now := c.NC.RemoteAccount(); now != "" { // the client library forgets it while it reconnects
		c.identity.account.Store(&now)
	}
	if account := c.identity.account.Load(); account != nil {
		return *account
	}
	return ""
}

// IsElsewhere reports whether an acknowledgement is of a stream in another domain, which
// has the name of one here.
func (c *Conn) IsElsewhere(domain string) bool {
	own, known := c.Domain()
	return known && own != domain
}

// SetDomain sets the domain of JetStream.
func (c *Conn) SetDomain(domain string) { c.identity.domain.Store(&domain) }
