package cli

// Commands about runs, and about calls that wait for a person: their output,
// and their advice after a refusal.

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// approvalRecord has a tool that asks a person first, one that a host loop
// carries out, and one of a bridge.
const approvalRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[
	{"tool_id":"mail.send","tool_name":"send","args_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]},
	 "executor":{"kind":"effect","target":"mail"},"approval":"always"},
	{"tool_id":"ui.show","tool_name":"show","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"editor"}}]}`

// prints runs a command to its end and checks what it prints on either stream.
func (w *world) prints(status int, want string, args ...string) {
	w.t.Helper()
	out, errOut := w.does(status, args...)
	like(w.t, strings.Join(args, " "), out+errOut, want)
}

func TestRunsAreControlled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin("", "run", "s1", "hi")
	w.waits("s1", 1)
	w.prints(0, `^session s1: run 1 is running, waits for model, 1 steer for its next turn\n$`, "steer", "s1", "and then?")
	w.prints(0, `^session s1: run 1 is paused, waits for model, 1 steer`, "pause", "s1", "--reason", "lunch")
	w.prints(statusFailed, `^refold: rejected: illegal_transition: a run that is paused takes no pause\n  refold view s1 shows the run's state`, "pause", "s1")
	w.prints(statusFailed, `^refold: rejected: stale: .*\n  .*leave --run out.*refold queue s1`, "resume", "s1", "--run", "7")
	w.prints(0, `^session s1: run 1 is running`, "resume", "s1", "--budget", `{"tokens":9}`)
	w.does(0, "run", "s1", "two", "--no-follow", "--submission", "second")
	w.does(0, "run", "s1", "three", "--no-follow")
	w.prints(0, `^session s1: run 1 is running, .*, 2 queued\n\nRUN  SUBMISSION  MODEL  TEXT\n2    second      p/m    two\n3    -           p/m    three\n$`, "queue", "s1")
	w.prints(0, `, 2 queued\n\n.*\n2 .*  Two\n3 .*  three\n$`, "queue", "s1", "--edit", "2", "Two")
	w.prints(0, `, 1 queued\n\n.*\n2 .*  Two\n$`, "queue", "s1", "--remove", "3")
	w.prints(statusFailed, `^refold: run 1 is not queued: session s1: run 1 is running`, "queue", "s1", "--remove", "1")
	w.prints(statusFailed, `^refold: run 3 is not queued`, "queue", "s1", "--edit", "3", "3")
	w.prints(0, `^session s1: run 2 is running, waits for model\n$`, "cancel", "s1", "--run", "1", "--reason", "enough")
	_, errOut := w.end(run, statusFailed)
	like(t, "the run that was cancelled", errOut, `^(unserved: .*\n)?run 1: .* s\nrefold: run 1 cancelled: cancelled: enough\n$`)
	w.prints(0, `^session s1: run 2 is interrupting, waits for model\n$`, "interrupt", "s1", "--operator")
	w.settle("s1", "r2t1", map[string]any{"text": map[string]any{"text": "2"}})
	w.prints(statusFailed, `^refold: rejected: run_not_active: .*\n  start a run: refold run s1 TEXT\n$`, "cancel", "s1")
	w.prints(0, `^session s1: run 2 interrupted, no run is active\n$`, "queue", "s1")
	w.prints(0, `^session s1: run 2 interrupted, no run is active\nthe next turn begins with a summary of what was said before\n$`, "compact", "s1", "--keep-turns", "0", "--instructions", "names")
	w.prints(0, `"asked":{"instructions":"names","keep_turns":0}`, "view", "s1", "--json")
	w.prints(0, `^session s1: run 2 interrupted, no run is active; it is closed\n$`, "close", "s1")
	w.prints(statusFailed, `^refold: rejected: session_closed: .*\n  nothing reopens a session: use another one\n$`, "run", "s1", "more")
}

func TestApprovalsAreDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, approvalRecord))
	w.prints(0, `^no call waits for approval\n$`, "approvals")
	run := w.begin("", "run", "s1", "write to them")
	w.waits("s1", 1)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved,
		`{"effect":"r1t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"},{"tool_name":"send","arguments":"{\"to\":\"bob\"}"},{"tool_name":"send","arguments":"{\"to\":\"\u202eeve\"}"}]}`)
	run.err.shows(t, `waits for approval until [0-9-]+ [0-9:]+Z: send r1t1c0 \(mail\.send\) {"to":"ann"}\n  refold approve s1 r1t1c0    refold deny s1 r1t1c0 --reason …\n`)
	run.err.shows(t, `refold approve s1 r1t1c2 `)
	w.reaches("s1", "calls wait", func(v session.View) bool { return v.WaitsFor == "approval" })
	one := `session s1  run 1  call r1t1c0  send \(mail\.send\)  until .*\n  arguments {\n    "to": "ann"\n  }\n  hash ([0-9a-f]{64})\n(?:  would not run now: unserved: no running bridge serves tool/mail: start one, .*\n)?`
	w.prints(0, `^`+one+`  refold approve s1 r1t1c0    refold deny s1 r1t1c0 --reason …\n\nsession s1  run 1  call r1t1c1 (?s:.*)arguments {\n    "to": "\\u202eeve"\n`, "approvals", "s1")
	w.prints(0, `^`+one, "approvals")
	w.says(session.DoorCtl, "s1", session.TypeToolOverridesSet, `{"scope":"session","disable":["send"]}`) // nobody's approval would let it run now
	w.prints(0, `^(?s:.*)  hash ([0-9a-f]{64})\n  would not run now: tool_disabled: the tool is disabled for the session\n  refold approve s1 r1t1c0`, "approvals", "s1")
	w.prints(0, `^{.*"code":"tool_disabled","detail":"the tool is disabled for the session"`, "approvals", "s1", "--json")
	w.says(session.DoorCtl, "s1", session.TypeToolOverridesSet, `{"scope":"session","disable":[]}`)
	batch := w.view("s1").Batch
	hash, other := batch.Calls[0].ArgsHash, batch.Calls[1].ArgsHash
	w.prints(statusFailed, `^`+one+`refold: not approved: r1t1c0 waits with other arguments than those of hash `+other+`: read .* hash `+hash+`\n$`,
		"approve", "s1", "r1t1c0", "--args-hash", other)
	w.prints(statusFailed, `^`+one+`refold: not denied: r1t1c0 waits with other arguments`, "deny", "s1", "r1t1c0", "--args-hash", other)
	w.prints(statusFailed, `^`+one+`  will run with {\n    "to": 1\n  }\nrefold: rejected: invalid_data: arguments: .*\n$`,
		"approve", "s1", "r1t1c0", "--args", `{"to":1}`, "--yes")
	w.prints(statusFailed, `refold: r1t1c9 of session s1 does not wait for approval: .*; waiting: r1t1c0, r1t1c1, r1t1c2\n`, "deny", "s1", "r1t1c9")
	w.prints(0, `^`+one+`approved\nsession s1: run 1 is running, waits for tools\n$`, "approve", "s1", "r1t1c0", "--args-hash", strings.ToUpper(hash))
	w.prints(0, `(?s)"to": "bob".*  will run with {\n    "to": "robert"\n  }\napproved\n`, "approve", "s1", "r1t1c1", "--args", `{"to":"robert"}`, "--yes")
	w.prints(0, `(?s)"to": "\\u202eeve".*\ndenied\n`, "deny", "s1", "r1t1c2", "--reason", "she has left")
	w.prints(statusFailed, `waiting: no call\n`, "approve", "s1", "r1t1c0", "--yes")
	w.prints(0, `  waits for approval until .*: send r1t1c0 \(mail\.send\) .*\n(?s:.*)  approved send r1t1c1 with {"to":"robert"}\n.*  denied send r1t1c2: she has left\n`, "replay", "s1", "--events")
	w.does(0, "cancel", "s1")
	w.end(run, statusFailed)
}

