package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// Long is the time of the turns of one session, when it has had many.
type Long struct {
	Context  bool // its runs have a context
	Turns    int  // that it has had, each of a run of its own
	P50, P99 time.Duration
	Tokens   int64  // that the model was shown in the latest turn, at 4 bytes each
	Ends     string // the code with which every later run fails; "": none does
}

// LongOptions describe the session.
type LongOptions struct {
	Turns  []int // after how many turns the latest ones are reported, ascending
	Tokens int64 // of the context
}

// longLatest is how many of the latest turns a report is about.
const longLatest = 50

// LongTurns lets a session have many turns, one after the other, first without a
// context and then with one. A turn takes from its request to the notice of its
// run's end. It calls each after every number of turns in what, and after the last
// turn before the transcript was full.
func LongTurns(ctx context.Context, o Options, what LongOptions, each func(Long) error) error {
	for _, c := range []*session.ContextConfig{nil, {Tokens: what.Tokens}} {
		err := onStage(ctx, o, func(ctx context.Context, g *stage) error {
			y, err := startSystem(ctx, g.servers, g.row, g.fail)
			if err != nil {
				return err
			}
			defer y.stop()
			return g.longTurns(ctx, c, what.Turns, each)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *stage) longTurns(ctx context.Context, c *session.ContextConfig, turns []int, each func(Long) error) error {
	sid := sessionID(0)
	ends, stop, err := g.ends(ctx, sid)
	if err != nil {
		return err
	}
	defer stop()
	config := &session.RunConfig{Provider: provider, Model: talking, Context: c}
	var took []time.Duration
	last := session.RunFinished{}
	report := func(code string) error {
		latest := slices.Sorted(slices.Values(took[max(0, len(took)-longLatest):]))
		return each(Long{Context: c != nil, Turns: len(took), P50: part(latest, 0.5), P99: part(latest, 0.99), Tokens: last.Usage.InputTokens, Ends: code})
	}
	for n := 1; n <= slices.Max(turns); n++ {
		id := fmt.Sprint("run-", n)
		payload, err := envelope(session.TypeRunRequested, session.RunRequested{Config: config, Input: session.Content{Text: question}}, id)
		if err != nil {
			return err
		}
		begun := time.Now()
		if _, err := g.bus.Publish(ctx, session.DoorCtl, sid, payload, id); err != nil {
			return err
		}
		end, err := ends()
		switch {
		case err != nil:
			return fmt.Errorf("run %d: %w", n, err)
		case end.Code == session.CodeTranscriptFull:
			return report(end.Code)
		case end.Lifecycle != session.Completed:
			return fmt.Errorf("run %d: %s %s: %s", n, end.Lifecycle, end.Code, end.Detail)
		}
		took, last = append(took, time.Since(begun)), end
		if slices.Contains(turns, n) {
			if err := report(""); err != nil {
				return err
			}
		}
	}
	return nil
}

// ends returns a function that waits for the next end of a run of a session.
func (g *stage) ends(ctx context.Context, sid string) (next func() (session.RunFinished, error), stop func(), err error) {
	subject, err := g.bus.Names().Out(sid)
	if err != nil {
		return nil, nil, err
	}
	notices, err := g.js.OrderedConsumer(ctx, g.bus.Names().NoticesStream(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, nil, err
	}
	heard := make(chan []byte, 1)
	reading, err := notices.Consume(func(m jetstream.Msg) {
		for line := range bytes.Lines(m.Data()) {
			if bytes.Contains(line, finished) {
				heard <- bytes.Clone(line)
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	next = func() (end session.RunFinished, err error) {
		late := time.NewTimer(drainWithin)
		defer late.Stop()
		select {
		case line := <-heard:
			notice := struct{ Data *session.RunFinished }{&end}
			return end, json.Unmarshal(line, &notice)
		case <-late.C:
			return end, fmt.Errorf("it did not end within %v", drainWithin)
		case <-ctx.Done():
			return end, context.Cause(ctx)
		}
	}
	return next, func() { reading.Stop(); <-reading.Closed() }, nil
}
