package session

import (
	"cmp"
	"fmt"
	"slices"
)

// ContextConfig is how a transcript that grows is kept within what a model accepts.
// Without it the whole transcript is shown, and a run whose transcript is too long fails.
//
// The window is what a model is shown of the transcript. Results are cleared first: one
// line stands in the place of each. Then the oldest turns leave the window, and a summary
// that a model writes takes their place. The active run's input and its steers always
// stay.
type ContextConfig struct {
	// Percent of `tokens` from which results of earlier calls are cleared; 60 if absent.
	ClearAt int `msgpack:"clear_at,omitempty" lim:"1..100"`
	// Percent of `tokens` from which the oldest turns leave the window, so that at most
	// half of it is left; 80 if absent.
	CompactAt int `msgpack:"compact_at,omitempty" lim:"1..100"`
	// The latest turns whose results are not cleared; 6 if absent. Fewer, if the window
	// is too large all the same.
	KeepTurns int `msgpack:"keep_turns,omitempty" lim:"1..TurnsMax"`
	// Who writes the summary, and how. Absent: the run's own model, by a built-in prompt.
	Summary *SummaryConfig `msgpack:"summary,omitempty"`
	// Tokens that the model accepts, less those of its answer. Absent: the window gets
	// smaller only when the model refuses it, or at 64 KiB of references.
	Tokens int64 `msgpack:"tokens,omitempty" lim:"256..TokensMax"`
}

// The values of absent fields of ContextConfig.
const (
	ClearAtDefault   = 60
	CompactAtDefault = 80
	KeepTurnsDefault = 6
)

const (
	// WindowListBytesMax limits the list of items in each generation of a run with a
	// context: some 6,500 items.
	WindowListBytesMax = 64 << 10
	// shrinksMax is how often a turn that the model refuses as too long is opened again,
	// each time with a smaller window.
	shrinksMax = 3
	// clearedBytes is about what a model is shown of a cleared result.
	clearedBytes = 96
	// itemCutMin is the least that is shown of an item that alone is too large.
	itemCutMin = 1 << 10
)

// Codes of bridges that say that a window is too large.
const (
	codeContextLength   = "context_length_exceeded"
	codeRequestTooLarge = "request_too_large"
)

// Window is how the beginning of a transcript was shortened, and how large the rest is.
type Window struct {
	// A compaction that was requested, for the next generation.
	Asked *CompactRequested `json:"asked,omitempty" msgpack:"asked,omitempty"`
	// Items of the transcript that left the window.
	Cut uint32 `json:"cut,omitempty" msgpack:"cut,omitempty"`
	// Sequence of the GenerationSettled with the summary; absent: there is none.
	Summary uint64 `json:"summary,omitempty" msgpack:"summary,omitempty" lim:"1.."`
	// Tokens of the latest measured generation, as its provider counted them; 0: none yet.
	Tokens int64 `json:"tokens,omitempty" msgpack:"tokens,omitempty" lim:"0.."`

	Compacted    int64       `json:"-" msgpack:"compacted,omitempty"`     // WindowBytes after the latest compaction; 0: none yet
	Compaction   *Compaction `json:"-" msgpack:"compaction,omitempty"`    // the latest one before the latest turn's generation
	Opened       int64       `json:"-" msgpack:"opened,omitempty"`        // WindowBytes when the latest generation was opened
	Measured     int64       `json:"-" msgpack:"measured,omitempty"`      // WindowBytes when the measured generation was opened
	SummaryBytes uint32      `json:"-" msgpack:"summary_bytes,omitempty"` // what a model is shown of the summary
}

