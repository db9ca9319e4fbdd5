package engine

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
)

// actor is one session in memory. It is folded up to state.Seq, and its outputs are
// stored up to stored.
type actor struct {
	sid      string
	state    *session.State  // nil: stopped, or broken by a fault and never used again
	stored   uint64          // all outputs of all events up to here are stored
	emitted  []session.Place // open effects that were emitted since it was loaded; nil: none yet
	proven   bool            // the log still has its events, as checked in this epoch
	stop     *Stop           // its quarantine; nil: none
	retryAt  time.Time       // when its failed work is due to be tried again, if it is quarantined for that
	retrying bool
	passing  int         // how many of its next events were delivered before its quarantine was read
	unstored atomic.Bool // its quarantine could not be stored

	owes     bool // it was erased, and its tombstone is not stored
	refolded bool // it was folded from the log's beginning after its release: its stored snapshot may be wrong

	snapped  uint64 // events folded when its last snapshot was taken; 0: no snapshot
	used     uint64 // the lane's clock at its last use
	batch    uint64 // number of the latest batch with outputs of it
	storing  *batch // the batch that is storing outputs of it; nil: none
	stopping bool   // its quarantine is being stored; no output of it is stored until then
	bytes    int    // memory that it takes, about, without its registries
	progress []byte // progress lines of its events in one batch, while they are joined

	moments []moment // starting points of durations

	tracing *tracing // nil: runs are not traced, or it was just loaded

	registries []*planner.Registry // set by the session itself and counted by the host: see State.ShareRegistries
}

// isStopped reports whether the session is quarantined at or before seq.
func (s *actor) isStopped(seq uint64) bool { return s.stop != nil && s.stop.Seq <= seq }

// settled reports whether all outputs of the state are stored: only then it may be
// snapshotted.
func (s *actor) settled() bool { return s.state != nil && s.stored == s.state.Seq }

// outputs are what one folded event needs stored before it is acknowledged. Stored
// outputs are removed. actor is nil if there are none.
type outputs struct {
	arrival   *Delivered
	actor     *actor
	pending   []journal.Output  // withdrawals, effects except wakes, events for other sessions, notices
	wakes     []journal.Output  // stored after all else (wakes.go)
	cancel    []string          // withdrawn effects, to be stopped on bridges once the withdrawals are stored
	progress  []byte            // progress lines, published once everything is stored
	spans     []*timeline.Span  // ended spans, exported once everything is stored
	registry  *planner.Registry // set by the event, or missed by a bridge; nil: none
	tally     *tally            // added to the metrics once everything is stored; nil: nothing is measured
	failed    error             // why an output can never be stored: the session is quarantined for it
	stuck     [kindsMax]bool    // the kinds of outputs that were not stored in the latest try
	trouble   error             // why the first of them was not
	held      bool              // it waits for descriptors of its session
	isolation isolation
	parked    bool // it waits for work on its session
	done      bool // everything is stored
}

func (o *outputs) hasOutputs() bool {
	return len(o.pending) > 0 || len(o.wakes) > 0 || len(o.cancel) > 0 || len(o.progress) > 0 || o.registry != nil
}

