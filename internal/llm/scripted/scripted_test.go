package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/scripted"
)

func parse(t *testing.T, text string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("test.yaml", []byte(text))
	must(t, err)
	return s
}

// say returns what the model says as one line: its text, calls and how it
// ends; or the code and detail of its failure.
func say(t *testing.T, s *scripted.Script, req executor.Request) string {
	t.Helper()
	var streamed strings.Builder
	answer, err := scripted.NewModel(s).Generate(t.Context(), req, func(text string) { streamed.WriteString(text) })
	var failure *executor.Error
	if errors.As(err, &failure) {
		if len(failure.Detail) > session.DetailBytesMax {
			t.Errorf("a detail of %d bytes: %s", len(failure.Detail), failure.Detail)
		}
		return fmt.Sprintf("%s (retryable %t)", failure.Error(), failure.Retryable)
	}
	must(t, err)
	if streamed.String() != answer.Text {
		t.Errorf("streamed %q, answered %q", streamed.String(), answer.Text)
	}
	line := answer.Text
	for _, c := range answer.Calls {
		line += fmt.Sprintf(" [%s %s%s]", c.ID, c.Name, c.Arguments)
	}
	return fmt.Sprintf("%s (%s, %s)", line, answer.Model, answer.FinishReason)
}

func user(text string) executor.Message { return executor.Message{Role: "user", Text: text} }

func tool(id, text string) executor.Message {
	return executor.Message{Role: "tool", CallID: id, Text: text}
}

func tools(names ...string) (all []executor.Tool) {
	for _, name := range names {
		all = append(all, executor.Tool{Name: name})
	}
	return all
}

const turns = `
model: m1
turns:
  - shown: {last: user, text: [fix, it], lacks: please, matches: '(?s)^fix (\S+).*$', system: careful, tools: {include: get, exclude: [put]}}
    say: I get ${1}, $${ok}.
    calls:
      - {tool: get, arguments: {z: 'the "${1}"', a: [1, 2.5, true, null, {ä: <&>}], n: "${user}"}}
      - {tool: get, arguments: '{ "raw": ${1} }', id: mine}
      - tool: stop
    usage: {input_tokens: 10, output_tokens: 4, cached_tokens: 3, reasoning_tokens: 2}
  - shown:
      last: tool
      results:
        - {tool: get, error: false, text: one, lacks: two, matches: '^o'}
        - {}
        - {tool: stop, error: true}
    say: "got ${result}; ${text}"
    finish: length
  - shown: {asked: again}
    fail: {code: overloaded, detail: later, retryable: true}
`

