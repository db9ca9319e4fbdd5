package recorded_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/recorded"
)

func call(effect, tool, arguments string) executor.Call {
	return executor.Call{
		Session: "a", Effect: effect, Start: "01S", ToolID: "recorded." + tool, ToolName: tool,
		Arguments: json.RawMessage(arguments), IdempotencyKey: "a." + effect,
	}
}

func TestExecutor(t *testing.T) {
	t.Parallel()
	r := read(t, small)
	for _, c := range []struct {
		what string
		call executor.Call
		want string // output, or the error
		line string // of the ledger
	}{
		{"a call", call("r1t1c0", "get", `{"n": 1}`), "1",
			`{"session":"a","effect":"r1t1c0","tool":"get","arguments":{"n":1},"idempotency_key":"a.r1t1c0","start":"01S","retry_safe":false}`},
		{"white space and order of arguments", call("r1t1c0", "get", `{"n":1}`), "1",
			`{"session":"a","effect":"r1t1c0","tool":"get","arguments":{"n":1},"idempotency_key":"a.r1t1c0","start":"01S","retry_safe":false}`},
		{"no arguments", call("r1t1c1", "put", ""), "",
			`{"session":"a","effect":"r1t1c1","tool":"put","arguments":{},"idempotency_key":"a.r1t1c1","start":"01S","retry_safe":false}`},
		{"a later run", call("r4t1c0", "get", `{"n": 4}`), "4",
			`{"session":"a","effect":"r4t1c0","tool":"get","arguments":{"n":4},"idempotency_key":"a.r4t1c0","start":"01S","retry_safe":false}`},
		{"another tool", call("r1t1c0", "put", `{"n": 1}`), "recording_mismatch: r1t1c0: expected a call of get, shown one of put", ""},
		{"other arguments", call("r1t1c0", "get", `{"n": 2}`), `recording_mismatch: r1t1c0, get's arguments: expected "{\"n\": 1}", shown "{\"n\": 2}"`, ""},
		{"no such call", call("r1t1c2", "get", `{}`), "recording_mismatch: conversation a has no call r1t1c2", ""},
		{"no such turn", call("r1t3c0", "get", `{}`), "recording_mismatch: conversation a has no call r1t3c0", ""},
		{"no such run", call("r6t1c0", "get", `{}`), "recording_mismatch: conversation a has no call r6t1c0", ""},
		{"no call", call("r1t1", "get", `{}`), "recording_mismatch: r1t1 is not the name of a call", ""},
		{"no number", call("r01t1c0", "get", `{}`), "recording_mismatch: r01t1c0 is not the name of a call", ""},
		{"another session", executor.Call{Session: "b", Effect: "r1t1c0"}, "recording_mismatch: the recording has no conversation for session b", ""},
	} {
		ledger, path := openLedger(t)
		result, err := recorded.NewExecutor(r, ledger).Execute(t.Context(), c.call)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		got := result.Output
		if result.Error != nil {
			got = result.Error.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
		lines, err := os.ReadFile(path)
		must(t, err)
		if got := strings.TrimSuffix(string(lines), "\n"); got != c.line {
			t.Errorf("%s: the ledger has\n%s\nwant\n%s", c.what, got, c.line)
		}
	}
}

func TestExecutorCancelled(t *testing.T) {
	t.Parallel()
	ledger, path := openLedger(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := recorded.NewExecutor(read(t, small), ledger).Execute(ctx, call("r1t1c0", "get", `{"n":1}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if got, err := recorded.ReadLedger(path); err != nil || len(got) != 0 {
		t.Errorf("the ledger has %v (%v), want nothing", got, err)
	}
}

func TestExecutorFailsWithoutLedger(t *testing.T) {
	t.Parallel()
	ledger, err := recorded.OpenLedger(filepath.Join(t.TempDir(), "ledger.jsonl"))
	must(t, err)
	must(t, ledger.Close())
	result, err := recorded.NewExecutor(read(t, small), ledger).Execute(t.Context(), call("r1t1c0", "get", `{"n":1}`))
	if !errors.Is(err, os.ErrClosed) || result.Output != "" {
		t.Errorf("got %q, %v: an execution that is not in the ledger must not be settled", result.Output, err)
	}
	if _, err := recorded.OpenLedger(filepath.Join(t.TempDir(), "missing", "ledger.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a ledger in no folder: %v", err)
	}
}

// Two ledgers on one file, many goroutines each: every line is complete.
func TestLedgerIsShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	want := map[string]bool{}
	var group sync.WaitGroup
	for _, session := range []string{"first", "second"} {
		ledger, err := recorded.OpenLedger(path)
		must(t, err)
		defer ledger.Close()
		for _, effect := range strings.Fields("r1t1c0 r1t1c1 r1t1c2 r1t1c3 r1t1c4 r1t1c5 r1t1c6 r1t1c7") {
			want[session+"."+effect] = true
			group.Go(func() {
				e := recorded.Entry{Session: session, Effect: effect, IdempotencyKey: session + "." + effect,
					Arguments: json.RawMessage(`{"text":"` + strings.Repeat("long ", 5000) + `"}`)}
				if err := ledger.Append(e); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	entries, err := recorded.ReadLedger(path)
	must(t, err)
	got := map[string]bool{}
	for _, e := range entries {
		got[e.IdempotencyKey] = true
	}
	if len(entries) != len(want) || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d entries, %v", len(entries), got)
	}
}

func TestReadLedgerRefuses(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{"cut off": "{}\n{\"session\":\"a\",\"effect", "no JSON": "{}\nx\n"} {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := recorded.ReadLedger(path); err == nil || !strings.HasPrefix(err.Error(), "read ledger: line 2: ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// A process that is killed while it appends leaves the beginning of a line. Its
// execution counts, and lines after it are whole.
func TestLedgerKeepsALineThatWasCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	whole := `{"session":"a","effect":"r1t1c0","tool":"get","arguments":{"n":"}"},"idempotency_key":"a.r1t1c0","start":"01","retry_safe":true}`
	for _, end := range []string{`"r1t1c0",`, `"arguments"`, `{"n"`, `"01`, `true`} {
		cut := whole[:strings.Index(whole, end)+len(end)]
		must(t, os.WriteFile(path, []byte(cut), 0o600))
		ledger, err := recorded.OpenLedger(path)
		must(t, err)
		must(t, ledger.Append(recorded.Entry{Session: "a", Effect: "r1t1c1", IdempotencyKey: "a.r1t1c1", Arguments: json.RawMessage("{}")}))
		must(t, ledger.Close())
		entries, err := recorded.ReadLedger(path)
		if err != nil || len(entries) != 2 || entries[0].IdempotencyKey != "a.r1t1c0" || entries[1].IdempotencyKey != "a.r1t1c1" {
			t.Errorf("after %s: got %+v, %v", cut, entries, err)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	r := read(t, small)
	c := r.Conversations()[0]
	want := c.Ledger("a")
	if len(want) != 3 || want[2].Effect != "r4t1c0" || want[2].IdempotencyKey != "a.r4t1c0" || string(want[2].Arguments) != `{"n": 4}` {
		t.Fatalf("the ledger should have %+v", want)
	}
	safe := want[1]
	safe.RetrySafe = true
	other := want[1]
	other.Arguments = json.RawMessage(`{"n":9}`)
	elsewhere := want[0]
	elsewhere.Session = "b"
	for _, c := range []struct {
		what string
		got  []recorded.Entry
		want recorded.Account
		err  string
	}{
		{"all", []recorded.Entry{want[1], want[0], want[2], elsewhere}, recorded.Account{Executed: []string{"a.r1t1c0", "a.r1t1c1", "a.r4t1c0"}}, ""},
		{"nothing", nil, recorded.Account{Missing: []string{"a.r1t1c0", "a.r1t1c1", "a.r4t1c0"}}, "3 not executed: a.r1t1c0, a.r1t1c1, a.r4t1c0"},
		{"twice", []recorded.Entry{want[0], want[0], want[1], want[2]},
			recorded.Account{Executed: []string{"a.r1t1c1", "a.r4t1c0"}, Repeated: []string{"a.r1t1c0"}}, "1 executed more than once: a.r1t1c0"},
		{"twice where that is safe", []recorded.Entry{want[0], safe, safe, want[2]},
			recorded.Account{Executed: []string{"a.r1t1c0", "a.r1t1c1", "a.r4t1c0"}, Again: []string{"a.r1t1c1"}}, ""},
		{"other arguments", []recorded.Entry{want[0], other, want[2]},
			recorded.Account{Executed: []string{"a.r1t1c0", "a.r4t1c0"}, Missing: []string{"a.r1t1c1"}, Foreign: []string{"a.r1t1c1"}},
			"1 not executed: a.r1t1c1\n1 not in the recording: a.r1t1c1"},
	} {
		got := recorded.Tally(want, c.got)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.what, got, c.want)
		}
		text := ""
		if err := got.Err(); err != nil {
			text = err.Error()
		}
		if text != c.err {
			t.Errorf("%s: error %q, want %q", c.what, text, c.err)
		}
	}
}
