package secrets

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
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

// Redactor replaces values by Mark. It decodes a text (escapes of JSON, of Go, of
// URLs and of HTML, up to decodedMax of them within each other) and ignores its
// white space. In the result it finds a value plain, in hexadecimal, and in base64
// of both alphabets, also within a longer encoded text. The nil Redactor replaces
// nothing. It is immutable.
//
// It reads a text once, and once more for each level of escapes, however many
// values there are. BenchmarkRedactor measures it.
type Redactor struct {
	bare  patterns // to be found in texts without white space
	plain patterns // values that are too short without their white space
	span  int      // how long the text of a value may be, encoded
}

// NewRedactor returns a Redactor of values, without those shorter than
// ValueBytesMin. It returns nil if no value is left.
func NewRedactor(values ...string) *Redactor {
	r := &Redactor{}
	for _, value := range values {
		if len(value) < ValueBytesMin {
			continue
		}
		if len(withoutSpace(value)) < ValueBytesMin {
			r.plain.add(value)
		}
		r.bare.addAll(spellings(value))
	}
	if len(r.bare.all) == 0 && len(r.plain.all) == 0 {
		return nil
	}
	r.bare.sort()
	r.plain.sort()
	r.span = spanMin + spanFactor*max(r.bare.longest(), r.plain.longest())
	return r
}

// A value and its encoding may take spanMin bytes, and spanFactor times the length of
// the encoding without escapes. What takes more is not found.
const (
	spanMin    = 4 << 10
	spanFactor = 8
)

// spellings returns what a value becomes in texts without escapes and white space.
func spellings(value string) (all []string) {
	lines := strings.ReplaceAll(value, "\r\n", "\n")
	for _, v := range []string{value, lines, strings.ReplaceAll(lines, "\n", "\r\n")} {
		all = append(all, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			all = append(all, encoding.EncodeToString([]byte(v)))
			for before := range 3 {
				all = append(all, within(encoding, v, before))
			}
		}
	}
	// Some encoders replace what is not UTF-8, and forms have + for spaces. A value
	// may itself contain escapes, which are decoded as those of the text are.
	for _, v := range []string{value, string([]rune(value)), strings.ReplaceAll(value, " ", "+")} {
		for seen := (&view{text: []byte(v)}); ; {
			all = append(all, string(seen.bare().text))
			next, changed := seen.decoded()
			if !changed {
				break
			}
			seen = next
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

func withoutSpace(text string) string { return string((&view{text: []byte(text)}).bare().text) }

// patterns are texts to find, all in one pass.
type patterns struct {
	all   [][]byte         // longest first
	heads map[uint64][]int // those that begin with these bytes
	known []uint64         // a bit for each head's hash, since most bytes of a text begin none
}

func (p *patterns) addAll(all []string) {
	for _, s := range all {
		if len(s) >= headBytes {
			p.add(s)
		}
	}
}

func (p *patterns) add(s string) { p.all = append(p.all, []byte(s)) }

// sort must be called when all patterns are added.
func (p *patterns) sort() {
	slices.SortFunc(p.all, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	p.all = slices.CompactFunc(p.all, bytes.Equal)
	p.heads = map[uint64][]int{}
	p.known = make([]uint64, 1<<bits.Len(uint(len(p.all))))
	for i, s := range p.all {
		var head uint64
		for _, c := range s[:headBytes] {
			head = head<<8 | uint64(c)
		}
		p.heads[head] = append(p.heads[head], i)
		word, bit := p.place(head)
		p.known[word] |= bit
	}
}

func (p *patterns) longest() int {
	if len(p.all) == 0 {
		return 0
	}
	return len(p.all[0])
}

// headBytes is the length of the shortest pattern.
const headBytes = ValueBytesMin

// place returns the place of a head's bit.
func (p *patterns) place(head uint64) (word int, bit uint64) {
	const odd = 0x9E3779B97F4A7C15 // multiplicative hashing
	h := head * odd
	return int(h>>32) & (len(p.known) - 1), 1 << (h >> 58)
}

// find calls found for every occurrence.
func (p *patterns) find(text []byte, found func(from, to int)) {
	if len(p.all) == 0 {
		return
	}
	var head uint64
	for i, c := range text {
		head = (head<<8 | uint64(c)) & (1<<(8*headBytes) - 1)
		if word, bit := p.place(head); p.known[word]&bit == 0 || i < headBytes-1 {
			continue
		}
		from := i - headBytes + 1
		for _, n := range p.heads[head] {
			if bytes.HasPrefix(text[from:], p.all[n]) {
				found(from, from+len(p.all[n]))
				break // the others are shorter
			}
		}
	}
}

// begun returns where an occurrence may begin that continues after text, or
// len(text).
func (p *patterns) begun(text []byte) int {
	first := len(text)
	for _, s := range p.all {
		for at := max(0, len(text)-len(s)+1); at < first; at++ {
			i := bytes.IndexByte(text[at:first], s[0])
			if i < 0 {
				break
			}
			if at += i; bytes.HasPrefix(s, text[at:]) {
				first = at
			}
		}
	}
	return first
}

type span struct{ from, to int }

// scan returns the parts of text with values, in order and without overlaps, and
// how many bytes at its beginning can't be part of a value that continues after it;
// none does if text is complete.
func (r *Redactor) scan(text []byte, complete bool) (all []span, settled int) {
	open := len(text)
	if !complete {
		open = escapeBegun(text) // what follows may still become other bytes
	}
	settled = open
	look := func(v *view, p *patterns) {
		p.find(v.text, func(from, to int) { all = append(all, span{v.from(from), v.to(to - 1)}) })
		if complete {
			return
		}
		n := sort.Search(len(v.text), func(i int) bool { return v.from(i) >= open })
		if at := p.begun(v.text[:n]); at < n {
			settled = min(settled, v.from(at))
		}
	}
	v := &view{text: text}
	look(v, &r.plain)
	look(v.bare(), &r.bare)
	for range decodedMax {
		next, changed := v.decoded()
		if !changed {
			break
		}
		v = next
		look(v, &r.plain)
		look(v.bare(), &r.bare)
	}
	all = joined(all)
	for _, s := range all { // a complete value must not be split
		if s.from < settled && settled < s.to {
			settled = s.from
		}
	}
	return all, settled
}

// joined sorts parts, and joins those that overlap.
func joined(all []span) []span {
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
	var out bytes.Buffer
	w := &writer{redactor: r, to: &out}
	if len(text) <= chunkBytes {
		w.kept = text
	} else {
		_, _ = w.Write(text) // a buffer takes all
	}
	_ = w.Close()
	if !w.found {
		return text
	}
	return out.Bytes()
}

// Text is Bytes for a string.
func (r *Redactor) Text(text string) string {
	if r == nil || len(text) < ValueBytesMin {
		return text
	}
	return string(r.Bytes([]byte(text)))
}

// Clip returns at most n bytes of text without the values, in valid UTF-8. An
// ellipsis marks a cut. Text that may contain a value must not be cut in any other
// way: what is left of a value that was cut is not found.
func (r *Redactor) Clip(text string, n int) string {
	text = strings.ToValidUTF8(r.Text(text), "\uFFFD")
	if len(text) <= n {
		return text
	}
	end := max(0, n-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if n < len(ellipsis) {
		return ""
	}
	return text[:end] + ellipsis
}

const ellipsis = "…"
