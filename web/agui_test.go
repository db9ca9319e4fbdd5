package web_test

// The protocol AG-UI: each test is a page that sends requests as HttpAgent does, and
// checks the events as HttpAgent does. examples/chat-agui tries the real one in a browser.

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// aguiEvent is an event of the protocol, with the fields that tests read.
type aguiEvent struct {
	Type, ThreadID, RunID, StepName, MessageID, ToolCallID, ToolCallName, ParentMessageID string
	Role, Delta, Content, Message, Code, Name, ProtocolVersion                            string

	Value    json.RawMessage
	Messages []aguiMessage
	Outcome  struct {
		Type       string
		Interrupts []aguiInterrupt
	}
	Metadata struct {
		Refold struct {
			Run          uint32
			Status, Code string
		}
	}
}

type aguiInterrupt struct {
	ID, Reason, Message, ToolCallID, ExpiresAt string
	ResponseSchema                             json.RawMessage
}

type aguiMessage struct {
	ID, Role, ToolCallID string
	Content              json.RawMessage
	ToolCalls            []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
	}
}

// page is what a page does in one thread.
type page struct {
	*world
	token, thread string
}

// run sends a request with a part of its fields, and reads the answer's events.
func (p page) run(run, fields string) []aguiEvent {
	p.t.Helper()
	s := p.open(run, fields)
	defer s.body.Close()
	all := []aguiEvent{}
	for {
		e, err := s.agui(p.t)
		if errors.Is(err, io.EOF) {
			checkOrder(p.t, all)
			return all
		}
		if err != nil {
			p.t.Fatalf("after %s: %v", toldAGUI(all), err)
		}
		all = append(all, e)
	}
}

// open sends a request.
func (p page) open(run, fields string) *events {
	p.t.Helper()
	got, err := http.DefaultClient.Do(p.request(p.token, http.MethodPost, "/v1/ag-ui/helper", p.body(run, fields), "Accept", "text/event-stream"))
	if err != nil {
		p.t.Fatal(err)
	}
	if kind := got.Header.Get("Content-Type"); got.StatusCode != http.StatusOK || kind != "text/event-stream" {
		text, _ := io.ReadAll(got.Body)
		p.t.Fatalf("run %s: got %d %s %s", run, got.StatusCode, kind, text)
	}
	p.t.Cleanup(func() { got.Body.Close() })
	return &events{body: got.Body, in: bufio.NewReader(got.Body)}
}

func (p page) body(run, fields string) string {
	return fmt.Sprintf(`{"threadId": %q, "runId": %q, "protocolVersion": "1.0", "state": {}, "forwardedProps": {}, %s}`, p.thread, run, fields)
}

// aguiSays is the field messages of a page whose user says something.
func aguiSays(text string) string {
	return fmt.Sprintf(`"tools": [], "context": [], "messages": [{"id": "u0", "role": "user", "content": "An earlier question."}, {"id": "a0", "role": "assistant", "content": "What the page says that was answered."}, {"id": "u1", "role": "user", "content": %q}]`, text)
}

// nothing is the field messages of a page that was reloaded.
const nothing = `"messages": []`

// answers is the field resume.
func answers(status, payload string, to ...aguiInterrupt) string {
	var all []string
	for _, it := range to {
		all = append(all, fmt.Sprintf(`{"interruptId": %q, "status": %q%s}`, it.ID, status, payload))
	}
	return aguiSays("Buy tea.") + `, "resume": [` + strings.Join(all, ", ") + `]`
}

// agui reads the next event of the protocol.
func (s *events) agui(t testing.TB) (of aguiEvent, err error) {
	e, err := s.next()
	if err == nil && e.kind+e.id != "" {
		t.Errorf("got the event %+v: HttpAgent reads data alone", e)
	}
	if err == nil {
		err = json.Unmarshal([]byte(e.data), &of)
	}
	return of, err
}