// next folds the event of o, its session's next one, and fills in o's outputs.
// After a *panicError the actor is broken; any other error is that of Foldable.
func (h *Host) next(s *actor, o *outputs) (err error) {
	defer func() { err = recovered(recover(), err) }()
	if err := s.state.Foldable(); err != nil {
		return err
	}
	before := s.state.NextRegistry()
	counts := h.meters.tally(s.state)
	ended := h.meters.folding(o.arrival.Event)
	notices, _ := h.evolve(s.state, o.arrival.Event) // the notice of a rejection has the reason
	ended()
	s.owesTombstone()
	s.state.ShareRegistries(h.registries.same)
	*o = outputs{arrival: o.arrival, actor: s, tally: counts}
	effects, withdrawn, messages := s.newEffects(), s.state.Withdrawals(), s.state.Messages()
	if n := len(effects) + len(withdrawn) + len(messages) + len(notices); n > 0 {
		o.pending = make([]journal.Output, 0, n)
	}
	for _, w := range withdrawn {
		o.cancel = append(o.cancel, w.Name)
		if w.Claimed {
			o.pending = append(o.pending, journal.Output{Session: s.sid, Withdraw: &w})
		}
	}
	o.pending, o.wakes = appendEffects(o.pending, s.sid, effects)
	for i := range messages {
		id := fmt.Sprintf("%s.%d.%d", s.sid, o.arrival.Event.Seq, i)
		o.pending = append(o.pending, journal.Output{Session: s.sid, Event: &messages[i], ID: id})
	}
	o.pending = appendNotices(o.pending, s.sid, notices)
	progress := s.state.Progress()
	for _, n := range progress {
		o.progress = joined(o.progress, append(n.JSON(), '\n'))
	}
	if h.opts.Traces != nil {
		h.trace(s, o, notices, progress)
	}
	if now := s.state.NextRegistry(); now != before && now.Hash() != before.Hash() || misses(o.arrival.Event) {
		o.registry = now
	}
	h.meters.count(counts, s, o.arrival.Event, notices, progress)
	return nil
}

// appendNotices adds the notices of an event as the lines of one message, or of more
// if one has no room: a message costs more than its lines. A message has the number of
// its last notice.
func appendNotices(pending []journal.Output, sid string, notices []session.Notice) []journal.Output {
	first := len(pending)
	for _, n := range notices {
		line, last := n.JSON(), len(pending)-1
		if last < first || len(pending[last].Notice)+1+len(line) > session.NoticeBytesMax {
			pending = append(pending, journal.Output{Session: sid, Notice: line, N: n.N})
			continue
		}
		o := &pending[last]
		o.Notice, o.N = append(append(o.Notice, '\n'), line...), n.N
	}
	return pending
}

// misses reports whether an event may be the settlement of a turn whose descriptors were
// not stored. They are stored again for the next one.
func misses(e session.Event) bool {
	return e.Door == session.DoorLLM && bytes.Contains(e.Payload, []byte(codeDescriptorMissing))
}

// joined appends lines to lines. Most events have one.
func joined(lines, more []byte) []byte {
	if len(lines) == 0 {
		return more
	}
	return append(lines, more...)
}

// appendEffects appends a session's effects to outputs, and returns wakes separately.
func appendEffects(outputs []journal.Output, sid string, effects []session.Effect) (all, wakes []journal.Output) {
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

// newEffects returns the open effects that were not emitted yet, and marks all open
// effects as emitted. Names of settled effects are forgotten: they never open
// again.
func (s *actor) newEffects() []session.Effect {
	var room [32]session.Place // usually large enough, so that nothing is allocated
	open := room[:0]
	effects := s.state.OpenExcept(func(p session.Place) bool {
		open = append(open, p)
		return slices.Contains(s.emitted, p)
	})
	if s.emitted = append(s.emitted[:0], open...); s.emitted == nil {
		s.emitted = []session.Place{}
	}
	return effects
}

// fold folds an event whose outputs are already stored.
func (h *Host) fold(state *session.State, e session.Event) (err error) {
	defer func() { err = recovered(recover(), err) }()
	if err := state.Foldable(); err != nil {
		return err
	}
	_, _ = h.evolve(state, e) // a rejected event is part of the history
	_ = state.Messages()      // they are stored
	_ = state.Progress()      // already published, or too old to matter
	return nil
}

func snapshotOf(state *session.State) (data []byte, err error) {
	defer func() { err = recovered(recover(), err) }()
	return state.Snapshot().Bytes(), nil
}

// panicError reports a panic in the fold. It is a fault of this program, and stops
// one session.
type panicError struct {
	value any
	stack []byte // where it happened
}

func (e *panicError) Error() string { return fmt.Sprintf("the fold panicked: %v", e.value) }

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// recovered returns the error for a recovered panic value v; err if v is nil.
func recovered(v any, err error) error {
	if v != nil {
		return &panicError{v, debug.Stack()}
	}
	return err
}
