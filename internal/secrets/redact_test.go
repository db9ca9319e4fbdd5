package secrets_test

// Texts contain values in every encoding that the package lists, at every
// position, in pieces of every size: no value is left.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

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
	"JSON":              func(v string) string { return inJSON(v, true) },
	"JSON without HTML": func(v string) string { return inJSON(v, false) },
	"Go":                func(v string) string { q := strconv.Quote(v); return q[1 : len(q)-1] },
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
	rapid.StringMatching(`[a-z"\\<>&% /+é\n]{6,20}[A-Z]{3}`),
)

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
			if strings.Contains(got, secret) {
				t.Fatalf("%s: %q is left in %q", name, secret, got)
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
