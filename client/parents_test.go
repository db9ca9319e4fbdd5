package client_test

import (
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// A person who decides over a call of a child, or answers it, sees for which calls the child
// is there: the nearest first, up to the session at the top, or to the first that is gone.
func TestWaitingCallsNameTheirParents(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[
		{"tool_id":"mail.send","tool_name":"send","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"mail"},"approval":"always","parallel_safe":true},
		{"tool_id":"person.ask","tool_name":"ask_person","args_schema":{"type":"object"},"executor":{"kind":"reply"},"parallel_safe":true}]}`).host()
	child := func(sid, parent, root string, depth int) {
		w.say(session.DoorChild, sid, session.TypeChildRequested, map[string]any{
			"call": "r1t1c0", "config": map[string]any{"provider": "openai", "model": "m"}, "depth": depth, "input": map[string]any{"text": "hi"},
			"origin": map[string]any{"run": 1, "session": root}, "parent": parent, "root": root,
		})
	}
	w.ask("top", "hi")
	child("top-c1", "top", "top", 1)
	child("top-c2", "top-c1", "top", 2)
	child("lost-c2", "lost-c1", "lost", 2)
	for _, sid := range []string{"top", "top-c2", "lost-c2"} {
		w.calls(sid, "send", `{"to":"a"}`, "ask_person", `{"question":"Who?"}`)
	}
	for sid, want := range map[string][]client.ParentCall{
		"top":     nil,
		"top-c2":  {{Session: "top-c1", Call: "r1t1c0"}, {Session: "top", Call: "r1t1c0"}},
		"lost-c2": {{Session: "lost-c1", Call: "r1t1c0"}},
	} {
		if got := w.waiting(sid, 1)[0].Parents; !slices.Equal(got, want) {
			t.Errorf("an approval of %s is for %v, want %v", sid, got, want)
		}
		questions, err := w.Questions(w.ctx, sid)
		if err != nil || len(questions) != 1 || !slices.Equal(questions[0].Parents, want) {
			t.Errorf("questions of %s: got %+v (%v), want one for %v", sid, questions, err, want)
		}
	}
}
