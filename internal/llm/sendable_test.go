package llm

// Texts that no strict parser accepts, and what is sent in their place.

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/bridge/executor"
)

// TestUnicodeJSON: escapes that are no character become U+FFFD, and all others
// stay as they are.
func TestUnicodeJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"s":"cut \ud83d end"}`:       `{"s":"cut \ufffd end"}`,
		`{"s":"\ud83d\ude00"}`:         `{"s":"\ud83d\ude00"}`,
		`{"s":"\uD83D\uDE00\uDE00"}`:   `{"s":"\uD83D\uDE00\ufffd"}`,
		`{"s":"\ud83d\ud83d\ude00"}`:   `{"s":"\ufffd\ud83d\ude00"}`,
		`{"s":"\ude00\ud83d"}`:         `{"s":"\ufffd\ufffd"}`,
		`{"s":"\ud83d\u0041"}`:         `{"s":"\ufffd\u0041"}`,
		`{"s":"nul \u0000 end"}`:       `{"s":"nul \ufffd end"}`,
		`{"s":"C:\\ud83d"}`:            `{"s":"C:\\ud83d"}`,
		`{"s":"\\\ud83d"}`:             `{"s":"\\\ufffd"}`,
		`{"s":"\ud83`:                  `{"s":"\ud83`,
		`{"s":"\ud83d`:                 `{"s":"\ufffd`,
		`{"s":"\u00e9 \u20ac \e \é \`:  `{"s":"\u00e9 \u20ac \e \é \`,
		"{\"s\":\"\xff\x00é\"}":        "{\"s\":\"\uFFFD\uFFFDé\"}",
		`{"\ud83d":{"\udead":[null]}}`: `{"\ufffd":{"\ufffd":[null]}}`,
	} {
		if got := UnicodeJSON(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestSendableKeepsThoughts: the pieces of a turn still fit its text after that
// has changed its length, and a request is not changed in place.
func TestSendableKeepsThoughts(t *testing.T) {
	t.Parallel()
	sealed := Seal("x", []Piece{{Item: `{"thought":"\ud83d"}`}, {Text: 3}, {Text: 4, Mark: "sig"}, {Call: 1, Mark: "c2ln"}})
	calls := []executor.MessageCall{{ID: "r1t1c0", Name: "look", Arguments: `{"s":"\ud83d"}`}}
	parts := []executor.Part{{Text: "a\x00"}, {MediaType: "image/png", Data: []byte{0}}}
	req := executor.Request{
		System: " \n", Tools: []executor.Tool{{Name: "look", Description: "a\x00", Schema: json.RawMessage(`{"description":"\udead"}`)}},
		Messages: []executor.Message{
			{Role: "user", Text: "a\x00", Parts: parts},
			{Role: "assistant", Text: "a\x00bcd\xffe", Calls: calls, Opaque: sealed},
		},
	}
	got := Sendable(req)
	m := &got.Messages[1]
	want := []Piece{{Item: `{"thought":"\ufffd"}`}, {Text: 5}, {Text: 6, Mark: "sig"}, {Call: 1, Mark: "c2ln"}}
	if diff := cmp.Diff(want, Pieces("x", ThoughtsSent, m)); diff != "" || m.Text != "a\uFFFDbcd\uFFFDe" || m.Calls[0].Arguments != `{"s":"\ufffd"}` {
		t.Errorf("got %+v\n%s", m, diff)
	}
	if got.System != "" || got.Tools[0].Description != "a\uFFFD" || string(got.Tools[0].Schema) != `{"description":"\ufffd"}` ||
		got.Messages[0].Text != "a\uFFFD" || got.Messages[0].Parts[0].Text != "a\uFFFD" || got.Defined != nil {
		t.Errorf("got %+v", got)
	}
	if req.Messages[1].Text != "a\x00bcd\xffe" || calls[0].Arguments != `{"s":"\ud83d"}` || parts[0].Text != "a\x00" || req.Tools[0].Description != "a\x00" {
		t.Errorf("the request was changed: %+v", req)
	}
}

// TestObject: an object is passed on with its digits and names; all else is
// shown as the text that it is.
func TestObject(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, text := range []string{`{}`, `{"n":9007199254740993,"m":123456789012345678901234567890,"z":-0,"d":1.10}`, `{"s":"}{[\"]1e999"}`, deep(64)} {
		if got := string(Object(text)); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	for text, want := range map[string]string{
		"": "{}", " {\"a\":1}\n": `{"a":1}`, " \n": `{"_invalid":" \n"}`, `{"cmd":"grep \e x"}`: `{"_invalid":"{\"cmd\":\"grep \\e x\"}"}`,
		`{"a":1}{"a":2}`: `{"_invalid":"{\"a\":1}{\"a\":2}"}`, `[1,2]`: `{"_invalid":"[1,2]"}`, `null`: `{"_invalid":"null"}`, `"{}"`: `{"_invalid":"\"{}\""}`,
		"```json\n{\"a\":1}\n```": "{\"_invalid\":\"```json\\n{\\\"a\\\":1}\\n```\"}", `{"a":1`: `{"_invalid":"{\"a\":1"}`,
		`{"f":1e400}`: `{"_invalid":"{\"f\":1e400}"}`, "\ufeff{}": "{\"_invalid\":\"\ufeff{}\"}", `{"a":NaN}`: `{"_invalid":"{\"a\":NaN}"}`,
		`{"a":1,"a":2}`: `{"_invalid":"{\"a\":1,\"a\":2}"}`,
	} {
		if got := string(Object(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := Object(deep(65)); !strings.HasPrefix(string(got), `{"_invalid":`) {
		t.Errorf("65 levels: got %s", got)
	}
}

// TestCallID: ids are nine letters and digits, differ, and follow from the name.
func TestCallID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"r1t2c0": "r1t2c0xxx", "r12t34c56": "r12t34c56", "r123t45c67": "x00ktzkn7", "r4294967295t10000c1023": "x", "call_1": "y", "": "y", "r1t2c01": "y",
	} {
		if got := CallID(name); len(got) != callIDBytes || !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	seen := map[string]string{}
	for _, run := range []string{"1", "9", "99", "100", "1000", "10001", "99999"} {
		for _, turn := range []string{"1", "10", "99", "100", "1000", "10000"} {
			for _, call := range []string{"0", "1", "9", "10", "99", "100", "1023"} {
				name := "r" + run + "t" + turn + "c" + call
				id := CallID(name)
				if other, twice := seen[id]; twice {
					t.Errorf("%s and %s are both %s", name, other, id)
				}
				seen[id] = name
			}
		}
	}
}
