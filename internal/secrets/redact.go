package secrets

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// ValueBytesMin is the size of the shortest value that is redacted. Many texts
	// contain shorter ones by chance.
	ValueBytesMin = 6
	// ValueBytesMax is the size of the longest value.
	ValueBytesMax = 64 << 10
)

// Mark replaces a value. It is shorter than every value that is redacted, so it
// can't contain one.
const Mark = "*****"

// Redactor replaces values by Mark. It finds them plain, in base64 (standard and
// URL alphabet, padded or not, also within a longer encoded text), escaped for
// the query or the path of a URL, and escaped as in JSON and Go. The nil Redactor
// replaces nothing. It is immutable.
type Redactor struct {
	spellings [][]byte // longest first
}

// NewRedactor returns a Redactor of values, without those shorter than
// ValueBytesMin. It returns nil if no value is left.
func NewRedactor(values ...string) *Redactor {
	var all []string
	for _, value := range values {
		if len(value) >= ValueBytesMin {
			all = append(all, spellings(value)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	r := &Redactor{}
	for _, s := range slices.Compact(all) {
		r.spellings = append(r.spellings, []byte(s))
	}
	return r
}

// spellings returns the encodings of a value in texts.
func spellings(value string) []string {
	all := []string{value}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, encoding.EncodeToString([]byte(value)))
		for before := range 3 {
			all = append(all, within(encoding, value, before))
		}
	}
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value), percent(value)} {
		all = append(all, escaped, lowerEscapes(escaped))
	}
	quoted := strconv.Quote(value)
	all = append(all, quoted[1:len(quoted)-1])
	for _, html := range []bool{true, false} {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(html)
		if e.Encode(value) == nil {
			all = append(all, strings.Trim(text.String(), "\n")[1:text.Len()-2])
		}
	}
	return all
}

// within returns the characters of base64 that depend on value alone if it
// follows before bytes, modulo three, and any bytes follow it.
func within(encoding *base64.Encoding, value string, before int) string {
	text := encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	if (before+len(value))%3 != 0 {
		text = text[:len(text)-1]
	}
	if before > 0 {
		text = text[before+1:]
	}
	return text
}

// percent escapes every byte except letters, digits and -_.~, as most programs in
// other languages than Go do.
func percent(value string) string {
	return strings.NewReplacer("+", "%20").Replace(url.QueryEscape(value))
}

var isEscape = regexp.MustCompile(`%[0-9A-F]{2}`)

func lowerEscapes(text string) string { return isEscape.ReplaceAllStringFunc(text, strings.ToLower) }

type span struct{ from, to int }

// find returns the parts of text with values, in order and without overlaps.
func (r *Redactor) find(text []byte) (all []span) {
	for _, s := range r.spellings {
		for at := 0; ; {
			i := bytes.Index(text[at:], s)
			if i < 0 {
				break
			}
			all = append(all, span{at + i, at + i + len(s)})
			at += i + 1
		}
	}
	if len(all) < 2 {
		return all
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	joined := all[:1]
	for _, s := range all[1:] {
		if last := &joined[len(joined)-1]; s.from < last.to {
			last.to = max(last.to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// Bytes returns text without the values: text itself if it contains none, else a
// copy.
func (r *Redactor) Bytes(text []byte) []byte {
	if r == nil || len(text) < ValueBytesMin {
		return text
	}
	found := r.find(text)
	if len(found) == 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	at := 0
	for _, s := range found {
		out = append(append(out, text[at:s.from]...), Mark...)
		at = s.to
	}
	return append(out, text[at:]...)
}

// Text is Bytes for a string.
func (r *Redactor) Text(text string) string {
	if r == nil || len(text) < ValueBytesMin {
		return text
	}
	return string(r.Bytes([]byte(text)))
}
