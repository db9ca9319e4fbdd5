package session_test

// Approvals in every order. A batch of five calls that wait for a person ends
// in one way, whatever comes first, and whoever is restarted in between: what
// was decided over each call says alone what its result is.
//
// All calls of a batch are asked for at once, when it is planned, so they have
// one deadline, and a session has one batch at a time: what nobody decided over
// by then expires together. The orders are those of approve, deny and edit
// before it, of how many calls ever, and of what comes too late after it.

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// fate is what becomes of a call that waits.
type fate int

const (
	expire fate = iota // nobody decides over it in time
	approve
	deny
	edit
)

// deciding is one session whose five calls are decided over. Several of them
// that differ in order alone must end alike.
type deciding struct {
	*told
	fates   [5]fate
	said    map[uint64]any // what each event said, by sequence
	settled [5]bool
}

const approvalMS = 60_000

// arguments are those of call i as the model made it, and as it was edited.
func arguments(i int, edited bool) string { return fmt.Sprintf(`{"a":%d,"edited":%v}`, i, edited) }

// say folds an event that must be taken.
func (d *deciding) say(door session.Door, typ string, data map[string]any) {
	d.t.Helper()
	d.must(d.tell(door, typ, data))
	d.said[d.seq] = data
}

// restarted is the session as another host has it, from a snapshot.
func (d *deciding) restarted() *deciding {
	d.t.Helper()
	return &deciding{told: d.restored(), fates: d.fates, said: maps.Clone(d.said), settled: d.settled}
}

// decide says what a person says of call i, if anything.
func (d *deciding) decide(i int) {
	d.t.Helper()
	name := fmt.Sprintf("r1t1c%d", i)
	switch d.fates[i] {
	case approve:
		d.say(session.DoorApprove, session.TypeApprovalDecided, d.decision(name, "approve"))
	case deny:
		d.say(session.DoorApprove, session.TypeApprovalDecided, merged(d.decision(name, "deny"), map[string]any{"reason": "no"}))
	case edit:
		d.say(session.DoorApprove, session.TypeApprovalDecided, merged(d.decision(name, "approve"), map[string]any{"arguments": arguments(i, true)}))
	}
}

// settle settles the calls that are open and that pick picks. A call's output
// is the arguments that it was asked with.
func (d *deciding) settle(pick func() bool) {
	d.t.Helper()
	for _, e := range d.state.Open() {
		if e.Class != session.ClassTool || !pick() {
			continue
		}
		var call session.ToolCall
		if err := codec.Unmarshal(e.Payload, &call); err != nil {
			d.t.Fatal(err)
		}
		if d.settled[call.Call] {
			d.t.Fatalf("%s is asked twice", e.Name)
		}
		d.settled[call.Call] = true
		d.say(session.DoorTool, session.TypeToolCallSettled, result(e.Name, "succeeded", call.Arguments))
	}
}

// batchOf asks for a run whose first turn calls these five tools.
func batchOf(t testing.TB, install *session.Install, tools string) *deciding {
	t.Helper()
	d := &deciding{told: toldUnder(t, install), said: map[uint64]any{}}
	d.say(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("go"), "config": map[string]any{
		"provider": "p", "model": "m", "deadlines_ms": map[string]any{"approval": approvalMS},
	}})
	var calls []any
	for i, name := range strings.Fields(tools) {
		calls = append(calls, map[string]any{"tool_name": name, "arguments": arguments(i, false)})
	}
	d.say(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
	return d
}

// timeOut lets the deadline of all approvals pass, if one is left: the wake that
// is due by then is settled.
func (d *deciding) timeOut() {
	d.t.Helper()
	if !slices.Contains(d.fates[:], expire) {
		return
	}
	d.time += approvalMS
	for _, e := range d.state.Open() {
		var wake session.Wake
		if e.Class == session.ClassWake {
			d.must(nil, codec.Unmarshal(e.Payload, &wake))
			if wake.Due <= d.time {
				d.say(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name})
				return
			}
		}
	}
	d.t.Fatalf("no wake is open that is due by %d", d.time)
}

