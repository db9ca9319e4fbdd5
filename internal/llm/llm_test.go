package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/llm"
)

// For any text, the pieces consist of whole characters, join to the text, and
// are neither long nor many.
func TestStream(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", "a", "sixteen bytes ok", strings.Repeat("word and word ", 40), strings.Repeat("ж", 500),
		strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65), "line\nline\n\n" + strings.Repeat("🙂", 90) + " end",
	}
	for _, text := range texts {
		var pieces []string
		if err := llm.Stream(t.Context(), text, func(piece string) { pieces = append(pieces, piece) }); err != nil {
			t.Errorf("Stream(%q): %v", text, err)
		}
		if got := strings.Join(pieces, ""); got != text {
			t.Errorf("Stream(%q): pieces make %q", text, got)
		}
		for i, piece := range pieces {
			if piece == "" || len(piece) > 64 || !utf8.ValidString(piece) {
				t.Errorf("Stream(%q): piece %d is %q", text, i, piece)
			}
			if i < len(pieces)-1 && len(piece) < 16 {
				t.Errorf("Stream(%q): piece %d is %q, too short for one that is not the last", text, i, piece)
			}
		}
	}
}

func TestStreamStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	pieces := 0
	err := llm.Stream(ctx, strings.Repeat("some words ", 100), func(string) {
		if pieces++; pieces == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || pieces != 3 {
		t.Errorf("got %d pieces and %v, want 3 and %v", pieces, err, context.Canceled)
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	err := llm.Fail(llm.CodeScriptMismatch, "%s", strings.Repeat("é", 300))
	if len(err.Detail) > session.DetailBytesMax || !utf8.ValidString(err.Detail) || !strings.HasSuffix(err.Detail, "é…") {
		t.Errorf("detail has %d bytes: %q", len(err.Detail), err.Detail)
	}
	if got, want := llm.Fail("auth", "no %s", "key").Error(), "auth: no key"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the same words, ", 30)
	for _, c := range []struct{ want, got, wantExcerpt, gotExcerpt string }{
		{"a", "b", `"a"`, `"b"`},
		{"a", "", `"a"`, `""`},
		{long + "red", long + "blue", `…"the same words, red"`, `…"the same words, blue"`},
		{"one\ntwo", "one\nTWO", `"one\ntwo"`, `"one\nTWO"`},
		{strings.Repeat("é", 20) + "x", strings.Repeat("é", 20) + "y", `…"ééééééééx"`, `…"ééééééééy"`},
	} {
		wantExcerpt, gotExcerpt := llm.Difference(c.want, c.got)
		if wantExcerpt != c.wantExcerpt || gotExcerpt != c.gotExcerpt {
			t.Errorf("Difference(%q, %q) = %s, %s, want %s, %s", c.want, c.got, wantExcerpt, gotExcerpt, c.wantExcerpt, c.gotExcerpt)
		}
	}
	want, got := llm.Difference(strings.Repeat("\x00", 900), strings.Repeat("\x01", 900))
	if len(want)+len(got) > 200 {
		t.Errorf("excerpts have %d and %d bytes: no room for words beside them", len(want), len(got))
	}
}
