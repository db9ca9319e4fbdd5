package audit

// Speed of one pass over a log that a server holds, which is a process of its
// own, as refold verify --all is beside one; and, to compare with, of reading
// the same messages and doing nothing with them:
//
//	go test -run '^$' -bench 'VerifyStored|ReadStored' -cpu 1 ./internal/audit
//
// ns/event is what passes, cpu-ns/event the processor time of this process
// alone. For each event one effect is stored and read, so two messages.

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// BenchmarkVerifyStored folds the log of BenchmarkVerify from a server.
func BenchmarkVerifyStored(b *testing.B) {
	l, c, used := atServer(b)
	for b.Loop() {
		l.audited(c, journal.NewInstalls(c, slog.New(slog.DiscardHandler), nil).Pinned)
	}
	perEventStored(b, l, used)
}

// BenchmarkReadStored reads what BenchmarkVerifyStored reads, and no more.
func BenchmarkReadStored(b *testing.B) {
	l, c, used := atServer(b)
	for b.Loop() {
		effects, events := 0, 0
		if err := c.ScanEffects(b.Context(), func(journal.StoredEffect) error { effects++; return nil }); err != nil {
			b.Fatal(err)
		}
		if _, err := c.ReadAll(b.Context(), 1, func(session.Event) error { events++; return nil }); err != nil {
			b.Fatal(err)
		}
		if events != len(l.events)+1 || effects != len(l.effects) { // and the install record
			b.Fatalf("read %d events and %d effects, want %d and %d", events, effects, len(l.events)+1, len(l.effects))
		}
	}
	perEventStored(b, l, used)
}

// atServer stores a log in a server beside, for a benchmark that begins now. used
// is for perEventStored.
func atServer(b *testing.B) (l *library, c *bus.Bus, used time.Duration) {
	b.Helper()
	collected(b)
	l = newLibrary(b, benchSessions)
	c = l.store(b)
	b.ReportAllocs()
	return l, c, cpuUsed(b)
}

// perEventStored reports what passed, and the processor time of this process
// since so much of it was used.
func perEventStored(b *testing.B, l *library, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64((cpuUsed(b)-used).Nanoseconds())/float64(b.N*len(l.events)), "cpu-ns/event")
	perEvent(b, l)
}

// cpuUsed returns the processor time that this process took until now.
func cpuUsed(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// store puts the events into the log of a server, and beside it what they fold
// to with the timestamps that they have there.
func (l *library) store(b *testing.B) *bus.Bus {
	b.Helper()
	ctx := b.Context()
	c := testbus.ConnectWith(b, natsio.Options{URL: bustest.ServerBeside(b), Name: "bench"})
	if err := c.Provision(ctx, testbus.Conf(b, ""), 1); err != nil {
		b.Fatal(err)
	}
	if _, _, err := c.PublishInstall(ctx, []byte(benchRecord), true); err != nil {
		b.Fatal(err)
	}
	for _, e := range l.events {
		if _, err := c.Publish(ctx, e.Door, e.Session, e.Payload, ""); err != nil {
			b.Fatal(err)
		}
	}
	states := map[string]*session.State{}
	if _, err := c.ReadAll(ctx, 1, func(e session.Event) error { return l.storeOutputs(ctx, c, states, e) }); err != nil {
		b.Fatal(err)
	}
	for _, k := range l.snapshots {
		s := states[k.Session]
		if err := c.PutSnapshot(ctx, s.Session, s.Seq, s.Snapshot().Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// storeOutputs folds one event and stores what it opens.
func (l *library) storeOutputs(ctx context.Context, to *bus.Bus, states map[string]*session.State, e session.Event) error {
	if e.Session == "" {
		return nil
	}
	s := states[e.Session]
	if s == nil {
		s = session.New(l.install, e.Session)
		states[e.Session] = s
	}
	was := map[string]bool{}
	for _, open := range s.Open() {
		was[open.Name] = true
	}
	if _, err := s.Evolve(e); err != nil {
		return err
	}
	opened := s.OpenExcept(func(p session.Place) bool { return was[p.String()] })
	outputs := make([]journal.Output, len(opened))
	for i := range opened {
		outputs[i] = journal.Output{Session: e.Session, Effect: &opened[i]}
	}
	return errors.Join(to.Store(ctx, outputs)...)
}
