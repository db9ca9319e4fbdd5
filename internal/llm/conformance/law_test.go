package conformance

// The law of sendable sessions: for any answer, result or input that the system
// accepted, the next request is one that the strictest published form of its API
// accepts (package strict), and it begins with the whole previous one.

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// thoughtful returns the recorded answer with thoughts of each API, as answers of the
// host to which a session's requests go.
func thoughtful(t *testing.T) (all []said) {
	t.Helper()
	for _, a := range apis() {
		m, c := a.sender(t, "models.example")
		c.answer = a.answers(t)["calls"]
		answer, err := m.Generate(t.Context(), hello, func(string) {})
		must(t, err)
		s := said{text: answer.Text, opaque: answer.Opaque}
		for _, called := range answer.Calls {
			s.calls = append(s.calls, session.ObservedCall{ToolName: called.Name, Arguments: called.Arguments, ProviderCallID: called.ID})
		}
		all = append(all, s)
	}
	return all
}

func TestSessionsStaySendable(t *testing.T) {
	t.Parallel()
	d := drawing{damage: damage(t), said: thoughtful(t)}
	for _, a := range apis() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			m, c := a.sender(t, "models.example")
			rapid.Check(t, func(rt *rapid.T) {
				tr := d.transcript().Draw(rt, "transcript")
				var before [][]byte
				for i, req := range tr.requests(rt) {
					body := c.sent(rt, m, req)
					if err := a.check(body); err != nil {
						rt.Fatalf("request %d: %v\n%s", i, err, body)
					}
					after := a.elements(rt, body)
					if at := differsAt(before, after); at >= 0 {
						rt.Fatalf("request %d: element %d was %.300s\nand is %.300s", i, at, before[at], append(after, nil)[min(at, len(after))])
					}
					before = after
				}
			})
		})
	}
}

// TestDamageIsSent: each reported text goes to each API in a form that it accepts,
// and the model is shown all of it that is text.
func TestDamageIsSent(t *testing.T) {
	t.Parallel()
	reported := damage(t)
	for _, a := range apis() {
		m, c := a.sender(t, "models.example")
		for _, text := range reported["arguments"] {
			req := hello
			req.Messages = []executor.Message{user("hi"), says("", call("r1t1c0", text)), result("r1t1c0", "error: invalid_arguments")}
			body := c.sent(t, m, req)
			if err := a.check(body); err != nil {
				t.Errorf("%s, arguments %q: %v", a.name, text, err)
			}
			invalid := strings.Contains(string(body), "_invalid")
			var object map[string]any
			if want := text != "" && json.Unmarshal([]byte(text), &object) != nil || object == nil && text != ""; invalid != want {
				t.Errorf("%s, arguments %q: replaced is %v, want %v: %s", a.name, text, invalid, want, body)
			}
		}
		for _, text := range reported["text"] {
			req := hello
			req.System = text
			req.Messages = []executor.Message{user(text), says(text, call("r1t1c0", "{}")), result("r1t1c0", text), says(text), user(text)}
			body := c.sent(t, m, req)
			if err := a.check(body); err != nil {
				t.Errorf("%s, %q: %v", a.name, text, err)
			}
			if again := c.sent(t, m, req); !bytes.Equal(body, again) {
				t.Errorf("%s, %q: sent %s\nand then %s", a.name, text, body, again)
			}
		}
		for _, name := range reported["name"] {
			req := hello
			req.Messages = []executor.Message{user("hi"), says("", executor.MessageCall{ID: "r1t1c0", Name: name, Arguments: "{}"}), result("r1t1c0", "error: tool_unknown")}
			if err := a.check(c.sent(t, m, req)); err != nil {
				t.Errorf("%s, name %q: %v", a.name, name, err)
			}
		}
	}
}
