package session_test

// The sendable law: whatever happens in whatever order, at every turn that is
// asked the conversation that its items stand for can be sent. It is put in the
// form of each provider (providers_*_test.go) and held against that provider's
// rules.
//
// REFOLD_INTERLEAVINGS says how many interleavings are tried (make nightly: a
// million), REFOLD_SEED which is the first. make check tries 50,000, and under
// the race detector a tenth of them. A failure prints its seed and the
// fewest of its events that still fail.

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/proof/strict"
)

// interleavings is how many are tried unless the environment says otherwise.
const interleavings = 50_000

func TestSendable(t *testing.T) {
	t.Parallel()
	install := weaveInstall(t)
	first, count := fromEnv(t, "REFOLD_SEED", 1), fromEnv(t, "REFOLD_INTERLEAVINGS", interleavings/raceFactor)
	var next, events, turns, longest atomic.Uint64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for !failed.Load() {
				n := next.Add(1) - 1
				if n >= count {
					return
				}
				w := newWeave(install, first+n)
				err := w.interleave()
				events.Add(uint64(len(w.log.history)))
				turns.Add(w.log.turns)
				if n := uint64(len(w.log.items)); n > longest.Load() {
					longest.Store(n)
				}
				if err != nil && !failed.Swap(true) {
					report(t, install, first+n, w.log.history, err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d interleavings, %d events, %d turns, at most %d items", next.Load()-uint64(runtime.GOMAXPROCS(0)), events.Load(), turns.Load(), longest.Load())
	if turns.Load() < 2*count {
		t.Errorf("%d turns were asked in %d interleavings: the draws have gone stale", turns.Load(), count)
	}
}

// fromEnv reads a number from the environment.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// interleave makes the interleaving, until a law is broken or it is over.
func (w *weave) interleave() error {
	for range 6 + w.rng.IntN(24) {
		if err := w.step(); err != nil {
			return err
		}
	}
	return w.log.over()
}

// report tells of a failure by the fewest events that show it.
func report(t *testing.T, install *session.Install, seed uint64, history []session.Event, err error) {
	t.Helper()
	least := shrink(history, func(events []session.Event) bool { return replayed(install, events) != nil })
	t.Errorf("REFOLD_SEED=%d REFOLD_INTERLEAVINGS=1: after %d events: %v\nthe fewest events that fail: %v\n%s",
		seed, len(history), err, replayed(install, least), asTest(least))
}

// shrink leaves out events as long as the rest still fails.
func shrink(history []session.Event, fails func([]session.Event) bool) []session.Event {
	for left := true; left; {
		left = false
		for i := len(history) - 1; i >= 0; i-- {
			if without := slices.Delete(slices.Clone(history), i, i+1); fails(without) {
				history, left = without, true
			}
		}
	}
	return history
}

// replayed folds events and returns the law that they break.
func replayed(install *session.Install, history []session.Event) error {
	s := newSendables(install)
	for _, e := range history {
		if err := s.take(e); err != nil {
			return err
		}
	}
	return s.over()
}

// sendables folds a history and holds every turn that it asks against the law.
type sendables struct {
	install *session.Install
	state   *session.State
	history []session.Event
	log     logged
	inputs  inputBooks
	asked   string // the generation that was looked at last
	items   []session.Item
	said    conversation // what items stand for
	window  string       // what is left out
	turns   uint64

	notices  []session.Notice // of the latest event
	rejected error
}

func newSendables(install *session.Install) *sendables {
	return &sendables{install: install, state: session.New(install, "s1"), log: newLogged(), inputs: newInputBooks()}
}

// fold takes in what is said next.
func (s *sendables) fold(door session.Door, at int64, payload []byte) error {
	return s.take(session.Event{Session: "s1", Door: door, Seq: uint64(2 + len(s.history)), Time: at, Payload: payload})
}

func (s *sendables) take(e session.Event) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("event %d: panic: %v", e.Seq, what)
		}
	}()
	s.history = append(s.history, e)
	s.log.events[e.Seq] = e
	before := s.state.ItemCount()
	notices, rejected := s.state.Evolve(e)
	if added := s.state.ItemCount() - before; len(s.state.ItemsSince(before)) != added {
		return fmt.Errorf("event %d: %d items came, and %d of them left at once", e.Seq, added, added-len(s.state.ItemsSince(before)))
	}
	s.notices, s.rejected = notices, rejected
	if err := s.inputs.enter(e, notices, rejected); err != nil {
		return err
	}
	if err := waitsRight(s.state.Run); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	t := s.state.Turn
	if t == nil || !t.Open || generationName(s.state) == s.asked {
		return nil
	}
	s.asked = generationName(s.state)
	return s.turn()
}

