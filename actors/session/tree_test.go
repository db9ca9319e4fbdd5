package session_test

// A tree of sessions: each folds its own events, and what they tell each other goes through
// one log. The owner dies at every event, and every event for another session is lost once.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

const treeInstall = `{"v":1,"rules":1,"config":{"provider":"p","model":"m","prices":{"input":1000000,"cache_read":1000000,"cache_write":1000000,"output":1000000}},"tools":[` +
	`{"tool_id":"team.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"session"},"parallel_safe":true}]}`

// forest is a log and the sessions in it. A model answers each turn once, as a bridge does.
type forest struct {
	t        *testing.T
	install  *session.Install
	children int // of a session that has any
	levels   int // of sessions below the root
	log      []session.Event
	states   map[string]*session.State
	answered map[string]bool
	counted  map[uint64]bool // the answers of models that were taken, by sequence
	told     int             // events for other sessions so far
	time     int64
	dies     int    // the event at which the owner dies: it folds it, stores its outputs, and does not acknowledge it
	lost     int    // the event for another session that is lost
	asks     string // the data of the root's RunRequested; empty: a text
	used     int    // input tokens of a turn in the lowest level; 0: as in the others
	mute     bool   // models do not answer in the lowest level
}

func newForest(t *testing.T, levels, children int) *forest {
	t.Helper()
	install, err := session.ParseInstall([]byte(treeInstall))
	if err != nil {
		t.Fatal(err)
	}
	return &forest{
		t: t, install: install, levels: levels, children: children, states: map[string]*session.State{}, answered: map[string]bool{}, counted: map[uint64]bool{},
		time: 1_000_000, dies: -1, lost: -1,
	}
}

func (f *forest) append(sid string, door session.Door, typ, data string) {
	f.store(sid, door, fmt.Appendf(nil, `{"type":%q,"data":%s}`, typ, data))
}

func (f *forest) store(sid string, door session.Door, payload []byte) {
	f.log = append(f.log, session.Event{Session: sid, Door: door, Seq: uint64(len(f.log) + 1), Time: f.time, Payload: payload})
}

// of returns a session's events before an index of the log.
func (f *forest) of(sid string, before int) (all []session.Event) {
	for _, e := range f.log[:before] {
		if e.Session == sid {
			all = append(all, e)
		}
	}
	return all
}

// run folds until the root's run has ended, and lets time pass when nothing else is left.
func (f *forest) run() {
	f.append("root", session.DoorCtl, session.TypeRunRequested, cmp.Or(f.asks, `{"input":{"text":"go"}}`))
	for at := 0; ; at++ {
		if at == len(f.log) && !f.wake() {
			return
		}
		if at > 20_000 {
			f.t.Fatal("the tree does not come to an end")
		}
		f.fold(at)
		if at == f.dies {
			sid := f.log[at].Session
			f.states[sid] = session.Fold(f.install, sid, slices.Values(f.of(sid, at)))
			f.fold(at)
		}
	}
}

// fold folds the event at an index, and stores its outputs.
func (f *forest) fold(at int) {
	e := f.log[at]
	s := f.states[e.Session]
	if s == nil {
		s = session.New(f.install, e.Session)
		f.states[e.Session] = s
	}
	if _, err := s.Evolve(e); err == nil && e.Door == session.DoorLLM {
		f.counted[e.Seq] = true
	}
	if err := s.Check(); err != nil {
		f.t.Fatalf("event %d: %v", e.Seq, err)
	}
	for _, m := range s.Messages() {
		if f.told++; f.told-1 != f.lost {
			f.store(m.Session, session.DoorChild, m.Payload)
		}
	}
	for _, open := range s.Open() {
		if key := e.Session + "." + open.Name; open.Class == session.ClassLLM && !f.answered[key] {
			f.answered[key] = true
			f.answer(s, open.Name)
		}
	}
}

