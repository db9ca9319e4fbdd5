package devserver_test

// A run of a recording is cancelled at each of its events, with real streams, a
// real session-actor and a real bridge. No tool may run twice, so each call is
// claimed before it starts, and a cancel withdraws claims. At any event: a call
// withdrawn before its start never starts, every call has one result, the next
// run works, and the log folds again to the same bytes.
//
// All runs run concurrently and contend for a bridge that executes few calls at
// once. When a run is cancelled, its log holds exactly the events of the point,
// at least one of its effects is in progress and can't end before it is
// withdrawn, and of a large batch other calls are published that no bridge has
// claimed.

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/recorded"
)

// endless is more events than any run has.
const endless = 1 << 20

// point is a session whose run is cancelled when its log holds a number of events.
type point struct {
	sid, user string
	events    int
	over      bool   // these are all the events of the run
	cancel    uint64 // sequence of the request to cancel; 0: there is none
}

func TestCancelAtEveryEvent(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	var points []*point
	for _, id := range []string{"warehouse-stocktake", "warehouse-audit"} {
		c, _ := s.recording.Conversation(id)
		whole := &point{sid: c.Session(), user: c.Users()[0], events: endless}
		if !s.play(whole) {
			return
		}
		v, err := s.client.View(s.ctx, whole.sid)
		s.must(err)
		n := int(v.Count)
		// The record of the events may be behind that of the notices.
		if !s.wait(whole.sid, fmt.Sprintf("all %d events of the run", n), func() bool { return len(s.events[whole.sid]) >= n }) {
			return
		}
		if calls := s.count(whole.sid, session.TypeToolCallSettled, 0); calls != 30 {
			t.Fatalf("%s: %d calls were settled in %d events", whole.sid, calls, n)
		}
		for k := range n {
			points = append(points, &point{sid: fmt.Sprintf("%s--%d", c.Session(), k+1), user: whole.user, events: k + 1, over: k+1 == n})
		}
	}
	var playing sync.WaitGroup
	for _, p := range points {
		playing.Go(func() {
			if s.play(p) && s.cancel(p) {
				s.playNext(p)
			}
		})
	}
	playing.Wait()
	s.check(points, s.stored())
}

// play requests the run and waits until it reaches the point or has ended.
func (s *stage) play(p *point) bool {
	s.change(func() { s.spare[p.sid] = p.events - 1 })
	if _, err := s.client.Run(s.ctx, p.sid, p.user, client.RunOptions{}); err != nil {
		s.t.Errorf("%s: %v", p.sid, err)
		return false
	}
	if p.events == endless {
		return s.wait(p.sid, "the end of the run", func() bool { return len(s.ends[p.sid]) == 1 })
	}
	return s.wait(p.sid, fmt.Sprintf("%d events", p.events), func() bool {
		return len(s.events[p.sid]) == p.events && (s.held[p.sid] > 0 || p.over)
	})
}

// cancel cancels the run and waits for its end.
func (s *stage) cancel(p *point) bool {
	var err error
	if p.cancel, err = s.client.Cancel(s.ctx, p.sid, client.ControlOptions{Reason: "enough"}); err != nil {
		s.t.Errorf("%s: %v", p.sid, err)
		return false
	}
	return s.wait(p.sid, "the end of the cancelled run", func() bool { return len(s.ends[p.sid]) == 1 })
}

// playNext requests the next run, of another model, and waits for its end.
func (s *stage) playNext(p *point) bool {
	config := json.RawMessage(`{"provider":"recorder","model":"m","profile":"` + recorded.Profile + `"}`)
	if _, err := s.client.Run(s.ctx, p.sid, "and now?", client.RunOptions{Config: config, Operator: true}); err != nil {
		s.t.Errorf("%s: %v", p.sid, err)
		return false
	}
	return s.wait(p.sid, "the end of the next run", func() bool { return len(s.ends[p.sid]) == 2 })
}

// count returns the number of calls in events of a type, before a sequence if
// that is not 0.
func (s *stage) count(sid, typ string, before uint64) (calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events[sid] {
		canonical, err := codec.Canonicalize(e.Payload)
		s.must(err)
		var env session.Envelope
		s.must(codec.Decode(canonical, &env))
		if env.Type != typ || before > 0 && e.Seq >= before {
			continue
		}
		calls++
		if typ == session.TypeToolCallsObserved {
			var said session.ToolCallsObserved
			s.must(codec.Decode(env.Data, &said))
			calls += len(said.Calls) - 1
		}
	}
	return calls
}

