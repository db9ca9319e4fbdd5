//go:build peers

package web_test

import (
	"net/http"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// The page of a session names its children, and that of a child its parent.
func TestPageNamesParentAndChildren(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("Hi."))))
	asks, err := w.rt.Agent("asks",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("ask_person", map[string]string{"question": "Which colour?"})), refoldtest.Say("Blue.")).As("asks")),
		refold.ToolsFrom(refold.AskPerson()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.rt.Agent("leads",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("agent_asks", map[string]string{"input": "Ask."})), refoldtest.Say("It is blue.")).As("leads")),
		refold.ToolsFrom(refold.SubAgent(asks, "Asks.")))
	if err != nil {
		t.Fatal(err)
	}
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/tree/runs", `{"agent": "leads", "input": "Paint it."}`)
	p := w.open(desk, "all", "/s/tree")
	p.Eventually(has("[data-refold-children]", "r1t1c0 open") + ` && ` + has(".why", "for another session"))
	press(p, "[data-refold-children] a")
	p.Eventually(has("[data-refold-parent]", "Carries out r1t1c0 of tree") + ` && ` + has(".why", "for a reply"))
	press(p, "[data-refold-parent] a")
	p.Eventually(has("[data-refold-children]", "r1t1c0 open"))
}
