package settings

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTerminalControlsAreEscaped in any text, however it is split into writes.
func TestTerminalControlsAreEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, Grüße, 日本\tx\n":            "plain, Grüße, 日本\tx\n",
		"\x1b]52;c;cm0gLXJmIC8=\a":         `\x1b]52;c;cm0gLXJmIC8=\x07`,
		"a\rb\bc\x7f":                      `a\x0db\x08c\x7f`,
		"\u009b2J\u0085":                   `\x9b2J\x85`,
		"user\u202egnp.exe\u2066":          `user\u202egnp.exe\u2066`,
		"z\u200bero\u2060\ufeff\u3164":     `z\u200bero\u2060\ufeff\u3164`,
		"❤️ \ufe00\U000e0101":              `❤️ \ufe00\U000e0101`,
		"\u2028\U000e0041":                 `\u2028\U000e0041`,
		"\xff\xc3(":                        `\xff\xc3(`,
		"before" + string(rune(0)) + "end": `before\x00end`,
	} {
		for _, size := range []int{1, 2, 3, 1000} {
			var got bytes.Buffer
			w := &spelling{to: &got}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := w.Write(rest[:n]); wrote != n || err != nil {
					t.Fatalf("write: %d, %v", wrote, err)
				}
				rest = rest[n:]
			}
			if got.String() != want {
				t.Errorf("%q in writes of %d: got %q, want %q", text, size, got.String(), want)
			}
		}
	}
}

// TestOnlyTerminalOutputIsEscaped: files and pipes get text unchanged.
func TestOnlyTerminalOutputIsEscaped(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if w := Terminal(f); w != f {
		t.Errorf("a file gets %T, want the file itself", w)
	}
	if w := Raw(&spelling{to: f}); w != f {
		t.Errorf("raw is %T, want the file itself", w)
	}
}

// FuzzSpelling: no character that a terminal interprets passes, and all that it
// shows pass.
func FuzzSpelling(f *testing.F) {
	f.Add("\x1b[2J", 1)
	f.Add("日本", 2)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var got bytes.Buffer
		w := &spelling{to: &got}
		cut = min(max(cut, 0), len(text))
		_, _ = w.Write([]byte(text[:cut]))
		_, _ = w.Write([]byte(text[cut:]))
		if strings.ContainsFunc(got.String(), isObeyed) || !utf8.Valid(got.Bytes()) {
			t.Errorf("%q: %q passed", text, got.String())
		}
		if utf8.ValidString(text) && !strings.ContainsFunc(text, isObeyed) && got.String() != text {
			t.Errorf("%q became %q", text, got.String())
		}
	})
}
