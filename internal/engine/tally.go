package engine

import (
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/planner"
)

// tally is what one folded event adds to the metrics once its outputs are stored:
// an event that is folded and not stored is folded again, by this owner or another.
// If the process dies after the outputs are stored, the event counts twice.
type tally struct {
	prior
	trace  string // traceparent of its run, if that is traced
	counts []count
}

// count is a number that a counter is raised by, or a time that a histogram records.
type count struct {
	counter *meter.Counter
	hist    *meter.Histogram  // the field counter is used
	n       int64             // for a histogram: ms
	of      [labelsMax]string // values of the labels
}

const labelsMax = 3 // of a metric that a tally counts

var tallies = sync.Pool{New: func() any { return &tally{counts: make([]count, 0, 16)} }}

func (t *tally) add(c *meter.Counter, n int64, of ...string) {
	one := count{counter: c, n: n}
	copy(one.of[:], of)
	t.counts = append(t.counts, one)
}

func (t *tally) record(h *meter.Histogram, ms int64, of ...string) {
	one := count{hist: h, n: ms}
	copy(one.of[:], of)
	t.counts = append(t.counts, one)
}

// end applies the tally if the event is done, and returns it to the pool.
func (t *tally) end(done bool) {
	for i := range t.counts {
		switch c := &t.counts[i]; {
		case !done:
		case c.hist != nil:
			c.hist.RecordTraced(float64(max(c.n, 0))/1000, t.trace, c.of[:]...)
		default:
			c.counter.Add(c.n, c.of[:]...)
		}
	}
	clear(t.counts)
	t.counts, t.prior, t.trace = t.counts[:0], prior{}, ""
	tallies.Put(t)
}

// moment is when a run was requested, or when a call began to wait for a person. An
// actor remembers moments for durations. It has none of what began under another
// owner.
type moment struct {
	run uint32 // 0: it is a call's
	of  string // effect name of the call
	at  int64  // Unix ms
}

// momentsMax bounds the moments of a session: as many runs as may be queued, and as
// many calls as a batch may have.
const momentsMax = session.QueueMax + session.CallsMax

func (s *actor) remember(m moment) {
	if len(s.moments) < momentsMax {
		s.moments = append(s.moments, m)
	}
}

// takeMoment removes the moment of a run or a call and returns its time.
func (s *actor) takeMoment(run uint32, of string) (at int64, known bool) {
	for i, m := range s.moments {
		if m.run == run && m.of == of {
			s.moments = append(s.moments[:i], s.moments[i+1:]...)
			return m.at, true
		}
	}
	return 0, false
}

// prior is what a tally needs of the state before the event.
type prior struct {
	usage    session.UsageTotal
	cost     int64
	turn     [4]uint32 // run, turn, attempt, and the compaction before it
	open     bool      // that generation is open
	at       int64     // when it was opened
	provider string
	model    string
	registry *planner.Registry
	awaiting uint64                  // calls of the open batch that wait for a person, as bits
	calls    [session.CallsMax]int64 // when the calls of the open batch were opened
}

// tally begins the tally of the event that s folds next; nil if nothing is
// measured.
func (m *Meters) tally(s *session.State) *tally {
	if !m.on() {
		return nil
	}
	t := tallies.Get().(*tally)
	t.look(s)
	return t
}

// look records what is compared after the event.
func (b *prior) look(s *session.State) {
	b.usage, b.cost = s.Usage, s.Cost
	if s.Run == nil || s.Turn == nil || s.Turn.Run != s.Run.Number {
		return
	}
	t := s.Turn
	b.turn, b.open, b.at = attemptOf(s), t.Open, t.At
	b.registry = s.TurnRegistry()
	if t.Open {
		b.provider, b.model = s.TurnProvider(), s.TurnModel()
		if b.turn[3] > 0 {
			b.provider, b.model = s.CompactionModel()
		}
	}
	if t.Batch == nil {
		return
	}
	for i := range t.Batch.Calls {
		switch c := &t.Batch.Calls[i]; c.Status {
		case session.CallOpen:
			b.calls[i] = c.At
		case session.CallAwaiting:
			b.awaiting |= 1 << i
		}
	}
}