// answer answers a turn: the first one of a session that may have children with a call for
// each, any other with a text. Both cost 15.
func (f *forest) answer(s *session.State, effect string) {
	depth := 0
	if p := s.View().Parent; p != nil {
		depth = p.Depth
	}
	input := 10
	if depth == f.levels {
		input = cmp.Or(f.used, input)
	}
	usage := fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":5}}`, input)
	if depth == f.levels && f.mute {
		return
	}
	if depth == f.levels || effect != "r1t1" {
		f.append(s.Session, session.DoorLLM, session.TypeGenerationSettled, `{"effect":"`+effect+`","status":"ok","text":{"text":"done"}`+usage)
		return
	}
	calls := strings.Repeat(`{"tool_name":"ask","arguments":"{\"input\":\"a part\"}"},`, f.children)
	f.append(s.Session, session.DoorLLM, session.TypeToolCallsObserved, `{"effect":"`+effect+`","calls":[`+strings.TrimSuffix(calls, ",")+`]`+usage)
}

// wake lets time pass until the next wake is due, unless the root's run has ended.
func (f *forest) wake() bool {
	var first session.Effect
	of := ""
	for _, sid := range slices.Sorted(func(yield func(string) bool) {
		for sid := range f.states {
			if !yield(sid) {
				return
			}
		}
	}) {
		for _, e := range f.states[sid].Open() {
			if e.Class == session.ClassWake && (of == "" || e.Deadline < first.Deadline) {
				first, of = e, sid
			}
		}
	}
	if root := f.states["root"].View(); of == "" || root.Run == nil && len(root.Children) == 0 {
		return false
	}
	f.time = max(f.time, first.Deadline)
	f.append(of, session.DoorWake, session.TypeWakeSettled, fmt.Sprintf(`{"effect":%q}`, first.Name))
	return true
}

// check checks the end: each session had one run, the root's usage is the sum of all turns,
// and a replay of each session leaves the same state.
func (f *forest) check(what string, sessions int) {
	f.t.Helper()
	root := f.states["root"].View()
	if root.Last == nil || root.Last.Lifecycle != session.Completed {
		f.t.Fatalf("%s: the root's run ended as %+v", what, root.Last)
	}
	if len(f.states) != sessions {
		f.t.Errorf("%s: there are %d sessions, want %d", what, len(f.states), sessions)
	}
	turns := int64(len(f.counted))
	if root.Usage.InputTokens != 10*turns || root.Usage.OutputTokens != 5*turns || root.Cost != 15*turns {
		f.t.Errorf("%s: after %d turns the root has used %+v, cost %d", what, turns, root.Usage, root.Cost)
	}
	for sid, s := range f.states {
		if s.Runs != 1 {
			f.t.Errorf("%s: %s had %d runs", what, sid, s.Runs)
		}
		if again := session.Fold(f.install, sid, slices.Values(f.of(sid, len(f.log)))); again.Hash() != s.Hash() {
			f.t.Errorf("%s: a replay of %s leaves another state", what, sid)
		}
		if sid != "root" && !s.Closed {
			f.t.Errorf("%s: %s is still open", what, sid)
		}
	}
}

// Three levels of two children each, and the owner dies at every event: it stores the
// outputs of the event a second time.
func TestATreeSurvivesDeathAtEachEvent(t *testing.T) {
	t.Parallel()
	whole := newForest(t, 3, 2)
	whole.run()
	whole.check("undisturbed", 1+2+4+8)
	for dies := range whole.log {
		f := newForest(t, 3, 2)
		f.dies = dies
		f.run()
		f.check(fmt.Sprintf("death at event %d", dies), 1+2+4+8)
	}
}

// Every event for another session is lost once: it is asked for again.
func TestATreeHealsALostEvent(t *testing.T) {
	t.Parallel()
	whole := newForest(t, 3, 2)
	whole.run()
	if whole.told != 2*(2+4+8) {
		t.Errorf("%d events were told, want a request and an answer for each child", whole.told)
	}
	for lost := range whole.told {
		f := newForest(t, 3, 2)
		f.lost = lost
		f.run()
		f.check(fmt.Sprintf("event %d for another session lost", lost), 1+2+4+8)
	}
}

// Eight children in parallel, once.
func TestEightChildrenInParallel(t *testing.T) {
	t.Parallel()
	f := newForest(t, 1, 8)
	f.run()
	f.check("eight", 1+8)
}