// tooLate checks that what is said of call i after it was decided over, or has
// expired, is refused and changes nothing: a decision, and the outcome of a call
// that has another or was never asked.
func (d *deciding) tooLate(i int) {
	d.t.Helper()
	name, decision := fmt.Sprintf("r1t1c%d", i), "approve"
	if i%2 == 0 {
		decision = "deny"
	}
	d.refused(session.RejectApprovalStale, session.DoorApprove, session.TypeApprovalDecided, map[string]any{
		"call": name, "args_hash": codec.Sum([]byte(arguments(i, false))).String(), "decision": decision,
	})
	if runs := d.fates[i] == approve || d.fates[i] == edit; runs && !d.settled[i] {
		return // it may come yet
	}
	want := session.RejectUnknownEffect // it never was asked
	switch {
	case d.state.Turn.Number > 1:
		want = session.RejectStale
	case d.settled[i]:
		want = session.RejectEffectSettled
	}
	d.refused(want, session.DoorTool, session.TypeToolCallSettled, result(name, "failed", "late"))
}

// settleAll settles what is open until nothing is.
func (d *deciding) settleAll() {
	d.t.Helper()
	for range d.fates { // a group each, at most
		d.settle(func() bool { return true })
	}
}

// end takes the batch, over whose calls nobody says anything more in time, to
// its end and returns the bytes that it leaves.
func (d *deciding) end() []byte {
	d.t.Helper()
	d.timeOut()
	for i := range d.fates {
		d.tooLate(i)
	}
	d.settleAll()
	for i := range d.fates {
		d.tooLate(i)
	}
	return d.left()
}

// left ends the run and returns the bytes that it leaves, apart from the number
// of notices, some of which tell of what came too late, and from wakes: if calls
// are open when time passes, one more of them is asked.
func (d *deciding) left() []byte {
	d.t.Helper()
	d.say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": text("done")})
	d.check()
	return apartFromOrder(d.t, d.state, d.said, func(r *session.Record) { r.NoticeN, r.Wakes, r.WakesAsked = 0, nil, 0 })
}

// check compares each call's result with its fate.
func (d *deciding) check() {
	d.t.Helper()
	s := d.state
	if s.Run != nil || s.Last.Lifecycle != session.Completed || len(s.Items) != 8 {
		d.t.Fatalf("%v: run 1 is %v, with %d items", d.fates, s.Last, len(s.Items))
	}
	for i, it := range s.Items[2:7] {
		said, _ := d.said[it.Seq].(map[string]any)
		edited, _ := d.said[it.Edit].(map[string]any)
		code, output, arg := "", arguments(i, d.fates[i] == edit), any(nil)
		switch d.fates[i] {
		case deny:
			code = session.CodeApprovalDenied
		case expire:
			code = session.CodeApprovalExpired
		case edit:
			arg = arguments(i, true)
		}
		if it.Role != session.RoleTool || int(it.Call) != i || it.Code != code || edited["arguments"] != arg {
			d.t.Errorf("%v: item %d is %+v, edited %v", d.fates, i+2, it, edited)
		}
		if code == "" && said["output"].(map[string]any)["text"] != output {
			d.t.Errorf("%v: the result of call %d is %v, want %s", d.fates, i, said, output)
		}
		if code != "" && d.settled[i] {
			d.t.Errorf("%v: call %d was asked", d.fates, i)
		}
	}
}

// apartFromOrder returns a state's bytes apart from what tells one order of
// events from another, or how many there were: the head, and of each item and
// each call of an open batch which event it is of, for which the content of that
// event, from said, stands instead; and apart from what else the caller takes out.
func apartFromOrder(t testing.TB, s *session.State, said map[uint64]any, without ...func(*session.Record)) []byte {
	t.Helper()
	var r session.Record
	if err := codec.Unmarshal(s.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	r.Seq, r.Count, r.Chain, r.Leaf = 0, 0, codec.Hash{}, codec.Hash{}
	for _, f := range without {
		f(&r)
	}
	var out bytes.Buffer
	if r.Turn != nil && r.Turn.Batch != nil {
		for i := range r.Turn.Batch.Calls {
			c := &r.Turn.Batch.Calls[i]
			fmt.Fprintf(&out, "call %v, %v\n", said[c.Seq], said[c.Edit])
			c.Seq, c.Edit = 0, 0
		}
	}
	for i := range r.Items {
		it := &r.Items[i]
		fmt.Fprintf(&out, "%s %v, %v\n", it.Role, said[it.Seq], said[it.Edit])
		it.Seq, it.Edit = 0, 0
	}
	b, err := codec.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	return out.Bytes()
}

// permutations returns every order of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return all
}