// askRecord has a tool whose calls wait for a reply.
const askRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"reply","result_schema":{"type":"integer"}}}]}`

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, askRecord))
	w.prints(0, `^no call waits for a reply\n$`, "waiting")
	run := w.begin("", "run", "s1", "ask them")
	w.waits("s1", 1)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"ask","arguments":"{\"q\":\"how many?\"}"}]}`)
	run.err.shows(t, `waits for a reply until [0-9-]+ [0-9:]+Z: ask r1t1c0 \(desk\.ask\) {"q":"how many\?"}\n  refold reply s1 r1t1c0 "…"\n`)
	w.reaches("s1", "the call waits", func(v session.View) bool { return v.WaitsFor == "reply" })
	one := `session s1  run 1  call r1t1c0  ask \(desk\.ask\)  until .*\n  arguments {\n    "q": "how many\?"\n  }\n  hash [0-9a-f]{64}\n`
	w.prints(0, `^`+one+`  refold reply s1 r1t1c0 "…"    refold reply s1 r1t1c0 --decline …\n$`, "waiting", "s1")
	w.prints(0, `^`+one, "waiting")
	w.prints(0, `^{"session":"s1","run":1,"call":"r1t1c0",.*"by":"approvers"`, "waiting", "s1", "--json")
	w.prints(statusUsage, `give an answer, or --decline REASON`, "reply", "s1", "r1t1c0")
	w.prints(statusFailed, `not answered: approvers alone may answer`, "reply", "s1", "r1t1c0", "3", "--as-client")
	w.prints(statusFailed, `not answered: r1t1c0 waits with other arguments`, "reply", "s1", "r1t1c0", "3", "--args-hash", strings.Repeat("0", 64))
	w.prints(statusFailed, `rejected: invalid_data: output: is of type integer`, "reply", "s1", "r1t1c0", `"three"`)
	w.prints(0, `^`+one+`answered\nsession s1: run 1 is running, waits for model\n$`, "reply", "s1", "r1t1c0", "3")
	w.prints(statusFailed, `does not wait for a reply: .*; waiting: no call\n`, "reply", "s1", "r1t1c0", "4")
	w.does(0, "cancel", "s1")
	w.end(run, statusFailed)
}

