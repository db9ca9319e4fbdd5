package engine

// The lane as a machine: whatever arrives, and in whatever order what it wants done
// is done, three rules hold. What is acknowledged is the contiguous prefix of what
// was delivered, and stored; of a session one batch is under way at a time; and
// snapshots are of stored states only. No goroutine and no clock: the test draws
// what happens next.

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

// modelled is a lane whose work the test does.
type modelled struct {
	t    *rapid.T
	mem  *memory
	lane *Lane

	epoch     int
	floor     uint64   // acknowledged up to here
	delivered []uint64 // in this epoch, and not acknowledged
	cursor    uint64   // delivered up to here
	under     []Work
}

func newModelled(t *rapid.T, outer *testing.T) *modelled {
	m := &modelled{t: t, mem: newMemory(outer)}
	m.mem.inline = true
	m.mem.effects["s1 r2t1"] = []byte{0x80} // s1 is quarantined for it
	m.mem.plan = func(c call) outcome {
		if c.op == "PutSnapshot" && rapid.IntRange(0, 3).Draw(t, "put") == 0 {
			return fails
		}
		return works
	}
	h := newHost(m.mem, slog.New(slog.DiscardHandler), Options{Lanes: 1, SnapshotEach: 2, SessionsMax: rapid.IntRange(1, 4).Draw(t, "sessions")})
	m.lane = h.NewLane(0, func() bool { return true })
	m.begin()
	return m
}

// begin begins an epoch: delivery starts behind what is acknowledged.
func (m *modelled) begin() {
	m.epoch++
	m.delivered, m.cursor = nil, m.floor
	m.step(&EpochStarted{})
}

// say appends an event of a session.
func (m *modelled) say() {
	sid := fmt.Sprintf("s%d", rapid.IntRange(1, 3).Draw(m.t, "session"))
	if state := m.mem.judge(sid, 1<<40).state; state.Run == nil {
		m.mem.append(session.DoorIn, sid, []byte(`{"type":"RunRequested","data":{"input":{"text":"hi"},"config":{"provider":"openai","model":"m"}}}`))
	} else {
		m.mem.append(session.DoorLLM, sid, fmt.Appendf(nil, `{"type":"GenerationSettled","data":{"effect":"r%dt1","status":"ok","text":{"text":"a"}}}`, state.Run.Number))
	}
}

// deliver delivers the next events.
func (m *modelled) deliver() {
	for n := rapid.IntRange(1, 4).Draw(m.t, "events"); n > 0; n-- {
		i := slices.IndexFunc(m.mem.log, func(e session.Event) bool { return e.Seq > m.cursor })
		if i < 0 {
			return
		}
		e, epoch := m.mem.log[i], m.epoch
		m.cursor, m.delivered = e.Seq, append(m.delivered, e.Seq)
		m.step(&Delivered{Event: e, Ack: func() { m.acked(e, epoch) }})
	}
}

// acked wants stored what is acknowledged, and everything before it acknowledged.
func (m *modelled) acked(e session.Event, epoch int) {
	if epoch == m.epoch {
		if m.delivered[0] != e.Seq {
			m.t.Fatalf("%d is acknowledged before %d", e.Seq, m.delivered[0])
		}
		m.delivered, m.floor = m.delivered[1:], e.Seq
	}
	if e.Session != "" && m.mem.stops[e.Session] == nil {
		if missing := m.mem.missing(e.Session, e.Seq); len(missing) > 0 {
			m.t.Fatalf("%d of %s is acknowledged, and not stored: %v", e.Seq, e.Session, missing)
		}
	}
}

func (m *modelled) step(in Input) {
	m.lane.Step(in, time.Now())
	r := m.lane.Ready(rapid.Bool().Draw(m.t, "more"))
	if r.GiveBack != nil {
		m.t.Fatal(r.GiveBack)
	}
	for _, ack := range r.Ack {
		ack()
	}
	m.under = append(m.under, slices.Concat(r.Work, r.Sends, r.Snapshots)...)
	saying, putting := map[string]bool{}, map[string]bool{}
	for _, w := range m.under {
		if s, is := w.(sending); is {
			w = s.batch
		}
		switch w := w.(type) {
		case *batch:
			own := map[string]bool{}
			for _, o := range w.outputs {
				if o.hasOutputs() && saying[o.actor.sid] {
					m.t.Fatalf("two batches of %s are under way", o.actor.sid)
				}
				own[o.arrival.Event.Session] = o.hasOutputs() || own[o.arrival.Event.Session]
			}
			for sid, says := range own {
				saying[sid] = saying[sid] || says
			}
		case *snapshot:
			if putting[w.actor.sid] {
				m.t.Fatalf("two snapshots of %s are under way", w.actor.sid)
			}
			putting[w.actor.sid] = true
			if missing := m.mem.missing(w.actor.sid, w.seq); len(missing) > 0 {
				m.t.Fatalf("%s is snapshotted at %d, and not stored: %v", w.actor.sid, w.seq, missing)
			}
		}
	}
}

// do does some of the work that is under way.
func (m *modelled) do() {
	if len(m.under) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.under)-1).Draw(m.t, "work")
	w := m.under[i]
	m.under = slices.Delete(m.under, i, i+1)
	w.Do(context.Background(), m.step)
}

func TestLaneModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newModelled(rt, t)
		rt.Repeat(map[string]func(*rapid.T){
			"say": func(*rapid.T) { m.say() }, "deliver": func(*rapid.T) { m.deliver() }, "do": func(*rapid.T) { m.do() }, "do more": func(*rapid.T) { m.do() },
			"epoch": func(rt *rapid.T) {
				if rapid.IntRange(0, 5).Draw(rt, "begins") == 0 {
					m.begin()
				}
			},
			"tick":    func(*rapid.T) { m.step(Tick{}) },
			"recheck": func(*rapid.T) { m.step(Recheck{}) },
			"release": func(*rapid.T) {
				if len(m.mem.effects["s1 r2t1"]) == 1 {
					delete(m.mem.effects, "s1 r2t1")
				}
				m.mem.release("s1")
			},
		})
		for range 1000 {
			m.deliver()
			m.do()
		}
		if last := m.mem.log[len(m.mem.log)-1].Seq; m.floor != last {
			rt.Fatalf("%d of %d is acknowledged in the end, and %v are under way", m.floor, last, m.under)
		}
	})
}