// await reads events until one of a type.
func (s *events) await(t testing.TB, kind string) aguiEvent {
	t.Helper()
	for {
		e, err := s.agui(t)
		if err != nil {
			t.Fatalf("before %s: %v", kind, err)
		}
		if e.Type == kind {
			return e
		}
	}
}

// checkOrder reports what HttpAgent would refuse, and what the protocol forbids.
func checkOrder(t testing.TB, all []aguiEvent) {
	t.Helper()
	open := map[string]bool{}
	change := func(i int, what string, opens, changes bool) {
		if open[what] == opens {
			t.Errorf("event %d of %s: %s is open: %v", i, toldAGUI(all), what, open[what])
		}
		if changes {
			open[what] = opens
		}
	}
	for i := range all {
		switch e := &all[i]; e.Type {
		case "TEXT_MESSAGE_START", "TEXT_MESSAGE_END":
			change(i, e.MessageID, e.Type == "TEXT_MESSAGE_START", true)
		case "TEXT_MESSAGE_CONTENT":
			change(i, e.MessageID, false, false)
		case "TOOL_CALL_START", "TOOL_CALL_END":
			change(i, e.ToolCallID, e.Type == "TOOL_CALL_START", true)
		case "TOOL_CALL_ARGS":
			change(i, e.ToolCallID, false, false)
		case "STEP_STARTED", "STEP_FINISHED":
			change(i, "step "+e.StepName, e.Type == "STEP_STARTED", true)
		case "RUN_STARTED":
			change(i, "run", true, true)
		case "RUN_FINISHED", "RUN_ERROR":
			change(i, "run", false, true)
			for what, is := range open {
				if is {
					t.Errorf("%s ends while %s is open", toldAGUI(all), what)
				}
			}
		case "MESSAGES_SNAPSHOT", "CUSTOM", "TOOL_CALL_RESULT":
			change(i, "run", false, false)
		default:
			t.Errorf("event %d is a %q", i, e.Type)
		}
	}
	if len(all) == 0 || all[0].Type != "RUN_STARTED" || open["run"] {
		t.Errorf("got %s, want a run that starts and ends", toldAGUI(all))
	}
}

