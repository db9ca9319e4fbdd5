package refold_test

// The conversation of a session, in all forms.

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/refoldtest"
)

func TestTranscriptInAllForms(t *testing.T) {
	t.Parallel()
	ctx, rt, a := agent(t, refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"}), refoldtest.To("shop_sell", nil)), refoldtest.Say("I have it.\n# Not a heading"))))
	s := a.Session("hello")
	if _, err := s.Transcript(ctx); !errors.Is(err, client.ErrNoSession) {
		t.Errorf("a new session: got %v, want %v", err, client.ErrNoSession)
	}
	run, err := s.Ask(ctx, "Buy tea.")
	ok(t, err)
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if _, waits := u.(refold.ApprovalAsked); waits {
			waiting, err := s.Approvals(ctx)
			ok(t, err)
			ok(t, s.Approve(ctx, waiting[0]))
		}
	}
	all, err := rt.Session("hello").Transcript(ctx)
	ok(t, err)
	var kinds []string
	for _, e := range all.Entries {
		kinds = append(kinds, e.Kind)
	}
	if got, want := strings.Join(kinds, " "), "run input call call asked decided result result text end"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	markdown := all.Markdown()
	for _, want := range []string{"# Session hello\n", "**User**\n\n> Buy tea.\n", "bought tea", "> # Not a heading"} {
		if !strings.Contains(markdown, want) {
			t.Errorf("Markdown has no %q:\n%s", want, markdown)
		}
	}
	if strings.Contains(markdown, "\n# Not a heading") {
		t.Error("a text looks like a heading")
	}
	for name, of := range map[string]struct{ got, want string }{
		"openai": {string(all.OpenAI()), `[{"role":"user","content":"Buy tea."},
			{"role":"assistant","content":"","tool_calls":[
				{"id":"r1t1c0","type":"function","function":{"name":"shop_buy","arguments":"{\"item\":\"tea\"}"}},
				{"id":"r1t1c1","type":"function","function":{"name":"shop_sell","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"r1t1c0","content":"bought tea"},
			{"role":"tool","tool_call_id":"r1t1c1","content":"REFUSED"},
			{"role":"assistant","content":"I have it.\n# Not a heading"}]`},
		"anthropic": {string(all.Anthropic()), `[{"role":"user","content":[{"type":"text","text":"Buy tea."}]},
			{"role":"assistant","content":[
				{"type":"tool_use","id":"r1t1c0","name":"shop_buy","input":{"item":"tea"}},
				{"type":"tool_use","id":"r1t1c1","name":"shop_sell","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"r1t1c0","content":"bought tea"},
				{"type":"tool_result","tool_use_id":"r1t1c1","content":"REFUSED","is_error":true}]},
			{"role":"assistant","content":[{"type":"text","text":"I have it.\n# Not a heading"}]}]`},
	} {
		if got, want := normal(t, of.got), normal(t, of.want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// normal returns JSON in one form, with the word REFUSED in the place of a refusal's text.
func normal(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, of := range v {
				walk(of)
			}
		case map[string]any:
			if content, is := v["content"].(string); is && strings.Contains(content, "tool_unknown") {
				v["content"] = "REFUSED"
			}
			for _, of := range v {
				walk(of)
			}
		}
	}
	walk(value)
	out, err := json.Marshal(value)
	ok(t, err)
	return string(out)
}