// A root that is cancelled reaches all below it, and counts what they used, whatever event
// for another session is lost.
func TestACancelReachesTheTree(t *testing.T) {
	t.Parallel()
	for lost := -1; lost < 20; lost++ {
		f := newForest(t, 3, 2)
		f.lost = lost
		f.append("root", session.DoorCtl, session.TypeRunRequested, `{"input":{"text":"go"}}`)
		at := 0
		for ; len(f.states) < 6; at++ {
			if at == len(f.log) && !f.wake() {
				t.Fatal("the tree does not grow")
			}
			f.fold(at)
		}
		f.append("root", session.DoorCtl, session.TypeRunCancelRequested, `{}`)
		for ; at < len(f.log) || f.wake(); at++ {
			f.fold(at)
		}
		for sid, s := range f.states {
			if s.Run != nil || sid != "root" && !s.Closed {
				t.Errorf("lost %d: %s runs on", lost, sid)
			}
		}
		if root, turns := f.states["root"].View(), int64(len(f.counted)); root.Usage.InputTokens != 10*turns || root.Cost != 15*turns {
			t.Errorf("lost %d: after %d turns the root has used %+v, cost %d", lost, turns, root.Usage, root.Cost)
		}
	}
}

// ended checks that the root's run has failed with a code, that nothing below it runs on,
// and that it has counted the tokens of all turns.
func (f *forest) ended(code string, tokens int64) {
	f.t.Helper()
	root := f.states["root"].View()
	if root.Last == nil || root.Last.Lifecycle != session.Failed || root.Last.Code != code {
		f.t.Errorf("the root's run ended as %+v, want %s", root.Last, code)
	}
	for sid, s := range f.states {
		if s.Run != nil || sid != "root" && !s.Closed {
			f.t.Errorf("%s runs on", sid)
		}
	}
	if used := root.Usage.InputTokens + root.Usage.OutputTokens; used != tokens || len(root.Children) > 0 {
		f.t.Errorf("the root has used %d tokens, want %d; its children: %+v", used, tokens, root.Children)
	}
}

// A grandchild spends the root's budget: neither its parent nor the root has another turn,
// and it is overspent by no more than the grandchild's turn.
func TestAGrandchildSpendsTheBudget(t *testing.T) {
	t.Parallel()
	for used, want := range map[int]int64{955: 15 + 15 + 955 + 5, 1500: 15 + 15 + 1500 + 5} {
		f := newForest(t, 2, 1)
		f.used, f.asks = used, `{"input":{"text":"go"},"config":{"provider":"p","model":"m","budget":{"tokens":1000,"on_breach":"fail"}}}`
		f.run()
		f.ended(session.CodeBudget, want)
	}
}

// The deadline of the root's run ends all runs below it.
func TestTheRootsDeadlineEndsTheTree(t *testing.T) {
	t.Parallel()
	f := newForest(t, 2, 2)
	f.mute, f.asks = true, `{"input":{"text":"go"},"config":{"provider":"p","model":"m","deadlines_ms":{"run":60000}}}`
	f.run()
	f.ended(session.CodeRunDeadline, 3*15)
}

// A child that nobody folds, since it is quarantined, leaves the call waiting, and the view
// names it: until the call's deadline. What it answers once it is released counts.
func TestAQuarantinedChildLeavesTheCallWaiting(t *testing.T) {
	t.Parallel()
	f := newForest(t, 1, 1)
	f.append("root", session.DoorCtl, session.TypeRunRequested, `{"input":{"text":"go"}}`)
	at := 0
	for ; at < len(f.log) && f.log[at].Session == "root"; at++ {
		f.fold(at)
	}
	child := f.log[at].Session
	for hours := 0; hours < 3; hours++ { // the request is repeated
		if !f.wake() {
			t.Fatal("the root waits for no time")
		}
		for ; at < len(f.log); at++ {
			if f.log[at].Session != child {
				f.fold(at)
			}
		}
		v := f.states["root"].View()
		if v.WaitsFor != "session" || len(v.Children) != 1 || v.Children[0].Session != child || v.Children[0].State != "open" || v.Batch.Calls[0].Child != child {
			t.Fatalf("after %d wakes the root waits for %q, children %+v", hours+1, v.WaitsFor, v.Children)
		}
	}
	for i := range f.log[:at] {
		if f.log[i].Session == child {
			f.fold(i)
		}
	}
	for ; at < len(f.log) || f.wake(); at++ {
		f.fold(at)
	}
	f.check("released", 1+1)
}
