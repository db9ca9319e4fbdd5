package session_test

// Interleavings of what clients, operators, people who approve, models, tools
// and timers say to one session, made from a seed. They are cheap, so that many
// of them are made: the events are drawn from what the state has open, written
// as text and folded once. The same seed gives the same interleaving.

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// weaveInstall is an install record with a tool of each kind: side by side or
// alone, with a key, of a bridge or of a host loop, that needs a fact, and all
// that a call may have to wait for.
func weaveInstall(t testing.TB) *session.Install { return weaveInstallWith(t, nil) }

// weaveInstallWith is weaveInstall with more fields of the record.
func weaveInstallWith(t testing.TB, more map[string]any) *session.Install {
	t.Helper()
	tool := func(name string, more map[string]any) any {
		return merged(map[string]any{
			"tool_id": "x." + name, "tool_name": name, "parallel_safe": true, "args_schema": map[string]any{"type": "object"},
			"executor": map[string]any{"kind": "effect", "target": "box"},
		}, more)
	}
	loop := map[string]any{"kind": "host_loop", "target": "app"}
	install, err := session.ParseInstall(asJSON(t, merged(map[string]any{
		"v": 1, "rules": 1,
		"tools": []any{
			tool("read", map[string]any{"retry_safe": true, "access": "read"}),
			tool("write", map[string]any{"parallel_safe": false}),
			tool("keyed", map[string]any{"resource_key": "k:{a}"}),
			tool("asks", map[string]any{"approval": "always", "resource_key": "k:{a}"}),
			tool("maybe", map[string]any{"approval": "args.a != '1'"}),
			tool("policed", nil),
			tool("loop", map[string]any{"executor": loop}),
			tool("loopasks", map[string]any{"executor": loop, "approval": "always"}),
			tool("answers", map[string]any{"executor": map[string]any{"kind": "reply", "by": "clients"}}),
			tool("sleeps", map[string]any{"executor": map[string]any{"kind": "sleep"}}),
			tool("facts", map[string]any{"availability": []any{map[string]any{"kind": "fact", "name": "open", "equals": "yes"}}}),
		},
		"policy": map[string]any{"approval": []any{
			map[string]any{"decision": "deny", "tools": []any{"policed"}, "when": "args.a == '2'"},
			map[string]any{"decision": "ask", "tools": []any{"policed"}, "when": "step > 0"},
		}},
		"config": map[string]any{"provider": "p", "model": "m"},
	}, more)))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// weave makes one interleaving.
type weave struct {
	rng  *rand.Rand
	log  *sendables
	time int64
}

func newWeave(install *session.Install, seed uint64) *weave {
	return &weave{rng: rand.New(rand.NewPCG(seed, 0)), log: newSendables(install), time: 1_000_000}
}

// pick returns one of some texts.
func (w *weave) pick(of ...string) string { return of[w.rng.IntN(len(of))] }

// chance reports true once in n times.
func (w *weave) chance(n int) bool { return w.rng.IntN(n) == 0 }

// utterance is door, type and data of what is said.
type utterance struct {
	door session.Door
	typ  string
	data string
}

// step draws an event and folds it.
func (w *weave) step() error {
	switch w.rng.IntN(6) {
	case 0:
		w.time += 1000
	case 1:
		w.time += 60_000
	}
	if n := len(w.log.history); n > 0 && w.chance(14) { // once more, as it was
		e := w.log.history[w.rng.IntN(n)]
		return w.log.fold(e.Door, w.time, e.Payload)
	}
	u := w.draw()
	payload, err := codec.FromJSON([]byte(`{"data":` + u.data + `,"type":"` + u.typ + `"}`))
	if err != nil {
		return fmt.Errorf("a draw is no JSON: %w: %s", err, u.data)
	}
	return w.log.fold(u.door, w.time, payload)
}

func (w *weave) draw() utterance {
	s := w.log.state
	n := w.rng.IntN(100)
	switch {
	case s.Run == nil && n < 85, n < 5:
		return w.run()
	case n < 55:
		return w.progress()
	case n < 63:
		return utterance{session.DoorIn, session.TypeSteerRequested, `{"input":` + w.input() + w.number() + `}`}
	case n < 67:
		return utterance{session.DoorIn, session.TypeRunCancelRequested, w.control()}
	case n < 71:
		return utterance{session.DoorIn, session.TypeRunInterrupt, w.control()}
	case n < 75:
		return utterance{session.DoorIn, session.TypeRunPauseRequested, w.control()}
	case n < 79:
		return w.resume()
	case n < 83:
		return w.wake()
	case n < 86:
		return w.late()
	case n < 90:
		return w.decide(w.rng.IntN(3))
	}
	return w.operate()
}

// operate is what changes what tools there are, and what is seldom said.
func (w *weave) operate() utterance {
	switch w.rng.IntN(12) {
	case 10, 11:
		return w.schedule()
	case 9:
		return utterance{session.DoorCtl, session.TypeCompactRequested, `{"keep_turns":` + w.pick("0", "1", "2") + `}`}
	case 0, 1:
		return utterance{session.DoorCtl, session.TypeFactsSet, `{"facts":{"open":` + w.pick(`"yes"`, `"no"`, `null`) + `}}`}
	case 2:
		return utterance{session.DoorCtl, session.TypeToolOverridesSet, `{"scope":"` + w.pick("run", "session") + `","disable":[` + w.pick(``, `"keyed"`, `"loop"`) + `]}`}
	case 3:
		return utterance{session.DoorIn, w.pick(session.TypeRunCompleted, session.TypeRunFailed), `{}`}
	case 4, 5:
		return utterance{session.DoorIn, session.TypeRunEdited, `{"input":` + w.input() + w.number() + `}`}
	case 6:
		return utterance{session.DoorTool, session.TypeSteerRequested, `{"input":{"text":"forged"}}`}
	case 7:
		if w.chance(8) {
			return utterance{session.DoorCtl, session.TypeSessionClosed, `{}`}
		}
	}
	return utterance{session.DoorCtl, "Nonsense", `{"a":[1]}`}
}

func (w *weave) input() string {
	return w.pick(`{"text":"hi"}`, `{"text":"go on"}`, `{"text":" "}`, `{"parts":[{"text":"one"},{"text":"two"}]}`, `{"text":""}`,
		`{"parts":[{"blob":"`+noBlob+`","media_type":"image/png","size":70000},{"blob":"`+noBlob+`","size":9000000}]}`)
}

// noBlob names a blob that nobody reads.
const noBlob = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// number names a run, or leaves it open which one.
func (w *weave) number() string {
	if w.chance(3) {
		return `,"run":` + strconv.Itoa(w.rng.IntN(int(w.log.state.Runs)+2))
	}
	return ""
}

func (w *weave) control() string {
	return `{"reason":"` + w.pick("", "because") + `"` + w.number() + `}`
}

// run requests a run: the door ctl may give every field.
func (w *weave) run() utterance {
	data := `{"input":` + w.input()
	if w.chance(2) {
		data += `,"when_busy":"` + w.pick(session.BusyQueue, session.BusySteer, session.BusyInterrupt, session.BusyReject) + `"`
	}
	if w.chance(6) {
		data += `,"submission":"` + w.pick("a", "b") + `"`
	}
	if w.chance(4) {
		return utterance{session.DoorIn, session.TypeRunRequested, data + `}`}
	}
	config := `{"provider":"p","model":"m"`
	for _, odd := range []string{
		`,"completion":"explicit"`, `,"turns_max":2`, `,"turns_max":1`, `,"retry":{"attempts":3,"backoff_ms":1000}`,
		`,"budget":{"tokens":40}`, `,"budget":{"cost":30,"on_breach":"fail"},"prices":{"input":1000000}`,
		`,"deadlines_ms":{"turn":50000,"call":50000,"approval":70000}`, `,"step_hook":{"hook":"h"}`, `,"context":{"tokens":256,"keep_turns":1}`, `,"context":{}`, `,"deadlines_ms":{"run":90000}`,
		`,"response_format":{"type":"json_schema","schema":{"type":"object"},"repairs":2}`, `,"response_format":{"type":"json_schema","schema":{"type":"string"}}`,
	} {
		if w.chance(5) && !strings.Contains(config, odd[:8]) {
			config += odd
		}
	}
	if w.chance(15) {
		config += `,"fallback":[{"provider":"p2","model":"m2"},{"provider":"p3","model":"m3","sticky":"turn"}]`
	}
	return utterance{session.DoorCtl, session.TypeRunRequested, data + `,"config":` + config + `}}`}
}

// progress settles something that is open, or does what the run waits for.
func (w *weave) progress() utterance {
	s := w.log.state
	run, t := s.Run, s.Turn
	switch {
	case run == nil:
		return w.run()
	case t == nil || t.Run != run.Number:
		return w.resume()
	case t.Open:
		return w.answer(generationName(s))
	case t.Step != nil && t.Step.Open:
		return utterance{session.DoorStep, session.TypeStepPrepared, `{"effect":"` + turnOf(t) + `s","status":"` + w.pick("ok", "ok", "odd") + `"}`}
	case t.RetryAt > 0:
		return w.wake()
	case run.Lifecycle == session.WaitingInput:
		return w.draw()
	}
	if t.Batch != nil {
		for range 4 {
			i := w.rng.IntN(len(t.Batch.Calls))
			switch c := &t.Batch.Calls[i]; c.Status {
			case session.CallOpen:
				switch c.ToolName {
				case "answers":
					return w.reply(turnOf(t)+"c"+strconv.Itoa(i), c.Arguments)
				case "sleeps":
					return w.wake()
				}
				if strings.HasPrefix(t.Batch.Calls[i].ToolName, "loop") && w.chance(3) {
					return w.settleBatch()
				}
				return w.settle(turnOf(t) + "c" + strconv.Itoa(i))
			case session.CallAwaiting:
				return w.decide(i)
			}
		}
	}
	return w.resume()
}

// turnOf and generationName spell names of effects.
func turnOf(t *session.Turn) string {
	return "r" + strconv.FormatUint(uint64(t.Run), 10) + "t" + strconv.FormatUint(uint64(t.Number), 10)
}

func generationName(s *session.State) string {
	t := s.Turn
	if n, is := s.OpenCompaction(); is {
		return turnOf(t) + "k" + strconv.FormatUint(uint64(n), 10)
	}
	if t.Attempt > 0 {
		return turnOf(t) + "a" + strconv.FormatUint(uint64(t.Attempt)+1, 10)
	}
	return turnOf(t)
}

// answer is a model's.
func (w *weave) answer(effect string) utterance {
	head := `{"effect":"` + effect + `","usage":{"input_tokens":9,"output_tokens":4}`
	switch n := w.rng.IntN(20); {
	case n < 5:
		return utterance{session.DoorLLM, session.TypeGenerationSettled, head + `,"status":"ok","text":{"text":` + w.pick(`"done"`, `"{}"`, `"\n"`, `""`) + `}}`}
	case n < 6:
		return utterance{session.DoorLLM, session.TypeGenerationSettled, head + `,"status":"ok"}`}
	case n < 8:
		return utterance{session.DoorLLM, session.TypeGenerationSettled,
			head + `,"status":"failed","error":{"code":"` + w.pick("overloaded", "context_length_exceeded") + `","retryable":` + w.pick("true", "true", "false") + `}}`}
	case n < 9:
		return utterance{session.DoorLLM, session.TypeGenerationSettled, head + `,"status":"odd"}`}
	}
	calls := 1 + w.rng.IntN(4)
	if w.chance(150) {
		calls = session.CallsMax + 2
	}
	var b strings.Builder
	b.WriteString(head + `,"calls":[`)
	for i := range calls {
		if i > 0 {
			b.WriteByte(',')
		}
		name := w.pick("read", "write", "keyed", "asks", "asks", "maybe", "policed", "loop", "loopasks", "answers", "sleeps", "facts", "nosuch", "", "no such", "x.read")
		if w.chance(30) {
			name = strings.Repeat("long", 20)
		}
		arguments := w.pick(`{\"a\":\"1\"}`, `{\"a\":\"2\"}`, `{}`, ``, `{`, `[]`, ` {\"a\":\"3\"}`)
		if name == "sleeps" {
			arguments = w.pick(`{\"seconds\":1}`, `{\"seconds\":900}`, `{}`)
		}
		b.WriteString(`{"tool_name":"` + name + `","provider_call_id":"same","arguments":"` + arguments + `"}`)
	}
	b.WriteByte(']')
	if w.chance(2) {
		b.WriteString(`,"text":{"text":` + w.pick(`"let me see"`, `""`, `" "`) + `}`)
	}
	return utterance{session.DoorLLM, session.TypeToolCallsObserved, b.String() + `}`}
}

// reply answers a call that waits for that.
func (w *weave) reply(call, arguments string) utterance {
	hash := codec.Sum([]byte(arguments)).String()
	return utterance{session.Door(w.pick("in", "approve", "approve", "ctl")), session.TypeReplyGiven,
		`{"call":"` + call + `","args_hash":"` + hash + `",` + w.pick(`"output":{"text":"yes"}`, `"output":{"text":"yes"}`, `"declined":"no"`, `"output":{}`) + `}`}
}

// settle is a bridge's settlement of a call, or a host loop's.
func (w *weave) settle(effect string) utterance {
	data := `{"effect":"` + effect + `","status":"` + w.pick("succeeded", "succeeded", "succeeded", "failed", "cancelled", "outcome_unknown", "odd") + `"`
	if w.chance(2) {
		data += `,"output":` + w.pick(`{"text":"out"}`, `{"text":""}`, `{"text":" "}`, `{"parts":[{"text":"a"},{"text":"b"}]}`)
	}
	return utterance{session.DoorTool, session.TypeToolCallSettled, data + `}`}
}

// settleBatch settles, as a host loop does, all that has no result.
func (w *weave) settleBatch() utterance {
	t := w.log.state.Turn
	var results []string
	for i := range t.Batch.Calls {
		if s := t.Batch.Calls[i].Status; s == session.CallOpen || s == session.CallWaiting || w.chance(9) {
			results = append(results, w.settle(turnOf(t)+"c"+strconv.Itoa(i)).data)
		}
	}
	return utterance{session.DoorTool, session.TypeToolBatchSettled,
		`{"batch":"` + turnOf(t) + `","plan_hash":"` + t.Batch.PlanHash.String() + `","results":[` + strings.Join(results, ",") + `]}`}
}

// late settles what is not open any more, or not yet.
func (w *weave) late() utterance {
	turn := "r" + strconv.Itoa(1+w.rng.IntN(int(w.log.state.Runs)+1)) + "t" + strconv.Itoa(1+w.rng.IntN(3))
	if w.chance(3) {
		return w.answer(turn + w.pick("", "a2"))
	}
	return w.settle(turn + "c" + strconv.Itoa(w.rng.IntN(3)))
}

// decide decides over a call of the latest turn, mostly one that waits for it.
func (w *weave) decide(call int) utterance {
	t := w.log.state.Turn
	if t == nil {
		return w.run()
	}
	data := `{"call":"` + turnOf(t) + "c" + strconv.Itoa(call) + `"`
	hash := strings.Repeat("0", 64)
	if t.Batch != nil && call < len(t.Batch.Calls) && t.Batch.Calls[call].Approval != nil && !w.chance(9) {
		hash = t.Batch.Calls[call].Approval.ArgsHash.String()
	}
	data += `,"args_hash":"` + hash + `"`
	switch w.rng.IntN(4) {
	case 0:
		data += `,"decision":"deny","reason":"` + w.pick("", "no") + `"}`
	case 1:
		data += `,"decision":"approve","arguments":` + w.pick(`"{\"a\":\"9\"}"`, `"{"`, `"{}"`) + `}`
	default:
		data += `,"decision":"approve"}`
	}
	return utterance{session.DoorApprove, session.TypeApprovalDecided, data}
}

// resume lets a run go on; a spent budget needs a larger one.
func (w *weave) resume() utterance {
	run := w.log.state.Run
	if run != nil && run.Lifecycle == session.Paused && run.Spent && !w.chance(4) {
		return utterance{session.DoorCtl, session.TypeRunResumeRequested, `{"budget":{"tokens":` + w.pick("10", "500") + `}}`}
	}
	if run != nil && run.Lifecycle == session.Running && w.chance(2) {
		return w.wake()
	}
	return utterance{session.DoorIn, session.TypeRunResumeRequested, w.control()}
}

// wake settles an open wake, at its time or much later.
func (w *weave) wake() utterance {
	s := w.log.state
	if len(s.Wakes) == 0 {
		return utterance{session.DoorWake, session.TypeWakeSettled, `{"effect":"w1"}`}
	}
	open := s.Wakes[w.rng.IntN(len(s.Wakes))]
	if !w.chance(3) {
		w.time = max(w.time, open.Due)
	}
	effect := `{"effect":"w` + strconv.FormatUint(uint64(open.Number), 10) + `"`
	for _, sc := range s.View().Schedules {
		if sc.Due == open.Due && !w.chance(9) {
			at := sc.Next
			if w.chance(3) {
				at = max(at, w.time-w.time%60_000)
			}
			return utterance{session.DoorWake, session.TypeScheduleFired, effect + fmt.Sprintf(`,"name":%q,"rev":%d,"at":%d%s}`,
				sc.Name, sc.Rev+uint64(w.rng.IntN(20)/19), at, w.pick(fmt.Sprintf(`,"next":%d`, at+60_000), fmt.Sprintf(`,"next":%d`, at+60_000), fmt.Sprintf(`,"next":%d`, at+90_000), ``, `,"next":7`))}
		}
	}
	return utterance{session.DoorWake, session.TypeWakeSettled, effect + `}`}
}

// schedule is what operators say of two schedules.
func (w *weave) schedule() utterance {
	name := w.pick("a", "b")
	switch rev := uint64(0); w.rng.IntN(8) {
	case 0:
		return utterance{session.DoorCtl, session.TypeScheduleRemoved, `{"name":"` + name + `"}`}
	case 1:
		return utterance{session.DoorCtl, session.TypeSchedulePause, `{"name":"` + name + `"}`}
	case 2:
		for _, sc := range w.log.state.View().Schedules {
			rev, name = sc.Rev, sc.Name
		}
		return utterance{session.DoorCtl, session.TypeScheduleResume, fmt.Sprintf(`{"name":%q,"rev":%d,"at":%d,"next":%d}`, name, rev, w.time, w.time+30_000)}
	}
	return utterance{session.DoorCtl, session.TypeScheduleSet, fmt.Sprintf(`{"name":%q,"cron":"* * * * *","input":%s,"at":%d,"next":%d,"when_busy":%q,"catch_up":%q%s}`, name, w.input(), w.time,
		w.time+int64(w.rng.IntN(90))*1000, w.pick("skip", "queue", "interrupt", "interrupt"), w.pick("last", "none"), w.pick(``, ``, `,"config":{"provider":"p","model":"m2","turns_max":1}`, `,"rev":3`))}
}

// asTest writes a history down so that it can be read, and folded again.
func asTest(history []session.Event) string {
	var b strings.Builder
	for _, e := range history {
		payload, err := codec.ToJSON(e.Payload)
		if err != nil {
			payload = fmt.Appendf(nil, "%q", e.Payload)
		}
		fmt.Fprintf(&b, "  %d at %d, %s: %s\n", e.Seq, e.Time, e.Door, payload)
	}
	return b.String()
}
