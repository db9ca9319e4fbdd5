package engine

// What is behind a snapshot, read by the number of a session's events.

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
)

// telling is a world that knows how many events a session has.
type telling struct{ *memory }

func (m telling) LeaderEventAt(ctx context.Context, seq uint64) (session.Event, error) {
	return m.EventAt(ctx, seq)
}

func (m telling) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	err = m.do(ctx, call{op: "CountEvents"}, func() error {
		if last := m.log[len(m.log)-1].Seq; last < have || last > uint64(len(m.log)) {
			return nil // it does not tell
		}
		for _, e := range m.log {
			if e.Session == sid {
				n++
			}
		}
		return nil
	})
	return n, err
}

func (m telling) LastSeqOf(ctx context.Context, door session.Door, sid string) (seq uint64, err error) {
	err = m.do(ctx, call{op: "LastSeqOf"}, func() error {
		for _, e := range m.log {
			if e.Session == sid && e.Door == door {
				seq = e.Seq
			}
		}
		return nil
	})
	return seq, err
}

func (m telling) ReadStretch(ctx context.Context, sid string, from, to uint64) iter.Seq2[session.Event, error] {
	return m.some(ctx, "ReadStretch", sid, from, to, to)
}

func (m telling) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return m.some(ctx, "ReadNext", sid, from, to, n)
}

func (m telling) some(ctx context.Context, op, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var events []session.Event
		err := m.do(ctx, call{op: op, who: fmt.Sprint(n)}, func() error {
			for _, e := range m.log {
				if e.Session == sid && e.Seq >= from && e.Seq <= to && (m.lagging == 0 || e.Seq < m.lagging) && uint64(len(events)) < n {
					events = append(events, e)
				}
			}
			return nil
		})
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

// A session asleep has these events behind its snapshot: s of the model, i
// others, and . is another session's. The last one wakes it.
func TestASessionIsLoadedByTheNumberOfItsEvents(t *testing.T) {
	t.Parallel()
	broken := func(op string) func(*stage, []session.Event) {
		return func(s *stage, _ []session.Event) { s.mem.plan = on(fails, func(c call) bool { return c.op == op }) }
	}
	for _, c := range []struct {
		name, events string
		spoil        func(s *stage, events []session.Event)
		number       int  // that ReadNext is asked for; -1: it is not asked
		scan         bool // all up to the last one is read
	}{
		{name: "none behind", events: "...i", number: 0},
		{name: "the model spoke last", events: "i.s..i.s...i", number: 0},
		{name: "others behind the model", events: "i.s..ii.i...i", number: 3},
		{name: "the model said nothing", events: "i.i...i", number: 2},
		{name: "the model wakes it", events: "i.i..i..s", number: 0},
		{name: "it has got more", events: "i.s.i..i", number: 2, spoil: func(s *stage, _ []session.Event) { s.wrong("s1", 1) }},
		{name: "the model has said more", events: "i.s.i..i", number: 5, spoil: func(s *stage, _ []session.Event) { s.answer("s1", "r9t9", "x") }},
		{name: "the log has lost some", events: "i.s.i..i", number: -1, scan: true, spoil: func(s *stage, _ []session.Event) {
			s.mem.lost = 1000
			s.wrong("s2", 1)
		}},
		{name: "no number", events: "i.s.i..i", number: -1, scan: true, spoil: broken("CountEvents")},
		{name: "no last one", events: "i.s.i..i", number: 4, spoil: broken("LastSeqOf")},
		{name: "the model's last is not there", events: "i.s.i..i", number: -1, scan: true, spoil: func(s *stage, events []session.Event) { s.mem.lagging = events[1].Seq }},
		{name: "the others are not there", events: "i.s.ii..i", number: 2, scan: true, spoil: func(s *stage, events []session.Event) { s.mem.lagging = events[3].Seq }},
		{name: "the last one is not there", events: "i.s.ii..i", number: 2, spoil: func(s *stage, events []session.Event) { s.mem.lagging = events[4].Seq }},
	} {
		onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
			again, _, first, _ := s.slept()
			again.host.world = telling{again.mem}
			events := again.behind(c.events)
			last := events[len(events)-1]
			if c.spoil != nil {
				c.spoil(again, events)
			}
			again.wakesBy(last)
			state := again.actor.sessions["s1"].state
			if got, want := state.Count, uint64(3+len(events)); got != want {
				t.Errorf("%s: %d events are folded, want %d", c.name, got, want)
			}
			asked := 0
			for made, n := range again.mem.calls {
				if made.op == "ReadNext" {
					asked += n
					if made.who != fmt.Sprint(c.number) {
						t.Errorf("%s: %s events were asked for, want %d", c.name, made.who, c.number)
					}
				}
			}
			if want := min(c.number+1, 1); asked != want {
				t.Errorf("%s: events behind were asked for by their number %d times, want %d", c.name, asked, want)
			}
			scanned := false
			for made := range again.mem.calls {
				var from, to uint64
				if made.op == "ReadSession" && made.sid == "s1" {
					if _, err := fmt.Sscanf(made.who, "%d-%d", &from, &to); err != nil {
						t.Fatal(err)
					}
					scanned = scanned || from > first.Seq && to == last.Seq
				}
			}
			if scanned != c.scan {
				t.Errorf("%s: the log was read up to the last one: %v, want %v", c.name, scanned, c.scan)
			}
			again.mem.plan = nil
			clear(again.mem.snapshots)
			if err := again.stop(); err != nil {
				t.Errorf("%s: run: %v", c.name, err)
			}
		})
	}
}

// behind appends events as they are drawn, and returns those of s1 behind the one
// that slept has there.
func (s *stage) behind(drawn string) (events []session.Event) {
	for _, c := range drawn {
		switch c {
		case '.':
			s.wrong("s2", 1)
		case 's':
			events = append(events, s.answer("s1", "r9t9", "x"))
		default:
			events = append(events, s.wrong("s1", 1)...)
		}
	}
	return events
}

// Where a session's last answer of a model stands is asked for while its snapshot
// is read. Here that takes until it is.
func TestTheLastAnswerIsLookedForBesideTheSnapshot(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		again, _, _, next := s.slept()
		again.host.world = telling{again.mem}
		looked := make(chan struct{})
		asked := sync.OnceFunc(func() { close(looked) })
		again.mem.plan = func(c call) outcome {
			switch c.op {
			case "GetSnapshot":
				<-looked
			case "LastSeqOf":
				asked()
			}
			return works
		}
		again.wakesBy(next)
		again.ends()
	})
}

// It is not waited for where there is no snapshot, and not asked for of the next
// session then.
func TestTheLastAnswerIsNotNeededWithoutASnapshot(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SnapshotEach: 1}, func(t *testing.T, s *stage) {
		again, _, _, next := s.slept()
		again.host.world = telling{again.mem}
		clear(again.mem.snapshots)
		again.mem.plan = on(hangs, func(c call) bool { return c.op == "LastSeqOf" })
		again.wakesBy(next)
		again.run("s2") // is stored
		late := again.answer("s2", "r1t1", "x")
		again.deliver(late)
		again.wantAcked(late)
		asked := 0
		for made, n := range again.mem.calls {
			if made.op == "LastSeqOf" {
				asked += n
			}
		}
		if asked != 1 {
			t.Errorf("a last answer was looked for %d times, want once", asked)
		}
		clear(again.mem.snapshots) // it is of no log
		again.ends()
	})
}
