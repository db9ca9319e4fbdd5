package natsio

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// IsConnected reports whether the connection is up. While it is not, the client
// reconnects.
func (c *Conn) IsConnected() bool { return c.NC.IsConnected() }

// NotReady returns why nothing can be stored now: the connection is down, or a
// stream is missing. It is empty if all is well.
func (c *Conn) NotReady(ctx context.Context) (reasons []string) {
	if err := c.ClosedForGood(); err != nil {
		return []string{err.Error()}
	}
	if !c.IsConnected() {
		why := "NATS is not connected"
		if err := c.NC.LastError(); err != nil { // of the latest attempt; nil: nobody answers
			why += ": " + err.Error()
		}
		return []string{why}
	}
	if err := c.takesLittle(); err != nil {
		reasons = append(reasons, err.Error())
	}
	for _, stream := range []string{c.names.LogStream(), c.names.EffectsStream()} {
		if _, err := c.JS.Stream(ctx, stream); err != nil {
			reasons = append(reasons, fmt.Sprintf("stream %s: %v", stream, err))
		}
	}
	return reasons
}

// takesLittle returns an error if the server's limit for messages is too low. The limit
// may be lowered while the connection is up; the client learns it when it reconnects.
// Every message fits the limit that Refold needs, so the same one may succeed later.
func (c *Conn) takesLittle() error {
	if n := c.NC.MaxPayload(); n < PayloadLeast {
		return Retryable(fmt.Sprintf("the NATS server at %s takes messages of at most %d bytes, and Refold needs %d: raise max_payload in its configuration", c.Where, n, PayloadLeast))
	}
	return nil
}

// refusedEvery is how often the same refusal of a server is logged at most, and
// refusalsMax how many are remembered.
const (
	refusedEvery = time.Minute
	refusalsMax  = 16
)

// refusals are what servers said when they refused to take this connection again, and
// when that was logged.
type refusals struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// onRefused logs that a server refuses a connection: it takes no more, or not this user.
// The client library tries again four times a second, and tells nobody.
func (c *Conn) onRefused(said string) {
	if c.Incarnation() < 2 {
		return // Connect returns it
	}
	said = strings.ToLower(strings.Trim(strings.TrimPrefix(said, "nats: "), "'"))
	r := &c.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.told[said]) < refusedEvery {
		return
	}
	if len(r.told) >= refusalsMax || r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[said] = time.Now()
	c.Log.Warn("nats_refused", "error", said)
}
