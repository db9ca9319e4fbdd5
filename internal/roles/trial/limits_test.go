package trial_test

// The limits of a user: connections, the size of a message, and the storage of
// its tenant's streams.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

const bounded = `
storage: 64KB
limits: {default: {connections: 2}, small: {payload: 1KB}}
tenants:
  refold: {session-actors: [actor], clients: [chat, small], admins: [admin]}
`

func TestQuotasAreEnforced(t *testing.T) {
	t.Parallel()
	s := start(t, bounded)
	first, second := s.attacker("chat"), s.attacker("chat")
	auth, err := nats.NkeyOptionFromSeed(s.dir + "/users/refold/chat/seed.nk")
	if err != nil {
		t.Fatal(err)
	}
	if third, err := nats.Connect(s.url, auth); err == nil {
		third.Close()
		t.Error("chat has three connections")
	} else if !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) && !strings.Contains(err.Error(), "maximum account active connections") {
		t.Errorf("the third connection: %v", err)
	}
	// A full store answers each request with what is wrong.
	var said string
	for range 100 {
		answer, err := first.Request("refold.in.s1", make([]byte, 1<<10), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if said = string(answer.Data); strings.Contains(said, `"error"`) {
			break
		}
	}
	if !strings.Contains(said, "resource") {
		t.Errorf("the full store answers %s", said)
	}
	if err := second.Flush(); err != nil {
		t.Errorf("the other connection: %v", err)
	}
	small := s.attacker("small")
	closed := make(chan struct{})
	small.SetClosedHandler(func(*nats.Conn) { close(closed) })
	small.SetDisconnectErrHandler(func(*nats.Conn, error) { small.Close() })
	if err := small.Publish("refold.in.s2", make([]byte, 2<<10)); err != nil && !errors.Is(err, nats.ErrMaxPayload) {
		t.Fatal(err)
	} else if err == nil {
		<-closed
	}
}