// windowOf says what of a transcript a generation leaves out. Within one window what was
// sent stays as it was.
func windowOf(g *session.Generation, items []session.Item) string {
	window := fmt.Sprint(g.Cut, g.Summary)
	for i, it := range items {
		if it.Shown != session.ShownWhole {
			window += fmt.Sprintf(" %d: %d bytes", i, it.Bytes)
		}
	}
	return window
}

// turn holds the generation that the latest event asked against the law.
func (s *sendables) turn() error {
	effects := s.state.OpenExcept(func(p session.Place) bool { return p.String() != s.asked })
	if len(effects) != 1 {
		return fmt.Errorf("%s is open, and %d effects are of that name", s.asked, len(effects))
	}
	var g session.Generation
	if err := codec.Unmarshal(effects[0].Payload, &g); err != nil {
		return fmt.Errorf("%s: %w", s.asked, err)
	}
	s.turns++
	items, err := g.Items.Items()
	if err != nil {
		return fmt.Errorf("%s: %w", s.asked, err)
	}
	if g.Compact != "" {
		return s.compaction(&g, items)
	}
	if window := windowOf(&g, items); window != s.window {
		s.items, s.said, s.window = nil, conversation{}, window
		if g.Cut > 0 { // the model is told of it
			s.said.messages = []message{{role: session.RoleUser, text: window}}
		}
	}
	if len(items) < len(s.items) || !slices.Equal(items[:len(s.items)], s.items) {
		return fmt.Errorf("%s: what was sent before is not sent again as it was", s.asked)
	}
	added := items[len(s.items):]
	s.items = items
	err = s.said.read(s.log, added)
	if err == nil {
		err = s.said.answerable()
	}
	if err == nil {
		err = sendable(s.said.messages)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.asked, err)
	}
	return nil
}

// compaction holds a compaction against the law. It shows the beginning of what the turn
// would show.
func (s *sendables) compaction(g *session.Generation, items []session.Item) error {
	var all conversation
	if g.Cut > 0 {
		all.messages = []message{{role: session.RoleUser, text: "a summary"}}
	}
	if err := all.read(s.log, items); err != nil {
		return fmt.Errorf("%s: %w", s.asked, err)
	}
	if err := sendable(append(all.messages, message{role: session.RoleUser, text: g.Compact})); err != nil {
		return fmt.Errorf("%s: %w", s.asked, err)
	}
	return nil
}