// toldAGUI returns events as lines of a test's want; deltas are one line.
func toldAGUI(all []aguiEvent) string {
	var b strings.Builder
	for i := range all {
		e := &all[i]
		if e.Type == "TEXT_MESSAGE_CONTENT" && i > 0 && all[i-1].Type == e.Type {
			b.WriteString(e.Delta)
			continue
		}
		b.WriteString("\n" + e.Type)
		for _, more := range []string{e.StepName, e.MessageID, e.ToolCallID, e.ToolCallName, e.Content, e.Delta, e.Outcome.Type, e.Code, e.Name, showMessages(e.Messages)} {
			if more != "" {
				b.WriteString(" " + more)
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// showMessages returns the ids, calls and contents of messages.
func showMessages(all []aguiMessage) string {
	var shown []string
	for _, m := range all {
		text := strings.TrimSpace(m.ID + " " + m.Role + " " + string(m.Content))
		for _, c := range m.ToolCalls {
			text += " " + c.ID + ":" + c.Function.Name + c.Function.Arguments
		}
		shown = append(shown, "["+strings.TrimSpace(text)+"]")
	}
	return strings.Join(shown, " ")
}

// last returns the last event, which must be a RUN_FINISHED with an outcome.
func (p page) last(all []aguiEvent, outcome string) aguiEvent {
	p.t.Helper()
	e := all[len(all)-1]
	if e.Type != "RUN_FINISHED" || e.Outcome.Type != outcome || e.ThreadID != p.thread {
		p.t.Fatalf("got %s, want the outcome %s", toldAGUI(all), outcome)
	}
	return e
}

// check compares events.
func (p page) check(what string, got []aguiEvent, want string) {
	p.t.Helper()
	if toldAGUI(got) != strings.TrimSpace(want) {
		p.t.Errorf("%s: got\n%s\nwant\n%s", what, toldAGUI(got), want)
	}
}

// weather is a tool that may run at once.
func weather() *refold.Tool {
	return refold.Func("weather.get", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		if in.City == "nowhere" {
			return "", &executor.Error{Code: "no_city", Detail: "there is no such city"}
		}
		return "rain in " + in.City, nil
	}, refold.RetrySafe())
}

func TestAGUITurns(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(weather()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("weather_get", map[string]string{"city": "Bergen"}), refoldtest.To("weather_get", map[string]string{"city": "nowhere"}), refoldtest.To("moon_get", map[string]string{})),
		refoldtest.Say("It rains."), refoldtest.Say("It still rains."))))
	p := page{w, "acme", "hello"}
	got := p.run("run-1", aguiSays("Weather?"))
	// Two calls run at once, so their results come in any order.
	results := map[string]string{}
	got = slices.DeleteFunc(got, func(e aguiEvent) bool {
		if e.Type == "TOOL_CALL_RESULT" {
			results[e.ToolCallID] = e.MessageID + " " + e.Role + " " + e.Metadata.Refold.Status + " " + e.Content
		}
		return e.Type == "TOOL_CALL_RESULT"
	})
	p.check("a run", got, `
RUN_STARTED
STEP_STARTED r1t1
TOOL_CALL_START r1t1c0 weather_get
TOOL_CALL_ARGS r1t1c0 {"city":"Bergen"}
TOOL_CALL_END r1t1c0
TOOL_CALL_START r1t1c1 weather_get
TOOL_CALL_ARGS r1t1c1 {"city":"nowhere"}
TOOL_CALL_END r1t1c1
TOOL_CALL_START r1t1c2 moon_get
TOOL_CALL_ARGS r1t1c2 {}
TOOL_CALL_END r1t1c2
STEP_FINISHED r1t1
STEP_STARTED r1t2
TEXT_MESSAGE_START r1t2
TEXT_MESSAGE_CONTENT r1t2 It rains.
TEXT_MESSAGE_END r1t2
STEP_FINISHED r1t2
RUN_FINISHED success`)
	if got[0].ThreadID != "hello" || got[0].RunID != "run-1" || got[0].ProtocolVersion != "1.0" || got[0].Metadata.Refold.Run != 1 || got[len(got)-1].RunID != "run-1" {
		t.Errorf("got %+v", got[0])
	}
	if results["r1t1c0"] != "r1t1c0 tool succeeded rain in Bergen" || results["r1t1c1"] != "r1t1c1 tool failed error: no_city: there is no such city" || !strings.Contains(results["r1t1c2"], "ignored error: tool_unknown") {
		t.Errorf("got the results %q", results)
	}
	// What the page says that was said before counts for nothing.
	var transcript []map[string]any
	w.want(http.StatusOK, &transcript, "acme", "GET", "/v1/sessions/hello/transcript?format=openai", "")
	if len(transcript) != 6 || transcript[0]["content"] != "Weather?" {
		t.Errorf("the log has %v", transcript)
	}
	p.last(p.run("run-2", aguiSays("And now?")), "success")
	w.refuse(http.StatusConflict, "duplicate_submission", "acme", "POST", "/v1/ag-ui/helper", p.body("run-1", aguiSays("And tomorrow?")))
}

