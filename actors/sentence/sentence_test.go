package sentence

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/sentences.txt")

// Every number has the sentence of the golden file. A new sentence is a new line.
func TestSentencesAreStable(t *testing.T) {
	t.Parallel()
	const path = "testdata/sentences.txt"
	var now strings.Builder
	for n, text := range table {
		fmt.Fprintf(&now, "%d %s\n", n, text)
	}
	golden, err := os.ReadFile(path)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	if !strings.HasPrefix(now.String(), string(golden)) {
		t.Fatalf("a sentence of %s has changed, or its number has: states that exist have the number. Add a sentence at the end", path)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if now.String() != string(golden) {
		t.Fatalf("%s lacks the new sentences: go test ./actors/sentence -rewrite", path)
	}
}

// Every sentence names its arguments in order, and has at most argumentsMax.
func TestArgumentsAreInOrder(t *testing.T) {
	t.Parallel()
	for n, text := range table {
		count := strings.Count(text, "{")
		for i := range count {
			if !strings.Contains(text, fmt.Sprintf("{%d}", i)) {
				t.Errorf("sentence %d has %d arguments, and not {%d}: %s", n, count, i, text)
			}
		}
		if count > argumentsMax || n > 0 && (text == "" || len(text) > BytesMax/2) {
			t.Errorf("sentence %d: %d arguments, %d bytes: %s", n, count, len(text), text)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text Text
		want string
	}{
		{"", ""},
		{Own("stop it"), "stop it"},
		{Own("\x01\x05stop"), " \x05stop"},
		{Say(TurnsMax, "100"), "the run has reached its limit of turns, 100"},
		{Say(UnusableAt, "invalid_data", "{0}"), "the settlement can't be used: invalid_data at {0}"},
		{Say(NoSettlement, "tool/files").And(MayHaveRun), "tool/files did not answer by the deadline; the call may have taken effect"},
		{Own("is no number").And(NoTurnToRepair), "is no number; turns_max leaves no turn to repair it"},
		{Say(DeniedBecause, "a\x1fb\x1ec"), "a person decided that the call does not run: a b c"},
	} {
		if got := c.text.String(); got != c.want {
			t.Errorf("%q renders as %q, want %q", string(c.text), got, c.want)
		}
		if err := c.text.Check(); err != nil {
			t.Errorf("%q: %v", string(c.text), err)
		}
	}
}

// Whatever the arguments are, a text can be checked and rendered, within the limit.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := Own(rapid.String().Draw(t, "own"))
		for range rapid.IntRange(0, 2).Draw(t, "sentences") {
			n := Number(rapid.IntRange(0, len(table)-1).Draw(t, "number"))
			var args []string
			for range strings.Count(table[n], "{") {
				args = append(args, rapid.String().Draw(t, "argument"))
			}
			text = text.And(n, args...)
		}
		if err := text.Check(); err != nil {
			t.Fatalf("%q: %v", string(text), err)
		}
		if got := text.String(); len(got) > BytesMax || !utf8.ValidString(got) {
			t.Fatalf("%q renders to %d bytes, %q", string(text), len(got), got)
		}
	})
}

// A text that no Say made is refused, and never panics.
func TestForeignTextsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []Text{
		"\x01", "\x01999", "\x01-1", "\x0101\x1fa", "\x011", "\x011\x1fa\x1fb", Say(RunDeadline) + Text(next), Text(strings.Repeat("a", BytesMax+1)),
		Say(RunDeadline).And(MayHaveRun).And(MayHaveRun).And(MayHaveRun),
		Text("\x010\x1f" + strings.Repeat("a", 2*BytesMax)),
	} {
		if err := text.Check(); err == nil {
			t.Errorf("%q is taken", string(text))
		}
	}
}