// check compares the record with REFOLD_FX, and folds all sessions again.
func (s *stage) check(points []*point, fx stored) {
	s.t.Helper()
	won, lost, folded := s.checkClaims(fx), 0, 0
	if s.t.Failed() {
		return // not all runs have ended
	}
	for _, p := range points {
		s.checkPoint(p)
		lost += s.held[p.sid]
	}
	s.t.Logf("%d points; %d effects were asked, %d of them withdrawn before they started, %d while they were in progress", len(points), len(fx.asked), won, lost)
	if lost < len(points)-2 || won < len(points) {
		s.t.Error("too few effects were withdrawn, before they started or after")
	}
	_, err := s.client.Verify(s.ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
		if folded++; !r.Identical() || r.EffectsGone > 0 {
			s.t.Errorf("replay of %s: %+v", r.Session, r)
		}
		return nil
	}})
	s.must(err)
	if folded != len(points)+2 {
		s.t.Errorf("%d sessions are folded again, want %d", folded, len(points)+2)
	}
}

// checkClaims checks that each effect was claimed once, and that exactly those
// claimed by the bridge were started, once. It returns how many were withdrawn
// before.
func (s *stage) checkClaims(fx stored) (withdrawn int) {
	s.t.Helper()
	ledger, err := recorded.ReadLedger(s.ledger)
	s.must(err)
	ran := map[string]int{}
	for _, e := range ledger {
		ran[e.Session+"."+e.Effect]++
		if e.RetrySafe {
			s.t.Errorf("%s of %s is retry-safe", e.Effect, e.Session)
		}
	}
	for effect := range fx.asked {
		c, ok := fx.claims[effect]
		switch {
		case !ok:
			s.t.Errorf("%s was asked, and has no claim", effect)
		case c.Withdrawn:
			withdrawn++
			if s.starts[effect]+ran[effect] > 0 {
				s.t.Errorf("%s was withdrawn, and started %d times; the ledger has it %d times", effect, s.starts[effect], ran[effect])
			}
		case c.By == "" || s.starts[effect] > 1 || ran[effect] > s.starts[effect]:
			s.t.Errorf("%s was claimed by %q, and started %d times; the ledger has it %d times", effect, c.By, s.starts[effect], ran[effect])
		}
	}
	for effect := range s.starts {
		if _, ok := fx.asked[effect]; !ok {
			s.t.Errorf("%s was started, and not asked", effect)
		}
	}
	return withdrawn
}

// checkPoint checks the ends of a session's runs, and the request of the next
// run: each call of the cancelled run has one result, which is the tool's if that
// preceded the cancel.
func (s *stage) checkPoint(p *point) {
	s.t.Helper()
	ends, want := s.ends[p.sid], session.Cancelled
	if p.over {
		want = session.Completed
	}
	if ends[0].Run != 1 || ends[0].Lifecycle != want || ends[1].Run != 2 || ends[1].Lifecycle != session.Completed {
		s.t.Errorf("%s: its runs ended %+v", p.sid, ends)
	}
	called, settled := s.count(p.sid, session.TypeToolCallsObserved, p.cancel), s.count(p.sid, session.TypeToolCallSettled, p.cancel)
	var owed []string // ids of the calls whose results come next
	results, cancelled := 0, 0
	for i, m := range s.shown[p.sid] {
		if m.Role != "tool" {
			if len(owed) > 0 {
				s.t.Errorf("%s: message %d is the %s's, and %q have no result", p.sid, i, m.Role, owed)
			}
			owed = owed[:0]
			for _, c := range m.Calls {
				owed = append(owed, c.ID)
			}
			continue
		}
		if len(owed) == 0 || m.CallID != owed[0] {
			s.t.Errorf("%s: message %d is the result of %s, want that of %q", p.sid, i, m.CallID, owed)
			return
		}
		owed = owed[1:]
		results++
		if m.Error && strings.Contains(m.Text, session.CodeCancelled) {
			cancelled++
		}
	}
	if len(owed) > 0 || results != called || cancelled != called-settled {
		s.t.Errorf("%s: %d calls were made and %d settled before the cancel; shown are %d results, %d of them cancelled", p.sid, called, settled, results, cancelled)
	}
}