// The same request again shows the run again, whether it goes on or not.
func TestAGUISameRunAgain(t *testing.T) {
	t.Parallel()
	m := newTyping()
	w := serve(t, web.Options{}, refold.Model(m.ref()))
	p := page{w, "acme", "hello"}
	first := p.open("run-1", aguiSays("Hi."))
	m.types <- "Hel"
	if e := first.await(t, "TEXT_MESSAGE_CONTENT"); e.Delta != "Hel" {
		t.Fatalf("got %+v", e)
	}
	second := p.open("run-1", aguiSays("Hi."))
	if e := second.await(t, "MESSAGES_SNAPSHOT"); showMessages(e.Messages) != `[log-`+logSeq(e)+` user "Hi."]` {
		t.Errorf("got the snapshot %s", showMessages(e.Messages))
	}
	if e := second.await(t, "TEXT_MESSAGE_CONTENT"); e.Delta != "Hel" || e.MessageID != "r1t1" {
		t.Errorf("got %+v, want the text that came before", e)
	}
	first.body.Close()                   // a page that is gone stops nothing
	joined := p.open("another", nothing) // a page that does not know the run
	if e := joined.await(t, "TEXT_MESSAGE_CONTENT"); e.Delta != "Hel" {
		t.Errorf("got %+v, want the text that came before", e)
	}
	m.types <- "lo."
	close(m.types)
	for _, s := range []*events{second, joined} {
		if e := s.await(t, "RUN_FINISHED"); e.Outcome.Type != "success" {
			t.Errorf("got %+v", e)
		}
	}
	got := p.run("run-1", aguiSays("Hi."))
	seq := logSeq(got[1])
	p.check("the run after its end", got, `
RUN_STARTED
MESSAGES_SNAPSHOT [log-`+seq+` user "Hi."]
STEP_STARTED r1t1
TEXT_MESSAGE_START r1t1
TEXT_MESSAGE_CONTENT r1t1 Hello.
TEXT_MESSAGE_END r1t1
STEP_FINISHED r1t1
RUN_FINISHED success`)
	p.check("the history", p.run("run-2", nothing), `
RUN_STARTED
MESSAGES_SNAPSHOT [log-`+seq+` user "Hi."] [log-r1t1 assistant "Hello."]
RUN_FINISHED success`)
	p.thread = "new"
	p.check("a new thread", p.run("run-1", nothing), "RUN_STARTED\nMESSAGES_SNAPSHOT\nRUN_FINISHED success")
}

// logSeq returns the sequence in the id of a snapshot's first message.
func logSeq(e aguiEvent) string {
	if len(e.Messages) == 0 {
		return "none"
	}
	return strings.TrimPrefix(e.Messages[0].ID, "log-")
}

// typing is a model that writes what it is told to. The attempt of a turn ends with the
// channel, fails with "!", and fails for good with "!!".
type typing struct {
	types   chan string
	stopped chan struct{} // an attempt was cancelled
}

func newTyping() *typing { return &typing{make(chan string), make(chan struct{}, 1)} }

func (m *typing) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "typing", Model: "typing", Open: func() (executor.Model, error) { return m, nil }}
}

// Generate implements executor.Model.
func (m *typing) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	var all strings.Builder
	for {
		select {
		case word, more := <-m.types:
			if !more {
				return executor.Answer{Text: all.String()}, nil
			}
			if word == "!" || word == "!!" {
				return executor.Answer{}, &executor.Error{Code: "broke_off", Detail: "the connection broke", Retryable: word == "!"}
			}
			delta(word)
			all.WriteString(word)
		case <-ctx.Done():
			select {
			case m.stopped <- struct{}{}:
			default:
			}
			return executor.Answer{}, ctx.Err()
		}
	}
}

