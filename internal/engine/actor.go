package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
)

// actor is one session in memory, with its two marks: it is folded up to
// state.Seq, and stored up to stored.
type actor struct {
	sid    string
	state  *session.State  // nil: stopped, or broken by a fault and never used again
	stored uint64          // all outputs of all events up to here are acknowledged
	asked  []session.Place // open effects that were asked since it was loaded; nil: none yet
	proven bool            // its place in the log is known, in this epoch
	stop   *Stop           // quarantined; nil: not

	accepted bool // it was released although the log lost events of it

	snapped  uint64 // events folded when the last snapshot was taken; 0: in none
	barred   bool   // its state is not what the log folds to: it is not to be snapshotted
	used     uint64 // when it was used last, by the lane's count
	batch    uint64 // the latest batch that it had outputs in, by the lane's count
	storing  *batch // that stores something of it; nil: none
	stopping bool   // its quarantine is being stored, and nothing else of it meanwhile
	bytes    int    // that it takes, about, without its registries
	progress []byte // lines that its events in one batch say, while they are put together
	loaded   []byte // the snapshot that it was loaded from, until the lane has taken note; nil: none, or not to be verified

	moments []moment // for durations

	tracing *tracing // its spans; nil: none are asked for, or it was just loaded

	registries []*planner.Registry // of its own that are counted: see State.ShareRegistries
}

// stops reports whether the session is quarantined at seq.
func (s *actor) stops(seq uint64) bool { return s.stop != nil && s.stop.Seq <= seq }

// settled reports whether the state is stored: only such a one is snapshotted.
func (s *actor) settled() bool { return s.state != nil && s.stored == s.state.Seq }

// outputs are what one folded event wants stored before it is acknowledged.
// What is stored is taken out. actor is nil if it wants nothing.
type outputs struct {
	arrival  *Delivered
	actor    *actor
	pending  []journal.Output  // withdrawals, effects but wakes, notices
	wakes    []journal.Output  // stored behind all else (wakes.go)
	cancel   []string          // effects to be stopped wherever they run, once their withdrawals are stored
	progress []byte            // lines, to be published once all of it is stored
	spans    []*timeline.Span  // that ended, to be told once all of it is stored
	registry *planner.Registry // that the event set; nil: none
	tally    *tally            // what it adds to the metrics once it is stored; nil: nothing is measured
	failed   error             // why one of them can never be stored: the session is quarantined for it
	parked   bool              // it waits for work that is under way for its session
	done     bool              // all is stored
}

// hasOutputs reports whether anything is to be stored.
func (o *outputs) hasOutputs() bool {
	return len(o.pending) > 0 || len(o.wakes) > 0 || len(o.cancel) > 0 || len(o.progress) > 0 || o.registry != nil
}

// next folds the session's next event, that of o, and fills in what it wants
// stored. After an error, a *panicError, the actor is broken.
func (h *Host) next(s *actor, o *outputs) (err error) {
	defer func() { err = recovered(recover(), err) }()
	before := s.state.NextRegistry()
	counts := h.meters.tally(s.state)
	ended := h.meters.folding(o.arrival.Event)
	notices, _ := h.evolve(s.state, o.arrival.Event) // what is rejected says so in a notice
	ended()
	s.state.ShareRegistries(h.registries.same)
	*o = outputs{arrival: o.arrival, actor: s, tally: counts}
	effects, withdrawn := s.unasked(), s.state.Withdrawals()
	if n := len(effects) + len(withdrawn) + len(notices); n > 0 {
		o.pending = make([]journal.Output, 0, n)
	}
	for _, w := range withdrawn {
		o.cancel = append(o.cancel, w.Name)
		if w.Claimed {
			o.pending = append(o.pending, journal.Output{Session: s.sid, Withdraw: &w})
		}
	}
	o.pending, o.wakes = appendAsks(o.pending, s.sid, effects)
	for _, n := range notices {
		o.pending = append(o.pending, journal.Output{Session: s.sid, Notice: n.JSON(), N: n.N})
	}
	progress := s.state.Progress()
	for _, n := range progress {
		o.progress = joined(o.progress, append(n.JSON(), '\n'))
	}
	if h.opts.Traces != nil {
		h.trace(s, o, notices, progress)
	}
	if now := s.state.NextRegistry(); now != before {
		o.registry = now
	}
	h.meters.count(counts, s, o.arrival.Event, notices, progress)
	return nil
}

// joined returns some lines and more of them. Most events say one.
func joined(lines, more []byte) []byte {
	if len(lines) == 0 {
		return more
	}
	return append(lines, more...)
}

// appendAsks appends the outputs that ask for effects of a session, and returns
// wakes separately.
func appendAsks(outputs []journal.Output, sid string, effects []session.Effect) (all, wakes []journal.Output) {
	for i := range effects {
		one := journal.Output{Session: sid, Effect: &effects[i]}
		if effects[i].Class == session.ClassWake {
			wakes = append(wakes, one)
		} else {
			outputs = append(outputs, one)
		}
	}
	return outputs, wakes
}

// unasked returns the open effects that were not asked yet, and takes all that
// are open as asked. Names of what is settled are forgotten: they are never open
// again.
func (s *actor) unasked() []session.Effect {
	var room [32]session.Place // most of the time that is enough, and nothing is allocated
	open := room[:0]
	effects := s.state.OpenBeside(func(p session.Place) bool {
		open = append(open, p)
		return slices.Contains(s.asked, p)
	})
	if s.asked = append(s.asked[:0], open...); s.asked == nil {
		s.asked = []session.Place{}
	}
	return effects
}

// fold folds an event whose outputs are stored.
func (h *Host) fold(state *session.State, e session.Event) (err error) {
	defer func() { err = recovered(recover(), err) }()
	_, _ = h.evolve(state, e) // a rejection is part of the history
	_ = state.Progress()      // it was said, or is too old to be of use
	return nil
}

// snapshotOf returns a state's snapshot, encoded.
func snapshotOf(state *session.State) (data []byte, err error) {
	defer func() { err = recovered(recover(), err) }()
	return state.Snapshot().Bytes(), nil
}

// panicError says that the fold panicked: a fault of this program, which stops
// one session.
type panicError struct {
	value any
	stack []byte // for the log: where it happened
}

func (e *panicError) Error() string { return fmt.Sprintf("the fold panicked: %v", e.value) }

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// recovered returns the error that a panic with v is, err if there was none.
func recovered(v any, err error) error {
	if v != nil {
		return &panicError{v, debug.Stack()}
	}
	return err
}