// layouts are batches in one group, in five, and in three.
var layouts = []string{"askp askp askp askp askp", "askn askn askn askn askn", "askp askp askn askp askp"}

// ends is what a batch leaves for each of the 4⁵ fates of its calls: fateOf the
// number tells which.
type ends [1 << 10][]byte

func fateOf(n, call int) fate { return fate(n >> (2 * call) & 3) }

// everyOrder decides over a batch in every order, and returns what it leaves.
// There is one session for each set of decisions, of which there are 4⁵: a call
// may have none yet. It is made from each set that lacks one of them, by a
// restart and the last decision, and whichever was the last: the session must
// stand alike, to the byte. So all orders of what came before do, and one of
// them, drawn, goes on. From each set, time passes.
//
// Under the race detector, which makes each step ten times as slow, two of the
// three decisions are drawn for each call.
func everyOrder(t *testing.T, tools string, random *rand.Rand, settle func(d *deciding)) *ends {
	t.Helper()
	var sets [1 << 10]*deciding
	sets[0] = batchOf(t, askInstall(t), tools)
	var never [5]fate
	if raceFactor > 1 {
		for i := range never {
			never[i] = 1 + fate(random.Intn(3))
		}
	}
	for n := range sets {
		var want []byte
		for last := range 5 {
			before := sets[n&^(3<<(2*last))]
			if fateOf(n, last) == expire || fateOf(n, last) == never[last] || before == nil {
				continue
			}
			d := before.restarted()
			d.fates[last] = fateOf(n, last)
			d.decide(last)
			settle(d)
			got := apartFromOrder(t, d.state, d.said)
			if want != nil && !bytes.Equal(got, want) {
				t.Fatalf("%v leaves other bytes if call %d is the last one decided over:\n%q\n%q", d.fates, last, got, want)
			}
			if want == nil || random.Intn(2) == 0 {
				sets[n] = d
			}
			want = got
		}
	}
	var all ends
	for n, d := range sets {
		if d != nil {
			all[n] = d.restarted().end()
		}
	}
	return &all
}

// TestApprovalsInEveryOrder decides five calls with all outcomes in all 120 orders,
// with a restart between any two decisions. Calls are settled as soon as they are
// opened, or only after the last decision. Time passes after any number of
// decisions. Results and bytes are always the same. They are also the same when
// outcomes, settlements and the moment at which time passes are drawn, with
// restarts throughout.
func TestApprovalsInEveryOrder(t *testing.T) {
	t.Parallel()
	for layout, tools := range layouts {
		t.Run(tools, func(t *testing.T) {
			t.Parallel()
			at := [](func(d *deciding)){func(d *deciding) { d.settleAll() }, func(*deciding) {}}
			seed := int64(layout)
			want := everyOrder(t, tools, rand.New(rand.NewSource(seed)), at[layout%2])
			if raceFactor == 1 {
				other := everyOrder(t, tools, rand.New(rand.NewSource(seed)), at[1-layout%2])
				for n := range want {
					if !bytes.Equal(other[n], want[n]) {
						t.Fatalf("fates %d: settlements at other times leave other bytes:\n%q\n%q", n, other[n], want[n])
					}
				}
			}
			for n, order := range permutations(5) {
				if raceFactor == 1 || n%len(layouts) == layout {
					along(t, tools, order, rand.New(rand.NewSource(int64(n))), want)
				}
			}
		})
	}
}