// A turn that begins again: its message ends, a snapshot is without it, and what comes
// has another id.
func TestAGUITurnBeginsAgain(t *testing.T) {
	t.Parallel()
	m := newTyping()
	w := serve(t, web.Options{}, refold.Model(m.ref()), refold.Config(refold.RunConfig{Retry: &session.Retry{Attempts: 2, BackoffMS: 1}}))
	p := page{w, "acme", "hello"}
	s := p.open("run-1", aguiSays("Hi."))
	all := []aguiEvent{}
	until := func(kind string) {
		for len(all) == 0 || all[len(all)-1].Type != kind {
			e, err := s.agui(t)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
	}
	m.types <- "Hel"
	until("TEXT_MESSAGE_CONTENT")
	m.types <- "!"
	m.types <- "Good day."
	close(m.types)
	until("RUN_FINISHED")
	checkOrder(t, all)
	seq := "?"
	for i := range all {
		if all[i].Type == "MESSAGES_SNAPSHOT" {
			seq = logSeq(all[i])
		}
	}
	p.check("the run", all, `
RUN_STARTED
STEP_STARTED r1t1
TEXT_MESSAGE_START r1t1
TEXT_MESSAGE_CONTENT r1t1 Hel
TEXT_MESSAGE_END r1t1
MESSAGES_SNAPSHOT [log-`+seq+` user "Hi."]
TEXT_MESSAGE_START r1t1-2
TEXT_MESSAGE_CONTENT r1t1-2 Good day.
TEXT_MESSAGE_END r1t1-2
STEP_FINISHED r1t1
RUN_FINISHED success`)
}

// buys is a model that buys two things, and then has them.
func buys() []refold.AgentOption {
	return []refold.AgentOption{refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"}), refoldtest.To("shop_buy", order{"milk"})), refoldtest.Say("I have it.")))}
}

func TestAGUIApproval(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, buys()...)
	p := page{w, "acme", "hello"}
	asked := p.last(p.run("run-1", aguiSays("Buy tea.")), "interrupt").Outcome.Interrupts
	if len(asked) != 2 || asked[0].ToolCallID != "r1t1c0" || asked[1].ToolCallID != "r1t1c1" || asked[0].Reason != "tool_call" || asked[0].Message == "" || !json.Valid(asked[0].ResponseSchema) {
		t.Fatalf("got %+v", asked)
	}
	if at, err := time.Parse(time.RFC3339, asked[0].ExpiresAt); err != nil || !at.After(time.Now()) {
		t.Errorf("it expires at %q, which is no time to come", asked[0].ExpiresAt)
	}
	// A page that was reloaded is told of them, too, and so is the same run again.
	for _, again := range [][]aguiEvent{p.run("run-2", nothing), p.run("run-1", aguiSays("Buy tea."))} {
		if told := p.last(again, "interrupt").Outcome.Interrupts; len(told) != 2 || told[0].ID != asked[0].ID {
			t.Errorf("got %+v, want %+v", told, asked)
		}
	}
	// A decision counts for the arguments that were shown.
	other := asked[0]
	other.ID = strings.Replace(other.ID, strings.Split(other.ID, ".")[1], zeros, 1)
	w.refuse(http.StatusConflict, "approval_stale", "acme", "POST", "/v1/ag-ui/helper", p.body("run-3", answers("resolved", `, "payload": {"approved": true}`, other)))

	yes := `, "resume": [{"interruptId": "` + asked[0].ID + `", "status": "resolved", "payload": {"approved": true, "editedArgs": {"item": "green tea"}}},
		{"interruptId": "` + asked[1].ID + `", "status": "resolved", "payload": {"approved": false, "reason": "There is milk."}}]`
	got := p.run("run-4", aguiSays("Buy tea.")+yes)
	p.last(got, "success")
	text := toldAGUI(got)
	for _, want := range []string{
		"MESSAGES_SNAPSHOT [log-" + logSeq(got[1]) + ` user "Buy tea."] [log-r1t1 assistant r1t1c0:shop_buy{"item":"tea"} r1t1c1:shop_buy{"item":"milk"}]`,
		"TOOL_CALL_RESULT r1t1c0 r1t1c0 bought green tea", "TOOL_CALL_RESULT r1t1c1 r1t1c1 error: ", "There is milk.", "TEXT_MESSAGE_CONTENT r1t2 I have it.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwithout %s", text, want)
		}
	}
	if strings.Contains(text, "TOOL_CALL_START") {
		t.Errorf("the calls come again:\n%s", text)
	}
	// The same answers again are the same run again; others come too late.
	if again := p.run("run-4", aguiSays("Buy tea.")+yes); toldAGUI(again) != text {
		t.Errorf("again: got\n%s\nwant\n%s", toldAGUI(again), text)
	}
	w.refuse(http.StatusConflict, "approval_stale", "acme", "POST", "/v1/ag-ui/helper", p.body("run-5", answers("resolved", `, "payload": {"approved": true}`, asked...)))
	if got := p.run("run-6", answers("cancelled", "", asked...)); !strings.Contains(toldAGUI(got), "I have it.") {
		t.Errorf("giving up a call that does not wait any more: got %s", toldAGUI(got))
	}
}

