package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// Limits of what is kept of sessions that are looked at. All of it can be folded again.
const (
	checkpointEach    = 512       // events between two states that are kept
	historiesMax      = 16        // sessions
	historiesBytesMax = 256 << 20 // of all of them
	historyEventsMax  = 250_000   // of a session
	foldsMax          = 4         // folds at once
	lineBytesMax      = 240       // of a line about an event
	headBytes         = 400       // about what is kept of an event
)

// histories are the sessions that were looked at last.
type histories struct {
	mu   sync.Mutex
	all  map[string]*history
	used []string // session ids, the latest one last

	folding chan struct{}
}

func newHistories() *histories {
	return &histories{all: map[string]*history{}, folding: make(chan struct{}, foldsMax)}
}

// history is a session's events, folded once, with a state at each checkpointEach-th.
type history struct {
	turn chan struct{} // a mutex: holds one while a request reads or folds it

	heads   []EventHead
	chains  []codec.Hash       // after each event
	states  []session.Snapshot // after the events 1, 1+checkpointEach, …
	latest  *session.State     // nil: no event is folded yet
	spans   []*timeline.Span
	tracker timeline.Tracker
	turns   []TurnShown
	effects []EffectShown
	open    map[string]int // open effects: their places in effects
	opening bool           // the step hook of the latest turn has not answered
	reader  *transcript.Reader
	lines   []string     // that the reader wrote about the event at hand
	bytes   atomic.Int64 // about what it takes; others read it
}

func newHistory() *history {
	h := &history{turn: make(chan struct{}, 1), tracker: timeline.NewTracker(0, nil), open: map[string]int{}}
	h.reader = transcript.NewReader(transcript.Briefly, func(e *transcript.Entry) {
		if line := strings.TrimRight(strings.TrimSpace(e.OneLine()), ": "); line != "" {
			h.lines = append(h.lines, line)
		}
	})
	return h
}

// history returns the call's session up to its newest event. The caller must call leave
// when it has read what it needs.
func (c *call) history() (h *history, leave func(), err error) {
	all := c.histories
	all.mu.Lock()
	if h = all.all[c.sid]; h == nil {
		h = newHistory()
		all.all[c.sid] = h
	}
	all.used = append(slices.DeleteFunc(all.used, func(sid string) bool { return sid == c.sid }), c.sid)
	all.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
	case <-c.ctx().Done():
		return nil, nil, c.ctx().Err()
	}
	err = c.folded(func() error { return h.update(c.ctx(), c.client, c.sid) })
	if err == nil && h.latest == nil {
		err = client.ErrNoSession
	}
	leave = func() {
		<-h.turn
		all.evict(c.sid, h)
	}
	if err != nil {
		h.latest = nil // what failed may have left it half folded
		all.forget(c.sid, h)
		leave()
		return nil, nil, err
	}
	return h, leave, nil
}

// folded folds when not too many others do.
func (c *call) folded(fold func() error) error {
	select {
	case c.histories.folding <- struct{}{}:
	case <-c.ctx().Done():
		return c.ctx().Err()
	}
	defer func() { <-c.histories.folding }()
	return fold()
}

// forget drops a session, if h is what is kept of it, or nil.
func (a *histories) forget(sid string, h *history) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept := a.all[sid]; kept != nil && (h == nil || kept == h) {
		delete(a.all, sid)
		a.used = slices.DeleteFunc(a.used, func(of string) bool { return of == sid })
	}
}

// evict drops the sessions that were not looked at for longest, until the rest is within
// the limits. A request that reads one goes on with it.
func (a *histories) evict(sid string, h *history) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[sid] != h {
		return
	}
	total := int64(0)
	for _, of := range a.all {
		total += of.bytes.Load()
	}
	for len(a.used) > historiesMax || len(a.used) > 1 && total > historiesBytesMax {
		total -= a.all[a.used[0]].bytes.Load()
		delete(a.all, a.used[0])
		a.used = a.used[1:]
	}
}