// along takes a batch through an order of decisions, of which those that come
// after its deadline are too late.
func along(t *testing.T, tools string, order []int, random *rand.Rand, want *ends) {
	t.Helper()
	d, n := batchOf(t, askInstall(t), tools), 0
	passes := random.Intn(len(order) + 1) // before this one is decided over
	for at, i := range order {
		if at == passes {
			d.timeOut()
		}
		if at >= passes {
			d.tooLate(i)
		} else {
			n |= (1 + random.Intn(3)) << (2 * i)
			d.fates[i] = fateOf(n, i)
			d.decide(i)
		}
		d = d.restarted()
		d.settle(func() bool { return random.Intn(2) == 0 })
		d = d.restarted()
	}
	d.settleAll()
	if got := d.left(); want[n] != nil && !bytes.Equal(got, want[n]) {
		t.Fatalf("%v in the order %v, of which %d came in time, leaves other bytes than in another order:\n%q\n%q", d.fates, order, passes, got, want[n])
	}
}

// TestViewSaysWhyAWaitingCallWouldNotRun: while a call waits for a person, the view
// says what would refuse it if it was approved now, and the approval agrees.
func TestViewSaysWhyAWaitingCallWouldNotRun(t *testing.T) {
	t.Parallel()
	pay := map[string]any{
		"tool_id": "shop.pay", "tool_name": "pay", "args_schema": map[string]any{"type": "object"}, "approval": "always",
		"executor":     map[string]any{"kind": "effect", "target": "shop"},
		"availability": []any{map[string]any{"kind": "fact", "name": "open", "equals": "yes"}, map[string]any{"kind": "host_session_ready"}},
	}
	other := map[string]any{
		"tool_id": "shop.look", "tool_name": "look", "args_schema": map[string]any{"type": "object"}, "executor": map[string]any{"kind": "effect", "target": "shop"},
	}
	record := map[string]any{
		"v": 1, "rules": 1, "tools": []any{pay, other}, "config": map[string]any{"provider": "p", "model": "m"},
		"policy": map[string]any{"approval": []any{map[string]any{"tools": []string{"pay"}, "decision": "deny", "when": `fact("late") == "yes"`}}},
	}
	install, err := session.ParseInstall(asJSON(t, record))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		typ  string
		data map[string]any
		want string // code
	}{
		"nothing changed":        {session.TypeFactsSet, map[string]any{"facts": map[string]any{"other": "x"}}, ""},
		"disabled for a session": {session.TypeToolOverridesSet, map[string]any{"scope": "session", "disable": []string{"pay"}}, "tool_disabled"},
		"disabled for the run":   {session.TypeToolOverridesSet, map[string]any{"scope": "run", "disable": []string{"pay"}}, "tool_disabled"},
		"gone from the registry": {session.TypeToolRegistrySet, map[string]any{"tools": []any{other}}, "tool_disabled"},
		"a fact changed":         {session.TypeFactsSet, map[string]any{"facts": map[string]any{"open": "no"}}, "tool_unavailable"},
		"the host session ended": {session.TypeHostSessionUpdated, map[string]any{"id": "h1", "status": "expired"}, "tool_unavailable"},
		"the policy denies it":   {session.TypeFactsSet, map[string]any{"facts": map[string]any{"late": "yes"}}, "tool_denied"},
	} {
		w := toldUnder(t, install)
		w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"open": "yes"}}))
		w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"id": "h1", "status": "ready"}))
		w.must(w.tell(session.DoorIn, session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "go"}}))
		w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "pay", "arguments": "{}"}}}))
		w.must(w.tell(session.DoorCtl, c.typ, c.data))
		call := w.state.View().Batch.Calls[0]
		if call.Status != session.CallAwaiting || call.Code != c.want || (call.Detail == "") != (c.want == "") {
			t.Errorf("%s: the view has %s %q %q, want code %q", name, call.Status, call.Code, call.Detail, c.want)
		}
		w.must(w.tell(session.DoorApprove, session.TypeApprovalDecided, map[string]any{"call": "r1t1c0", "args_hash": call.ArgsHash, "decision": "approve"}))
		if got := w.state.View().Batch; got != nil && got.Calls[0].Code != c.want {
			t.Errorf("%s: once approved it has the code %q, the view said %q", name, got.Calls[0].Code, c.want)
		}
	}
}