func attemptOf(s *session.State) [4]uint32 {
	compaction, _ := s.OpenCompaction()
	return [4]uint32{s.Turn.Run, s.Turn.Number, uint32(s.Turn.Attempt), compaction}
}

// count fills in the tally of the event that s folded last. A nil tally stays nil.
func (m *Meters) count(t *tally, s *actor, e session.Event, notices, progress []session.Notice) {
	if t == nil {
		return
	}
	b := &t.prior
	m.event(t, s.state.LastType(), e, notices)
	for _, n := range notices {
		t.add(m.notices, 1, n.Type)
		m.notice(t, s, n)
	}
	m.generation(t, s.state, b, notices, progress)
	for _, n := range progress {
		if c, is := n.Data.(session.CallSettled); is {
			m.call(t, s.state, b, c)
		}
	}
	if b.awaiting != 0 {
		m.decided(t, s, b, progress)
	}
	for _, w := range s.state.Withdrawals() {
		t.add(m.withdrawn, 1, string(w.Class), w.Target)
	}
}

func (m *Meters) event(t *tally, typ string, e session.Event, notices []session.Notice) {
	outcome := "accepted"
	for _, n := range notices {
		if r, is := n.Data.(session.EventRejected); is && r.Seq == e.Seq {
			outcome = "rejected"
			t.add(m.rejections, 1, string(r.Code))
		}
	}
	t.add(m.events, 1, typ, string(e.Door), outcome)
}

func (m *Meters) notice(t *tally, s *actor, n session.Notice) {
	switch d := n.Data.(type) {
	case session.RunPlaced:
		requested, known := s.takeMoment(d.Run, "")
		if known {
			t.record(m.runQueued, n.At-requested)
		} else {
			requested = n.At // it waits, did not wait, or waited under another owner
		}
		s.remember(moment{run: d.Run, at: requested})
	case session.RunFinished:
		lifecycle := string(d.Lifecycle)
		t.add(m.runs, 1, lifecycle, d.Code)
		turns := 0
		if turn := s.state.Turn; turn != nil && turn.Run == d.Run {
			turns = int(turn.Number)
		}
		t.record(m.runTurns, int64(turns)*1000, lifecycle)
		if d.OverBudget != nil {
			t.add(m.breaches, 1, d.OverBudget.Budget)
		}
		if requested, known := s.takeMoment(d.Run, ""); known {
			t.record(m.runDuration, n.At-requested, lifecycle)
		}
	case session.ToolRejected:
		t.add(m.refused, 1, d.Code)
	case session.BudgetExceeded:
		t.add(m.breaches, 1, d.Budget)
	case session.ApprovalRequested:
		s.remember(moment{of: d.Call, at: n.At})
	}
}

// generation counts the usage of the generation that was open before the event, and
// its end.
func (m *Meters) generation(t *tally, s *session.State, b *prior, notices, progress []session.Notice) {
	if s.Usage != b.usage || s.Cost != b.cost {
		m.used(t, s, b)
	}
	now := s.Turn
	if !b.open || now != nil && now.Open && attemptOf(s) == b.turn {
		return
	}
	code := ""
	for _, n := range progress {
		if d, is := n.Data.(session.TurnSettled); is {
			code = d.Code
		}
	}
	for _, n := range notices {
		if d, is := n.Data.(session.RunFinished); is && d.Run == b.turn[0] {
			code = d.Code
		}
	}
	outcome := "succeeded"
	if code != "" {
		outcome = "failed"
	}
	t.record(m.turnDuration, s.Clock-b.at, string(session.ClassLLM), b.provider, outcome)
	if next := b.turn; code != "" && now != nil && s.Run != nil {
		next[2]++
		if attemptOf(s) == next || now.RetryAt > 0 && attemptOf(s) == b.turn {
			t.add(m.retries, 1, code)
		}
	}
}

