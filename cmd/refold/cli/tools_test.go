package cli

// refold tools and refold why: the latest turn from the session-actor, earlier
// ones by a new fold, and errors about what does not exist.

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// says publishes an event.
func (w *world) says(door session.Door, sid, typ, data string) {
	w.t.Helper()
	payload, err := json.Marshal(map[string]any{"type": typ, "data": json.RawMessage(data)})
	bustest.OK(w.t, err)
	if _, err := w.Publish(w.ctx, door, sid, payload, ""); err != nil {
		w.t.Fatal(err)
	}
}

// reaches waits until what a session looks like holds.
func (w *world) reaches(sid, what string, holds func(session.View) bool) {
	w.t.Helper()
	bustest.Until(w.t, sid+": "+what, func() bool {
		v, err := w.View(w.ctx, sid)
		return err == nil && holds(v)
	})
}

// view returns what a session looks like.
func (w *world) view(sid string) session.View {
	w.t.Helper()
	v, err := w.View(w.ctx, sid)
	bustest.OK(w.t, err)
	return v
}

// turnOf is true of a session whose latest turn has this name.
func turnOf(name string) func(session.View) bool {
	return func(v session.View) bool { return v.Turn != nil && v.Turn.Effect == name }
}

// builtinWithConfig installs the built-in tools with a default config.
func (w *world) builtinWithConfig() {
	w.t.Helper()
	record, err := withConfig("scripted", "m")
	bustest.OK(w.t, err)
	w.does(0, "install", file(w.t, string(record)))
}

func TestToolsOfEachTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.builtinWithConfig()
	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"open_session"}]}`)
	w.says(session.DoorTool, "s1", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"succeeded","host_session":{"id":"h","status":"ready"}}`)
	w.reaches("s1", "the second turn is asked", turnOf("r1t2"))

	// Before the host session there is one tool, after it are all but that one.
	head := `^turn %s of session s1: tools of profile openai \(provider "scripted" is not in profile_by_provider: the default profile\), registry [0-9a-f]{64}\n`
	first := strings.Replace(head, "%s", "r1t1", 1)
	second := strings.Replace(head, "%s", "r1t2", 1)
	now, errOut := w.does(0, "tools", "s1")
	like(t, "the latest", now+errOut, second+`\noffered, in the order in which the model was shown them: 10\n  1   close_session +host\.session\.close\n  2   shell +host\.exec\n`+
		`(.*\n){7}  10  apply_patch +host\.fs\.apply_patch\n`+
		`\nhidden: 5\n  edit_file +host\.fs\.edit_file +step 1: profile "openai" leaves it out, and nothing enables it\n  open_session +host\.session\.open +step 4: host_session_not_ready does not hold\n(  [a-z_]+ +session\.[a-z_]+ +step 1: profile "openai" leaves it out, and nothing enables it\n){3}$`)
	if same, _ := w.does(0, "tools", "show", "s1", "--turn", "r1t2"); same != now {
		t.Errorf("folded again: got %q, want %q", same, now)
	}
	out, _ := w.does(0, "tools", "s1", "--turn", "r1t1")
	like(t, "the first", out, first+`\noffered.*: 1\n  1  open_session +host\.session\.open\n\nhidden: 14\n`)

	for want, args := range map[string][]string{
		second + `shell \(host\.exec\): offered, 2 of 10\n$`:                                         {"s1", "shell"},
		second + `open_session \(host\.session\.open\): hidden, step 4: host_session_not_ready does`: {"s1", "host.session.open"},
		first + `shell \(host\.exec\): hidden, step 4: host_session_ready does not hold\n$`:          {"s1", "host.exec", "--turn", "r1t1"},
		first + `open_session \(host\.session\.open\): offered, 1 of 1\n$`:                           {"s1", "open_session", "--turn", "r1t1"},
	} {
		out, _ := w.does(0, append([]string{"why"}, args...)...)
		like(t, strings.Join(args, " "), out, want)
	}

	// What isn't there is answered with what is.
	w.says(session.DoorLLM, "s1", session.TypeGenerationSettled, `{"effect":"r1t2","status":"ok","text":{"text":"done"}}`)
	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"more"}}`)
	w.reaches("s1", "the second run", turnOf("r2t1"))
	w.says(session.DoorCtl, "idle", session.TypeFactsSet, `{"facts":{"a":"b"}}`)
	w.reaches("idle", "it is there", func(session.View) bool { return true })
	for want, args := range map[string][]string{
		`turn r2t1 knows no tool "sheep"; it knows .*shell, .*\n`:       {"why", "s1", "sheep"},
		`session s1 has no turn r1t3; it has r1t1 to r1t2, r2t1\n`:      {"why", "s1", "shell", "--turn", "r1t3"},
		`session s1 has no turn r9t1; it has`:                           {"tools", "s1", "--turn", "r9t1"},
		`session idle has not published a turn yet: refold view idle\n`: {"tools", "idle"},
		`session idle has not published a turn yet\n`:                   {"tools", "idle", "--turn", "r1t1"},
		`view of nobody: .*no event of this session`:                    {"why", "nobody", "shell"},
		`the log holds no event of this session\n`:                      {"why", "nobody", "shell", "--turn", "r1t1"},
	} {
		_, errOut := w.does(statusFailed, args...)
		like(t, strings.Join(args, " "), errOut, `^refold: `+want)
	}
}

// A hook decides a turn's tools some events after the turn has begun.
func TestToolsOfATurnWithAStepHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.builtinWithConfig()
	hooked := func(sid, fallback string) {
		t.Helper()
		w.says(session.DoorCtl, sid, session.TypeRunRequested,
			`{"input":{"text":"hi"},"config":{"provider":"p","model":"m","step_hook":{"hook":"gate","fallback":"`+fallback+`"}}}`)
		w.reaches(sid, "the hook is asked", func(v session.View) bool { return v.WaitsFor == "step" })
	}
	hooked("s1", session.FallbackFail)
	for _, args := range [][]string{{"tools", "s1"}, {"why", "s1", "shell", "--turn", "r1t1"}} {
		_, errOut := w.does(statusFailed, args...)
		like(t, "waiting", errOut, `^refold: turn r1t1 waits for its step hook, which decides over its tools: refold view s1\n$`)
	}
	w.says(session.DoorCtl, "s1", session.TypeFactsSet, `{"facts":{"a":"b"}}`)
	w.says(session.DoorStep, "s1", session.TypeStepPrepared, `{"effect":"r1t1s","status":"ok","active_tools":["open_session","shell"]}`)
	w.reaches("s1", "the model is asked", func(v session.View) bool { return v.WaitsFor == "model" })
	for _, args := range [][]string{nil, {"--turn", "r1t1"}} {
		out, _ := w.does(0, append([]string{"why", "s1", "grep"}, args...)...)
		like(t, "prepared", out, `^turn r1t1 of session s1: tools of the step, registry .*\nstep: from its hook\ngrep .*: hidden, step 1: the step's list leaves it out \(the step hook\)\n$`)
	}

	hooked("s2", session.FallbackFail)
	hooked("s3", session.FallbackRules)
	for _, sid := range []string{"s2", "s3"} {
		w.says(session.DoorStep, sid, session.TypeStepPrepared, `{"effect":"r1t1s","status":"failed","error":{"code":"tired"}}`)
		w.reaches(sid, "the hook has answered", func(v session.View) bool { return v.WaitsFor != "step" })
	}
	_, errOut := w.does(statusFailed, "tools", "s2")
	like(t, "failed", errOut, `^refold: turn r1t1 was not published, since its step hook failed: tired\n$`)
	out, _ := w.does(0, "tools", "s3")
	like(t, "fallen back", out, `^turn r1t1 of session s3: tools of profile openai \(.*\), .*\nstep: no rule applies; its hook's answer does not count: tired\n\noffered.*: 1\n`)
}

func TestToolsNameTheRuleOfTheStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.builtinWithConfig()
	w.says(session.DoorCtl, "s1", session.TypeRunRequested, `{"input":{"text":"hi"},"config":{"provider":"p","model":"m","steps":[
		{"when":"1 / step > 5"}, {"when":"step > 5"}, {"active_tools":["open_session"]}]}}`)
	w.reaches("s1", "the model is asked", func(v session.View) bool { return v.WaitsFor == "model" })
	out, _ := w.does(0, "why", "s1", "grep")
	like(t, "a rule of the run", out, `\nstep: rule 2 of the run applies; rule 0 could not be evaluated: when_failed\ngrep .*: hidden, step 1: .*\(rule 2 of the run\)\n$`)
}

// Without profiles all tools are the base, even if there are none.
func TestToolsWithoutProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "run", "s1", "hi", "--no-follow")
	w.waits("s1", 1)
	out, _ := w.does(0, "tools", "s1")
	like(t, "no tools", out, `^turn r1t1 of session s1: all tools \(provider "p" is not in profile_by_provider, and there is no default profile\), registry [0-9a-f]{64}\n\noffered, .*: 0\n\nhidden: 0\n$`)
	_, errOut := w.does(statusFailed, "why", "s1", "shell")
	like(t, "no tools", errOut, `knows no tool "shell"; it knows none\n$`)
}

func TestTurnsAreShownAsRanges(t *testing.T) {
	t.Parallel()
	got := ranges([]string{"r1t1", "r1t2", "r1t3", "r2t1", "r10t1", "r10t2"})
	if want := "r1t1 to r1t3, r2t1, r10t1 to r10t2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The session's own registry and config are checked, under the policy of the
// record that it pinned.
func TestToolsCheckOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, strings.Replace(mailRecord, `"rules":1`, `"rules":1,"policy":{"coverage":"fail"}`, 1)))
	w.says(session.DoorCtl, "s1", session.TypeFactsSet, `{"facts":{"a":"b"}}`)
	w.does(0, "install", file(t, mailRecord))
	w.serves("tool/own llm/openai")
	out, errOut := w.does(statusFailed, "tools", "check", "--session", "s1", "--within", "1ms")
	like(t, "what it pinned", out, `\nmail\.send +tool/mail +no bridge serves it.*(.*\n)*\nNOT covered: 0 of 1 tools, 1 of 1 in the config, for session s1\n$`)
	like(t, "what it pinned", errOut, `refold: warning: tool/mail: no bridge serves it`)
	w.does(0, "tools", "check", "--session", "s1", "--within", "1ms", "--coverage", "warn")
	w.does(0, "tools", "check", "--within", "1ms") // the newest record has no such policy

	w.says(session.DoorCtl, "s1", session.TypeToolRegistrySet, `{"tools":[
		{"tool_id":"own.loop","tool_name":"loop","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"app"}},
		{"tool_id":"own.tool","tool_name":"tool","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"own"}}]}`)
	w.says(session.DoorCtl, "s1", session.TypeSessionConfigured, `{"system":"no provider"}`)
	own := ""
	bustest.Until(t, "its descriptors are stored", func() bool {
		own, _ = w.does(0, "tools", "check", "--session", "s1", "--coverage", "warn")
		return !strings.Contains(own, "NOT covered")
	})
	like(t, "its own", own, `\nown\.loop +host_loop/app +the program that drives the session\nown\.tool +tool/own +1 bridge\n\ncovered: 2 of 2 tools, for session s1\n$`)
	_, errOut = w.does(statusFailed, "tools", "check", "--session", "nobody")
	like(t, "nobody", errOut, "no event of this session")
}
