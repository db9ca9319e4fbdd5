package engine

import (
	"slices"
	"strings"
)

// Status is what a lane has in memory, for tests.
type Status struct {
	Sessions []SessionStatus // by name
	Waits    int             // folded events that are not stored
	Loaded   int             // sessions with pending work
	Loading  int             // loads of sessions for events
	Putting  int             // snapshots on their way to the bucket
	Most     int             // sessions that it may keep; 0: no limit
}

// SessionStatus is a session in memory.
type SessionStatus struct {
	Session         string
	Seq             uint64
	Hash            func() string // of the state; valid until the next Step
	Proven, Stopped bool
	Asked           int // effect names that are remembered
}

// Status returns what the lane has in memory.
func (l *Lane) Status() Status {
	m := Status{Waits: len(l.folded), Loaded: len(l.parked), Loading: l.loading + len(l.loads), Most: l.host.opts.SessionsMax, Putting: len(l.snapshots.waiting) + len(l.snapshots.under)}
	for _, b := range slices.Concat(l.storing, l.waking) {
		m.Waits += len(b.outputs)
	}
	for sid, a := range l.sessions {
		one := SessionStatus{Session: sid, Proven: a.proven, Stopped: a.stop != nil, Asked: len(a.emitted)}
		if a.state != nil && a.proven {
			one.Seq, one.Hash = a.state.Seq, func() string { return a.state.Hash().String() }
		}
		m.Sessions = append(m.Sessions, one)
	}
	slices.SortFunc(m.Sessions, func(a, b SessionStatus) int { return strings.Compare(a.Session, b.Session) })
	return m
}
