package timeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// Tracker holds the open spans of one session's sampled runs. It is empty while no
// such run is active or queued. Its zero value is not ready for use: see
// NewTracker. A Tracker is not safe for concurrent use.
type Tracker struct {
	sampled func(s *session.State, run uint32) bool
	runs    uint32 // runs up to this number are open, not sampled, or ended
	open    []part // a parent comes before its children
	now     []key  // scratch
}

// part is an open span.
type part struct {
	key  key
	span *Span
}

// NewTracker returns a tracker of a session whose latest run has the number runs, 0
// if it has none. It ignores that run and those before it. sampled reports whether
// a run's spans are wanted, and is called once a run; nil wants all.
func NewTracker(runs uint32, sampled func(s *session.State, run uint32) bool) Tracker {
	return Tracker{runs: runs, sampled: sampled}
}

// openRoom is the first capacity, in spans: a run, a turn, a group and three calls.
const openRoom = 6

// Follow processes the event that s folded last and returns the spans that ended
// with it, children before parents. The caller owns them. notices and progress are the
// event's notices and progress, so s must not be quiet. caller is the event's
// traceparent, if any, for the run that it requests.
func (t *Tracker) Follow(s *session.State, notices, progress []session.Notice, caller string) []*Span {
	if len(t.open) == 0 && t.runs == s.Runs {
		return nil
	}
	if t.now == nil {
		t.now = make([]key, 0, openRoom)
	}
	t.list(s)
	brief := t.brief(s, notices, caller)
	t.runs = s.Runs
	if t.open == nil && len(t.now) > 0 {
		t.open = make([]part, 0, max(openRoom, len(t.now)))
	}
	t.refuse(notices)
	ended := append(t.end(s, notices, progress), brief...)
	for _, k := range t.now {
		if t.at(k) < 0 {
			t.begin(s, k, caller)
		}
	}
	if len(t.open) == 0 {
		t.open, t.now = nil, nil
	}
	return ended
}

// end removes and returns the spans that are no longer open.
func (t *Tracker) end(s *session.State, notices, progress []session.Notice) []*Span {
	kept := 0
	for i := range t.open {
		if slices.Contains(t.now, t.open[i].key) {
			kept++
		}
	}
	if kept == len(t.open) {
		return nil
	}
	// Children end before their parents, which come first in the list.
	ended := make([]*Span, 0, len(t.open)-kept)
	for i := len(t.open) - 1; i >= 0; i-- {
		if p := &t.open[i]; !slices.Contains(t.now, p.key) {
			p.end(s, notices, progress)
			ended = append(ended, p.span)
		}
	}
	t.open = slices.DeleteFunc(t.open, func(p part) bool { return !slices.Contains(t.now, p.key) })
	return ended
}

// brief returns the spans of the runs that began and ended with the event that s
// folded last.
func (t *Tracker) brief(s *session.State, notices []session.Notice, caller string) (ended []*Span) {
	for _, n := range notices {
		placed, is := n.Data.(session.RunPlaced)
		if !is || placed.Run <= t.runs {
			continue
		}
		wanted := t.wants(s, placed.Run) && !slices.Contains(t.now, key{kind: KindRun, run: placed.Run})
		t.runs = placed.Run
		if !wanted {
			continue
		}
		p := part{key: key{kind: KindRun, run: placed.Run}, span: &Span{
			Kind: KindRun, Place: RunPlace(placed.Run), Run: placed.Run, Begin: s.Clock, Origin: s.Origin(placed.Run), Provider: placed.Provider, Model: placed.Model,
			Install: s.Install.String(), RunSeq: placed.Seq, Caller: caller, Outcome: &Outcome{},
		}}
		p.end(s, notices, nil)
		ended = append(ended, p.span)
	}
	return ended
}

// at returns the index of a key's open span, -1 if there is none.
func (t *Tracker) at(k key) int {
	for i := range t.open {
		if t.open[i].key == k {
			return i
		}
	}
	return -1
}

