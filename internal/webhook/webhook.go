package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/streams"
)

// Limits of a webhook.
const (
	sendsMax   = 16             // tries at once, of one server
	giveUp     = 24 * time.Hour // after a notice was stored
	backoffMin = time.Second
	backoffMax = 15 * time.Minute
)

// Options configure Run. The zero value is for programs.
type Options struct {
	Logger  *slog.Logger
	Meters  *Meters                                 // nil: nothing is counted
	Now     func() time.Time                        // nil: time.Now
	After   func(time.Duration) <-chan time.Time    // nil: time.After
	Backoff func(failures int) (wait time.Duration) // after so many failures, from 1; nil: from a second to 15 minutes
}

func (o *Options) fill() {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Backoff == nil {
		o.Backoff = backoff
	}
}

// backoff doubles, and is up to a fifth shorter, so that servers and sessions that failed
// together do not come back together.
func backoff(failures int) time.Duration {
	wait := backoffMax
	if n := min(failures, 20); backoffMin<<(n-1) < wait {
		wait = backoffMin << (n - 1)
	}
	return wait - time.Duration(rand.Int64N(int64(wait/5)))
}

// Run delivers the notices of all webhooks until ctx ends; tries that have begun then may
// end. It returns an error if a consumer can't be used at the start.
func Run(ctx context.Context, b *bus.Bus, hooks []Hook, o Options) error {
	o.fill()
	conf, err := streams.ParseConf(streams.File, b.Names())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(hooks))
	var all sync.WaitGroup
	for i := range hooks {
		all.Go(func() {
			w := newWorker(&hooks[i], b, o)
			if errs[i] = b.Notices(conf, hooks[i].Name).Run(ctx, w); errs[i] != nil {
				cancel()
			}
			w.working.Wait()
			w.client.CloseIdleConnections()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// worker delivers the notices of one webhook: those of a session one after another.
type worker struct {
	hook   *Hook
	bus    *bus.Bus
	o      Options
	log    *slog.Logger
	client *http.Client
	sends  chan struct{} // full while sendsMax tries are under way

	working sync.WaitGroup // sessions of which a message is being delivered

	mu       sync.Mutex
	settled  bool
	stop     chan struct{}       // closed when what is queued was given back
	sessions map[string]*backlog // that have messages
	held     int                 // messages that were delivered to this process and not answered
}

// backlog is what a session's receiver has not got yet.
type backlog struct {
	waiting []message // by sequence
	busy    bool      // one that is not among them is being delivered
}

// message is a message with notices that the webhook sends.
type message struct {
	*delivery.NoticeDelivery
	notices []notice
}

func newWorker(h *Hook, b *bus.Bus, o Options) *worker {
	return &worker{
		hook: h, bus: b, o: o, log: o.Logger.With("webhook", h.Name), client: newClient(h.AllowPrivate),
		sends: make(chan struct{}, sendsMax), stop: make(chan struct{}), sessions: map[string]*backlog{},
	}
}

// Deliver implements delivery.NoticeOwner.
func (w *worker) Deliver(d *delivery.NoticeDelivery) {
	m := message{d, w.hook.notices(d.Session, w.bus.LogID(), d.Payload)}
	if len(m.notices) == 0 {
		d.Ack()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held++
	w.o.Meters.waiting(w.hook.Name, d.Pending+uint64(w.held))
	of := w.sessions[d.Session]
	if of == nil {
		of = &backlog{}
		w.sessions[d.Session] = of
	}
	at, _ := slices.BinarySearchFunc(of.waiting, d.Seq, func(m message, seq uint64) int { return cmp.Compare(m.Seq, seq) })
	of.waiting = slices.Insert(of.waiting, at, m)
	w.begin(d.Session, of)
}

// Settled implements delivery.NoticeOwner.
func (w *worker) Settled(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = is
	for sid, of := range w.sessions {
		w.begin(sid, of)
	}
}

// GiveBack implements delivery.NoticeOwner.
func (w *worker) GiveBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.stop)
	w.stop = make(chan struct{})
	for sid, of := range w.sessions {
		for _, m := range of.waiting {
			w.held--
			m.Nak()
		}
		of.waiting = nil
		w.begin(sid, of)
	}
}

// begin delivers the oldest message of a session, unless one is being delivered. The
// caller holds the lock.
func (w *worker) begin(sid string, of *backlog) {
	switch {
	case of.busy:
	case len(of.waiting) == 0:
		delete(w.sessions, sid)
	case w.settled:
		m, stop := of.waiting[0], w.stop
		of.waiting, of.busy = of.waiting[1:], true
		w.working.Go(func() {
			done := w.deliver(m, stop)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.held--; done {
				m.Ack()
			} else {
				m.Nak()
			}
			w.o.Meters.waiting(w.hook.Name, m.Pending+uint64(w.held))
			of.busy = false
			w.begin(sid, of)
		})
	}
}

// deliver sends the notices of a message, each until it is delivered or a dead letter. It
// returns false if it stopped before.
func (w *worker) deliver(m message, stop <-chan struct{}) (done bool) {
	for _, n := range m.notices {
		for failures := 1; ; failures++ {
			err := w.try(n)
			if err == nil {
				break
			}
			w.log.Warn("webhook_failed", "session", m.Session, "id", n.id, "failures", failures, "error", err.Error())
			if w.o.Now().Sub(m.Time) >= giveUp && w.bury(m, n, err) {
				break
			}
			select {
			case <-w.o.After(w.o.Backoff(failures)):
			case <-stop:
				return false
			}
		}
	}
	return true
}

// try sends a notice once.
func (w *worker) try(n notice) error {
	w.sends <- struct{}{}
	defer func() { <-w.sends }()
	err := w.hook.send(context.Background(), w.client, n, w.o.Now()) // the client has a timeout
	w.o.Meters.tried(w.hook.Name, err == nil)
	return err
}

// bury stores a dead letter, and reports whether it is stored.
func (w *worker) bury(m message, n notice, why error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	err := w.bus.StoreDead(ctx, journal.DeadLetter{Webhook: w.hook.Name, ID: n.id, Session: m.Session, Failure: why.Error(), Body: n.body})
	if err != nil {
		w.log.Error("webhook_dead_letter_not_stored", "session", m.Session, "id", n.id, "error", err.Error())
		return false
	}
	w.log.Error("webhook_dead", "session", m.Session, "id", n.id, "error", why.Error())
	w.o.Meters.dead(w.hook.Name)
	return true
}