// screen is a terminal: what is typed, or what is shown.
type screen struct {
	io.Reader
	text
}

func (*screen) Stat() (os.FileInfo, error) { return device{}, nil }

// device is what the system says of a terminal.
type device struct{ os.FileInfo }

func (device) Mode() os.FileMode { return os.ModeDevice | os.ModeCharDevice }

// types runs a command on a terminal, on which the answer is typed when the
// command asks; meanwhile happens before that.
func (w *world) types(status int, answer string, meanwhile func(), args ...string) string {
	w.t.Helper()
	typed, keys := io.Pipe()
	in, out := &screen{Reader: typed}, &screen{}
	ended := make(chan int, 1)
	args = append([]string{"--nats", w.node.URL()}, args...)
	go func() { ended <- Main(w.ctx, args, in, out, out) }()
	out.shows(w.t, `Approve it\? \[y/N\] $`)
	meanwhile()
	if _, err := io.WriteString(keys, answer); err != nil {
		w.t.Fatal(err)
	}
	_ = keys.Close()
	if got := <-ended; got != status {
		w.t.Errorf("%q: got status %d, want %d\n%s", args, got, status, out)
	}
	return out.String()
}

// TestApproveDecidesTheCallItShowed: approve shows the whole call and asks. It
// approves what it has shown, or nothing.
func TestApproveDecidesTheCallItShowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, approvalRecord))
	w.does(0, "run", "s1", "write to them", "--no-follow")
	w.waits("s1", 1)
	large := strings.Repeat("x", 200<<10)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved,
		`{"effect":"r1t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\",\r\"cc\":\"\\u001b\u009b2J\u202e\u200b\udb40\udc41\"}"},{"tool_name":"send","arguments":"{\"to\":\"`+large+`\"}"}]}`)
	w.reaches("s1", "calls wait", func(v session.View) bool { return v.WaitsFor == "approval" })
	shown := `^session s1  run 1  call r1t1c0  send \(mail\.send\)  until .*\n  arguments {\n    "to": "ann",\n    "cc": "\\u001b\\u009b2J\\u202e\\u200b\\udb40\\udc41"\n  }\n  hash [0-9a-f]{64}\n(?:  would not run now: unserved: .*\n)?`
	nothing := func() {}
	like(t, "no", w.types(statusFailed, "n\n", nothing, "approve", "s1", "r1t1c0"), shown+`Approve it\? \[y/N\] refold: not approved: answer y, or deny it: refold deny s1 r1t1c0\n$`)
	like(t, "the end", w.types(statusFailed, "", nothing, "approve", "s1", "r1t1c0"), `not approved`)
	if got := w.view("s1").Batch.Calls[0].Status; got != session.CallAwaiting {
		t.Errorf("without a yes the call is %s, want %s", got, session.CallAwaiting)
	}
	like(t, "yes", w.types(0, "y\n", nothing, "approve", "s1", "r1t1c0", "--args", `{"to":"bob"}`),
		shown+`  will run with {\n    "to": "bob"\n  }\nApprove it\? \[y/N\] approved\nsession s1: `)
	// The call is decided over while the person reads.
	out := w.types(statusFailed, "y\n", func() { w.does(0, "deny", "s1", "r1t1c1") }, "approve", "s1", "r1t1c1")
	if !strings.Contains(out, large) || strings.Contains(out, "\napproved") {
		t.Errorf("of %d bytes %d are shown, want all, and no approval", len(large), strings.Count(out, "x"))
	}
	_, after, _ := strings.Cut(out, "Approve it")
	like(t, "stale", after, `refold: rejected: approval_stale: r1t1c1 does not wait .*\n  .*: refold approvals s1\n$`)
}

