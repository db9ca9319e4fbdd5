package web_test

// What a client ends, edits and sets of a session: who may, and what the session then has.

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// reaches waits until a run has a lifecycle.
func (w *world) reaches(token, path string, want session.Lifecycle) (state web.RunState) {
	w.t.Helper()
	for state.Lifecycle != want { // w.ctx bounds it
		w.want(http.StatusOK, &state, token, "GET", path, "")
		if state.Ended && state.Lifecycle != want {
			w.t.Fatalf("%s: got %+v, want %s", path, state, want)
		}
	}
	return state
}

// provider returns what names the test's model in a config.
func (w *world) provider() (provider, model string) {
	w.t.Helper()
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/ask/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	var list web.SessionList
	for len(list.Sessions) == 0 { // it follows the log; w.ctx bounds it
		w.want(http.StatusOK, &list, "acme", "GET", "/v1/sessions", "")
	}
	return list.Sessions[0].Provider, list.Sessions[0].Model
}

// quarantine stops a session, as a verification that finds a difference does, and returns
// what was seen of it.
func (w *world) quarantine(sid string) (seen string) {
	w.t.Helper()
	c := inside.Of(w.rt).Client()
	r, err := c.VerifySession(w.ctx, sid)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Differences = []string{"a test"}
	if _, err := c.Quarantine(w.ctx, r); err != nil {
		w.t.Fatal(err)
	}
	q, err := c.Quarantined(w.ctx, sid)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(q)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func TestRunThatWaitsForInput(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(slices.Repeat([]refoldtest.Turn{refoldtest.Say("Well.")}, 5)...)))
	provider, model := w.provider()
	config := `"provider": "` + provider + `", "model": "` + model + `"`
	asks := `{"agent": "helper", "input": "Well?", "config": {` + config + `, "completion": "explicit"}}`
	const runs = "/v1/sessions/s/runs"
	w.want(http.StatusAccepted, nil, "acme", "POST", runs, asks)
	w.reaches("acme", runs+"/1", session.WaitingInput)
	w.want(http.StatusAccepted, nil, "acme", "POST", runs, `{"agent": "helper", "input": "Later."}`)
	w.want(http.StatusOK, nil, "acme", "PUT", runs+"/2/input", `{"input": "Much later."}`)
	w.refuse(http.StatusForbidden, "forbidden", "reader", "PUT", runs+"/2/input", `{"input": "Never."}`)
	w.refuse(http.StatusConflict, "illegal_transition", "acme", "PUT", runs+"/1/input", `{"input": "Earlier."}`)
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "PUT", runs+"/2/input", `{"input": [{"text": "a"}, {"text": "b"}]}`)
	w.refuse(http.StatusForbidden, "forbidden", "reader", "POST", "/v1/sessions/s/complete", "")
	w.want(http.StatusOK, nil, "asker", "POST", "/v1/sessions/s/complete", `{"reason": "enough"}`, "Idempotency-Key", "once")
	w.want(http.StatusOK, nil, "asker", "POST", "/v1/sessions/s/complete", `{"reason": "enough"}`, "Idempotency-Key", "once")
	if state := w.reaches("acme", runs+"/1", session.Completed); state.Text != "Well." {
		t.Errorf("got %+v, want the last answer", state)
	}
	w.reaches("acme", runs+"/2", session.Completed)
	if text := w.do("acme", "GET", "/v1/sessions/s/transcript?format=md", "").text; !strings.Contains(text, "Much later.") {
		t.Errorf("the queued run has another input: %s", text)
	}
	w.want(http.StatusAccepted, nil, "acme", "POST", runs, asks)
	w.reaches("acme", runs+"/3", session.WaitingInput)
	w.want(http.StatusOK, nil, "asker", "POST", "/v1/sessions/s/fail", `{"code": "no_answer", "reason": "wrong"}`)
	if state := w.reaches("acme", runs+"/3", session.Failed); state.Code != "no_answer" || state.Detail != "wrong" {
		t.Errorf("got %+v, want the code and the reason", state)
	}
	w.refuse(http.StatusConflict, "run_not_active", "asker", "POST", "/v1/sessions/s/fail", "")
}

func TestDefinitionOfASession(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(slices.Repeat([]refoldtest.Turn{refoldtest.Say("Well.")}, 5)...)))
	provider, model := w.provider()
	config := `{"provider": "` + provider + `", "model": "` + model + `", "completion": "explicit"}`
	const at = "/v1/sessions/ask"
	for path, body := range map[string]string{"/config": `{"config": ` + config + `}`, "/registry": `{"registry": {"tools": []}}`, "/profile": `{"profile": "spare"}`} {
		w.refuse(http.StatusForbidden, "forbidden", "asker", "PUT", at+path, body)
	}
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "PUT", at+"/config", `{"config": {"model": 7}}`)
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "PUT", at+"/registry", `{"registry": null}`)
	w.want(http.StatusOK, nil, "acme", "PUT", at+"/registry", `{"registry": {"tools": [], "profiles": [{"profile": "spare", "tools": []}]}}`)
	w.refuse(http.StatusUnprocessableEntity, "unknown_profile", "acme", "PUT", at+"/profile", `{"profile": "nobody"}`)
	w.want(http.StatusOK, nil, "acme", "PUT", at+"/profile", `{"profile": "spare"}`)
	w.want(http.StatusOK, nil, "acme", "PUT", at+"/config", `{"config": `+config+`}`)
	// Another budget is an operator's.
	w.want(http.StatusAccepted, nil, "acme", "POST", at+"/runs", `{"input": "Well?"}`)
	w.reaches("acme", at+"/runs/2", session.WaitingInput)
	w.want(http.StatusOK, nil, "asker", "POST", at+"/pause", "")
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", at+"/resume", `{"budget": {}}`)
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", at+"/resume", `{"budget": {"tokens": "many"}}`)
	w.want(http.StatusOK, nil, "acme", "POST", at+"/resume", `{"budget": {"tokens": 1000000}}`)
	w.reaches("acme", at+"/runs/2", session.WaitingInput)
	var view session.View
	w.want(http.StatusOK, &view, "acme", "GET", at, "")
	if view.Run == nil || view.Run.Budget == nil || view.Run.Budget.Tokens != 1_000_000 {
		t.Errorf("the run has the budget %+v", view.Run)
	}
}

func TestReleaseOfAQuarantine(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("Well."))))
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	q := w.quarantine("acme-s")
	w.refuse(http.StatusForbidden, "forbidden", "asker", "POST", "/v1/sessions/s/release", `{"seq": 1, "reason": "x"}`)
	w.refuse(http.StatusConflict, "not_quarantined", "acme", "POST", "/v1/sessions/s/release", `{"seq": 1, "reason": "x"}`)
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/release", q)
	w.refuse(http.StatusConflict, "not_quarantined", "acme", "POST", "/v1/sessions/s/release", q)
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Again."}`, "Prefer", "wait=60")
}
