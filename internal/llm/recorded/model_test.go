package recorded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/recorded"
)

const small = `{"id":"a","messages":[
{"role":"user","content":"one"},
{"role":"assistant","content":"I look","tool_calls":[{"id":"x","type":"function","function":{"name":"get","arguments":"{\"n\": 1}"}},{"id":"x","type":"function","function":{"name":"put","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"x","content":"1"},
{"role":"tool","tool_call_id":"x","content":""},
{"role":"assistant","content":"done"},
{"role":"user","content":"two"},
{"role":"user","content":"three"},
{"role":"assistant","content":""},
{"role":"user","content":"four"},
{"role":"assistant","content":null,"tool_calls":[{"id":"y","type":"function","function":{"name":"get","arguments":"{\"n\": 4}"}}]},
{"role":"tool","tool_call_id":"y","content":"4"},
{"role":"user","content":"five"},
{"role":"assistant","content":[{"type":"text","text":"fi"},{"type":"text","text":"ve"}]}]}`

func read(t *testing.T, conversations ...string) *recorded.Recording {
	t.Helper()
	for i := range conversations {
		conversations[i] = strings.ReplaceAll(conversations[i], "\n", "")
	}
	r, err := recorded.Read("test.jsonl", strings.NewReader(strings.Join(conversations, "\n")+"\n\n"))
	must(t, err)
	return r
}

// shown returns the messages of small as a session would show them.
func shown() []executor.Message {
	return []executor.Message{
		{Role: "user", Text: "one"},
		{Role: "assistant", Text: "I look", Calls: []executor.MessageCall{
			{ID: "r1t1c0", Name: "get", Arguments: `{"n": 1}`}, {ID: "r1t1c1", Name: "put", Arguments: "{}"}}},
		{Role: "tool", CallID: "r1t1c0", Text: "1"},
		{Role: "tool", CallID: "r1t1c1", Text: "(no output)"},
		{Role: "assistant", Text: "done"},
		{Role: "user", Text: "two"},
		{Role: "user", Text: "three"}, // and an answer without a word, which no transcript has
		{Role: "user", Text: "four"},
		{Role: "assistant", Calls: []executor.MessageCall{{ID: "r4t1c0", Name: "get", Arguments: `{"n": 4}`}}},
		{Role: "tool", CallID: "r4t1c0", Text: "4"},
		{Role: "user", Text: "five"},
		{Role: "assistant", Text: "five"},
	}
}

// generate returns what the model says, as a word: its text, the names of its
// calls, or the code of its failure and the detail.
func generate(t *testing.T, r *recorded.Recording, session string, messages []executor.Message) string {
	t.Helper()
	answer, err := recorded.NewModel(r).Generate(t.Context(), executor.Request{Session: session, Messages: messages}, func(string) {})
	var failure *executor.Error
	switch {
	case errors.As(err, &failure):
		return failure.Error()
	case err != nil:
		t.Fatal(err)
	}
	for _, call := range answer.Calls {
		answer.Text += fmt.Sprintf(" [%s %s%s]", call.ID, call.Name, call.Arguments)
	}
	return answer.Text + " " + answer.FinishReason
}

func TestModelReturnsTheNextTurn(t *testing.T) {
	t.Parallel()
	r := read(t, small)
	for n, want := range map[int]string{
		1:  `I look [x get{"n": 1}] [x put{}] tool_calls`,
		4:  "done stop",
		6:  "recording_ended: conversation a has no turn after the 6 messages shown",
		7:  " stop",
		8:  ` [y get{"n": 4}] tool_calls`,
		10: "recording_ended: conversation a has no turn after the 10 messages shown",
		11: "five stop",
		12: "recording_ended: conversation a has no turn after the 12 messages shown",
	} {
		if got := generate(t, r, "a", shown()[:n]); got != want {
			t.Errorf("shown %d messages: got %q, want %q", n, got, want)
		}
	}
	more := append(shown(), executor.Message{Role: "user", Text: "six"})
	if got, want := generate(t, r, "a", more), "recording_ended: conversation a has no turn after the 13 messages shown"; got != want {
		t.Errorf("shown more than the recording: got %q, want %q", got, want)
	}
}

