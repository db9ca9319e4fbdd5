package conformance

// The law of sendable sessions: for any answer, result or input that the system
// accepted, the next request is one that the strictest published form of its API
// accepts (package strict), and it begins with the whole previous one.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
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
	d := newDrawing(t)
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

// TestDamagedSessionGoesOn: a session that holds every kind of damage goes on with
// each provider in turn, twice, so that each one is sent what the others answered.
func TestDamagedSessionGoesOn(t *testing.T) {
	t.Parallel()
	d := newDrawing(t)
	tr := newTranscript()
	for i, schema := range d.schemas {
		tr.tools = append(tr.tools, executor.Tool{Name: fmt.Sprintf("%d-tool", i), Description: d.damage["text"][i%len(d.damage["text"])], Schema: schema})
	}
	for _, data := range d.files {
		for _, cut := range [][]byte{data, data[:len(data)/2]} {
			tr.gen.Prompt = append(tr.gen.Prompt, spaces.PromptPart{Role: spaces.PromptImage, MediaType: "image/png", Names: []string{"c"}, Ref: tr.put("", cut).Blob.Hash})
			tr.input(t, session.Content{Parts: []session.Content{{Text: "see"}, tr.put("image/jpeg", cut)}})
		}
	}
	tr.input(t, session.Content{Parts: []session.Content{{Text: "see"}, tr.put("image/png", d.large)}})
	for _, text := range d.damage["text"] {
		tr.gen.System += text
		tr.input(t, session.Content{Text: text})
		tr.answer(t, text, nil, nil, nil)
	}
	var calls []session.ObservedCall
	for i, arguments := range d.damage["arguments"] {
		calls = append(calls, session.ObservedCall{ToolName: fmt.Sprintf("%d-tool", i), Arguments: arguments, ProviderCallID: "call_0"})
	}
	for _, name := range d.damage["name"] {
		calls = append(calls, session.ObservedCall{ToolName: name, Arguments: "{}"})
	}
	result := func(i int, effect string) session.Item {
		output := session.Content{Parts: []session.Content{{Text: d.damage["text"][i%len(d.damage["text"])]}, tr.put("image/gif", d.files[i%len(d.files)])}}
		return session.Item{Seq: tr.say(t, session.DoorTool, session.TypeToolCallSettled, session.ToolCallSettled{Effect: effect, Status: "succeeded", Output: &output})}
	}
	for len(calls) > 0 {
		n := min(3, len(calls))
		tr.input(t, session.Content{Text: "go on"})
		tr.answer(t, "", nil, calls[:n], result)
		calls = calls[n:]
	}
	for round := range 2 {
		for i, a := range apis() {
			tr.format = &executor.Format{Schema: d.schemas[(round*len(apis())+i)%len(d.schemas)], Strict: round == 0}
			m, c := a.sender(t, "models.example")
			tr.asks = []int{len(tr.items)}
			if err := a.check(c.sent(t, m, tr.requests(t)[0])); err != nil {
				t.Fatalf("%s, round %d: %v", a.name, round, err)
			}
			said := d.said[i]
			tr.answer(t, said.text, said.opaque, said.calls, result)
		}
	}
}