func (w *Window) invariant(s *State) error {
	if w.Tokens < 0 || w.Tokens > TokensMax || w.Opened < 0 || w.Measured < 0 || uint64(w.Cut) > s.Count*CallsSeenMax {
		return fmt.Errorf("%d items left the window, which has %d tokens, measured at %d bytes of %d", w.Cut, w.Tokens, w.Measured, w.Opened)
	}
	if w.Summary > s.Seq || w.Summary == 0 && w.SummaryBytes > 0 || w.Compacted < 0 {
		return fmt.Errorf("its summary is that of event %d, of %d bytes, and left %d", w.Summary, w.SummaryBytes, w.Compacted)
	}
	if err := w.Compaction.invariant(s); err != nil {
		return err
	}
	if w.Asked != nil {
		if bad := w.Asked.limits(); bad != nil {
			return fmt.Errorf("the compaction that was requested: %s", bad.detail)
		}
	}
	return nil
}

// ItemCount returns the number of items that the transcript ever had.
func (s *State) ItemCount() int {
	if s.Window == nil {
		return len(s.Items)
	}
	return len(s.Items) + int(s.Window.Cut)
}

// ItemsSince returns the items that the transcript got since it had n, as ItemCount
// counts.
func (s *State) ItemsSince(n int) []Item {
	return s.Items[max(0, len(s.Items)-max(0, s.ItemCount()-n)):]
}

// openWindow begins to count what each item shows. Earlier items get an equal share of
// what the transcript shows. Without tokens in its context a session needs no window, and
// has none, until it becomes smaller.
func (s *State) openWindow() {
	if s.Window != nil {
		return
	}
	s.Window = &Window{}
	s.Items = append(make([]Item, 0, max(len(s.Items), itemsFirst)), s.Items...)
	for i := range s.Items {
		s.Items[i].Bytes = s.WindowBytes / uint32(len(s.Items))
	}
	s.countItems()
}

// countItems counts the items anew.
func (s *State) countItems() {
	size, shown := 0, int64(s.Window.SummaryBytes)
	for i := range s.Items {
		size += s.Items[i].encodedBytesMax()
		shown += int64(s.Items[i].Bytes)
	}
	s.ItemBytes, s.WindowBytes = int32(size), uint32(min(shown, maxWindowBytes))
}

// countResult counts bytes that later turns show of the result of call i.
func (s *State) countResult(i int, bytes int64) {
	s.addToWindow(bytes)
	if c := &s.Turn.Batch.Calls[i]; s.Window != nil {
		c.Bytes = uint32(min(int64(c.Bytes)+bytes, maxWindowBytes))
	}
}

// windowOpened remembers how large the window of a generation is.
func (s *State) windowOpened() {
	if s.Window != nil {
		s.Window.Opened = int64(s.WindowBytes)
	}
}

// measure takes the provider's count of the latest generation's tokens.
func (s *State) measure(u *Usage) {
	if w := s.Window; w != nil && u != nil && u.InputTokens > 0 {
		w.Tokens, w.Measured = u.InputTokens, w.Opened
	}
}

// windowTokens estimates the tokens of the next generation: the provider's count of the
// latest one, and the bytes that came since. fixed is the bytes of all else that it shows.
func (s *State) windowTokens(fixed int64) int64 {
	if w := s.Window; w.Tokens > 0 {
		return max(0, w.Tokens+(s.nextInputBytes()-w.Measured)/BytesPerToken)
	}
	return (fixed + s.nextInputBytes()) / BytesPerToken
}

