package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// TestRedactEvent: the text of an event is removed over HTTP, and no answer has it any more,
// also of what was read before. What can't be removed is a problem that says why.
func TestRedactEvent(t *testing.T) {
	t.Parallel()
	const secret = "+49 30 1234567"
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("I call."), refoldtest.Say("more"))))
	for _, input := range []string{"Call " + secret, "And then?"} {
		var run web.RunAccepted
		w.want(http.StatusAccepted, &run, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "`+input+`"}`)
		var ended web.RunState
		w.want(http.StatusOK, &ended, "all", "GET", fmt.Sprintf("/v1/sessions/s/runs/%d?wait=60", run.Run), "")
	}
	var listed web.EventList
	w.want(http.StatusOK, &listed, "all", "GET", "/v1/sessions/s/events", "")
	var asked uint64
	for _, e := range listed.Events {
		if e.Type == "RunRequested" && asked == 0 {
			asked = e.Seq
		}
	}
	path := fmt.Sprintf("/v1/sessions/s/events/%d", asked)
	var before, after web.EventShown
	if got := w.want(http.StatusOK, &before, "all", "GET", path, ""); !strings.Contains(got.text, secret) || before.Redacted {
		t.Fatalf("before: %s", got.text)
	}
	w.refuse(http.StatusForbidden, "forbidden", "reader", "DELETE", path, "")
	w.refuse(http.StatusNotFound, "no_event", "all", "DELETE", "/v1/sessions/s/events/999999", "")
	var fact web.Taken
	w.want(http.StatusOK, &fact, "all", "PUT", "/v1/sessions/s/facts", `{"facts": {"plan": "gold"}}`)
	w.refuse(http.StatusConflict, "text_in_use", "all", "DELETE", fmt.Sprintf("/v1/sessions/s/events/%d", fact.Seq), "")
	var done web.Redacted
	w.want(http.StatusOK, &done, "all", "DELETE", path, "")
	if done.Seq != asked || done.Type != "RunRequested" {
		t.Errorf("got %+v", done)
	}
	w.want(http.StatusOK, &done, "all", "DELETE", path, "") // again: no error
	w.want(http.StatusOK, &after, "all", "GET", path, "")
	if !after.Redacted || after.Leaf != before.Leaf || after.Hash != before.Hash || after.Chain != before.Chain {
		t.Errorf("after: %+v, want the hashes of before: %+v", after, before)
	}
	for _, of := range []string{path, path + "/text", path + "/raw", "/v1/sessions/s/transcript", "/v1/sessions/s/events", "/v1/sessions/s/state", "/v1/sessions/s"} {
		if got := w.do("all", "GET", of, ""); got.status != http.StatusOK || strings.Contains(got.text, secret) {
			t.Errorf("%s: %d %s", of, got.status, got.text)
		}
	}
}
