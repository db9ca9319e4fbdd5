package web_test

// Tools of an AG-UI page: the model calls them, the page carries them out.

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// colours are the fields of a page with a tool, and with the results that it has.
func colours(results ...string) string {
	said := `{"id": "u1", "role": "user", "content": "Paint it."}`
	for i := 0; i < len(results); i += 2 {
		said += fmt.Sprintf(`, {"id": "a%d", "role": "assistant", "toolCalls": []}, {"id": "t%[1]d", "role": "tool", "toolCallId": %[2]q, "content": %[3]q}`, i, results[i], results[i+1])
	}
	return `"messages": [` + said + `], "tools": [{"name": "pick_colour", "description": "Asks the user for a colour.", "parameters": {"type": "object", "properties": {"of": {"type": "string"}}}}]`
}

func TestAGUIPageTools(t *testing.T) {
	t.Parallel()
	look := refold.Func("paint.look", func(context.Context, struct{}) (string, error) { return "There is paint.", nil }, refold.ParallelSafe(), refold.ReadOnly())
	w := serve(t, web.Options{}, refold.Tools(look), refold.Model(refoldtest.Model(
		refoldtest.Calls(
			refoldtest.To("pick_colour", map[string]string{"of": "door"}), refoldtest.To("pick_colour", map[string]string{"of": "wall"}),
			refoldtest.To("paint_look", struct{}{}), refoldtest.To("moon_get", map[string]string{})),
		refoldtest.Say("Both are painted."))))
	p := page{w, "acme", "hello"}
	// The response ends when nothing goes on but what the page must do.
	got := p.run("run-1", colours())
	p.last(got, "success")
	text := toldAGUI(got)
	for _, want := range []string{`pick_colour`, `{"of":"door"}`, `{"of":"wall"}`, `There is paint.`} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	if strings.Contains(text, "Both are painted") || strings.Contains(text, "ignored") {
		t.Errorf("got %s", text)
	}
	// A page that was reloaded has the calls again.
	if text := toldAGUI(p.run("run-2", nothing)); strings.Count(text, "TOOL_CALL_START") != 4 {
		t.Errorf("reloaded: got %s", text)
	}
	// One result: the other call waits on.
	one := []string{"r1t1c0", "Blue", "r1t1c2", "There is paint."}
	p.last(p.run("run-3", colours(one...)), "success")
	both := slices.Concat(one, []string{"r1t1c1", "Green"})
	for _, run := range []string{"run-4", "run-4", "run-5"} { // the same results again begin no run
		got := p.run(run, colours(both...))
		p.last(got, "success")
		text := toldAGUI(got)
		if !strings.Contains(text, "Both are painted.") || strings.Count(text, `user "Paint it."`) > 1 {
			t.Errorf("%s: got %s", run, text)
		}
	}
	for call, want := range map[string]string{"r1t1c0": "Blue", "r1t1c1": "Green"} {
		if text := w.want(http.StatusOK, nil, "acme", "GET", "/v1/sessions/hello/transcript", "").text; !strings.Contains(text, want) {
			t.Errorf("%s: got %s, want %s", call, text, want)
		}
	}
	// Without tools, the next run has the agent's alone.
	p.run("run-6", aguiSays("Thanks."))
	if view := w.want(http.StatusOK, nil, "acme", "GET", "/v1/sessions/hello/tools", ""); strings.Contains(view.text, "pick_colour") {
		t.Errorf("the session still has the page's tool: %s", view.text)
	}
}

// A result that is an error, and an empty one, fail the call: the model is told.
func TestAGUIPageToolFails(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("pick_colour", map[string]string{})), refoldtest.Say("Then not."))))
	p := page{w, "acme", "hello"}
	p.run("run-1", colours())
	failed := strings.Replace(colours("r1t1c0", "x"), `"content": "x"`, `"content": "", "error": "The user left."`, 1)
	got := p.run("run-2", failed)
	p.last(got, "success")
	if text := toldAGUI(got); !strings.Contains(text, "The user left.") || !strings.Contains(text, "Then not.") {
		t.Errorf("got %s", text)
	}
}