// Who gives no answer denies the calls.
func TestAGUIAnswerCancelled(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, buys()...)
	p := page{w, "acme", "hello"}
	asked := p.last(p.run("run-1", aguiSays("Buy tea.")), "interrupt").Outcome.Interrupts
	got := p.run("run-2", answers("cancelled", "", asked...))
	p.last(got, "success")
	if text := toldAGUI(got); strings.Count(text, "TOOL_CALL_RESULT") != 2 || strings.Contains(text, "bought") || !strings.Contains(text, "gave no answer") {
		t.Errorf("got %s", text)
	}
}

// A message behind calls that wait for a person is kept, and the page is told of them.
func TestAGUIMessageBehindAnInterrupt(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, append(buys()[:1], refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."), refoldtest.Say("And milk."))))...)
	p := page{w, "acme", "hello"}
	p.last(p.run("run-1", aguiSays("Buy tea.")), "interrupt")
	asked := p.last(p.run("run-2", aguiSays("And milk.")), "interrupt").Outcome.Interrupts
	if len(asked) != 1 || asked[0].ToolCallID != "r1t1c0" {
		t.Fatalf("got %+v", asked)
	}
	got := p.run("run-3", answers("resolved", `, "payload": {"approved": true}`, asked...))
	if text := toldAGUI(got); !strings.Contains(text, "I have it.") || strings.Contains(text, "And milk.") {
		t.Errorf("got %s", text)
	}
	got = p.run("run-2", aguiSays("And milk."))
	p.last(got, "success")
	if text := toldAGUI(got); !strings.Contains(text, `"I have it."] [log-`) || !strings.Contains(text, "TEXT_MESSAGE_CONTENT r2t1 And milk.") {
		t.Errorf("got %s", text)
	}
}

// How a run ends that does not complete.
func TestAGUIEnds(t *testing.T) {
	t.Parallel()
	m := newTyping()
	w := serve(t, web.Options{}, refold.Model(m.ref()))
	p := page{w, "acme", "hello"}
	s := p.open("run-1", aguiSays("Hi."))
	run := s.await(t, "RUN_STARTED").Metadata.Refold.Run
	m.types <- "Hel"
	s.await(t, "TEXT_MESSAGE_CONTENT")
	w.want(http.StatusOK, nil, "acme", "POST", fmt.Sprintf("/v1/sessions/hello/runs/%d/cancel", run), "")
	if e := s.await(t, "RUN_FINISHED"); e.Outcome.Type != "cancelled" {
		t.Errorf("got %+v", e)
	}
	checkOrder(t, p.run("run-1", aguiSays("Hi.")))
	select {
	case <-m.stopped: // else it may take the next word
	case <-time.After(time.Minute):
		t.Fatal("the turn of the cancelled run goes on")
	}
	s = p.open("run-2", aguiSays("Again."))
	m.types <- "!!"
	if e := s.await(t, "RUN_ERROR"); e.Code == "" || !strings.Contains(e.Message, "the connection broke") {
		t.Errorf("got %+v", e)
	}
	if e, err := s.agui(t); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: got %+v (%v)", e, err)
	}
}

// A token that is revoked ends the stream as the protocol says.
func TestAGUIRevokedToken(t *testing.T) {
	t.Parallel()
	revoked := make(chan struct{})
	m := newTyping()
	w := serve(t, web.Options{Limits: web.Limits{KeepAlive: 10 * time.Millisecond}, Auth: func(r *http.Request) (*web.Caller, error) {
		select {
		case <-revoked:
			return nil, errNoToken{}
		default:
			return auth(r)
		}
	}}, refold.Model(m.ref()))
	s := page{w, "acme", "hello"}.open("run-1", aguiSays("Hi."))
	s.await(t, "RUN_STARTED")
	close(revoked)
	if e := s.await(t, "RUN_ERROR"); e.Code != "unauthorized" {
		t.Errorf("got %+v", e)
	}
}

