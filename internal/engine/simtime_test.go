package engine

// What the simulation does with time, with people and with bridges: hours pass,
// runs are cancelled, paused, interrupted and steered, calls are approved, and
// bridges claim what they start. Wakes that are due are settled by either host.

import (
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
)

// simApproval is how long a call waits for a person.
const simApproval = 3 * tenMinutes

// controls are the requests about runs.
var controls = []string{
	session.TypeRunCancelRequested, session.TypeRunInterrupt, session.TypeRunPauseRequested, session.TypeRunResumeRequested, session.TypeSteerRequested,
}

// control draws what a person wants of the active run, nil data if nothing.
func (s *sim) control(state *session.State) (session.Door, string, any) {
	if state.Run == nil {
		return "", "", nil
	}
	if batch := state.View().Batch; batch != nil && s.draw(3) > 0 {
		for _, c := range batch.Calls {
			if c.Status == session.CallAwaiting {
				return session.DoorApprove, session.TypeApprovalDecided, map[string]any{
					"call": c.Effect, "args_hash": c.ArgsHash, "decision": []string{session.DecisionApprove, session.DecisionDeny}[s.draw(3)/2],
				}
			}
		}
	}
	switch {
	case state.Run.Lifecycle == session.Paused && s.draw(2) == 0:
		return session.DoorIn, session.TypeRunResumeRequested, map[string]any{}
	case s.draw(9) > 0:
		return "", "", nil
	}
	typ := controls[s.draw(len(controls))]
	if typ == session.TypeSteerRequested {
		return session.DoorIn, typ, map[string]any{"input": map[string]any{"text": "rather this"}}
	}
	return session.DoorIn, typ, map[string]any{}
}

// append appends an event of a session and folds it.
func (s *sim) append(door session.Door, sid string, payload []byte) session.Event {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	defer s.server.signal()
	e := s.mem.append(door, sid, payload)
	s.server.folded[sid].fold(e)
	return e
}

// jump lets a long time pass, in which one host has the lane.
func (s *sim) jump() {
	s.server.pin(s.hosts[s.draw(2)].lane)
	<-time.After(time.Duration(1+s.draw(25)) * time.Minute)
	s.fire()
}

// fire has hosts settle the wakes that are due. What they could not settle stays.
func (s *sim) fire() {
	s.mem.mu.Lock()
	due := maps.Clone(s.mem.timers)
	s.mem.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(due)) {
		sid, wake, _ := strings.Cut(name, " ")
		if now := time.Now(); due[name].at <= now.UnixMilli() && s.hosts[len(name)%2].host.SettleDue(s.t.Context(), sid, wake, due[name].payload, now) == 0 {
			s.mem.unschedule(name)
		}
	}
}

// bridge lets one of two bridges claim what was asked. What an acknowledged
// event has withdrawn must never be started.
func (s *sim) bridge() {
	by := []string{"b1", "b2"}[s.draw(2)]
	for sid, o := range s.server.folded {
		s.server.mu.Lock()
		claimed, withdrawn := map[string]bool{}, map[string]bool{}
		for _, one := range o.owed {
			for _, e := range one.effects {
				claimed[e.Name] = e.Claimed
			}
			for _, w := range one.withdrawn {
				withdrawn[w.Name] = withdrawn[w.Name] || one.seq <= s.server.floor
			}
		}
		s.server.mu.Unlock()
		for _, name := range s.mem.asked(sid) {
			if !claimed[name] || s.started[sid+" "+name] != "" || s.draw(3) > 0 {
				continue
			}
			if !s.mem.claim(sid+" "+name, by) {
				continue
			}
			s.started[sid+" "+name] = by
			if withdrawn[name] {
				s.t.Errorf("%s starts %s of %s after its withdrawal was acknowledged", by, name, sid)
			}
		}
	}
}

// calmDown lets hours pass in which all works.
func (s *sim) calmDown() {
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	s.server.pin(s.hosts[s.draw(2)].lane)
	for range 18 {
		<-time.After(tenMinutes)
		s.fire()
	}
	<-time.After(time.Minute)
	synctest.Wait()
}

// judgeTime looks for what is overdue when all is done.
func (s *sim) judgeTime() {
	hourAgo := time.Now().Add(-time.Hour).UnixMilli()
	for sid, o := range s.server.folded {
		for _, w := range o.state.Wakes {
			if w.Due < hourAgo {
				s.t.Errorf("%s: wake %d is due since %v and open", sid, w.Number, time.UnixMilli(w.Due))
			}
		}
	}
	for name, by := range s.started {
		if holder := s.mem.claims[name]; holder != by {
			s.t.Errorf("%s was started by %s, and %q has the claim", name, by, holder)
		}
	}
	for name, by := range s.mem.claims {
		if by != "" && s.started[name] == "" {
			s.t.Errorf("%s is claimed by %s and not started", name, by)
		}
	}
}