// update folds the events that the log has got since.
func (h *history) update(ctx context.Context, c *client.Client, sid string) error {
	next := uint64(0)
	if h.latest != nil {
		next = h.latest.Seq + 1
	}
	fold := c.Folder(sid)
	if h.latest != nil {
		fold = func(_ context.Context, e session.Event) ([]session.Notice, *session.State, error) {
			if err := h.latest.Foldable(); err != nil {
				return nil, nil, err
			}
			notices, _ := h.latest.Evolve(e) // a rejection is among the notices
			return notices, h.latest, nil
		}
	}
	for e, err := range c.Read(ctx, sid, next, 0) {
		if err != nil {
			return err
		}
		if len(h.heads) >= historyEventsMax {
			return problem(http.StatusUnprocessableEntity, CodeTooLarge, "the session has more than %d events: read it with refold log, refold replay and refold transcript", historyEventsMax)
		}
		notices, state, err := fold(ctx, e)
		if err != nil {
			return err
		}
		h.latest = state
		h.add(e, notices, state)
	}
	return nil
}

// add keeps what is shown of an event.
func (h *history) add(e session.Event, notices []session.Notice, state *session.State) {
	h.lines = h.lines[:0]
	progress := state.Progress() // both are told of it
	h.reader.Read(e, slices.Concat(progress, notices), state)
	h.spans = append(h.spans, h.tracker.Follow(state, notices, progress, "")...)
	head := EventHead{Seq: e.Seq, N: len(h.heads) + 1, Time: e.Time, Door: string(e.Door), Bytes: len(e.Payload), Line: cutLine(h.lines)}
	if env, err := session.ReadEnvelope(e.Payload); err == nil {
		head.Type, head.By = env.Type, env.By
	}
	for _, n := range notices {
		if d, ok := n.Data.(session.EventRejected); ok {
			head.Rejected = string(d.Code)
			continue
		}
		head.Notices = append(head.Notices, n.Type)
	}
	switch {
	case state.Run != nil:
		head.Run = state.Run.Number
	case state.Last != nil:
		head.Run = state.Last.Number
	}
	if t := state.Turn; t != nil {
		head.Turn = fmt.Sprintf("r%dt%d", t.Run, t.Number)
		h.addTurn(head.Turn, e.Seq, t)
	}
	head.Opened = h.addEffects(e, state)
	h.heads, h.chains = append(h.heads, head), append(h.chains, state.Chain)
	h.bytes.Add(int64(headBytes + len(head.Line)))
	if (head.N-1)%checkpointEach == 0 {
		snap := state.Snapshot()
		h.states = append(h.states, snap)
		h.bytes.Add(int64(len(snap.State)))
	}
}

// cutLine returns lines as one, of a bounded length.
func cutLine(lines []string) string {
	return cutText(strings.Join(lines, " · "), lineBytesMax)
}

// addTurn keeps where the tools of a turn were decided: at its beginning, when its step
// hook answered, or when a run was resumed that was paused meanwhile.
func (h *history) addTurn(name string, seq uint64, t *session.Turn) {
	isOpen := t.Step != nil && t.Step.Open
	turn := TurnShown{Turn: name, Seq: seq}
	if t.RunMS != 0 {
		turn.Toolset = t.Toolset.Fingerprint.String()
	}
	switch last := len(h.turns) - 1; {
	case last < 0 || h.turns[last].Turn != name:
		h.turns = append(h.turns, turn)
	case h.opening, h.turns[last].Toolset == "" && turn.Toolset != "":
		h.turns[last] = turn
	default:
		return
	}
	h.opening = isOpen
}

// addEffects keeps the effects that an event opened, and the end of those that are not
// open any more. It returns the names of the first. Those of models have a name alone until
// describe: encoding them costs more than folding their sessions.
func (h *history) addEffects(e session.Event, state *session.State) (opened []string) {
	now := map[string]bool{}
	add := func(asked EffectAsked) {
		h.open[asked.Effect] = len(h.effects)
		h.effects = append(h.effects, EffectShown{EffectAsked: asked, Seq: e.Seq, Asked: state.Clock})
		h.bytes.Add(headBytes)
		opened = append(opened, asked.Effect)
	}
	state.EachOpen(nil, func(p session.Place) bool {
		name := p.String()
		now[name] = true
		_, known := h.open[name]
		if !known && p.Class() == session.ClassLLM {
			add(EffectAsked{Effect: name, Class: string(session.ClassLLM)})
			return true
		}
		return known
	}, func(_ session.Place, effect session.Effect) { add(askedOf(&effect)) })
	for name, at := range h.open {
		if !now[name] {
			h.effects[at].Ended, h.effects[at].EndedSeq = state.Clock, e.Seq
			delete(h.open, name)
		}
	}
	return opened
}

