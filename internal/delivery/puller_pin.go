package delivery

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// pin is a puller's part in a consumer of which the server pins one client: the others'
// requests wait until the pin ends.
type pin struct {
	ttl      time.Duration         // how long the server keeps a pin without a request
	giveBack func()                // another client has the pin, or may have it, or this one drains
	check    func(context.Context) // called at intervals while the requests are open

	id    string    // empty: this client is not pinned
	kept  uint64    // number of the last request that only keeps the pin
	asked time.Time // last request
}

// keepPin keeps the pin while there is no room for more deliveries.
func (l *puller) keepPin() {
	if l.pin == nil || l.pin.id == "" || time.Since(l.pin.asked) < l.pin.ttl/ttlPartKeep {
		return
	}
	l.pin.asked = time.Now()
	if err := l.ask(keepsPin(l.pin.id)); err == nil {
		l.pin.kept = l.sent
	}
}

// readPin reads the pin of a delivery. The server appends its header after the
// publisher's, which may have the same name.
func (l *puller) readPin(m *nats.Msg) {
	if l.pin == nil {
		return
	}
	if ids := m.Header.Values(subjects.HeaderPinID); len(ids) > 0 {
		l.pin.id = ids[len(ids)-1]
	}
}

// losePin makes the next request one without a pin.
func (l *puller) losePin() {
	l.asked = 0
	if l.pin != nil && l.pin.id != "" {
		l.pin.id = ""
		l.pin.giveBack()
	}
}
