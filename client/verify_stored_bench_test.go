package client

// Speed of one pass over a log that a server holds, which is a process of its
// own, as refold verify --all is beside one; and, to compare with, of reading
// the same messages and doing nothing with them:
//
//	go test -run '^$' -bench 'VerifyStored|ReadStored' -cpu 1 ./client
//
// ns/event is what passes, cpu-ns/event the processor time of this process
// alone. For each event one effect is stored and read, so two messages.

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/streams"
)

// BenchmarkVerifyStored folds the log of BenchmarkVerify from a server.
func BenchmarkVerifyStored(b *testing.B) {
	l, c, used := atServer(b)
	for b.Loop() {
		v, err := c.Verify(b.Context(), VerifyOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if got, want := v.Events, uint64(len(l.events)); got != want || !v.Identical() || v.Effects != uint64(len(l.effects)) {
			b.Fatalf("got %+v, want %d events and %d effects that are the same", v, want, len(l.effects))
		}
	}
	perEventStored(b, l, used)
}

// BenchmarkReadStored reads what BenchmarkVerifyStored reads, and no more.
func BenchmarkReadStored(b *testing.B) {
	l, c, used := atServer(b)
	for b.Loop() {
		effects, events := 0, 0
		if err := c.bus.ScanEffects(b.Context(), func(journal.StoredEffect) error { effects++; return nil }); err != nil {
			b.Fatal(err)
		}
		if _, err := c.bus.ReadAll(b.Context(), 1, func(session.Event) error { events++; return nil }); err != nil {
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
func atServer(b *testing.B) (l *library, c *Client, used time.Duration) {
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
func (l *library) store(b *testing.B) *Client {
	b.Helper()
	ctx := b.Context()
	c, err := Connect(ctx, Options{URL: serverBeside(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	conf, err := streams.ParseConf(refold.StreamsConf, c.bus.Names())
	if err != nil {
		b.Fatal(err)
	}
	if err := c.bus.Provision(ctx, conf, 1); err != nil {
		b.Fatal(err)
	}
	if _, _, err := c.bus.PublishInstall(ctx, []byte(benchRecord), true); err != nil {
		b.Fatal(err)
	}
	for _, e := range l.events {
		if _, err := c.bus.Publish(ctx, e.Door, e.Session, e.Payload, ""); err != nil {
			b.Fatal(err)
		}
	}
	states := map[string]*session.State{}
	if _, err = c.bus.ReadAll(ctx, 1, func(e session.Event) error { return l.storeOutputs(ctx, c.bus, states, e) }); err != nil {
		b.Fatal(err)
	}
	for _, k := range l.snapshots {
		s := states[k.Session]
		if err := c.bus.PutSnapshot(ctx, s.Session, s.Seq, s.Snapshot().Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// serverBeside starts a server that is a process of its own, and returns its
// address.
func serverBeside(b testing.TB) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REFOLD_CLIENT_TEST_SERVE="+b.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(url)
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
	opened := s.OpenExcept(func(name string) bool { return was[name] })
	outputs := make([]journal.Output, len(opened))
	for i := range opened {
		outputs[i] = journal.Output{Session: e.Session, Effect: &opened[i]}
	}
	return errors.Join(to.Store(ctx, outputs)...)
}