// shown returns what a session would show of the script above.
func shown() []executor.Message {
	return []executor.Message{
		user(`fix "x" of it`),
		{Role: "assistant", Text: `I get "x", ${ok}.`, Calls: []executor.MessageCall{
			{ID: "r1t1c0", Name: "get", Arguments: `{"z":"the \"\"x\"\"","a":[1,2.5,true,null,{"ä":"<&>"}],"n":"fix \"x\" of it"}`},
			{ID: "r1t1c1", Name: "get", Arguments: `{ "raw": "x" }`},
			{ID: "r1t1c2", Name: "stop", Arguments: "{}"},
		}},
		tool("r1t1c0", "one"), tool("r1t1c1", "1"), {Role: "tool", CallID: "r1t1c2", Text: "error: no", Error: true},
		{Role: "assistant", Text: "got error: no; error: no"},
		user("again"),
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	s := parse(t, turns)
	for n, want := range map[int]string{
		1: `I get "x", ${ok}. [call_1_0 get{"z":"the \"\"x\"\"","a":[1,2.5,true,null,{"ä":"<&>"}],"n":"fix \"x\" of it"}]` +
			` [mine get{ "raw": "x" }] [call_1_2 stop{}] (m1, tool_calls)`,
		5: "got error: no; error: no (m1, length)",
		7: "overloaded: later (retryable true)",
	} {
		req := executor.Request{System: "be careful", Tools: tools("get", "stop"), Messages: shown()[:n]}
		if got := say(t, s, req); got != want {
			t.Errorf("shown %d messages:\n got %s\nwant %s", n, got, want)
		}
	}
	answer, err := scripted.NewModel(s).Generate(t.Context(), executor.Request{System: "be careful", Tools: tools("get"), Messages: shown()[:1]}, func(string) {})
	if want := (executor.Usage{InputTokens: 10, OutputTokens: 4, CachedTokens: 3, ReasoningTokens: 2}); err != nil || answer.Usage != want {
		t.Errorf("usage %+v (%v), want %+v", answer.Usage, err, want)
	}
}

// Arguments that are too large for an event are represented by their size.
func TestOmittedArgumentsMatchBySize(t *testing.T) {
	t.Parallel()
	s := parse(t, `{turns: [{calls: [{tool: put, arguments: '{"a":"xxx"}'}]}, {say: on}]}`)
	for omitted, want := range map[int64]string{11: "on ", 12: "script_mismatch", 0: "script_mismatch"} {
		messages := []executor.Message{user("go"), {Role: "assistant", Calls: []executor.MessageCall{{ID: "r1t1c0", Name: "put", Arguments: "{}", Omitted: omitted}}}, tool("r1t1c0", "no")}
		if got := say(t, s, executor.Request{Messages: messages}); !strings.HasPrefix(got, want) {
			t.Errorf("%d bytes: got %s, want %s", omitted, got, want)
		}
	}
}

func TestTurnsRefuseOtherMessages(t *testing.T) {
	t.Parallel()
	s := parse(t, turns)
	for _, c := range []struct {
		what   string
		n      int
		change func(r *executor.Request)
		want   string
	}{
		{"another role", 1, func(r *executor.Request) { r.Messages[0].Role = "tool" }, `turn 1: last: expected a message of role user, shown tool "fix \"x\" of it"`},
		{"a part missing", 1, func(r *executor.Request) { r.Messages[0].Text = "fix" }, `turn 1: text: expected what contains "it", shown "fix"`},
		{"a part too much", 1, func(r *executor.Request) { r.Messages[0].Text = "fix it please!" }, `turn 1: lacks: expected no "please", shown "please!"`},
		{"no match", 1, func(r *executor.Request) { r.Messages[0].Text = "it: fix" }, `turn 1: matches: expected what matches "(?s)^fix (\\S+).*$", shown "it: fix"`},
		{"another system", 1, func(r *executor.Request) { r.System = "quick" }, `turn 1: system: expected what contains "careful", shown "quick"`},
		{"a tool missing", 1, func(r *executor.Request) { r.Tools = tools("stop", "go") }, `turn 1: tools: expected get among them, shown "stop go"`},
		{"a tool too much", 1, func(r *executor.Request) { r.Tools = tools("get", "put") }, `turn 1: tools: expected no put, shown "get put"`},
		{"a result missing", 5, func(r *executor.Request) { r.Messages = r.Messages[:4] }, `turn 2: results: expected 3, shown 2 (get, get)`},
		{"a failure", 5, func(r *executor.Request) { r.Messages[2].Error = true }, `turn 2: results[0].error: expected false, shown true: "one"`},
		{"no failure", 5, func(r *executor.Request) { r.Messages[4].Error = false }, `turn 2: results[2].error: expected true, shown false: "error: no"`},
		{"another result", 5, func(r *executor.Request) { r.Messages[2].Text = "1" }, `turn 2: results[0].text: expected what contains "one", shown "1"`},
		{"a result with more", 5, func(r *executor.Request) { r.Messages[2].Text = "one two" }, `turn 2: results[0].lacks: expected no "two", shown "two"`},
		{"a result elsewhere", 5, func(r *executor.Request) { r.Messages[2].Text = " one" }, `turn 2: results[0].matches: expected what matches "^o", shown " one"`},
		{"another question", 7, func(r *executor.Request) { r.Messages[6].Text = "more" }, `turn 3: asked: expected what matches "again", shown "more"`},
		{"words that it did not say", 5, func(r *executor.Request) { r.Messages[1].Text = "I have x" }, `the model's message 1, text: expected "I get \"x\", ${ok}.", shown "I have x"`},
		{"a call that it did not make", 5, func(r *executor.Request) { r.Messages[1].Calls = r.Messages[1].Calls[:2] }, `the model's message 1, how many calls: expected 3, shown 2`},
		{"another call", 5, func(r *executor.Request) { r.Messages[1].Calls[2].Name = "go" }, `the model's message 1, calls[2].tool: expected "stop", shown "go"`},
		{"other arguments", 5, func(r *executor.Request) { r.Messages[1].Calls[2].Arguments = "{ }" }, `the model's message 1, calls[2].arguments: expected "{}", shown "{ }"`},
		{"a past changed", 7, func(r *executor.Request) { r.Messages[4].Text = "error: yes" }, `the model's message 2, text: expected "got error: yes; error: yes", shown "got error: no; error: no"`},
	} {
		req := executor.Request{System: "be careful", Tools: tools("get", "stop"), Messages: shown()[:c.n]}
		c.change(&req)
		got := say(t, s, req)
		at, detail, _ := strings.Cut(got, ": ") // the code, then file and line
		_, detail, _ = strings.Cut(detail, ": ")
		if at != "script_mismatch" || detail != c.want+" (retryable false)" {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

func TestScriptFailsAfterItsLastTurn(t *testing.T) {
	t.Parallel()
	s := parse(t, "turns:\n  - say: hello\n")
	messages := []executor.Message{user("a"), {Role: "assistant", Text: "hello"}, user("b")}
	if got, want := say(t, s, executor.Request{Messages: messages}), `script_mismatch: test.yaml: expected no more than 1 turns, shown user "b" for another (retryable false)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	messages = append(messages, executor.Message{Role: "assistant", Text: "more"}, user("c"))
	if got, want := say(t, s, executor.Request{Messages: messages}), `script_mismatch: test.yaml: expected 1 messages of the model at most, shown another: "more" (retryable false)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	s := parse(t, `
rules:
  - {shown: {results: []}, fail: {code: bad_request, detail: nothing was called}}
  - say: never
`)
	if got, want := say(t, s, executor.Request{Messages: []executor.Message{user("hi")}}), "bad_request: nothing was called (retryable false)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s = parse(t, `
rules:
  - {shown: {results: [{tool: get}]}, say: "got ${result} for ${user}"}
  - {shown: {asked: '^get (\w+)(?: (\w+))?'}, calls: [{tool: get, arguments: {k: "${1}", v: "${2}"}}]}
  - {shown: {last: user, text: hi}, say: "${text} yourself"}
`)
	asked := []executor.Message{user("hi"), {Role: "assistant", Text: "what was said before does not matter"}, user("get a")}
	got := slices.Concat(asked, []executor.Message{{Role: "assistant", Calls: []executor.MessageCall{{ID: "r2t1c0", Name: "get"}}}, tool("r2t1c0", "7")})
	for _, c := range []struct {
		shown []executor.Message
		want  string
	}{
		{asked[:1], "hi yourself (scripted, stop)"},
		{asked, ` [call_2_0 get{"k":"a","v":""}] (scripted, tool_calls)`},
		{got, "got 7 for get a (scripted, stop)"},
		{[]executor.Message{user("bye")}, `script_mismatch: test.yaml: none of 3 rules expects what is shown: user "bye" (retryable false)`},
	} {
		if got := say(t, s, executor.Request{Messages: c.shown}); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	req := executor.Request{Compact: true, Messages: []executor.Message{{Role: "user", Text: "hi"}, {Role: "assistant", Text: "hello"}, {Role: "user", Text: "Sum up."}}}
	for script, want := range map[string]string{
		"rules: [{say: hello}]":                             "The conversation had 2 messages.",
		"turns: [{say: hello}]\nsummary: They were polite.": "They were polite.",
	} {
		if got := say(t, parse(t, script), req); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}

func TestModelStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := scripted.NewModel(scripted.Echo()).Generate(ctx, executor.Request{Messages: []executor.Message{user("hi")}}, func(string) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "test.yaml:1: the script is empty: give it turns or rules"},
		{"# nothing", "test.yaml:1: the script is empty: give it turns or rules"},
		{"turns: [{say: a}]\n---\nturns: [{say: b}]", "test.yaml: a script is one YAML document, and this has 2"},
		{"turns: [{say: a}]\n...\nturns: [{say: b}]", "test.yaml: a script is one YAML document, and this has 2"},
		{"model: x", "test.yaml:1: a script has either turns or rules"},
		{"turns: [{say: a}]\nrules: [{say: b}]", "test.yaml:1: a script has either turns or rules"},
		{"turns:\n  - say: a\n  - sya: b\n", `test.yaml: [3:5] unknown field "sya"; did you mean "say"?`},
		{"turns:\n  - say: a\n    say: b\n", `test.yaml: [3:5] mapping key "say" already defined at [2:5]`},
		{"turns:\n  - say: a\n    usage: {input_tokens: many}\n", "test.yaml: [3:27] a int64 should stand here"},
		{"turns:\n  - say: [a]\n", "test.yaml: [2:10] a string should stand here"},
		{"turns:\n  say: a\n", "test.yaml: [2:6] a Mapping stands where a Sequence should"},
		{"turns: [", "test.yaml: [1:8] sequence end token ']' not found"},
		{"turns:\n  - shown: {last: user}\n", "test.yaml:2: turns[0]: it has none of say, calls and fail"},
		{"turns:\n  - say: a\n    shown:\n      last: me\n", `test.yaml:4: turns[0].shown.last: is user or tool, not "me"`},
		{"turns:\n  - say: a\n    shown:\n      matches: (\n", "test.yaml:4: turns[0].shown.matches: error parsing regexp: missing closing ): `(`"},
		{"turns:\n  - say: a\n    shown:\n      asked: (\n", "test.yaml:4: turns[0].shown.asked: error parsing regexp: missing closing ): `(`"},
		{"turns:\n  - say: a\n    shown:\n      text: 7\n", "test.yaml:4: turns[0].shown.text: is a text or a list of texts; put a number in quotes"},
		{"turns:\n  - say: a\n    shown:\n      lacks:\n      - a\n      - 7\n", "test.yaml:6: turns[0].shown.lacks[1]: is no text: put it in quotes"},
		{"turns:\n  - say: a\n    shown:\n      system: {}\n", "test.yaml:4: turns[0].shown.system: is a text or a list of texts; put a number in quotes"},
		{"turns:\n  - say: a\n    shown:\n      tools:\n        include: 1\n", "test.yaml:5: turns[0].shown.tools.include: is a text or a list of texts; put a number in quotes"},
		{"turns:\n  - say: a\n    shown:\n      tools:\n        exclude: 1\n", "test.yaml:5: turns[0].shown.tools.exclude: is a text or a list of texts; put a number in quotes"},
		{"turns:\n  - say: a\n    shown:\n      results:\n      - {tool: a}\n      - matches: '*'\n", "test.yaml:6: turns[0].shown.results[1].matches: error parsing regexp: missing argument to repetition operator: `*`"},
		{"turns:\n  - say: a ${b}\n", "test.yaml:2: turns[0].say: ${b} is none of ${text}, ${user}, ${result}, ${1} to ${9}; write $${ for the characters themselves"},
		{"turns:\n  - say: a ${user\n", "test.yaml:2: turns[0].say: ${ without its }: write $${ for the characters themselves"},
		{"turns:\n  - say: a ${1}\n", "test.yaml:2: turns[0].say: ${1}: the turn's matches, or asked, has 0 groups"},
		{"turns:\n  - say: a ${2}\n    shown: {asked: '(a)'}", "test.yaml:2: turns[0].say: ${2}: the turn's matches, or asked, has 1 groups"},
		{"turns:\n  - say: a\n    calls:\n    - arguments: {}\n", "test.yaml:4: turns[0].calls[0]: a call names its tool"},
		{"turns:\n  - calls:\n    - tool: a\n      arguments: [a]\n", "test.yaml:4: turns[0].calls[0].arguments: is a mapping, or a text that is taken as it is"},
		{"turns:\n  - calls:\n    - tool: a\n      arguments: {a: .nan}\n", "test.yaml:4: turns[0].calls[0].arguments: NaN is nothing that JSON has"},
		{"turns:\n  - say: a\n    finish: done\n", `test.yaml:3: turns[0].finish: "done" is none of ["stop" "tool_calls" "length" "content_filter"]`},
		{"turns:\n  - say: a\n    usage: {input_tokens: -1}\n", "test.yaml:3: turns[0].usage: a count is 0 or more"},
		{"rules:\n  - fail: {detail: a}\n", "test.yaml:2: rules[0].fail: code is missing"},
		{"rules:\n  - fail: {code: a}\n    say: b\n", "test.yaml:2: rules[0].fail: a turn that fails has no say, calls, finish or usage"},
		{"turns:\n  - fail: {code: a}\n  - say: b\n", "test.yaml:2: turns[0].fail: only the last turn may fail: a failure is no message, so the turns after it would never come"},
		{"turns:\n" + strings.Repeat("- say: a\n", 10_001), "test.yaml:1: 10001 turns, the most is 10000"},
	} {
		_, err := scripted.Parse("test.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%.60q: got no error, want %s", c.text, c.want)
			continue
		}
		// Below an error of YAML itself stand the lines around it.
		if got, _, _ := strings.Cut(err.Error(), "\n"); got != c.want {
			t.Errorf("%.60q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestAttackYAML: arguments whose aliases stand for a billion values are not
// expanded.
func TestAttackYAML(t *testing.T) {
	t.Parallel()
	text := "turns:\n  - calls:\n      - tool: t\n        arguments:\n          x0: &x0 [" + strings.Repeat("lol, ", 10) + "]\n"
	for n := 1; n < 6; n++ {
		text += fmt.Sprintf("          x%d: &x%d [%s]\n", n, n, strings.Repeat(fmt.Sprintf("*x%d, ", n-1), 10))
	}
	text += "          x: [" + strings.Repeat("*x5, ", 10) + "]\n"
	file := filepath.Join(t.TempDir(), "bomb.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := scripted.Load(file)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "aliases") || !strings.Contains(err.Error(), "bomb.yaml") {
		t.Errorf("got %v after %d MiB, want an error that speaks of aliases", err, (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	must(t, os.WriteFile(file, []byte("turns: [{say: from a file}]"), 0o600))
	for name, want := range map[string]string{
		scripted.NameEcho: "You said: The tests fail (echo, stop)",
		scripted.NameDemo: `script_mismatch: demo.yaml:6: turn 1: tools: expected open_session among them, shown "" (retryable false)`,
		file:              "from a file (scripted, stop)",
	} {
		s, err := scripted.Open(name)
		must(t, err)
		if got := say(t, s, executor.Request{Messages: []executor.Message{user("The tests fail")}}); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if _, err := scripted.Open(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
