package secrets_test

// Texts contain values in every encoding that the package lists, at every
// position, in pieces of every size: no value is left.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/refold/refold/internal/secrets"
)

// encodings are the promised ones.
var encodings = map[string]func(string) string{
	"plain":         func(v string) string { return v },
	"base64":        func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"raw base64":    func(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v)) },
	"base64url":     func(v string) string { return base64.URLEncoding.EncodeToString([]byte(v)) },
	"raw base64url": func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	"query":         url.QueryEscape,
	"path":          url.PathEscape,
	"lower-case query": func(v string) string {
		return regexp.MustCompile(`%..`).ReplaceAllStringFunc(url.QueryEscape(v), strings.ToLower)
	},
	"JSON":                 func(v string) string { return inJSON(v, true) },
	"JSON without HTML":    func(v string) string { return inJSON(v, false) },
	"Go":                   func(v string) string { q := strconv.Quote(v); return q[1 : len(q)-1] },
	"Go in ASCII":          func(v string) string { q := strconv.QuoteToASCII(v); return q[1 : len(q)-1] },
	"JSON with slashes":    func(v string) string { return strings.ReplaceAll(inJSON(v, true), "/", `\/`) },
	"JSON in ASCII":        inASCII,
	"JSON in JSON":         func(v string) string { return inJSON(inASCII(v), true) },
	"JSON in JSON in JSON": func(v string) string { return inJSON(inJSON(inJSON(v, true), false), true) },
	"JSON in a query":      func(v string) string { return url.QueryEscape(inASCII(v)) },
	"query in JSON":        func(v string) string { return inJSON(url.QueryEscape(v), true) },
	"query twice":          func(v string) string { return url.QueryEscape(url.QueryEscape(v)) },
	"HTML":                 html.EscapeString,
	"HTML in JSON":         func(v string) string { return inJSON(html.EscapeString(v), true) },
	"HTML in decimal":      func(v string) string { return entities(v, "&#%d;") },
	"HTML in hex":          func(v string) string { return entities(v, "&#x%X;") },
	"octal":                octal,
	"hex":                  func(v string) string { return hex.EncodeToString([]byte(v)) },
	"upper-case hex":       func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	"wrapped hex":          func(v string) string { return wrapped(hex.EncodeToString([]byte(v)), 16, " ") },
	"wrapped base64":       func(v string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(v)), 76, "\n") },
	"MIME":                 func(v string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(v)), 19, "\r\n  ") },
	"MIME in JSON": func(v string) string {
		return inJSON(wrapped(base64.StdEncoding.EncodeToString([]byte(v)), 19, "\r\n"), true)
	},
	"base64 in a query": func(v string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(v))) },
	"CRLF":              func(v string) string { return strings.ReplaceAll(v, "\n", "\r\n") },
	"indented":          func(v string) string { return strings.ReplaceAll(v, "\n", "\n    ") },
	"indented in JSON":  func(v string) string { return inJSON(strings.ReplaceAll(v, "\n", "\r\n\t"), true) },
	"base64 of CRLF": func(v string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(v, "\n", "\r\n")))
	},
}

// inASCII is JSON as encoders in other languages write it.
func inASCII(v string) string {
	var out strings.Builder
	for _, c := range inJSON(v, true) {
		switch first, second := utf16.EncodeRune(c); {
		case c < 0x80:
			out.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			fmt.Fprintf(&out, `\u%04X\u%04x`, first, second)
		}
	}
	return out.String()
}

func entities(v, format string) string {
	var out strings.Builder
	for _, c := range v {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

func octal(v string) string {
	var out strings.Builder
	for _, c := range []byte(v) {
		fmt.Fprintf(&out, `\%03o`, c)
	}
	return out.String()
}

// wrapped returns text in lines.
func wrapped(text string, n int, end string) string {
	var lines []string
	for ; len(text) > n; text = text[n:] {
		lines = append(lines, text[:n])
	}
	return strings.Join(append(lines, text), end)
}

func inJSON(v string, html bool) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(html)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	return text[1 : len(text)-1]
}

// values that need escaping, and some that do not.
var values = rapid.OneOf(
	rapid.StringMatching(`[A-Za-z0-9+/=_-]{6,40}`),
	rapid.StringMatching(`[A-Z][a-z"\\<>&% /+é\n]{6,20}[A-Z]{5}`),
	rapid.StringMatching(`[a-z"\\/é😀'+]{6,12}[A-Z]{3}[0-9a-f]{100}`),
	rapid.StringMatching(`-----BEGIN [A-Z]{3} KEY-----\n([A-Za-z0-9+/]{64}\n){3}[A-Za-z0-9+/]{10}==\n-----END [A-Z]{3} KEY-----`),
)

// pieceMin is how long a piece of an encoded value must be to count as left.
const pieceMin = 10

func TestNoEncodingOfAValueIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := values.Draw(t, "value")
		r := secrets.NewRedactor(value, "other-value-entirely")
		for name, encode := range encodings {
			secret := encode(value)
			before, behind := rapid.StringMatching(`[ a-z"=:]{0,8}`).Draw(t, "before"), rapid.StringMatching(`[ a-z"=:]{0,8}`).Draw(t, "behind")
			text := before + secret + behind + secret
			got := r.Text(text)
			for at := 0; at+pieceMin <= len(secret) || at == 0; at++ {
				if piece := secret[at:min(len(secret), at+pieceMin)]; strings.Contains(got, piece) && !strings.Contains(before+" "+behind, piece) {
					t.Fatalf("%s: %q is left in %q", name, piece, got)
				}
			}
			var streamed bytes.Buffer
			w := r.Writer(&streamed)
			for rest := text; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if streamed.String() != got {
				t.Fatalf("%s: in pieces %q, whole %q", name, streamed.String(), got)
			}
		}
	})
}