// used counts the tokens and the cost of a generation. What a child used is counted there.
func (m *Meters) used(t *tally, s *session.State, b *prior) {
	if s.LastType() == session.TypeChildSettled {
		return
	}
	tokens := func(kind string, n int64) {
		if n > 0 {
			t.add(m.tokens, n, b.model, kind)
		}
	}
	tokens("input", s.Usage.InputTokens-b.usage.InputTokens)
	tokens("cached", s.Usage.CachedTokens-b.usage.CachedTokens)
	tokens("output", s.Usage.OutputTokens-b.usage.OutputTokens)
	tokens("reasoning", s.Usage.ReasoningTokens-b.usage.ReasoningTokens)
	if n := s.Cost - b.cost; n > 0 {
		t.add(m.cost, n, b.model)
	}
}

// call counts the result of a call. A tool that the registry does not have counts
// as "other": models make up names.
func (m *Meters) call(t *tally, s *session.State, b *prior, c session.CallSettled) {
	tool, class, target := meter.Other, string(session.ClassTool), meter.Other
	registry := b.registry
	if registry == nil {
		registry = s.TurnRegistry()
	}
	if at, known := registry.Lookup(c.ToolName); known {
		spec := registry.Tool(at)
		tool, target = c.ToolName, spec.Executor.Target
		if target == "" {
			class = spec.Executor.Kind // no bridge carries it out
		}
	}
	t.add(m.calls, 1, tool, string(c.Status))
	if c.Status == session.CallUnknown {
		t.add(m.unknown, 1, string(session.ClassTool), target)
	}
	if i := callOf(c.Effect); i >= 0 && b.calls[i] > 0 {
		t.record(m.callDuration, s.Clock-b.calls[i], class, target)
	}
}

// callOf returns the index of a call in its batch, from its effect's name; -1 if
// that names no call.
func callOf(effect string) int {
	_, text, _ := strings.Cut(effect, "c")
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= session.CallsMax {
		return -1
	}
	return i
}

// decided counts the calls that waited for a person before the event and do not any
// more.
func (m *Meters) decided(t *tally, s *actor, b *prior, progress []session.Notice) {
	turn := s.state.Turn
	same := turn != nil && turn.Batch != nil && turn.Run == b.turn[0] && turn.Number == b.turn[1]
	for left := b.awaiting; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		if same && turn.Batch.Calls[i].Status == session.CallAwaiting {
			continue
		}
		decision, name := "approve", "r"+strconv.Itoa(int(b.turn[0]))+"t"+strconv.Itoa(int(b.turn[1]))+"c"+strconv.Itoa(i)
		if same && turn.Batch.Calls[i].Edit == s.state.Seq {
			decision = "edit"
		}
		for _, n := range progress {
			if c, is := n.Data.(session.CallSettled); is && c.Effect == name {
				decision = decisionOf(c.Code)
			}
		}
		t.add(m.approvals, 1, decision)
		if at, known := s.takeMoment(0, name); known {
			t.record(m.approvalDuration, s.state.Clock-at)
		}
	}
}

// decisionOf returns how a wait ended, from the code of the call's result.
func decisionOf(code string) string {
	switch code {
	case session.CodeApprovalDenied:
		return "deny"
	case session.CodeApprovalExpired:
		return "expired"
	case session.CodeCancelled:
		return "closed"
	}
	return "approve"
}

// effects counts the effects among an event's outputs.
func (m *Meters) effects(t *tally, outputs []journal.Output) {
	if t == nil {
		return
	}
	for i := range outputs {
		if e := outputs[i].Effect; e != nil {
			t.add(m.asked, 1, string(e.Class), e.Target)
		}
	}
}
