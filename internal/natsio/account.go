package natsio

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// hasAccount reports whether the user has an account of its own, which imports
// JetStream under another prefix: a context says it, a connection does not.
func (c *Conn) hasAccount(ctx context.Context) bool {
	answers := func(subject string) error {
		return c.Attempt(ctx, subject, func(ctx context.Context) error {
			_, err := c.NC.RequestWithContext(ctx, subject, nil)
			return err
		})
	}
	err := answers(c.names.API() + ".INFO")
	if denied := (*PermissionError)(nil); errors.As(err, &denied) { // a client may ask for the log alone
		err = answers(c.names.API() + ".STREAM.INFO." + c.names.LogStream())
	}
	return err == nil
}

// hasJetStream checks that this user has JetStream. It retries for startTimeout: the
// server may be shutting down, or a cluster may have no leader. No responders means
// that there is no JetStream.
func (c *Conn) hasJetStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := c.Retry(ctx, func(ctx context.Context) error {
		account, err := c.JS.AccountInfo(ctx)
		switch {
		case err == nil:
			c.SetDomain(account.Domain)
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
			errors.Is(err, nats.ErrNoResponders):
			// As text: Retry would retry this cause.
			do := "start nats-server with -js, or enable it for this account"
			if d := c.context.Domain; d != "" {
				do = fmt.Sprintf("see that the servers of the domain %s, which the NATS context or streams.conf names, are reached from there, or change it", d)
			}
			err = fmt.Errorf("%w at %s: %s (%s)", ErrNoJetStream, c.Where, do, err.Error())
		}
		return err
	})
	if err == nil || errors.Is(err, ErrNoJetStream) {
		return err
	}
	return fmt.Errorf("ask %s for its JetStream account: %w", c.Where, err)
}
