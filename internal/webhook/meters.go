package webhook

import "github.com/refold/refold/internal/meter"

// Meters count what webhooks do. A nil one counts nothing.
type Meters struct {
	tries  *meter.Counter
	buried *meter.Counter
	queue  *meter.Gauge
}

// Register returns the metrics of webhooks.
func Register(r *meter.Registry) *Meters {
	name := meter.Open(hooksMax, "webhook")
	return &Meters{
		tries:  r.Counter("refold.webhook.tries", "{try}", "Tries to deliver a notice to the receiver of a webhook.", name, meter.Closed("outcome", "delivered", "failed")),
		buried: r.Counter("refold.webhook.dead", "{notice}", "Notices that no receiver took within a day: dead letters.", name),
		queue:  r.Gauge("refold.webhook.waiting", "{notice}", "Messages of notices that a webhook has not delivered yet, as the server knew that delivers them.", name),
	}
}

func (m *Meters) tried(name string, delivered bool) {
	switch {
	case m == nil:
	case delivered:
		m.tries.Add(1, name, "delivered")
	default:
		m.tries.Add(1, name, "failed")
	}
}

func (m *Meters) dead(name string) {
	if m != nil {
		m.buried.Add(1, name)
	}
}

func (m *Meters) waiting(name string, n uint64) {
	if m != nil {
		m.queue.Set(float64(n), name)
	}
}