// fitWindow makes the window smaller if the next generation would come too close to the
// tokens of the run's context, or returns the compaction that is to do so before it.
// fixed is the bytes that the generation shows besides the transcript.
func (s *State) fitWindow(fixed int64) *Compaction {
	c := s.context()
	if s.Window != nil && s.Window.Asked != nil {
		if asked := s.requestedCompaction(); asked != nil {
			return asked
		}
	}
	if c == nil {
		return nil
	}
	if c.Tokens > 0 {
		s.openWindow()
	}
	if from := s.listedFrom(); from > 0 {
		s.openWindow()
		if compact := s.compaction(from); compact != nil {
			return compact
		}
		s.cut(from, fixed)
	}
	if c.Tokens == 0 {
		return nil
	}
	before, keep := s.windowTokens(fixed), cmp.Or(c.KeepTurns, KeepTurnsDefault)
	if before*100 < c.Tokens*int64(cmp.Or(c.ClearAt, ClearAtDefault)) {
		return nil
	}
	compactAt, saved := c.Tokens*int64(cmp.Or(c.CompactAt, CompactAtDefault))/100, s.clearable(keep)
	boundary := func(size int64) int {
		return s.firstKept(latest(int64(s.WindowBytes)*(compactAt/2)/max(size, 1), keep))
	}
	if before-saved/BytesPerToken >= compactAt { // a summary is of whole results
		if compact := s.compaction(boundary(before)); compact != nil {
			return compact
		}
	}
	// Each clearing changes the beginning of the request, which providers cache.
	if before >= compactAt || saved >= c.Tokens*BytesPerToken/10 {
		s.clear(keep, fixed)
	}
	if size := s.windowTokens(fixed); size >= compactAt {
		s.cut(boundary(size), fixed)
	}
	return nil
}

// listedFrom returns the index of the item with which the window begins if the list of
// its items is made half as long; 0: it is short enough.
func (s *State) listedFrom() int {
	size := 0
	for i := range s.Items {
		size += s.Items[i].listedBytesMax()
	}
	if size <= WindowListBytesMax {
		return 0
	}
	size = 0
	return s.firstKept(func(it *Item) bool {
		size += it.listedBytesMax()
		return size <= WindowListBytesMax/2
	})
}

// shrink makes the window smaller after the model refused the latest turn as too long,
// and has the turn opened again, after a compaction if that may help. It reports whether
// it could.
func (s *State) shrink(code string) bool {
	run, t := s.Run, s.Turn
	if s.context() == nil || code != codeContextLength && code != codeRequestTooLarge || int(t.Attempt)+1 >= AttemptsMax {
		return false
	}
	s.openWindow()
	var compact *Compaction
	for done := false; !done; {
		if t.Shrunk == shrinksMax {
			return false
		}
		t.Shrunk++
		switch t.Shrunk {
		case 1:
			done = s.clear(1, 0)
		case 2:
			from := s.firstKept(latest(int64(s.WindowBytes)/2, TurnsMax))
			if run.Lifecycle != Paused {
				compact = s.compaction(from)
			}
			done = compact != nil || s.cut(from, 0)
		default:
			done = s.cut(s.firstKept(latest(0, 1)), 0)
			done = s.cutItems() || done
		}
	}
	s.Window.Tokens, s.Window.Measured = 0, 0 // the provider's count is of another window
	if compact != nil {
		s.openCompaction(compact)
		return true
	}
	s.fixPrompt()
	t.Items, t.RetryAt = int32(len(s.Items)), s.Clock
	s.turnRetries(t.RetryAt)
	return true
}

// turnsFrom returns the index of the item with which the latest turns begin.
func (s *State) turnsFrom(turns int) int {
	for i := len(s.Items) - 1; i >= 0; i-- {
		if s.Items[i].Role == RoleAssistant {
			if turns--; turns == 0 {
				return i
			}
		}
	}
	return 0
}

// isClearable reports whether a result can be cleared. What a model read of an active
// skill stays, and so do the texts of the session itself, which are short.
func (s *State) isClearable(it *Item) bool {
	return it.Role == RoleTool && it.Code == "" && it.Shown == ShownWhole && it.Bytes > clearedBytes && !s.Run.hasSkill(it.Seq)
}

// hasSkill reports whether the event at seq has the text of an active skill.
func (r *Run) hasSkill(seq uint64) bool {
	return slices.ContainsFunc(r.Skills, func(a ActiveSkill) bool { return a.Seq == seq })
}

// clearable returns how many bytes less a model is shown if all results but those of the
// latest turns are cleared.
func (s *State) clearable(keep int) (bytes int64) {
	for i := range s.Items[:s.turnsFrom(keep)] {
		if it := &s.Items[i]; s.isClearable(it) {
			bytes += int64(it.Bytes) - clearedBytes
		}
	}
	return bytes
}

