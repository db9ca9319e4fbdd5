package refold_test

// Many readers of one session in one process: what they get, and what they cost.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/refoldtest"
)

// stream is a model that says what it is given, piece by piece.
type stream struct {
	pieces chan string
	asked  chan struct{}
}

func (m *stream) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	m.asked <- struct{}{}
	var all strings.Builder
	for {
		select {
		case piece, more := <-m.pieces:
			if !more {
				return executor.Answer{Text: all.String()}, nil
			}
			all.WriteString(piece)
			delta(piece)
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		}
	}
}

func (m *stream) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "stream", Model: "stream", Open: func() (executor.Model, error) { return m, nil }}
}

// endOf reads a run to its end, and returns its text.
func endOf(ctx context.Context, run *refold.Run, each func(refold.Update)) (string, error) {
	var text strings.Builder
	for u, err := range run.Updates(ctx) {
		if err != nil {
			return "", err
		}
		if each != nil {
			each(u)
		}
		switch u := u.(type) {
		case refold.Text:
			text.WriteString(u.Text)
		case refold.TextRestarted:
			text.Reset()
		case refold.RunEnded:
			return text.String(), nil
		}
	}
	return "", errors.New("the updates ended")
}

// TestReadersOfOneSessionShareOneFold: fifty readers cost the server as many
// subscriptions as one, and no more reads of the log than a few.
func TestReadersOfOneSessionShareOneFold(t *testing.T) {
	t.Parallel()
	const readers, words = 50, 40
	ctx := testbus.Context(t)
	node := bustest.Server(t)
	provisioned(t, node, 1)
	carried(t, node)
	rt := onServers(t, node)
	m := &stream{pieces: make(chan string), asked: make(chan struct{}, 1)}
	a, err := rt.Agent("helper", refold.Model(m.ref()))
	ok(t, err)
	counts := countReads(t, node)

	run, err := a.Session("s").Ask(ctx, "hi")
	ok(t, err)
	<-m.asked
	var reading sync.WaitGroup
	texts := make([]string, readers)
	started := make(chan struct{}, readers)
	read := func(i int) {
		reading.Go(func() {
			told := sync.OnceFunc(func() { started <- struct{}{} })
			text, err := endOf(ctx, run, func(refold.Update) { told() })
			if texts[i] = text; err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	read(0)
	<-started
	before, subs := counts.Load(), node.Raw().NumSubscriptions()
	for i := 1; i < readers; i++ {
		read(i)
	}
	for i := 1; i < readers; i++ {
		<-started
	}
	if got := node.Raw().NumSubscriptions(); got != subs {
		t.Errorf("%d readers have %d subscriptions, want those of one, %d", readers, got, subs)
	}
	var want strings.Builder
	for i := range words {
		word := fmt.Sprintf("word %d ", i)
		want.WriteString(word)
		m.pieces <- word
	}
	close(m.pieces)
	reading.Wait()
	for i, got := range texts {
		if got != want.String() {
			t.Errorf("reader %d got %q, want %q", i, got, want.String())
		}
	}
	// One reader takes a look each second, and a few for each event.
	if got := counts.Load() - before; got >= readers {
		t.Errorf("%d readers read the log %d times, want less than one each", readers, got)
	}
}

// countReads counts the requests for events of the session s.
func countReads(t *testing.T, node *bustest.Node) *atomic.Int64 {
	t.Helper()
	nc, err := nats.Connect(node.URL())
	ok(t, err)
	t.Cleanup(nc.Close)
	var n atomic.Int64
	for _, subject := range []string{"$JS.API.DIRECT.GET.REFOLD_LOG", "$JS.API.STREAM.MSG.GET.REFOLD_LOG", "$JS.API.CONSUMER.CREATE.REFOLD_LOG.>"} {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			if strings.Contains(string(m.Data), `.s"`) {
				n.Add(1)
			}
		})
		ok(t, err)
	}
	ok(t, nc.Flush())
	return &n
}

// TestSlowReaderHoldsUpNobody: a reader that stops for longer than updates are kept
// gets the rest all the same, each once, and the others are not held up.
func TestSlowReaderHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const turns = 20
	var script []refoldtest.Turn
	for i := range turns {
		script = append(script, refoldtest.Calls(refoldtest.To("a_b", fmt.Sprintf(`{"n":%d}`, i))))
	}
	ctx, rt, a := agent(t, refold.Tools(nothing("a.b")), refold.Model(refoldtest.Model(append(script, refoldtest.Say("done"))...)))
	refold.Keep(rt, 8)
	run, err := a.Session("s").Ask(ctx, "hi")
	ok(t, err)
	read := func(each func()) (lines []string) {
		for u, err := range run.Updates(ctx) {
			if err != nil {
				t.Error(err)
				break
			}
			if _, waits := u.(refold.Waiting); !waits {
				lines = append(lines, line(u))
			}
			each()
		}
		return lines
	}
	stopped, slow, got := make(chan struct{}), make(chan struct{}), make(chan []string, 1)
	go func() {
		got <- read(sync.OnceFunc(func() {
			close(stopped)
			<-slow
		}))
	}()
	<-stopped
	want := read(func() {})
	if len(want) != 2*turns+3 {
		t.Errorf("the other reader got %d updates, want %d", len(want), 2*turns+3)
	}
	close(slow)
	if got := <-got; !slices.Equal(got, want) {
		t.Errorf("the slow reader got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReaderThatLeavesStopsNobody: the others of its session go on.
func TestReaderThatLeavesStopsNobody(t *testing.T) {
	t.Parallel()
	g := newGate()
	ctx, _, a := agent(t, refold.Model(g.ref()))
	s := a.Session("s")
	run, err := s.Ask(ctx, "hi")
	ok(t, err)
	leaving, leave := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for _, err := range s.Updates(leaving, "") {
			if !errors.Is(err, context.Canceled) && err != nil {
				t.Error(err)
			}
		}
	})
	reading.Go(func() {
		if text, err := endOf(ctx, run, nil); err != nil || text != "so it is" {
			t.Errorf("got %q (%v)", text, err)
		}
	})
	<-g.asked
	leave()
	close(g.open)
	if answer, err := run.Wait(ctx); err != nil || answer.Run != 1 || answer.Turns != 1 {
		t.Errorf("got %+v (%v)", answer, err)
	}
	reading.Wait()
}

// TestReaderThatComesLateGetsNoVoidText: who begins to read after a turn began again gets
// its text, and nothing of what became void.
func TestReaderThatComesLateGetsNoVoidText(t *testing.T) {
	t.Parallel()
	next, again := make(chan struct{}), false
	ctx, _, a := agent(t, refold.Model(refold.ModelRef{Provider: "breaking", Model: "breaking", Open: func() (executor.Model, error) {
		return generate(func(delta func(string)) (executor.Answer, error) {
			if again {
				delta("Whole")
				<-next
				return executor.Answer{Text: "Whole"}, nil
			}
			again = true
			<-next // a text that nobody hears is lost
			delta("Half")
			<-next
			return executor.Answer{}, &executor.Error{Code: "broken_off", Detail: "the connection is lost", Retryable: true}
		}), nil
	}}))
	run, err := a.Session("s").Ask(ctx, "hi")
	ok(t, err)
	leaving, leave := context.WithCancel(ctx) // keeps what is shared by readers
	var reading sync.WaitGroup
	first, hears := make(chan string, 16), make(chan struct{})
	reading.Go(func() {
		heard := sync.OnceFunc(func() { close(hears) })
		for u, err := range run.Updates(leaving) {
			heard()
			if text, is := u.(refold.Text); is && err == nil {
				first <- text.Text
			}
		}
	})
	<-hears
	next <- struct{}{}
	if got := <-first; got != "Half" {
		t.Fatalf("got %q", got)
	}
	next <- struct{}{}
	if got := <-first; got != "Whole" {
		t.Fatalf("got %q", got)
	}
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if text, is := u.(refold.Text); is && text.Text == "Whole" {
			break
		}
		switch u.(type) {
		case refold.Text, refold.TextRestarted:
			t.Errorf("a late reader got %#v, want the whole text alone", u)
		}
	}
	next <- struct{}{}
	leave()
	reading.Wait()
	if _, err := run.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// generate is a model that is a function.
type generate func(delta func(string)) (executor.Answer, error)

func (m generate) Generate(_ context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	return m(delta)
}

// TestClosedRuntimeEndsItsReaders: also one of a session in which nothing happens.
func TestClosedRuntimeEndsItsReaders(t *testing.T) {
	t.Parallel()
	ctx, rt, a := agent(t, refold.Model(refoldtest.Model(refoldtest.Say("done"))))
	run, err := a.Session("s").Ask(ctx, "hi")
	ok(t, err)
	if _, err := run.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	ended, last := make(chan error, 1), false
	reads := make(chan struct{})
	go func() {
		for u, err := range a.Session("s").Updates(ctx, "1-0") {
			if err != nil {
				ended <- err
				return
			}
			if _, is := u.(refold.RunEnded); is && !last {
				last = true
				close(reads)
			}
		}
	}()
	<-reads
	ok(t, rt.Close())
	select {
	case err := <-ended:
		if !strings.Contains(err.Error(), "the runtime is closed") {
			t.Errorf("got %v, want why", err)
		}
	case <-ctx.Done():
		t.Error("the reader did not end")
	}
}
