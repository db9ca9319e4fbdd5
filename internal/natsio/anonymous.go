package natsio

import (
	"crypto/tls"
	"errors"

	"github.com/nats-io/nats.go"
)

// LetsAnybodyIn reports whether the servers let somebody in who has no
// credentials. It tries: a server that asks for none may have a default user.
func (c *Conn) LetsAnybodyIn() bool {
	options := []nats.Option{nats.NoReconnect(), nats.Timeout(connectTimeout), nats.Name("refold: may anybody connect?")}
	if _, err := c.NC.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		options = append(options, nats.Secure(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // whoever tries this need not verify anything either
	}
	nc, err := nats.Connect(redact(c.url), options...)
	if err != nil {
		return false
	}
	nc.Close()
	return true
}