// Open reports whether a sampled run is active or queued.
func (t *Tracker) Open() bool { return len(t.open) > 0 }

// Follows reports whether a run is active or queued, and sampled.
func (t *Tracker) Follows(run uint32) bool {
	return t.at(key{kind: KindRun, run: run}) >= 0
}

// Runs returns the numbers of the sampled runs that are active or queued.
func (t *Tracker) Runs() (runs []uint32) {
	for i := range t.open {
		if k := t.open[i].key; k.kind == KindRun {
			runs = append(runs, k.run)
		}
	}
	return runs
}

// Callers sets the traceparents of the active and queued runs. of returns the
// traceparent of the event at a sequence.
func (t *Tracker) Callers(of func(seq uint64) string) {
	for i := range t.open {
		if s := t.open[i].span; s.Kind == KindRun {
			s.Caller = of(s.RunSeq)
		}
	}
}

// Wants reports whether an active or queued run of s is sampled.
func Wants(s *session.State, sampled func(s *session.State, run uint32) bool) bool {
	return s.Run != nil && sampled(s, s.Run.Number) || slices.ContainsFunc(s.Queue, func(r session.Run) bool { return sampled(s, r.Number) })
}

// wants reports whether the spans of a run are wanted. For a run that is not new,
// that is known.
func (t *Tracker) wants(s *session.State, run uint32) bool {
	if run <= t.runs {
		return t.Follows(run)
	}
	return t.sampled == nil || t.sampled(s, run)
}

// list lists all keys that are open now, parents first.
func (t *Tracker) list(s *session.State) {
	t.now = t.now[:0]
	if s.Run != nil && t.wants(s, s.Run.Number) {
		t.listRun(s)
	}
	for i := range s.Queue {
		if run := s.Queue[i].Number; t.wants(s, run) {
			t.now = append(t.now, key{kind: KindRun, run: run}, key{kind: KindQueue, run: run})
		}
	}
}

func (t *Tracker) listRun(s *session.State) {
	run := s.Run
	t.now = append(t.now, key{kind: KindRun, run: run.Number})
	if run.Lifecycle == session.Paused {
		t.now = append(t.now, key{kind: KindPause, run: run.Number})
	}
	turn := s.Turn
	if turn == nil || turn.Run != run.Number {
		return
	}
	at := key{run: turn.Run, turn: turn.Number}
	add := func(kind Kind, n int) {
		k := at
		k.kind, k.n = kind, uint32(n)
		t.now = append(t.now, k)
	}
	step := turn.Step != nil && turn.Step.Open
	batch := turn.Batch != nil && turn.Batch.Group < len(turn.Batch.Plan.Groups)
	if !step && !turn.Open && turn.RetryAt == 0 && !batch && run.Held != session.HeldGeneration {
		return
	}
	add(KindTurn, 0)
	switch {
	case step:
		add(KindStep, 0)
	case turn.Open:
		if n, is := s.OpenCompaction(); is {
			add(KindCompaction, int(n))
		} else {
			add(KindAttempt, int(turn.Attempt)+1)
		}
	case turn.RetryAt > 0:
		add(KindRetry, int(turn.Attempt)+1)
	case batch:
		add(KindGroup, turn.Batch.Group)
		for i := range turn.Batch.Calls {
			switch turn.Batch.Calls[i].Status {
			case session.CallOpen:
				add(KindCall, i)
			case session.CallAwaiting:
				add(KindApproval, i)
			}
		}
	}
}

