package web_test

// The UI message stream of the AI SDK, chunk by chunk. The tests of examples/chat-web play
// it with the real packages in a browser.

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// part is a part of a message, as the AI SDK has it.
type part struct {
	Type       string          `json:"type"`
	State      string          `json:"state,omitempty"`
	Text       string          `json:"text,omitempty"`
	MediaType  string          `json:"mediaType,omitempty"`
	Filename   string          `json:"filename,omitempty"`
	URL        string          `json:"url,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Approval   *approval       `json:"approval,omitempty"`
}

type approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// message is a message of a page.
type message struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parts    []part          `json:"parts"`
}

// chat is what a page sends.
type chat struct {
	ID        string    `json:"id"`
	Messages  []message `json:"messages"`
	Trigger   string    `json:"trigger,omitempty"`
	MessageID string    `json:"messageId,omitempty"`
}

func (c chat) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// says is a chat in which the user says something.
func says(session, id, text string) chat {
	return chat{ID: session, Trigger: "submit-message", Messages: []message{{ID: id, Role: "user", Parts: []part{{Type: "text", Text: text}}}}}
}

// chunk is one of a stream.
type chunk struct {
	Type, MessageID, ID, Delta, ToolCallID, ToolName, ErrorText, ApprovalID, FinishReason, Reason string

	Input, Output, Data, MessageMetadata json.RawMessage

	Transient bool
}

// chunks reads a stream until [DONE], without what is no part of the message.
func (w *world) chunks(token, method, path, body string) (all []chunk) {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request(token, method, path, body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK || got.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" || got.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("%s %s: got %d %v", method, path, got.StatusCode, got.Header)
	}
	s := &events{body: got.Body, in: bufio.NewReader(got.Body)}
	for {
		e, err := s.next()
		if err != nil || e.kind != "" || e.id != "" {
			w.t.Fatalf("%s %s: after %s got %+v (%v), want [DONE]", method, path, shownAs(all), e, err)
		}
		if e.data == "[DONE]" {
			if e, err := s.next(); err == nil {
				w.t.Errorf("after [DONE] got %+v", e)
			}
			return all
		}
		var c chunk
		answer{text: e.data}.into(w.t, &c)
		if !c.Transient {
			all = append(all, c)
		}
	}
}

// shownAs returns chunks as a text: texts of a part as one.
func shownAs(all []chunk) string {
	var lines []string
	for _, c := range all {
		line := c.Type
		for _, word := range []string{c.MessageID, c.ID, c.ToolCallID, c.ToolName, string(c.Input), string(c.Output), c.ErrorText, c.FinishReason, c.Reason} {
			if word != "" {
				line += " " + word
			}
		}
		if c.Type == "text-delta" {
			last := len(lines) - 1
			if line = c.Delta; last >= 0 && strings.HasPrefix(lines[last], "text ") {
				lines[last] += line
				continue
			}
			line = "text " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// wantChunks compares chunks with lines of shownAs.
func wantChunks(t *testing.T, what string, got []chunk, want ...string) {
	t.Helper()
	if shownAs(got) != strings.Join(want, "\n") {
		t.Errorf("%s: got\n%s\nwant\n%s", what, shownAs(got), strings.Join(want, "\n"))
	}
}

const aiSDK = "/v1/ai-sdk/helper"

var sky = refold.Func("sky.look", func(_ context.Context, in struct {
	City string `json:"city"`
}) (map[string]string, error) {
	if in.City == "" {
		return nil, &executor.Error{Code: "no_city", Detail: "name a city"}
	}
	return map[string]string{"sky": "grey over " + in.City}, nil
}, refold.RetrySafe())

// Row "a turn": text, a tool's input and output, and its error; and row "mapping": the
// same message again is the same run, and an edited one is refused.
func TestAISDKTurns(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(sky), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("sky_look", `{"city":"Bergen"}`), refoldtest.To("sky_look", `{"city":""}`)), refoldtest.Say("It rains."))))
	want := []string{
		"start run-1", "start-step",
		`tool-input-available r1t1c0 sky_look {"city":"Bergen"}`, `tool-input-available r1t1c1 sky_look {"city":""}`,
		`tool-output-available r1t1c0 {"sky":"grey over Bergen"}`, "tool-output-error r1t1c1 no_city: name a city",
		"finish-step", "start-step", "text-start r1t2", "text It rains.", "text-end r1t2", "finish-step", "finish stop",
	}
	sorted := func(all []chunk) []chunk { // the two calls run at once
		slices.SortStableFunc(all[2:6], func(a, b chunk) int { return strings.Compare(a.Type[:8]+a.ToolCallID, b.Type[:8]+b.ToolCallID) })
		return all
	}
	got := sorted(w.chunks("acme", "POST", aiSDK, says("hello", "m1", "The sky?").String()))
	wantChunks(t, "a message", got, want...)
	if meta := string(got[0].MessageMetadata); meta != `{"run":1}` {
		t.Errorf("start has the metadata %s", meta)
	}
	if meta := string(got[len(got)-1].MessageMetadata); meta != `{"run":1,"lifecycle":"completed"}` {
		t.Errorf("finish has the metadata %s", meta)
	}
	wantChunks(t, "the same message", sorted(w.chunks("acme", "POST", aiSDK, says("hello", "m1", "The sky?").String())), want...)
	w.refuse(http.StatusConflict, "duplicate_submission", "acme", "POST", aiSDK, says("hello", "m1", "The sea?").String())

	// A scope's sessions are its own: "hello" of another one is another session.
	w.want(http.StatusNoContent, nil, "other", "GET", aiSDK+"/hello/stream", "")
}

// Row "request": what is no request of a page is refused, with what to do.
func TestAISDKRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{ChatBytes: 10_000}}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	again := says("s", "m1", "hi")
	again.Trigger = "regenerate-message"
	w.refuse(http.StatusConflict, "no_regenerate", "all", "POST", aiSDK, again.String())
	assistant := says("s", "m1", "hi")
	assistant.Messages = append(assistant.Messages, message{ID: "run-1", Role: "assistant", Parts: []part{{Type: "tool-x", State: "output-available", ToolCallID: "c"}}})
	edited := says("s", strings.Repeat("m", 100), "hi")
	for body, code := range map[string]string{
		"{": "bad_request", "[]": "bad_request", `{"id": "s"}`: "bad_request", `{"id": "s", "messages": {}}`: "bad_request",
		`{"id": "s", "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]}`: "bad_request",
		says("a b", "m1", "hi").String(): "bad_request", says("s", "m1", "").String(): "bad_request", assistant.String(): "bad_request",
		strings.Replace(says("s", "m1", "hi").String(), "submit-message", "dance", 1): "bad_request",
	} {
		w.refuse(http.StatusBadRequest, code, "all", "POST", aiSDK, body)
	}
	w.refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "all", "POST", aiSDK, says("s", "m1", "hi").String(), "Content-Type", "text/plain")
	w.refuse(http.StatusRequestEntityTooLarge, "too_large", "all", "POST", aiSDK, says("s", "m1", strings.Repeat("x", 20_000)).String())
	w.refuse(http.StatusNotFound, "no_agent", "all", "POST", "/v1/ai-sdk/nobody", says("s", "m1", "hi").String())
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", "/v1/ai-sdk/default", says("s", "m1", "hi").String())
	w.refuse(http.StatusForbidden, "forbidden", "reader", "POST", aiSDK, says("s", "m1", "hi").String())
	for _, file := range []part{{Type: "file", MediaType: "image/png", URL: "https://example.com/a.png"}, {Type: "file", MediaType: "image/png", URL: "data:image/png;base64,%%%"}} {
		bad := says("s", "m1", "hi")
		bad.Messages[0].Parts = append(bad.Messages[0].Parts, file)
		w.refuse(http.StatusBadRequest, "bad_request", "all", "POST", aiSDK, bad.String())
	}
	lies := says("s", "m1", "hi")
	lies.Messages[0].Parts = append(lies.Messages[0].Parts, part{Type: "file", MediaType: "image/png", URL: "data:image/png;base64,aGVsbG8="})
	w.refuse(http.StatusUnprocessableEntity, "unsupported_media_type", "all", "POST", aiSDK, lies.String())
	w.want(http.StatusNoContent, nil, "all", "GET", aiSDK+"/s/stream", "") // nothing of that began a session
	wantChunks(t, "a long id", w.chunks("all", "POST", aiSDK, edited.String()), "start run-1", "start-step", "text-start r1t1", "text hello", "text-end r1t1", "finish-step", "finish stop")
}