func TestModelRefusesOtherMessages(t *testing.T) {
	t.Parallel()
	r := read(t, small)
	for _, c := range []struct {
		what   string
		change func(m []executor.Message) []executor.Message
		want   string
	}{
		{"the user's words", func(m []executor.Message) []executor.Message { m[0].Text = "One"; return m },
			`message 1, r1's input, text: expected "one", shown "One"`},
		{"the model's words", func(m []executor.Message) []executor.Message { m[1].Text = "I see"; return m },
			`message 2, r1t1, text: expected "I look", shown "I see"`},
		{"a call less", func(m []executor.Message) []executor.Message { m[1].Calls = m[1].Calls[:1]; return m },
			`message 2, r1t1, how many calls: expected 2, shown 1`},
		{"another tool", func(m []executor.Message) []executor.Message { m[1].Calls[1].Name = "del"; return m },
			`message 2, r1t1, calls[1].tool: expected "put", shown "del"`},
		{"arguments written otherwise", func(m []executor.Message) []executor.Message { m[1].Calls[0].Arguments = `{"n":1}`; return m },
			`message 2, r1t1, calls[0].arguments: expected "{\"n\": 1}", shown "{\"n\":1}"`},
		{"another result", func(m []executor.Message) []executor.Message { m[2].Text = "2"; return m },
			`message 3, r1t1c0, get's result, text: expected "1", shown "2"`},
		{"an error", func(m []executor.Message) []executor.Message {
			m[2].Error, m[2].Text = true, "error: cancelled"
			return m
		},
			`message 3, r1t1c0, get's result, error: expected false, shown true: "error: cancelled"`},
		{"a result where there was none", func(m []executor.Message) []executor.Message { m[3].Text = "x"; return m },
			`message 4, r1t1c1, put's result, text: expected "", shown "x"`},
		{"no result", func(m []executor.Message) []executor.Message { return append(m[:3:3], m[4:]...) },
			`message 4, r1t1c1, put's result, role: expected tool "", shown assistant "done"`},
		{"results cut off", func(m []executor.Message) []executor.Message { return m[:3] },
			`message 3, r1t1c1, put's result: expected "", shown nothing`},
		{"a run left out", func(m []executor.Message) []executor.Message { return append(m[:5:5], m[6:]...) },
			`message 6, r2's input, text: expected "two", shown "three"`},
		{"the model left out", func(m []executor.Message) []executor.Message { return append(m[:4:4], m[5:]...) },
			`message 5, r1t2, role: expected assistant "done", shown user "two"`},
		{"words after a run that had none", func(m []executor.Message) []executor.Message {
			return append(m[:6:6], executor.Message{Role: "assistant", Text: "hm"})
		}, `message 7, r3's input, role: expected user "three", shown assistant "hm"`},
	} {
		got := generate(t, r, "a", c.change(shown()))
		if want := "recording_mismatch: " + c.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, want)
		}
	}
}

func TestModelMismatchNamesTheDifference(t *testing.T) {
	t.Parallel()
	r := load(t, "../../../testdata/recordings/warehouse.jsonl")
	c, _ := r.Conversation("warehouse-stocktake")
	messages := []executor.Message{{Role: "user", Text: c.Users()[0] + " Quick!"}}
	answer, err := recorded.NewModel(r).Generate(t.Context(), executor.Request{Session: c.Session(), Messages: messages}, func(string) {})
	var failure *executor.Error
	if !errors.As(err, &failure) || failure.Code != llm.CodeRecordingMismatch || answer.Text != "" {
		t.Fatalf("got %v, %v", answer, err)
	}
	if len(failure.Detail) > session.DetailBytesMax || !strings.HasSuffix(failure.Detail, `, shown …" the empty ones. Quick!"`) {
		t.Errorf("detail (%d bytes): %s", len(failure.Detail), failure.Detail)
	}
}

func TestModelOfAnUnknownSession(t *testing.T) {
	t.Parallel()
	r := read(t, small, `{"id":"a--b","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"I am a--b"}]}`)
	for session, want := range map[string]string{
		"a": "I look", "a--7": "I look", "a--b": "I am a--b", "a--b--x": "I am a--b", "a--bc": "I look",
		"b":   "recording_mismatch: the recording has no conversation for session b: name the session a, or a--again",
		"a-7": "recording_mismatch: the recording has no conversation for session a-7: name the session a, or a--again",
	} {
		if got := generate(t, r, session, shown()[:1]); !strings.HasPrefix(got, want) {
			t.Errorf("session %s: got %q, want %q", session, got, want)
		}
	}
}

func TestModelStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := recorded.NewModel(read(t, small)).Generate(ctx, executor.Request{Session: "a", Messages: shown()[:1]}, func(string) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"u"}`
	call := `{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"get","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"x","content":"r"}`
	say := `{"role":"assistant","content":"s"}`
	id := func(id string, messages ...string) string {
		return fmt.Sprintf(`{"id":%q,"messages":[%s]}`, id, strings.Join(messages, ","))
	}
	for _, c := range []struct{ what, file, want string }{
		{"nothing", " \n\n", `test.jsonl: no conversation: each line is one, as {"id", "messages"}`},
		{"no JSON", "x\n", "test.jsonl:1: not a conversation: invalid character 'x' looking for beginning of value"},
		{"no id", `{"messages":[]}`, "test.jsonl:1: the conversation has no id"},
		{"no user", id("a"), `test.jsonl:1: conversation "a": there is no user message, so nothing to run`},
		{"the same id", id("a", user) + "\n" + id("a", user), `test.jsonl:2: conversation "a": its session a is that of conversation "a": give it another id`},
		{"the same session", id("a?", user) + "\n" + id("a!", user), `test.jsonl:2: conversation "a!": its session a_ is that of conversation "a?": give it another id`},
		{"an empty input", id("a", `{"role":"user","content":""}`), `messages[0]: the user's message is empty, and a run needs an input`},
		{"a picture", id("a", `{"role":"user","content":[{"type":"image_url"}]}`), `content[0] is of type "image_url": only text can be run again`},
		{"a number", id("a", `{"role":"user","content":7}`), `content is a text, null, or a list of text parts`},
		{"a late system message", id("a", user, `{"role":"system","content":"s"}`), `messages[1]: a system message may only be the first one`},
		{"another role", id("a", `{"role":"function","content":"s"}`), `messages[0]: role "function": roles are system, user, assistant, tool`},
		{"the model first", id("a", say), `messages[0]: the model speaks before the user`},
		{"the model twice", id("a", user, say, say), `messages[2]: the model speaks after it ended its run: a user message or nothing should stand here`},
		{"a call of nothing", id("a", user, `{"role":"assistant","tool_calls":[{"id":"x"}]}`), `messages[1]: tool_calls[0] names no function`},
		{"a long id", id("a", user, strings.ReplaceAll(call, `"x"`, `"`+strings.Repeat("x", 257)+`"`)), `messages[1]: tool_calls[0].id has 257 bytes, the most is 256`},
		{"no result", id("a", user, call, user), `messages[2]: the result of call 0, get, should stand here`},
		{"no result at the end", id("a", user, call), `conversation "a": the messages end: the result of call 0, get, should stand here`},
		{"a result of nothing", id("a", user, result), `messages[1]: a result of no call`},
		{"a result too many", id("a", user, call, result, result), `messages[3]: a result of no call`},
		{"another's result", id("a", user, call, strings.Replace(result, `"x"`, `"y"`, 1)), `messages[2]: the result of "y" stands where that of call 0, "x", should: results have the order of the calls`},
	} {
		_, err := recorded.Read("test.jsonl", strings.NewReader(c.file))
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.what, err, c.want)
		}
	}
}

func TestSessionOfALongID(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("conversation/", 9)+"1", strings.Repeat("conversation/", 9)+"2"
	line := `{"id":%q,"messages":[{"role":"user","content":"u"}]}`
	r := read(t, fmt.Sprintf(line, first), fmt.Sprintf(line, second))
	names := map[string]bool{}
	for _, c := range r.Conversations() {
		names[c.Session()] = true
		if len(c.Session()) != 36 {
			t.Errorf("%s: session %s has %d bytes", c.ID, c.Session(), len(c.Session()))
		}
		if got, ok := r.OfSession(c.Session() + "--01ARZ3NDEKTSV4RRFFQ69G5FAV"); !ok || got != c {
			t.Errorf("%s: not found with a ULID behind its session", c.ID)
		}
	}
	if len(names) != 2 {
		t.Errorf("two conversations have the sessions %v", names)
	}
}
