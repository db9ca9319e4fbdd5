package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

type order struct {
	Item string `json:"item"`
}

// shop is a tool of which every call waits for a person.
func shop() *refold.Tool {
	return refold.Func("shop.buy", func(_ context.Context, in order) (string, error) { return "bought " + in.Item, nil }, refold.NeedsApproval())
}

func TestRunWithAnApproval(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."))))
	const ask = `{"agent": "helper", "input": "Buy tea."}`
	var accepted, again web.RunAccepted
	w.want(http.StatusAccepted, &accepted, "acme", "POST", "/v1/sessions/hello/runs", ask, "Idempotency-Key", "order-7")
	w.want(http.StatusAccepted, &again, "acme", "POST", "/v1/sessions/hello/runs", ask, "Idempotency-Key", "order-7")
	if again.Run != accepted.Run || accepted.Run != 1 || accepted.Position != again.Position {
		t.Errorf("the same key: got %+v and %+v", accepted, again)
	}
	w.refuse(http.StatusConflict, "duplicate_submission", "acme", "POST", "/v1/sessions/hello/runs", `{"input": "Buy milk."}`, "Idempotency-Key", "order-7")

	s := w.follow("acme", "/v1/sessions/hello/updates?after="+accepted.Position)
	var waiting web.Update
	for waiting.Type != "approval_asked" {
		waiting, _ = w.update(s)
	}
	var list web.ApprovalList
	for len(list.Approvals) == 0 { // the list follows the log; w.ctx bounds it
		w.want(http.StatusOK, &list, "acme", "GET", "/v1/approvals", "")
	}
	if len(list.Approvals) != 1 || list.Approvals[0].Session != "hello" || list.Approvals[0].ArgsHash != waiting.Call.ArgsHash || list.Approvals[0].Arguments != `{"item":"tea"}` {
		t.Fatalf("got %+v, want one of %+v", list, waiting.Call)
	}
	w.want(http.StatusOK, &list, "other", "GET", "/v1/approvals", "")
	if len(list.Approvals) != 0 {
		t.Errorf("another scope sees %+v", list)
	}
	path := "/v1/sessions/hello/approvals/" + waiting.Call.Call
	w.refuse(http.StatusConflict, "approval_stale", "acme", "POST", path, `{"decision": "approve", "args_hash": "`+strings.Repeat("0", 64)+`"}`)
	decision := `{"decision": "approve", "args_hash": "` + waiting.Call.ArgsHash + `"}`
	var taken web.Taken
	w.want(http.StatusOK, &taken, "acme", "POST", path, decision, "Idempotency-Key", "yes")
	w.want(http.StatusOK, &again, "acme", "POST", path, decision, "Idempotency-Key", "yes")

	var state web.RunState
	w.want(http.StatusOK, &state, "acme", "POST", "/v1/sessions/hello/runs", ask, "Idempotency-Key", "order-7", "Prefer", "wait=60")
	if !state.Ended || state.Text != "I have it." || state.Lifecycle != "completed" || len(state.Calls) != 1 || state.Calls[0].Status != "succeeded" {
		t.Errorf("got %+v", state)
	}
	w.want(http.StatusOK, &again, "acme", "GET", "/v1/sessions/hello/runs/1", "")
	if again.Run != 1 {
		t.Errorf("got %+v", again)
	}
	for u := waiting; u.Type != "run_ended"; {
		u, _ = w.update(s)
	}
}

// A stream of a run ends with it, and then there is no more.
func TestStreamOfARunEnds(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("one"), refoldtest.Say("two"))))
	for range 2 {
		w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	}
	for _, run := range []string{"1", "2"} {
		s := w.follow("all", "/v1/sessions/s/updates?run="+run)
		kinds, last := "", ""
		for {
			e, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var u web.Update
			answer{text: e.data}.into(t, &u)
			kinds, last = kinds+u.Type+" ", e.id
		}
		if kinds != "run_started text run_ended " {
			t.Errorf("run %s: got %s", run, kinds)
		}
		if got := w.do("all", "GET", "/v1/sessions/s/updates?run="+run, "", "Last-Event-ID", last); got.status != http.StatusNoContent {
			t.Errorf("run %s after its end: got %d %s", run, got.status, got.text)
		}
	}
}