// Row "approval": the response ends, the answer is a new request, and the old part goes on.
// A call that waits behind it is not shown before.
func TestAISDKApproval(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(shop(), sky), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"}), refoldtest.To("shop_buy", order{"jam"})), refoldtest.Say("I have tea."))))
	asked := w.chunks("acme", "POST", aiSDK, says("hello", "m1", "Buy tea and jam.").String())
	wantChunks(t, "the request", asked, "start run-1", "start-step", `tool-input-available r1t1c0 shop_buy {"item":"tea"}`, "tool-approval-request r1t1c0",
		`tool-input-available r1t1c1 shop_buy {"item":"jam"}`, "tool-approval-request r1t1c1", "finish-step", "finish tool-calls")
	wantChunks(t, "again, while it waits", w.chunks("acme", "GET", aiSDK+"/hello/stream", ""), strings.Split(shownAs(asked), "\n")...)

	var history []message
	w.want(http.StatusOK, &history, "acme", "GET", aiSDK+"/hello/messages", "")
	if len(history) != 2 || len(history[1].Parts) != 3 {
		t.Fatalf("got %+v", history)
	}
	parts := history[1].Parts[1:]
	for i, c := range asked[2:6] {
		if c.Type == "tool-approval-request" && parts[i/2].Approval.ID != c.ApprovalID || parts[i/2].State != "approval-requested" {
			t.Errorf("the history has %+v, want the approval %+v", parts[i/2], c)
		}
	}
	yes, no := true, false
	parts[0].State, parts[0].Approval.Approved = "approval-responded", &yes
	parts[1].State, parts[1].Approval.Approved, parts[1].Approval.Reason = "approval-responded", &no, "no jam"
	decided := chat{ID: "hello", Messages: history, Trigger: "submit-message", MessageID: history[1].ID}
	stale := strings.Replace(decided.String(), parts[0].Approval.ID, "r1t1c0."+zeros, 1)
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", aiSDK, decided.String())
	w.refuse(http.StatusConflict, "approval_stale", "acme", "POST", aiSDK, stale) // jam was denied nevertheless
	goesOn := w.chunks("acme", "POST", aiSDK, decided.String())
	wantChunks(t, "the decision", goesOn, "start run-1", "tool-output-denied r1t1c1", "tool-output-available r1t1c0 \"bought tea\"",
		"finish-step", "start-step", "text-start r1t2", "text I have tea.", "text-end r1t2", "finish-step", "finish stop")
	wantChunks(t, "the decision again", w.chunks("acme", "POST", aiSDK, decided.String()), strings.Split(shownAs(goesOn), "\n")...)

	w.want(http.StatusOK, &history, "acme", "GET", aiSDK+"/hello/messages", "")
	var lines []string
	for _, m := range history {
		lines = append(lines, m.ID+" "+m.Role)
		for _, p := range m.Parts {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("- %s %s %s %s", p.Type, p.State, p.Text, p.Output)))
		}
	}
	if got, want := strings.Join(lines, "\n"), strings.Join([]string{"m1 user", "- text  Buy tea and jam.", "run-1 assistant", "- step-start",
		`- tool-shop_buy output-available  "bought tea"`, "- tool-shop_buy output-denied", "- step-start", "- text done I have tea."}, "\n"); got != want {
		t.Errorf("the history is\n%s\nwant\n%s", got, want)
	}
	if p := history[1].Parts[2]; p.Approval == nil || *p.Approval.Approved || p.Approval.Reason != "no jam" {
		t.Errorf("the denied call is %+v", p)
	}
}

