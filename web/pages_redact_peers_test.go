//go:build peers

package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// The text of an event is removed on its page, which then shows the copy without it. A text
// that the session uses stays, and the page says why. A token without the right has no
// button.
func TestPageRemovesTheTextOfAnEvent(t *testing.T) {
	t.Parallel()
	const secret = "+49 30 1234567"
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("I call."), refoldtest.Say("more"))))
	for n, input := range []string{"Call " + secret, "And then?"} {
		w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/acme-s/runs", `{"agent": "helper", "input": "`+input+`"}`)
		w.reaches("all", fmt.Sprintf("/v1/sessions/acme-s/runs/%d", n+1), "completed")
	}
	var fact web.Taken
	w.want(http.StatusOK, &fact, "all", "PUT", "/v1/sessions/acme-s/facts", `{"facts": {"plan": "gold"}}`)
	var listed web.EventList
	w.want(http.StatusOK, &listed, "all", "GET", "/v1/sessions/acme-s/events", "")
	var asked uint64
	for _, e := range listed.Events {
		if e.Type == "RunRequested" {
			asked = e.Seq
			break
		}
	}

	p := w.open(desk, "all", fmt.Sprintf("/s/acme-s?tab=events&at=%d", fact.Seq))
	remove := func() {
		press(p, ".opened > div:last-child .btn.danger")
		press(p, "dialog .foot .btn.danger")
	}
	remove()
	p.Eventually(has("dialog", "text_in_use"))
	p.TakeFault(": 409")

	p = w.open(desk, "all", fmt.Sprintf("/s/acme-s?tab=events&at=%d", asked))
	p.Eventually(has(".opened", secret))
	remove()
	p.Eventually(`!document.querySelector("dialog") && ` + has(".opened", "Its text was removed") + ` && !document.querySelector(".opened .btn.danger")`)
	for _, panel := range []string{"events", "conversation", "timeline", "state"} {
		p = w.open(desk, "all", fmt.Sprintf("/s/acme-s?tab=%s&at=%d", panel, asked))
		if text := browser.Value[string](p, `document.documentElement.outerHTML`); strings.Contains(text, secret) {
			t.Errorf("the panel %s has the text that was removed:\n%s", panel, text)
		}
	}

	p = w.open(desk, "reader", fmt.Sprintf("/s/s?tab=events&at=%d", listed.Events[len(listed.Events)-1].Seq))
	p.Eventually(`document.querySelector(".opened") && !document.querySelector(".opened .btn.danger")`)
}
