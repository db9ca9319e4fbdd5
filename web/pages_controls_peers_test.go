//go:build peers

package web_test

// What a page sends to a session: each control and each form, with its preview.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// tried is what a preview says, or what came of an event.
type tried struct {
	Rejected  string   `json:"rejected"`
	Said      []string `json:"said"`
	Effects   []string `json:"effects"`
	Withdrawn []string `json:"withdrawn"`
}

// sends presses the button of a form whose preview is there, and compares what the preview
// said with what came of the event, which is the session's latest one of its type.
func (w *world) sends(p *browser.Page, typ string) {
	w.t.Helper()
	p.Eventually(`document.querySelector("dialog [data-refold-preview]") && !document.querySelector("dialog .foot .btn").disabled`)
	var before, now web.EventList
	w.want(http.StatusOK, &before, "all", "GET", "/v1/sessions/s/events?limit=2000", "")
	text := browser.Value[string](p, `(() => {
		const text = document.querySelector("dialog [data-refold-preview]").dataset.refoldPreview;
		document.querySelector("dialog .foot .btn").click();
		return text;
	})()`)
	var said tried
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		w.t.Fatal(err)
	}
	at := -1
	for at < 0 { // w.ctx bounds it
		w.want(http.StatusOK, &now, "all", "GET", "/v1/sessions/s/events?limit=2000", "")
		at = slices.IndexFunc(now.Events, func(e web.EventHead) bool { return e.N > len(before.Events) && e.Type == typ })
	}
	var e web.EventShown
	w.want(http.StatusOK, &e, "all", "GET", fmt.Sprintf("/v1/sessions/s/events/%d", now.Events[at].Seq), "")
	came := tried{Rejected: e.Rejected, Withdrawn: append([]string{}, e.Withdrawn...), Said: []string{}, Effects: []string{}}
	for _, n := range e.Said {
		came.Said = append(came.Said, n.Type)
	}
	for _, f := range e.Effects {
		came.Effects = append(came.Effects, f.Effect)
	}
	if got, want := fmt.Sprint(came), fmt.Sprint(said); got != want {
		w.t.Errorf("%s: the preview said %s, and it came to %s", typ, want, got)
	}
}

// act presses an action, and sends it.
func (w *world) act(p *browser.Page, action, typ string) {
	w.t.Helper()
	press(p, `[data-refold-action="`+action+`"]`)
	w.sends(p, typ)
	p.Eventually(`!document.querySelector("dialog")`)
}

// UI-08 and UI-09: each control and each form of the page, from its preview to what came of
// it.
func TestPagePreviewsWhatComes(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(slices.Repeat([]refoldtest.Turn{refoldtest.Say("Well.")}, 20)...)))
	provider, model := w.provider()
	config := fmt.Sprintf(`{"provider": %q, "model": %q, "completion": "explicit"}`, provider, model)
	runs := 0
	waits := func() {
		t.Helper()
		runs++
		w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Well?", "config": `+config+`}`)
		w.reaches("all", fmt.Sprintf("/v1/sessions/s/runs/%d", runs), "waiting_input")
	}
	waits()
	p := w.open(desk, "all", "/s/s")
	w.act(p, "pause", "RunPauseRequested")
	w.act(p, "resume", "RunResumeRequested")
	w.act(p, "complete", "RunCompleted")
	p.Eventually(has(".title .state", "completed"))
	waits()
	press(p, `[data-refold-action="fail"]`)
	fill(p, "dialog input", "no_answer")
	w.sends(p, "RunFailed")
	p.Eventually(`!document.querySelector("dialog")`)
	if state := w.reaches("all", "/v1/sessions/s/runs/2", "failed"); state.Code != "no_answer" {
		t.Errorf("got %+v, want the code that was written", state)
	}
	waits()
	w.act(p, "interrupt", "RunInterruptRequested")
	waits()
	w.queue(p)
	w.act(p, "cancel", "RunCancelRequested")
	w.defines(p, config)
	w.act(p, "end", "SessionClosed")
	p.Eventually(has(".title .state", "closed") + ` && [...document.querySelectorAll("[data-refold-action]")].map((e) => e.dataset.refoldAction).join() === "hold,delete"`)
}

// queue edits and removes a run that waits.
func (w *world) queue(p *browser.Page) {
	w.t.Helper()
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Later."}`)
	press(p, `[data-refold-action="queue"]`)
	p.Eventually(has("[data-refold-queued]", "Later."))
	press(p, "[data-refold-queued] .btn:not(.danger)")
	fill(p, "dialog textarea", "Much later.")
	w.sends(p, "RunEdited")
	p.Eventually(`!document.querySelector("[data-refold-queued] textarea") && ` + has("[data-refold-queued]", "Much later."))
	press(p, "[data-refold-queued] .btn.danger")
	w.sends(p, "RunCancelRequested")
	p.Eventually(has("dialog", "No run waits."))
	press(p, "dialog .card-head .btn")
	p.Eventually(`!document.querySelector("dialog")`)
}

// defines fills each form of what an operator sets.
func (w *world) defines(p *browser.Page, config string) {
	w.t.Helper()
	for _, form := range []struct{ tab, field, text, typ, refused string }{
		{"Facts", `dialog [data-refold-fact=""]`, "plan", "", ""},
		{"Registry", "dialog textarea", `{"tools": [], "profiles": [{"profile": "spare", "tools": []}]}`, "ToolRegistrySet", ""},
		{"Profile", "dialog input", "spare", "ToolProfileSelected", "nobody"},
		{"Overrides", "dialog textarea", " ", "ToolOverridesSet", "no.tool"},
		{"Config", "dialog textarea", config, "SessionConfigured", "{"},
	} {
		press(p, `[data-refold-action="define"]`)
		p.Eventually(`document.querySelector("dialog [role=tab]")`)
		browser.Value[bool](p, fmt.Sprintf(`([...document.querySelectorAll("dialog [role=tab]")].find((e) => e.textContent === %q).click(), true)`, form.tab))
		if form.refused != "" {
			fill(p, form.field, form.refused)
			p.Eventually(`document.querySelector("dialog .note.bad") && document.querySelector("dialog .foot .btn").disabled`)
		}
		fill(p, form.field, form.text)
		if form.tab == "Facts" {
			press(p, "dialog .row .btn")
			fill(p, `dialog [data-refold-fact="plan"]`, "gold")
			form.typ = "FactsSet"
		}
		w.sends(p, form.typ)
		p.Eventually(`!document.querySelector("dialog")`)
	}
}