// Row "file": files become blobs, and come back in the history.
func TestAISDKFiles(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{DayBytes: 100}}, refold.Model(refoldtest.Model(refoldtest.Say("I see."), refoldtest.Say("So it is."))))
	file := part{Type: "file", MediaType: "text/plain", Filename: "notes.txt", URL: "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("My notes."))}
	with := says("s", "m1", "What is this?")
	with.Messages[0].Parts = append(with.Messages[0].Parts, file)
	for range 2 { // the same message is the same run
		wantChunks(t, "with a file", w.chunks("all", "POST", aiSDK, with.String()), "start run-1", "start-step", "text-start r1t1", "text I see.", "text-end r1t1", "finish-step", "finish stop")
	}
	var history []message
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/s/messages", "")
	if len(history) != 2 || len(history[0].Parts) != 2 || fmt.Sprint(history[0].Parts[1]) != fmt.Sprint(file) {
		t.Errorf("got %+v, want the file %+v", history, file)
	}
	// A page sends all messages with their files each time: they count for nothing.
	next := says("s", "m2", "And now?")
	earlier := message{ID: "m0", Role: "user", Metadata: json.RawMessage(`"of the page"`), Parts: []part{{Type: "file", MediaType: "image/png", URL: "data:image/png;base64," + strings.Repeat("A", 3<<20)}}}
	next.Messages = []message{earlier, with.Messages[0], history[1], next.Messages[0]}
	wantChunks(t, "with earlier files", w.chunks("all", "POST", aiSDK, next.String()), "start run-2", "start-step", "text-start r2t1", "text So it is.", "text-end r2t1", "finish-step", "finish stop")
	with.Messages[0].ID = "m3"
	with.Messages[0].Parts[1].URL = "data:text/plain," + strings.Repeat("x", 100)
	w.refuse(http.StatusTooManyRequests, "quota_exceeded", "all", "POST", aiSDK, with.String())
}