// What a page sends and the server does not use is told: texts, and a tool whose name the
// agent has.
func TestAGUIIgnored(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(weather()), refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	p := page{w, "acme", "hello"}
	got := p.run("run-1", `"messages": [{"id": "u", "role": "user", "content": "Hi."}], "tools": [{"name": "weather_get", "description": "", "parameters": {"type": "object"}}], "context": [{"description": "d", "value": "v"}], "unheard": {"of": [1]}`)
	if got[1].Name != "refold.ignored" || !strings.Contains(string(got[1].Value), `"tools":["weather_get"]`) || !strings.Contains(string(got[1].Value), `"context":1`) {
		t.Errorf("got %s", got[1].Value)
	}
	for tools, want := range map[string]string{
		`{"name": "no name"}`: "tools[0].name", `{"name": "a", "parameters": {"type": 7}}`: "type",
		strings.Repeat(`{"name": "a"}, `, 64) + `{"name": "b"}`: "at most 64",
	} {
		text := w.do("acme", "POST", "/v1/ag-ui/helper", p.body("run-2", `"messages": [{"id": "u", "role": "user", "content": "Hi."}], "tools": [`+tools+`]`))
		if text.status < 400 || text.status > 499 || !strings.Contains(text.text, want) {
			t.Errorf("%.80s: got %d %s, want %s", tools, text.status, text.text, want)
		}
	}
}

// The smallest PNG.
var onePixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// Files of a message become blobs of the session.
func TestAGUIFiles(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("I see."), refoldtest.Say("I see."), refoldtest.Say("I see."))))
	p := page{w, "acme", "hello"}
	var blob web.Blob
	w.want(http.StatusOK, &blob, "acme", "PUT", "/v1/sessions/hello/blobs?name=notes.txt", "My notes.", "Content-Type", "text/plain")
	user := func(parts string) string {
		return `"messages": [{"id": "u", "role": "user", "content": [` + parts + `]}]`
	}
	image := fmt.Sprintf(`{"type": "image", "source": {"type": "data", "mimeType": "image/png", "value": %q}, "metadata": {"name": "dot.png"}}`, base64.StdEncoding.EncodeToString(onePixel))
	handle := fmt.Sprintf(`{"type": "document", "source": {"type": "file", "provider": "refold", "value": %q}}`, blob.Blob)
	fields := user(`{"type": "text", "text": "What is this?"}, ` + image + `, ` + handle)
	p.last(p.run("run-1", fields), "success")
	p.last(p.run("run-1", fields), "success") // the same files are the same submission
	got := p.run("run-2", nothing)
	// The history has handles, which can be sent again.
	var parts []struct {
		Type, Text string
		Source     struct{ Type, Provider, Value, MimeType string }
		Metadata   struct{ Name string }
	}
	answer{text: string(got[1].Messages[0].Content)}.into(t, &parts)
	if len(parts) != 3 || parts[0].Text != "What is this?" || parts[1].Type != "image" || parts[1].Source.MimeType != "image/png" || parts[1].Metadata.Name != "dot.png" || parts[2].Type != "document" || parts[2].Metadata.Name != "notes.txt" {
		t.Fatalf("got %+v", parts)
	}
	p.last(p.run("run-3", user(fmt.Sprintf(`{"type": "image", "source": {"type": "file", "provider": "refold", "value": %q}}`, parts[1].Source.Value))), "success")
	p.last(p.run("run-4", `"messages": [{"id": "u", "role": "user", "content": "[no file],\nand two lines"}]`), "success")
	if text := showMessages(p.run("run-5", nothing)[1].Messages); !strings.Contains(text, `user "[no file],\nand two lines"`) {
		t.Errorf("got %s", text)
	}
	for parts, code := range map[string]string{
		`{"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}`:                    "unsupported_media_type",
		`{"type": "image", "source": {"type": "file", "provider": "openai", "value": "file-1"}}`:                "unsupported_media_type",
		`{"type": "audio", "source": {"type": "data", "mimeType": "audio/wav", "value": "AAAA"}}`:               "unsupported_media_type",
		`{"type": "document", "source": {"type": "data", "mimeType": "application/pdf", "value": "AAAA"}}`:      "unsupported_media_type",
		`{"type": "document", "source": {"type": "file", "provider": "refold", "value": "` + blob.Blob + `x"}}`: "bad_blob",
	} {
		w.refuse(http.StatusUnprocessableEntity, code, "acme", "POST", "/v1/ag-ui/helper", p.body("run-6", user(parts)))
	}
	for _, parts := range []string{``, `{"type": "text"}`, `7`, `{"type": "image", "source": {"type": "data", "value": "?"}}`} {
		w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", "/v1/ag-ui/helper", p.body("run-6", user(parts)))
	}
}

