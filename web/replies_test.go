package web_test

// Calls that wait for a reply: answered with a token's rights, by a link, and by a page of
// the AI SDK.

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/replylink"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

type asking struct {
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"answer_schema,omitempty"`
}

type awaiting struct {
	Name string `json:"name"`
}

// question waits until a run of a session waits for a reply, and returns the call.
func (w *world) question(session string) (q web.Question) {
	w.t.Helper()
	s := w.follow("acme", "/v1/sessions/"+session+"/updates?after=start")
	for {
		if u, _ := w.update(s); u.Type == "reply_asked" {
			q.Call, q.ArgsHash = u.Call.Call, u.Call.ArgsHash
		}
		if q.Call == "" {
			continue
		}
		for { // the list follows the log; w.ctx bounds it
			var list web.QuestionList
			w.want(http.StatusOK, &list, "acme", "GET", "/v1/questions?session="+session, "")
			for _, of := range list.Questions {
				if of.Call == q.Call && of.ArgsHash == q.ArgsHash {
					return of
				}
			}
		}
	}
}

func said(output, hash string) string {
	text, _ := json.Marshal(map[string]string{"output": output, "args_hash": hash})
	return string(text)
}

func TestQuestionsAreAnsweredByThoseWhoMay(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.ToolsFrom(refold.AskPerson(), refold.WaitFor()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("ask_person", asking{"How many?", json.RawMessage(`{"type":"integer"}`)})),
		refoldtest.Calls(refoldtest.To("wait_for", awaiting{"payment"})), refoldtest.Say("Done."))))
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/hello/runs", `{"agent": "helper", "input": "Go."}`, "Idempotency-Key", "go")
	q := w.question("hello")
	if q.Session != "hello" || q.By != "approvers" || q.Arguments != `{"question":"How many?","answer_schema":{"type":"integer"}}` || q.Deadline == 0 {
		t.Errorf("got %+v", q)
	}
	var list web.QuestionList
	w.want(http.StatusOK, &list, "other", "GET", "/v1/questions", "")
	if len(list.Questions) != 0 {
		t.Errorf("another scope sees %+v", list)
	}
	path := "/v1/sessions/hello/questions/" + q.Call
	w.refuse(http.StatusForbidden, "forbidden", "reader", "POST", path, said("3", q.ArgsHash))
	w.refuse(http.StatusForbidden, "not_permitted", "asker", "POST", path, said("3", q.ArgsHash))
	w.refuse(http.StatusNotFound, "no_session", "other", "POST", path, said("3", q.ArgsHash))
	w.refuse(http.StatusConflict, "stale", "acme", "POST", path, said("3", strings.Repeat("0", 64)))
	w.refuse(http.StatusUnprocessableEntity, "invalid_data", "acme", "POST", path, said("three", q.ArgsHash))
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", path, `{"args_hash": "`+q.ArgsHash+`"}`)
	w.want(http.StatusOK, nil, "approver", "POST", path, said("3", q.ArgsHash))
	w.want(http.StatusOK, nil, "acme", "POST", path, said("3", q.ArgsHash)) // the same again
	w.refuse(http.StatusConflict, "stale", "acme", "POST", path, said("4", q.ArgsHash))

	q = w.questionAfter("hello", q.Call)
	w.want(http.StatusOK, nil, "asker", "POST", "/v1/sessions/hello/questions/"+q.Call, said("paid", q.ArgsHash))
	var state web.RunState
	w.want(http.StatusOK, &state, "acme", "POST", "/v1/sessions/hello/runs", `{"agent": "helper", "input": "Go."}`, "Idempotency-Key", "go", "Prefer", "wait=60")
	if !state.Ended || state.Text != "Done." {
		t.Errorf("got %+v", state)
	}
}

// questionAfter returns the call that waits for a reply after another one was answered.
func (w *world) questionAfter(session, call string) web.Question {
	w.t.Helper()
	for {
		if q := w.next(session); q.Call != "" && q.Call != call {
			return q
		}
	}
}

// next returns the call that waits for a reply now, if one does.
func (w *world) next(session string) (q web.Question) {
	w.t.Helper()
	var list web.QuestionList
	w.want(http.StatusOK, &list, "acme", "GET", "/v1/questions?session="+session, "")
	if len(list.Questions) > 0 {
		q = list.Questions[0]
	}
	return q
}

// A reply link answers its call, once, until it expires; and no other call.
func TestReplyLinksAnswerOneCall(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", 32))
	w := serve(t, web.Options{Secret: secret}, refold.ToolsFrom(refold.AskPerson()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("ask_person", asking{Question: "How many?", Schema: json.RawMessage(`{"type":"integer"}`)})), refoldtest.Say("Done."))))
	for _, sid := range []string{"one", "two"} {
		w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/"+sid+"/runs", `{"agent": "helper", "input": "Go."}`)
	}
	q, other := w.question("one"), w.question("two")
	link := replylink.Link{Session: "acme-one", Call: q.Call, ArgsHash: q.ArgsHash, By: q.By, Expires: time.UnixMilli(q.Deadline)}
	path := func(l replylink.Link, by []byte) string { return "/v1/replies/" + replylink.Mint(by, l) }
	changed := func(change func(*replylink.Link)) string {
		l := link
		change(&l)
		return path(l, secret)
	}
	const three = `{"output": "3"}`
	w.refuse(http.StatusNotFound, "no_link", "", "POST", path(link, []byte("another")), three)
	w.refuse(http.StatusNotFound, "no_link", "", "POST", strings.Replace(path(link, secret), "acme-one", "acme-two", 1), three)
	w.refuse(http.StatusGone, "link_expired", "", "POST", changed(func(l *replylink.Link) { l.Expires = time.UnixMilli(1) }), three)
	w.refuse(http.StatusConflict, "stale", "", "POST", changed(func(l *replylink.Link) { l.ArgsHash = strings.Repeat("0", 64) }), three)
	w.refuse(http.StatusUnprocessableEntity, "unknown_call", "", "POST", changed(func(l *replylink.Link) { l.Call = "r1t1c7" }), three)
	w.refuse(http.StatusUnprocessableEntity, "invalid_data", "", "POST", path(link, secret), `{"output": "three"}`)
	w.want(http.StatusOK, nil, "", "POST", path(link, secret), three)
	w.want(http.StatusOK, nil, "", "POST", path(link, secret), three) // the same again
	w.refuse(http.StatusConflict, "stale", "", "POST", path(link, secret), `{"output": "4"}`)

	// After a cancel nobody is asked any more.
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/two/cancel", `{}`)
	link.Session, link.Call, link.ArgsHash = "acme-two", other.Call, other.ArgsHash
	w.refuse(http.StatusConflict, "stale", "", "POST", path(link, secret), three)
}

// A page of the AI SDK answers a call of a tool without execute by its output.
func TestAPageAnswersWithTheOutputOfATool(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.ToolsFrom(refold.WaitFor()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("wait_for", awaiting{"colour"})), refoldtest.Say("Done."))))
	first := says("chat", "m1", "Go.")
	all := w.chunks("acme", "POST", "/v1/ai-sdk/helper", first.String())
	var call chunk
	for _, c := range all {
		if c.Type == "tool-input-available" {
			call = c
		}
	}
	if last := all[len(all)-1]; call.ToolName != "wait_for" || last.Type != "finish" || last.FinishReason != "tool-calls" {
		t.Fatalf("got %s", shownAs(all))
	}
	answered := first
	answered.MessageID = "a1"
	answered.Messages = append(answered.Messages, message{ID: "a1", Role: "assistant", Parts: []part{
		{Type: "tool-wait_for", ToolCallID: call.ToolCallID, State: "output-available", Input: call.Input, Output: json.RawMessage(`{"colour":"blue"}`)},
	}})
	for range 2 { // the second request finds the call answered
		all = w.chunks("acme", "POST", "/v1/ai-sdk/helper", answered.String())
		text := ""
		for _, c := range all {
			text += c.Delta
		}
		if text != "Done." {
			t.Errorf("got %s", shownAs(all))
		}
	}
	if transcript := w.do("acme", "GET", "/v1/sessions/chat/transcript", "").text; !strings.Contains(transcript, `{\"colour\":\"blue\"}`) {
		t.Errorf("the transcript has no answer: %s", transcript)
	}
}