func TestValueInsideBase64IsRedacted(t *testing.T) {
	t.Parallel()
	const value = "s3cret-value-0123456789"
	r := secrets.NewRedactor(value)
	for _, before := range []string{"", "u", "us", "user:", "user::"} {
		for _, behind := range []string{"", "x", "xy", "xyz"} {
			text := base64.StdEncoding.EncodeToString([]byte(before + value + behind))
			got := r.Text("Authorization: Basic " + text)
			if !strings.Contains(got, secrets.Mark) || len(got) > len("Authorization: Basic ")+len(text)-len(value) {
				t.Errorf("%q around it: %q becomes %q", before+"…"+behind, text, got)
			}
		}
	}
}

func TestOverlappingValuesAreRedactedWhole(t *testing.T) {
	t.Parallel()
	r := secrets.NewRedactor("abcdef", "defghi")
	if got := r.Text("x abcdefghi y"); got != "x ***** y" {
		t.Errorf("got %q", got)
	}
	if got := r.Text("abcdefabcdef"); got != "**********" {
		t.Errorf("side by side: got %q", got)
	}
}

func TestShortValuesAreNotRedacted(t *testing.T) {
	t.Parallel()
	if r := secrets.NewRedactor("12345", ""); r != nil || r.Text("12345") != "12345" {
		t.Error("a value of 5 bytes is redacted")
	}
	if got := secrets.NewRedactor("123456").Text("a123456b"); got != "a*****b" {
		t.Errorf("a value of 6 bytes: got %q", got)
	}
}

func TestLogLinesHaveNoValue(t *testing.T) {
	t.Parallel()
	var given secrets.Given
	var out bytes.Buffer
	log := slog.New(given.Handler(slog.NewTextHandler(&out, nil)))
	given.Add("top-secret-value", "abc")
	type pair struct{ A, B string }
	log.With("held", "top-secret-value").WithGroup("g").Error("failed: top-secret-value", "text", "a top-secret-value", "error", errors.New("top-secret-value"),
		"any", pair{"x", "top-secret-value"}, "group", slog.GroupValue(slog.String("in", "top-secret-value")), "n", 7)
	if got := out.String(); strings.Contains(got, "top-secret") || strings.Count(got, secrets.Mark) != 6 || !strings.Contains(got, "g.n=7") {
		t.Errorf("got %s", got)
	}
}

// TestHeldBackIsBounded: a value whose second half never comes, after endless
// white space, is not waited for.
func TestHeldBackIsBounded(t *testing.T) {
	t.Parallel()
	const value = "s3cret-value-0123456789"
	var out countingWriter
	w := secrets.NewRedactor(value).Writer(&out)
	const written = 4 << 20
	space := bytes.Repeat([]byte{'\n'}, 1<<10)
	if _, err := w.Write([]byte(value[:20])); err != nil {
		t.Fatal(err)
	}
	for range written / len(space) {
		if _, err := w.Write(space); err != nil {
			t.Fatal(err)
		}
	}
	if held := written + 20 - int(out); held > 16<<10 {
		t.Errorf("%d bytes are held back, want few", held)
	}
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

func TestClipRedactsFirst(t *testing.T) {
	t.Parallel()
	const value = "s3cret-value-0123456789"
	r := secrets.NewRedactor(value)
	for n := range 40 {
		if got := r.Clip("key "+value+" é", n); strings.Contains(got, "s3c") || len(got) > n || !utf8.ValidString(got) {
			t.Errorf("%d bytes: got %q", n, got)
		}
	}
	var none *secrets.Redactor
	if got := none.Clip("aéé\xff", 5); got != "a…" {
		t.Errorf("without values: got %q, want the beginning", got)
	}
}

// BenchmarkRedactor is the cost of a text without values. It does not depend on
// the number of values.
func BenchmarkRedactor(b *testing.B) {
	plain := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 1500)
	for _, values := range []int{1, 1000} {
		all := make([]string, values)
		for i := range all {
			all[i] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		}
		r := secrets.NewRedactor(all...)
		for name, text := range map[string]string{"plain": plain, "escaped": inJSON(plain, true), "escaped 4 times": inJSON(inJSON(inJSON(inJSON(plain, true), true), true), true)} {
			b.Run(fmt.Sprintf("%s/values=%d", name, values), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					r.Text(text)
				}
			})
		}
	}
}