func (t *Tracker) begin(s *session.State, k key, caller string) {
	span := &Span{Kind: k.kind, Place: k.place(s.Seq), Run: k.run, Begin: s.Clock, Origin: s.Origin(k.run)}
	group := uint32(0)
	switch k.kind {
	case KindRun:
		run := runOf(s, k.run)
		span.Profile, span.Provider, span.Model = run.Config.Profile, run.Config.Provider, run.Config.Model
		span.Install, span.RunSeq, span.Caller, span.Outcome = s.Install.String(), run.Seq, caller, &Outcome{}
		if span.Origin != nil {
			span.Of = &Of{s.Tree.Parent.Parent, s.Tree.Parent.Call}
		}
	case KindPause:
		span.Budget = s.Run.Spent
	case KindTurn:
		span.Turn = &Turn{}
		t.counts(k)
	case KindStep:
		span.Hook = s.Run.Config.StepHook.Hook
	case KindAttempt:
		span.Attempt, span.Provider, span.Model, span.Outcome = int(k.n), s.Run.Config.Provider, s.TurnModel(), &Outcome{}
		t.offered(s)
	case KindCompaction:
		span.Outcome = &Outcome{}
		span.Provider, span.Model = s.CompactionModel()
	case KindRetry:
		span.Attempt = int(k.n)
	case KindGroup:
		batch := s.Turn.Batch
		span.Calls, span.Plan = len(batch.Plan.Groups[k.n]), batch.PlanHash.String()
	case KindCall, KindApproval:
		call := &s.Turn.Batch.Calls[k.n]
		span.Call = &Call{ToolID: call.ToolID, ToolName: call.ToolName, Kind: unbridged(s, call.ToolID), RetrySafe: s.IsRetrySafe(call), Edited: call.Edit > 0}
		group = uint32(s.Turn.Batch.Group)
	}
	if k.kind != KindRun {
		span.Parent = t.open[t.at(k.parent(group))].span.Place
	}
	t.open = append(t.open, part{key: k, span: span})
}

// unbridged returns the executor's kind of a tool that no bridge carries out.
func unbridged(s *session.State, tool string) string {
	registry := s.TurnRegistry()
	at, known := registry.Lookup(tool)
	if !known {
		return ""
	}
	switch kind := registry.Tool(at).Executor.Kind; kind {
	case planner.ExecutorHostLoop, planner.ExecutorReply, planner.ExecutorSleep, planner.ExecutorSession:
		return kind
	}
	return ""
}

// counts records in its run that a turn has begun.
func (t *Tracker) counts(turn key) {
	t.open[t.at(turn.parent(0))].span.Outcome.Turns = turn.turn
}

// offered records what the turn offers, which is known once its generation is open.
func (t *Tracker) offered(s *session.State) {
	turn, set := s.Turn, &s.Turn.Toolset
	is := t.open[t.at(key{kind: KindTurn, run: turn.Run, turn: turn.Number})].span.Turn
	is.Toolset, is.Tools, is.Base = set.Fingerprint.String(), len(set.Offers), string(set.Source)
	if set.IsFromProfile() {
		is.Base = "profile"
	}
	if step := turn.Step; step != nil {
		is.Rule = string(step.From)
		if step.From == session.StepFromRun || step.From == session.StepFromProfile {
			is.Rule += ":" + strconv.Itoa(step.Rule)
		}
	}
}

// refuse adds refused calls to their turns.
func (t *Tracker) refuse(notices []session.Notice) {
	for _, n := range notices {
		why, is := n.Data.(session.ToolRejected)
		if !is {
			continue
		}
		for i := range t.open {
			if p := &t.open[i]; p.key.kind == KindTurn && strings.HasPrefix(why.Effect, p.span.Place+"c") {
				p.span.Turn.Refused = append(p.span.Turn.Refused, Refused{Call: why.Effect, Tool: why.ToolName, Code: why.Code, At: n.At})
			}
		}
	}
}

func runOf(s *session.State, number uint32) *session.Run {
	if s.Run != nil && s.Run.Number == number {
		return s.Run
	}
	at := slices.IndexFunc(s.Queue, func(r session.Run) bool { return r.Number == number })
	return &s.Queue[at]
}
