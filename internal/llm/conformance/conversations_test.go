package conformance

// Thirty conversations, each rendered for all four APIs and checked against
// their rules.

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

func user(text string) executor.Message { return executor.Message{Role: "user", Text: text} }

func says(text string, calls ...executor.MessageCall) executor.Message {
	return executor.Message{Role: "assistant", Text: text, Calls: calls}
}

func call(id, arguments string) executor.MessageCall {
	return executor.MessageCall{ID: id, Name: "look", Arguments: arguments}
}

func result(id, text string) executor.Message {
	return executor.Message{Role: "tool", CallID: id, Text: text}
}

func failed(id, text string) executor.Message {
	return executor.Message{Role: "tool", CallID: id, Text: text, Error: true}
}

func thought(opaque string, m executor.Message) executor.Message {
	m.Opaque = json.RawMessage(opaque)
	return m
}

// png is an image.
var png = mediaFile("dot.png")

func pictured(m executor.Message, parts ...executor.Part) executor.Message {
	m.Parts = parts
	return m
}

var tools = []executor.Tool{
	{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)},
	{Name: "stop", Schema: json.RawMessage(`{}`)},
}

// conversation30 is one of the thirty.
type conversation30 struct {
	name string
	req  executor.Request
	want []string // that every request has, whichever the API
}

func messages(name string, all ...executor.Message) conversation30 {
	return conversation30{name: name, req: executor.Request{Messages: all}}
}

func (c conversation30) with(change func(*executor.Request)) conversation30 {
	change(&c.req)
	return c
}

func (c conversation30) has(texts ...string) conversation30 {
	c.want = texts
	return c
}