// clear clears all results but those of the latest turns, and reports whether there were
// any.
func (s *State) clear(keep int, fixed int64) bool {
	before, results := s.windowTokens(fixed), 0
	for i := range s.Items[:s.turnsFrom(keep)] {
		if it := &s.Items[i]; s.isClearable(it) {
			it.Shown, it.Bytes = ShownCleared, clearedBytes
			results++
		}
	}
	if results == 0 {
		return false
	}
	s.countItems()
	notify(s, NoticeContextCleared, ContextCleared{Run: s.Run.Number, Results: results, TokensBefore: before, Tokens: s.windowTokens(fixed)})
	return true
}

// firstKept returns the index of the item with which the window begins after a cut. fits
// is called with the items, the last one first, and says how far back it may begin; what
// follows the latest answer or input stays in any case, and so do the items that came
// with the event being folded, which readers of its state have not seen yet.
func (s *State) firstKept(fits func(*Item) bool) int {
	from, ok := len(s.Items), true
	for i := len(s.Items) - 1; i >= 0; i-- {
		it := &s.Items[i]
		ok = fits(it) && ok
		switch {
		case it.Role == RoleTool: // it stays with its call
		case ok, from == len(s.Items), from > s.itemsBefore:
			from = i
		default:
			return from
		}
	}
	return from
}

// latest is for firstKept: the latest turns that show at most this many bytes.
func latest(bytes int64, turns int) func(*Item) bool {
	return func(it *Item) bool {
		bytes -= int64(it.Bytes)
		fits := bytes >= 0 && turns > 0
		if it.Role == RoleAssistant {
			turns--
		}
		return fits
	}
}

// cut takes the items before an index out of the window, except the active run's input
// and steers, and reports whether there were any. The text of an active skill moves into
// the prompt.
func (s *State) cut(from int, fixed int64) bool {
	before, gone := s.windowTokens(fixed), s.leave(from)
	if gone == 0 {
		return false
	}
	notify(s, NoticeContextCut, ContextCut{Run: s.Run.Number, Items: gone, TokensBefore: before, Tokens: s.windowTokens(fixed)})
	return true
}

// task returns the index of the active run's input, -1 if the window does not begin
// before it.
func (s *State) task() int {
	return slices.IndexFunc(s.Items, func(it Item) bool { return it.Role == RoleUser && it.Seq == s.Run.Seq })
}

// leaves reports whether an item before the boundary leaves the window: all do, except
// the active run's input and its steers. task is the index of that input.
func (it *Item) leaves(i, task int) bool {
	return it.Role != RoleUser || it.Code != "" || task < 0 || i < task
}

// leave is cut without its notice. It returns how many items left.
func (s *State) leave(from int) (gone int) {
	task := s.task()
	kept := make([]Item, 0, len(s.Items)-from+itemsFirst)
	for i := range s.Items[:from] {
		it := s.Items[i]
		if !it.leaves(i, task) {
			kept = append(kept, it)
		}
		for k := range s.Run.Skills {
			if a := &s.Run.Skills[k]; a.Seq == it.Seq {
				a.Prompted = true
			}
		}
	}
	if gone = from - len(kept); gone == 0 {
		return 0
	}
	s.Items = append(kept, s.Items[from:]...)
	s.Window.Cut += uint32(gone)
	s.itemsBefore = max(0, s.itemsBefore-gone)
	s.countItems()
	return gone
}

// cutItems limits what is shown of the items that are larger than the others, so that
// all show about half as much. It reports whether there were any.
func (s *State) cutItems() (done bool) {
	most := max(int64(s.WindowBytes)/int64(2*max(1, len(s.Items))), itemCutMin)
	for i := range s.Items {
		if it := &s.Items[i]; it.Role != RoleAssistant && it.Shown != ShownCleared && int64(it.Bytes) > most {
			it.Shown, it.Bytes, done = ShownCut, uint32(most), true
		}
	}
	s.countItems()
	return done
}