// sendable puts a conversation in every provider's form, and returns the first
// rule that is broken.
func sendable(conversation []message) error {
	for _, err := range []error{
		strict.Chat(renderChat(conversation)), strict.Responses(renderResponses(conversation)),
		strict.Anthropic(renderAnthropic(conversation)), strict.Gemini(renderGemini(conversation)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// over holds what the history left against the laws that need not be looked at
// after each event.
func (s *sendables) over() error {
	if err := s.state.Check(); err != nil {
		return err
	}
	if err := windowFault(s.state, func(seq uint64) session.Event { return s.log.events[seq] }); err != nil {
		return err
	}
	return s.inputs.settled(s.state)
}

// inputBooks is what became of every input, kept from outside: each is in the
// transcript once, or waits, or is listed as untaken, or its run was taken out
// of the queue, or an edit replaced it.
type inputBooks struct {
	taken       map[uint64]string // inputs that were taken: their type
	scheduled   []uint64          // events that set schedules
	submissions map[string]bool
	runs        map[uint32]uint64 // the input of each run that has not started
	gone        map[uint64]int    // untaken, taken out or replaced: how often
	ended       map[uint32]bool
}

func newInputBooks() inputBooks {
	return inputBooks{
		taken: map[uint64]string{}, submissions: map[string]bool{}, runs: map[uint32]uint64{}, gone: map[uint64]int{}, ended: map[uint32]bool{},
	}
}

// enter enters one event.
func (b *inputBooks) enter(e session.Event, notices []session.Notice, rejected error) error {
	if rejected == nil && (e.Door == session.DoorIn || e.Door == session.DoorCtl) {
		b.enterInput(e)
	}
	for _, n := range notices {
		switch d := n.Data.(type) {
		case session.RunPlaced:
			if n.Type == session.NoticeRunStarted {
				delete(b.runs, d.Run)
			} else {
				b.runs[d.Run] = d.Seq
			}
		case session.RunFinished:
			if b.ended[d.Run] {
				return fmt.Errorf("event %d: run %d ended again", e.Seq, d.Run)
			}
			b.ended[d.Run] = true
			if seq, queued := b.runs[d.Run]; queued {
				b.gone[seq]++
				delete(b.runs, d.Run)
			}
			if len(d.Untaken) > 0 && d.Lifecycle != session.Cancelled {
				return fmt.Errorf("event %d: run %d ended %s and dropped %v", e.Seq, d.Run, d.Lifecycle, d.Untaken)
			}
			for _, seq := range d.Untaken {
				b.gone[seq]++
			}
		}
	}
	return nil
}

// inputTypes returns the types of events with an input.
func inputTypes() []string {
	return []string{session.TypeRunRequested, session.TypeSteerRequested, session.TypeRunEdited, session.TypeScheduleSet}
}

func (b *inputBooks) enterInput(e session.Event) {
	if !slices.ContainsFunc(inputTypes(), func(typ string) bool { return bytes.Contains(e.Payload, []byte(typ)) }) {
		return
	}
	env := envelopeOf(e.Payload)
	switch env.Type {
	case session.TypeScheduleSet: // it may be requested as often as it fires
		b.scheduled = append(b.scheduled, e.Seq)
	case session.TypeSteerRequested:
		b.taken[e.Seq] = env.Type
	case session.TypeRunEdited:
		var edited session.RunEdited
		if codec.Decode(env.Data, &edited) == nil {
			b.gone[b.runs[edited.Run]]++
			b.taken[e.Seq] = env.Type
		}
	case session.TypeRunRequested:
		var request session.RunRequested
		if codec.Decode(env.Data, &request) != nil {
			return
		}
		if request.Submission == "" || !b.submissions[request.Submission] { // else it is a repeat, and says nothing
			b.taken[e.Seq] = env.Type
		}
		b.submissions[request.Submission] = true
	}
}

// settled checks that every input is in one place. Others than the active run's may have
// left the window.
func (b *inputBooks) settled(s *session.State) error {
	places := make(map[uint64]int, len(b.taken))
	for seq, n := range b.gone {
		places[seq] += n
	}
	for i := range s.Items {
		if s.Items[i].Role == session.RoleUser && s.Items[i].Code == "" {
			places[s.Items[i].Seq]++
		}
	}
	if s.Run != nil {
		for _, steer := range s.Run.Steers {
			places[steer.Seq]++
		}
	}
	for i := range s.Queue {
		places[s.Queue[i].Seq]++
		for _, steer := range s.Queue[i].Steers {
			places[steer.Seq]++
		}
	}
	for _, seq := range b.scheduled {
		delete(places, seq)
	}
	left := uint32(0)
	for seq, typ := range b.taken {
		if places[seq] == 0 && s.Window != nil && (s.Run == nil || seq != s.Run.Seq) {
			if left++; left <= s.Window.Cut {
				continue
			}
		}
		if places[seq] != 1 {
			return fmt.Errorf("the input of event %d, %s, is in %d places", seq, typ, places[seq])
		}
	}
	for seq := range places {
		if b.taken[seq] == "" {
			return fmt.Errorf("event %d brought no input, and is one", seq)
		}
	}
	return nil
}
