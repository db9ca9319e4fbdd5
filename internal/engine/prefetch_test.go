package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/meter"
)

func (m *memory) FirstSeqs(ctx context.Context, sids []string) ([]uint64, error) {
	seqs := make([]uint64, len(sids))
	err := m.do(ctx, call{op: "FirstSeqs"}, func() error {
		for i, sid := range sids {
			for _, e := range m.log {
				if e.Session == sid && (m.lagging == 0 || e.Seq < m.lagging) {
					seqs[i] = e.Seq
					break
				}
			}
		}
		return nil
	})
	return seqs, err
}

// looked returns how often sessions were looked at together, and how often each
// by itself.
func (s *stage) looked(sids ...string) (together, alone int) {
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for c, n := range s.mem.calls {
		switch c.op {
		case "FirstSeqs":
			together += n
		case "ReadSession":
			for _, sid := range sids {
				if c.sid == sid {
					alone += n
				}
			}
		}
	}
	return together, alone
}

// wantCounts compares how many events of each session are folded.
func (s *stage) wantCounts(want map[string]uint64) {
	s.t.Helper()
	for sid, n := range want {
		if a := s.actor.sessions[sid]; a == nil || a.state == nil || a.state.Count != n {
			s.t.Errorf("%s: got %+v, want %d events folded", sid, a, n)
		}
	}
}

// wantStoredBut wants stored what events say, but for a session whose former
// events nobody stored.
func (s *stage) wantStoredBut(old string, events ...session.Event) {
	s.t.Helper()
	for _, e := range events {
		if e.Session != old {
			s.wantStored(e)
		}
	}
}

func TestNewSessionsAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	r := meter.New()
	onStage(t, Options{Meters: Register(r, 0)}, func(t *testing.T, s *stage) {
		s.begin()
		var events []session.Event
		for _, sid := range []string{"s1", "s2", "s3"} {
			events = append(events, s.run(sid))
		}
		s.deliver(append(events, s.answer("s1", "r1t1", "a"))...)
		s.settle()
		s.wantCounts(map[string]uint64{"s1": 2, "s2": 1, "s3": 1})
		s.wantAcked(events...)
		s.wantStoredBut("old", events...)
		if together, alone := s.looked("s1", "s2", "s3"); alone != 0 || together < 1 || together > len(events) {
			t.Errorf("looked at %d times together, %d times alone; want once a batch, and never", together, alone)
		}
		if diff := cmp.Diff(census{"refold.sessions.loads{new}": 3}, counted(r, "refold.sessions.loads")); diff != "" {
			t.Errorf("counted loads (-want +got):\n%s", diff)
		}
	})
}

// A session that is not new is loaded, whatever follows its event.
func TestOldSessionsAreNotTakenForNew(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.run("old")
		s.answer("old", "r1t1", "a")
		before := s.run("before") // it was not delivered when the epoch began
		s.begin()
		events := []session.Event{before, s.run("old"), s.run("new")}
		s.deliver(events...)
		s.settle()
		s.wantCounts(map[string]uint64{"old": 3, "before": 1, "new": 1})
		s.wantAcked(events...)
		s.wantStoredBut("old", events...)
		if _, alone := s.looked("before"); alone == 0 {
			t.Error("a session that another owner may have folded was taken for new")
		}
	})
}

// A replica that lags or does not answer neither makes an old session new, nor
// keeps a new one from being folded.
func TestFailedFirstSeqsLoadSessionsOneByOne(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *stage, e session.Event){
		"behind": func(s *stage, e session.Event) { s.mem.lagging = e.Seq },
		"fails": func(s *stage, _ session.Event) {
			s.mem.planned(on(fails, func(c call) bool { return c.op == "FirstSeqs" }))
		},
	} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.run("old")
			s.answer("old", "r1t1", "a")
			s.begin()
			events := []session.Event{s.run("new"), s.run("old"), s.run("newer")}
			spoil(s, events[0])
			s.deliver(events...)
			s.settle()
			s.wantCounts(map[string]uint64{"old": 3, "new": 1, "newer": 1})
			s.wantAcked(events...)
			s.wantStoredBut("old", events...)
		})
	}
}