// describe completes the effects from a place on. It folds the events that opened them
// again.
func (c *call) describe(h *history, from int) error {
	without := func(e EffectShown) bool { return e.Hash == "" }
	first := slices.IndexFunc(h.effects[from:], without)
	if first < 0 {
		return nil
	}
	first += from
	place, err := h.exact(h.effects[first].Seq)
	if err != nil {
		return err
	}
	state, err := c.at(h, place)
	if err != nil {
		return err
	}
	h.fill(state, first)
	return c.folded(func() error {
		for e, err := range c.client.Read(c.ctx(), c.sid, state.Seq+1, h.effects[len(h.effects)-1].Seq) {
			if err != nil {
				return err
			}
			_, _ = state.Evolve(e)
			h.fill(state, first)
		}
		return nil
	})
}

// fill completes the effects from a place on that the state's last event opened.
func (h *history) fill(state *session.State, from int) {
	at, found := slices.BinarySearchFunc(h.effects[from:], state.Seq, func(e EffectShown, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	if !found {
		return
	}
	opened := h.effects[from+at:]
	h.complete(state, func(name string) int {
		i := slices.IndexFunc(opened, func(e EffectShown) bool { return e.Seq > state.Seq || e.Effect == name })
		if i < 0 || opened[i].Seq > state.Seq {
			return -1
		}
		return from + at + i
	})
}

// complete completes those of the state's open effects for which find returns a place.
func (h *history) complete(state *session.State, find func(name string) int) {
	state.EachOpen(nil, func(p session.Place) bool {
		at := find(p.String())
		return at < 0 || h.effects[at].Hash != ""
	}, func(_ session.Place, effect session.Effect) {
		h.effects[find(effect.Name)].EffectAsked = askedOf(&effect)
	})
}

func askedOf(e *session.Effect) EffectAsked {
	return EffectAsked{
		Effect: e.Name, Class: string(e.Class), Target: e.Target, Deadline: e.Deadline, StartBy: e.StartBy,
		Bytes: len(e.Payload), Hash: codec.Sum(e.Payload).String(),
	}
}

// find returns the place of the session's last event whose sequence is at most seq; 0 as
// seq is the newest one.
func (h *history) find(seq uint64) (int, error) {
	if seq == 0 {
		return len(h.heads) - 1, nil
	}
	at, found := slices.BinarySearchFunc(h.heads, seq, func(e EventHead, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	if !found {
		at--
	}
	if at < 0 {
		return 0, problem(http.StatusNotFound, CodeNoEvent, "the session has no event up to %d: its first one is at %d", seq, h.heads[0].Seq)
	}
	return at, nil
}

// exact returns the place of the session's event at seq.
func (h *history) exact(seq uint64) (int, error) {
	at, err := h.find(seq)
	if err == nil && h.heads[at].Seq != seq {
		err = problem(http.StatusNotFound, CodeNoEvent, "event %d is of another session, or of none", seq)
	}
	return at, err
}

// at returns a copy of the state after the event at a place, which the caller owns. It
// folds at most checkpointEach-1 events. Before the first event it is nil.
func (c *call) at(h *history, place int) (state *session.State, err error) {
	if place < 0 {
		return nil, nil
	}
	err = c.folded(func() error {
		snap := h.states[place/checkpointEach]
		if place == len(h.heads)-1 {
			snap = h.latest.Snapshot()
		}
		if state, err = c.client.Restore(c.ctx(), snap); err != nil || state.Seq == h.heads[place].Seq {
			return err
		}
		for e, err := range c.client.Read(c.ctx(), c.sid, state.Seq+1, h.heads[place].Seq) {
			if err != nil {
				return err
			}
			_, _ = state.Evolve(e)
		}
		return nil
	})
	return state, err
}