func conversations() []conversation30 {
	hi := user("hi")
	ask, tell := says("", call("r1t1c0", `{"at":"a"}`)), result("r1t1c0", "there")
	offered := func(choice string) func(*executor.Request) {
		return func(r *executor.Request) { r.Tools, r.ToolChoice = tools, choice }
	}
	format := func(f executor.Format) func(*executor.Request) { return func(r *executor.Request) { r.Format = &f } }
	huge := strings.Repeat("many words ", 100_000)
	var many []executor.Message
	for i := range 100 {
		id := fmt.Sprintf("r%dt1c0", i+1)
		many = append(many, user(fmt.Sprintf("question %d", i)), says("", call(id, "{}")), result(id, "found"), says(fmt.Sprintf("answer %d", i)))
	}
	return []conversation30{
		messages("plain", hi).has("hi"),
		messages("system", hi).with(func(r *executor.Request) { r.System = "Be brief." }).has("Be brief."),
		messages("tools offered", hi).with(offered("")).has("look", "stop", "Looks."),
		messages("forced choice", hi).with(offered("look")).has("look"),
		messages("any choice", hi).with(offered("required")),
		messages("no choice", hi).with(offered("none")),
		messages("a call", hi, ask, tell).with(offered("")).has("r1t1c0", "there"),
		messages("words and a call", hi, says("Let me see.", call("r1t1c0", "{}")), tell).has("Let me see."),
		messages("parallel calls", hi, says("", call("r1t1c0", `{"at":"a"}`), call("r1t1c1", `{"at":"b"}`), call("r1t1c2", `{"at":"c"}`)),
			result("r1t1c0", "one"), result("r1t1c1", "two"), result("r1t1c2", "three")).has("one", "two", "three"),
		messages("a failed result", hi, ask, failed("r1t1c0", "error: outcome_unknown: it may have happened")).has("outcome_unknown"),
		messages("failed and good results", hi, says("", call("r1t1c0", "{}"), call("r1t1c1", "{}")), failed("r1t1c0", "error: x"), result("r1t1c1", "fine")),
		messages("a cancelled call, and on", hi, ask, failed("r1t1c0", "error: cancelled"), user("go on")).has("cancelled", "go on"),
		messages("edited arguments", hi, ask, result("r1t1c0", "A person changed the arguments of this call to {}\nthere")).has("A person changed"),
		messages("a steer after results", hi, ask, tell, user("and be quick")).has("and be quick"),
		messages("users in a row", hi, user("still there?"), user("hello?")).has("still there?", "hello?"),
		messages("unicode", user("Grüße 🙂 \u202e עברית"), says("日本語"), user("\u0000 and so on")).has("日本語"),
		messages("an empty output", hi, ask, result("r1t1c0", "")),
		messages("a blank output", hi, ask, result("r1t1c0", " \n")),
		messages("a blank user", user(" \n"), says("?"), user("sorry")).has("sorry"),
		messages("a turn without words", hi, says(""), user("say something")).has("say something"),
		messages("a blank turn", hi, says(" \n"), user("say something")).has("say something"),
		messages("huge", user(huge), says(huge, call("r1t1c0", `{"at":"`+huge+`"}`)), result("r1t1c0", huge)).has(huge[:100]),
		messages("arguments that are no JSON", hi, says("", call("r1t1c0", `{"at`), call("r1t1c1", ``), call("r1t1c2", `[1]`)),
			failed("r1t1c0", "error: invalid_arguments"), result("r1t1c1", "x"), failed("r1t1c2", "error: invalid_arguments")),
		messages("a name that no tool has", hi, says("", executor.MessageCall{ID: "r1t1c0", Name: "no such/tool", Arguments: "{}"}),
			failed("r1t1c0", "error: tool_unknown: no such/tool")).has("invalid_tool_name"),
		messages("an image of a user", pictured(user("what is this?\n[image]"), executor.Part{Text: "what is this?"}, executor.Part{MediaType: "image/png", Data: png})).
			has("what is this?", "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACAQMAAABIeJ9n"),
		messages("images in results", hi, says("", call("r1t1c0", "{}"), call("r1t1c1", "{}")),
			pictured(result("r1t1c0", "a shot\n[image]"), executor.Part{Text: "a shot"}, executor.Part{MediaType: "image/png", Data: png}), result("r1t1c1", "none")).
			has("a shot", "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACAQMAAABIeJ9n", "none"),
		messages("another provider's items", hi, thought(`{"of":"other example.com","pieces":[{"item":"{\"secret\":1}"},{"call":1}]}`, ask), tell),
		messages("items of nobody's form", hi, thought(`{"reasoning":"as it came"}`, says("yes", call("r1t1c0", "{}"))), tell).has("yes"),
		messages("a format with a schema", hi).with(format(executor.Format{Name: "sum", Strict: true,
			Schema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`)})).has(`"sum"`, "additionalProperties"),
		messages("many turns", append(many, user("the last question"))...).has("question 99", "answer 99", "the last question"),
		messages("repeated texts and calls", hi, says("again", call("r1t1c0", "{}")), tell, says("again", call("r1t2c0", "{}")), result("r1t2c0", "there")),
	}
}

// TestConversationsAreSentCompletely: all of them for all APIs. Nothing of
// other providers is sent, and nothing of the conversation is lost.
func TestConversationsAreSentCompletely(t *testing.T) {
	t.Parallel()
	all := conversations()
	if len(all) < 30 {
		t.Errorf("%d conversations, want 30", len(all))
	}
	for _, a := range apis() {
		answer := a.answers(t)["text"]
		for _, c := range all {
			s := serve(t, answer)
			m, err := a.open(endpoint.Config{BaseURL: s.url}, slog.New(slog.DiscardHandler))
			must(t, err)
			req := c.req
			req.Session, req.Effect, req.Model = "s1", "r9t1", "m-1"
			if _, err := m.Generate(t.Context(), req, func(string) {}); err != nil {
				t.Errorf("%s, %s: %v", a.name, c.name, err)
				continue
			}
			body := s.got()[0].body
			if err := a.check(body); err != nil {
				t.Errorf("%s, %s: %v\n%.2000s", a.name, c.name, err, body)
			}
			plain := unescaped(t, body)
			for _, want := range c.want {
				if !strings.Contains(plain, want) {
					t.Errorf("%s, %s: lacks %.100q: %.2000s", a.name, c.name, want, plain)
				}
			}
			if strings.Contains(plain, "secret") || strings.Contains(plain, "as it came") {
				t.Errorf("%s, %s: sends what is another's: %s", a.name, c.name, plain)
			}
		}
	}
}

// TestToolChoices: the form of each choice, by API.
func TestToolChoices(t *testing.T) {
	t.Parallel()
	want := map[string][]string{ // "", none, required, look
		"openai-chat": {"", `"tool_choice":"none"`, `"tool_choice":"required"`, `"tool_choice":{"function":{"name":"look"},"type":"function"}`},
		"openai":      {"", `"tool_choice":"none"`, `"tool_choice":"required"`, `"tool_choice":{"name":"look","type":"function"}`},
		"anthropic":   {"", `"tool_choice":{"type":"none"}`, `"tool_choice":{"type":"any"}`, `"tool_choice":{"name":"look","type":"tool"}`},
		"gemini": {"", `"functionCallingConfig":{"mode":"NONE"}`, `"functionCallingConfig":{"mode":"ANY"}`,
			`"functionCallingConfig":{"allowedFunctionNames":["look"],"mode":"ANY"}`},
	}
	for _, a := range apis() {
		for i, choice := range []string{"", "none", "required", "look"} {
			req := hello
			req.Tools, req.ToolChoice = tools, choice
			got := a.ask(t, req, 0, a.answers(t)["text"])
			body := unescaped(t, got.server.got()[0].body)
			if !strings.Contains(body, want[a.name][i]) || choice == "" && (strings.Contains(body, "tool_choice") || strings.Contains(body, "toolConfig")) {
				t.Errorf("%s, %q: got %s, want %s in it", a.name, choice, body, want[a.name][i])
			}
			req.Tools = nil // servers refuse a choice among no tools
			got = a.ask(t, req, 0, a.answers(t)["text"])
			if body := unescaped(t, got.server.got()[0].body); slices.ContainsFunc([]string{"tool_choice", "toolConfig", `"tools"`}, func(s string) bool { return strings.Contains(body, s) }) {
				t.Errorf("%s, %q without tools: got %s", a.name, choice, body)
			}
		}
	}
}

// TestLargeNumbersInRequestsAreExact: arguments are sent back with their own
// digits. Gemini's API has only doubles for them.
func TestLargeNumbersInRequestsAreExact(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		want := `"id":-9007199254740993}`
		if a.name == "gemini" {
			want = `"id":-9007199254740992}`
		}
		req := hello
		req.Messages = []executor.Message{user("hi"), says("", call("r1t1c0", `{"id":-9007199254740993}`)), result("r1t1c0", "9007199254740993")}
		got := a.ask(t, req, 0, a.answers(t)["text"])
		if body := string(got.server.got()[0].body); !strings.Contains(strings.ReplaceAll(body, `\`, ""), want) || !strings.Contains(body, "9007199254740993") {
			t.Errorf("%s: got %s, want %s in it", a.name, body, want)
		}
	}
}

// TestLargeNumbersInAnswersAreExact: arguments are kept as the API wrote them.
func TestLargeNumbersInAnswersAreExact(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		want := `{"at":-9007199254740993}`
		if a.name == "gemini" {
			want = `{"at":-9007199254740992}`
		}
		answer := a.answers(t)["calls"]
		for _, quoted := range []string{`\"a\"`, `"a"`} {
			answer = strings.ReplaceAll(answer, quoted, "-9007199254740993")
		}
		if got := a.ask(t, hello, 0, answer).answer; len(got.Calls) != 2 || got.Calls[0].Arguments != want {
			t.Errorf("%s: got %+v, want %s", a.name, got.Calls, want)
		}
	}
}