// Bad requests, and those of tokens without a right.
func TestAGUIRefuses(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{ChatBytes: 4000}, Auth: func(r *http.Request) (*web.Caller, error) {
		if web.Bearer(r) == "writer" {
			return &web.Caller{Subject: "wes", Rights: []web.Right{web.RightAsk}, Scope: "acme-"}, nil
		}
		return auth(r)
	}}, buys()...)
	p := page{w, "acme", "hello"}
	const path = "/v1/ag-ui/helper"
	for _, body := range []string{
		``, `[]`, `7`, `{`, `{"threadId": "hello"}`, `{"threadId": "hello", "runId": ""}`, `{"threadId": "a b", "runId": "r", "messages": []}`, `{"threadId": "", "runId": "r"}`,
		`{"threadId": "hello", "runId": "r", "messages": 7}`, `{"threadId": "hello", "runId": "r", "messages": [7]}`, `{"threadId": 7, "runId": "r"}`,
		p.body("r", aguiSays("")), p.body("r", `"resume": [{"interruptId": "x", "status": "resolved"}]`),
	} {
		w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", path, body, "Content-Type", "application/json")
	}
	w.refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "acme", "POST", path, p.body("r", nothing), "Content-Type", "text/plain")
	w.refuse(http.StatusRequestEntityTooLarge, "too_large", "acme", "POST", path, p.body("r", aguiSays(strings.Repeat("x", 4000))))
	w.refuse(http.StatusNotFound, "no_agent", "acme", "POST", "/v1/ag-ui/nobody", p.body("r", aguiSays("Hi.")))
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", "/v1/ag-ui/default", p.body("r", aguiSays("Hi.")))
	w.refuse(http.StatusForbidden, "forbidden", "writer", "POST", path, p.body("r", aguiSays("Hi.")))

	asked := p.last(p.run("run-1", aguiSays("Buy tea.")), "interrupt").Outcome.Interrupts
	for payload, status := range map[string]string{
		``: "resolved", `, "payload": true`: "resolved", `, "payload": {}`: "resolved", `, "payload": {"approved": "yes"}`: "resolved",
		`, "payload": {"approved": false, "editedArgs": {}}`: "resolved", `, "payload": {"approved": true}`: "maybe",
	} {
		w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", path, p.body("run-2", answers(status, payload, asked...)))
	}
	yes := answers("resolved", `, "payload": {"approved": true}`, asked...)
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", path, p.body("run-2", yes))
	w.refuse(http.StatusNotFound, "no_session", "other", "POST", path, p.body("run-2", yes))
	several := slices.Clone(asked)
	several[1].ID = "r2" + strings.TrimPrefix(several[1].ID, "r1")
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", path, p.body("run-2", answers("resolved", `, "payload": {"approved": true}`, several...)))
	p.last(p.run("run-2", yes), "success")
}
