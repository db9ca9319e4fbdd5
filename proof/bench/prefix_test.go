package bench_test

import (
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/proof/bench"
)

// TestPrefixes: the bytes of the project's own recording that a cache can hold.
// A registry's gate breaks the cache once with exact tools, and not with masked
// ones.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	var all []bench.Prefix
	if err := bench.Prefixes("../../testdata/recordings/warehouse.jsonl", "", "", func(p bench.Prefix) error {
		all = append(all, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != 6 {
		t.Fatalf("%d conversations, want 6", len(all))
	}
	for _, p := range all {
		calls := p.Conversation != "warehouse-smalltalk"
		switch exact, masked := p.Exact.Share(), p.Masked.Share(); {
		case masked <= 0.5 || masked >= 1:
			t.Errorf("%s: a cache holds %.3f of %d bytes with masked tools", p.Conversation, masked, p.Masked.Sent)
		case calls && exact >= masked-0.01:
			t.Errorf("%s: a cache holds %.3f with exact tools, %.3f with masked ones: the gate breaks nothing", p.Conversation, exact, masked)
		case p.Turns < 3:
			t.Errorf("%s: %d turns", p.Conversation, p.Turns)
		}
		// With masked tools, all of a request is in the next one.
		if last := p.Masked.Sent - p.Masked.Held; last <= 0 || last > p.Masked.Sent/2 {
			t.Errorf("%s: %d of %d bytes are sent for the first time", p.Conversation, last, p.Masked.Sent)
		}
	}
	if err := bench.Prefixes("nosuch.jsonl", "", "", nil); err == nil {
		t.Error("a recording that there is not: no error")
	}
}

// A context makes requests smaller. Each change of a window's beginning costs what a cache
// held of it.
func TestWindowsAreSmaller(t *testing.T) {
	t.Parallel()
	const tokens = 2000
	all := map[string]bench.Window{}
	if err := bench.Windows("../../testdata/recordings/warehouse.jsonl", "", "", tokens, func(w bench.Window) error {
		all[w.Shown] = w
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	whole := all["whole"]
	for _, shown := range []string{"cut", "cleared, cut", "summarised"} {
		w := all[shown]
		if w.Turns != whole.Turns && (shown != "summarised" || w.Turns < whole.Turns) || w.Held.Sent >= whole.Held.Sent || w.Largest > tokens*session.BytesPerToken || w.Held.Share() >= whole.Held.Share() || w.Held.Share() < 0.3 {
			t.Errorf("%s: %+v, a cache holds %.3f; whole: %+v, %.3f", shown, w, w.Held.Share(), whole, whole.Held.Share())
		}
	}
}
