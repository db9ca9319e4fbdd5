package bridge_test

// A whole run whose model reads a result again: first of one that was cut in the
// middle, since it became a blob, then of the same one when it is cleared.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sessiontools"
)

const archive = `{
  "v": 1, "rules": 1, "profiles": [],
  "tools": [{"tool_id": "archive.find", "tool_name": "find", "args_schema": {"type": "object"}, "executor": {"kind": "effect", "target": "archive"}}],
  "config": {"provider": "reader", "model": "any", "context": {"tokens": 30000, "keep_turns": 1}}
}`

// finds is a tool whose result is 300,000 bytes with one line of interest.
type finds struct{}

func (finds) Execute(context.Context, executor.Call) (executor.Result, error) {
	lines := strings.Repeat("0123456789 abcdef\n", 150_000/18)
	return executor.Result{Output: lines + "the needle\n" + lines}, nil
}

// reader is the model. Its answer is what it was shown.
type reader struct{}

func (reader) Generate(_ context.Context, r executor.Request, _ func(string)) (a executor.Answer, err error) {
	if !slices.ContainsFunc(r.Tools, func(t executor.Tool) bool { return t.Name == "read_result" }) {
		return a, fmt.Errorf("%s has no read_result", r.Effect)
	}
	reads := func(arguments ...string) {
		for _, text := range arguments {
			a.Calls = append(a.Calls, executor.AnswerCall{Name: "read_result", Arguments: text})
		}
	}
	results := slices.DeleteFunc(slices.Clone(r.Messages), func(m executor.Message) bool { return m.Role != "tool" })
	switch r.Effect {
	case "r1t1":
		a.Calls = []executor.AnswerCall{{Name: "find", Arguments: "{}"}}
	case "r1t2":
		if text := results[0].Text; !strings.HasSuffix(text, "\n[read_result reads all of the result of r1t1c0.]") || strings.Contains(text, "needle") {
			return a, fmt.Errorf("the cut result ends with %q", text[max(0, len(text)-200):])
		}
		reads(`{"call":"r1t1c0","pattern":"needle$"}`)
	case "r1t3":
		a.Text = results[0].Text + "\n" + results[1].Text
		reads(`{"call":"r1t1c0","max_bytes":10}`, `{"call":"r1t1c0","offset":149994,"max_bytes":10}`, `{"call":"r1t1c0","offset":299999}`,
			`{"call":"r1t3c3"}`, `{"call":"r1t9c0"}`, `{"call":"s2.r1t1c0"}`, `{"call":"s1.r1t2c0","max_bytes":6}`, `{"call":"it"}`)
	default:
		for _, m := range r.Messages {
			if m.Role != "user" {
				a.Text += m.Text + "\n"
			}
		}
	}
	return a, nil
}

func TestModelReadsResultsAgain(t *testing.T) {
	t.Parallel()
	end := endOf(t, archive, func(b *bridge.Bridge) error {
		tools := sessiontools.New(b.BlobOf)
		tools.Results = b
		return errors.Join(b.Tool("archive", finds{}), b.Model("reader", reader{}), b.SessionTools(t.Context(), tools))
	}, nil)
	if end.Lifecycle != "completed" || end.Output == nil {
		t.Fatalf("got %+v", end)
	}
	const want = `
[The result of r1t1c0, 82050 bytes of find, is cleared; read_result reads it again.]

149994: the needle
[bytes 0 to 299999 of 299999 of the result of r1t1c0: that is its end]
[The result of r1t1c0, 82050 bytes of find, is cleared; read_result reads it again.]
149994: the needle
[bytes 0 to 299999 of 299999 of the result of r1t1c0: that is its end]
0123456789
[bytes 0 to 10 of 299999 of the result of r1t1c0: go on with offset 10]
the needle
[bytes 149994 to 150004 of 299999 of the result of r1t1c0: go on with offset 150004]
error: invalid_arguments: offset: the result of r1t1c0 has 299999 bytes: give a smaller one
error: result_pending: r1t3c3 has no result yet: read it in a later turn
error: result_unknown: this session has no call r1t9c0: its turns and calls have names such as r1t2c0, for run 1, turn 2, first call
error: other_session: only results of this session can be read: name a call without a session, such as r1t1c0
149994
[bytes 0 to 6 of 89 of the result of s1.r1t2c0: go on with offset 6]
error: invalid_arguments: call: must be a name such as r1t2c0, for run 1, turn 2, first call
`
	if end.Output.Text != want {
		t.Errorf("got  %s\nwant %s", end.Output.Text, want)
	}
}