// TestRunReattaches: a repeated submission follows the existing run, and prints
// its end.
func TestRunReattaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, approvalRecord))
	args := []string{"run", "s1", "hi", "--submission", "once"}
	first := w.begin("", args...)
	w.waits("s1", 1)
	bustest.OK(t, w.bus.PublishLive("s1", []byte(`{"effect":"r1t1","start":"A","n":0,"text":"I look."}`)))
	first.out.shows(t, "I look.")
	first.stop()
	_, errOut := w.end(first, statusInterrupted)
	like(t, "stopped", errOut, `^refold: stopped; the run continues: refold tail s1, or the same command again; to end it: refold cancel s1 --run 1\n$`)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"}]}`)
	w.reaches("s1", "a call waits", func(v session.View) bool { return v.WaitsFor == "approval" })
	again := w.begin("", args...)
	again.err.shows(t, `waits for approval until .*: send r1t1c0 \(mail\.send\) {"to":"ann"}\n  refold approve s1 r1t1c0`)
	w.does(0, "deny", "s1", "r1t1c0")
	w.reaches("s1", "the next turn", turnOf("r1t2"))
	bustest.OK(t, w.bus.PublishLive("s1", []byte(`{"effect":"r1t2","start":"A","n":0,"text":"hel"}`)))
	again.out.shows(t, "hel")
	w.settle("s1", "r1t2", map[string]any{"text": map[string]any{"text": "hello"}})
	if out, errOut := w.end(again, 0); out != "hello\n" || strings.Count(errOut, "waits for approval") != 1 || !strings.Contains(errOut, "run 1: 2 turns\n") {
		t.Errorf("reattached: it prints %q and %q", out, errOut)
	}
	w.prints(0, `^hello\nrun 1: 2 turns\n$`, args...)
	w.prints(statusFailed, `^refold: rejected: duplicate_submission: .*\n  the same --submission was used with another text`, "run", "s1", "other", "--submission", "once")
	w.prints(statusFailed, `^refold: rejected: not_permitted: roles: .*\n  .*use the door ctl: --operator\n$`, "run", "s1", "hi", "--role", "editor")
}

func TestTailSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, approvalRecord))
	tail := w.begin("", "tail", "s1", "--all", "--follow")
	w.does(0, "run", "s1", "hi", "--no-follow", "--config", `{"provider":"p","model":"m","budget":{"tokens":1000}}`)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved,
		`{"effect":"r1t1","usage":{"input_tokens":2000},"calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"},{"tool_name":"show"}]}`)
	tail.out.shows(t, `ApprovalRequested waits for approval until .*Z: send r1t1c0 \(mail\.send\) {"to":"ann"}: refold approve s1 r1t1c0    refold deny s1 r1t1c0 --reason …\n`)
	w.reaches("s1", "the call waits", func(v session.View) bool { return v.WaitsFor == "approval" })
	w.does(0, "deny", "s1", "r1t1c0")
	tail.out.shows(t, `CallsPlanned r1t1 group 2 of 2, for a host loop: r1t1c1\n`)
	w.says(session.DoorTool, "s1", session.TypeToolCallSettled, `{"effect":"r1t1c1","status":"succeeded"}`)
	tail.out.shows(t, `BudgetExceeded run 1 is paused: 2000 of 1000 tokens are used, and the next turn's input takes about [0-9]+; to continue: refold resume s1 --budget '{"tokens":…}'\n`)
	w.prints(statusFailed, `illegal_transition: the run's budget is spent: resume it through ctl with a larger one\n`, "resume", "s1")
	tail.stop()
	w.end(tail, statusInterrupted)
}

// A run that ended over its budget prints that with its answer.
func TestRunReportsExceededBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, approvalRecord))
	run := w.begin("", "run", "s1", "hi", "--config", `{"provider":"p","model":"m","budget":{"tokens":1000}}`)
	w.waits("s1", 1)
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "hello"}, "usage": map[string]any{"output_tokens": 1200}})
	out, errOut := w.end(run, 0)
	like(t, "over its budget", out+errOut, `^hello\nover its budget: 1200 used of 1000 tokens\nrun 1: 1 turn, 0 calls, 0 tokens in, 1200 out, \d+\.\d s\n$`)
	if v := w.view("s1"); v.Last.OverBudget == nil || v.Last.OverBudget.Used != 1200 {
		t.Errorf("the view says %+v of the run", v.Last)
	}
}

func TestInvalidControlArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"see refold run --help":             {"run", "s1", "hi", "--when-busy", "wait"},
		"a text and files go with --edit N": {"queue", "s1", "more"},
		"see refold queue --help":           {"queue", "s1", "--edit", "2", "--remove", "2"},
		"--budget: ":                        {"resume", "s1", "--budget", "much"},
		"see refold approve --help":         {"approve", "s1"},
		"--args-hash: is 64 hex":            {"approve", "s1", "r1t1c0", "--args-hash", "12345678"},
		"--args: is not JSON":               {"approve", "s1", "r1t1c0", "--yes", "--args", "{"},
		"give --args-hash HASH":             {"approve", "s1", "r1t1c0"},
		"see refold deny --help":            {"deny", "s1", "r1t1c0", "--args", "{}"},
	} {
		var out, errOut text
		if status := Main(t.Context(), args, strings.NewReader(""), &out, &errOut); status != statusUsage || !strings.Contains(errOut.String(), want) {
			t.Errorf("%q: status %d, want %d; got %q, want %q", args, status, statusUsage, errOut.String(), want)
		}
	}
}

func TestSteerOfIdleSessionReportsNewRun(t *testing.T) {
	t.Parallel()
	run := func(number uint32, seq uint64) session.View {
		return session.View{Run: &session.ViewRun{ShownRun: session.ShownRun{Number: number, Seq: seq}}}
	}
	ended := func(number uint32) session.View { return session.View{Last: &session.Ended{Number: number}} }
	for _, c := range []struct {
		name          string
		before, after session.View
		want          uint32
	}{
		{"none was active", ended(3), run(4, 9), 4},
		{"the first of the session", session.View{}, run(1, 9), 1},
		{"it is over already", ended(3), ended(4), 4},
		{"the first, and over", session.View{}, ended(1), 1},
		{"one was active", run(4, 7), run(4, 7), 0},
		{"one was active and is over", run(4, 7), ended(4), 0},
		{"others came between", ended(3), ended(5), 0},
	} {
		if got := startedBy(9, &c.before, &c.after); got != c.want {
			t.Errorf("%s: got run %d, want %d", c.name, got, c.want)
		}
	}
	w := newWorld(t)
	out, _ := w.does(0, "steer", "s1", "hi", "--new")
	like(t, "idle", out, `^no run was active: the steer started run 1; refold run starts .*\nsession s1: run 1 is running`)
	out, _ = w.does(0, "steer", "s1", "more")
	like(t, "busy", out, `^session s1: run 1 is running`)
}

// TestTypoOpensNoSession: an event of any kind opens the session that it names, and
// nothing deletes it. Commands about a session that isn't there publish none.
func TestTypoOpensNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "run", "hello", "hi", "--no-follow")
	before, err := w.LastEvent(w.ctx)
	bustest.OK(t, err)
	for _, args := range [][]string{
		{"steer", "helo", "more"}, {"cancel", "helo"}, {"interrupt", "helo"}, {"pause", "helo"}, {"resume", "helo"}, {"compact", "helo"}, {"close", "helo"},
		{"cancel", "helo", "--run", "1", "--operator"}, {"approve", "helo", "r1t1c0", "--yes"}, {"deny", "helo", "r1t1c0"},
		{"queue", "helo", "--remove", "2"}, {"queue", "helo", "--edit", "2", "text"},
		{"space", "apply", "helo"}, {"space", "detach", "helo", "support"}, {"pack", "disable", "helo", "crm"},
	} {
		_, errOut := w.does(statusFailed, args...)
		if !strings.Contains(errOut, "the log holds no event of this session") {
			t.Errorf("%q: %s", args, errOut)
		}
		if after, err := w.LastEvent(w.ctx); err != nil || after != before {
			t.Fatalf("%q stores event %d, the last one was %d (%v)", args, after, before, err)
		}
	}
	w.prints(statusFailed, `^refold: session helo: .*\n  refold sessions lists all; the first run opens one: refold run helo TEXT\n$`, "steer", "helo", "more")
	w.prints(0, `^no run was active: the steer started run 1`, "steer", "helo", "more", "--new")
}
