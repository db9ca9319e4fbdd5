package codec

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON returns the canonical bytes of the JSON value in text. A number without
// fraction and exponent that fits an int64 or uint64 is an integer; any other is the
// nearest float64, which is an integer again if it is integral within 2^53. FromJSON
// refuses text that violates RFC 8259 or is not UTF-8, duplicate keys in an object, an
// escaped half of a surrogate pair, numbers beyond float64, nesting deeper than
// DepthMax, and text or a result larger than BytesMax.
func FromJSON(text []byte) (Raw, error) {
	if len(text) > BytesMax {
		return nil, tooLarge(len(text), BytesMax)
	}
	var room [8]pair // the pairs of an envelope, and one more
	p := parser{in: text, out: make([]byte, 0, len(text)), pairs: room[:0]}
	if err := p.value(0); err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.in) {
		return nil, trailing(p.pos)
	}
	if len(p.out) > BytesMax {
		return nil, tooLarge(len(p.out), BytesMax)
	}
	return p.out, nil
}

// parser reads JSON at pos and writes canonical msgpack to out.
type parser struct {
	in    []byte
	pos   int
	out   []byte
	pairs []pair // of the objects being read, inner ones last
}

// skipSpace returns the first position at or after pos without JSON white
// space.
func skipSpace(b []byte, pos int) int {
	for pos < len(b) && (b[pos] == ' ' || b[pos] == '\n' || b[pos] == '\t' || b[pos] == '\r') {
		pos++
	}
	return pos
}

func (p *parser) space() { p.pos = skipSpace(p.in, p.pos) }

// peek returns the byte at pos, or 0 at the end. A 0 in the text is not valid JSON
// either.
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

// expected returns the error that what should be at pos.
func (p *parser) expected(what string) error {
	if p.pos >= len(p.in) {
		return fault(ErrTruncated, p.pos, "the JSON text ends where "+what+" should be")
	}
	return fault(ErrJSON, p.pos, "this is not JSON: "+what+" should be")
}

// value reads the value at pos, after white space.
func (p *parser) value(depth int) error {
	p.space()
	switch c := p.peek(); {
	case c == '"':
		_, err := p.text()
		return err
	case c == '{' || c == '[':
		if depth >= DepthMax {
			return tooDeep(p.pos)
		}
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true", codeTrue)
	case c == 'f':
		return p.word("false", codeFalse)
	case c == 'n':
		return p.word("null", codeNil)
	}
	return p.expected("a value")
}

func (p *parser) word(word string, code byte) error {
	for i := range len(word) {
		if p.peek() != word[i] {
			return p.expected("the word " + word)
		}
		p.pos++
	}
	p.out = append(p.out, code)
	return nil
}

func (p *parser) array(depth int) error {
	start := len(p.out)
	p.out = append(p.out, 0)
	p.pos++
	p.space()
	n := 0
	for closed := p.skip(']'); !closed; {
		if err := p.value(depth + 1); err != nil {
			return err
		}
		n++
		p.space()
		if closed = p.skip(']'); !closed && !p.skip(',') {
			return p.expected("a comma or the array's end")
		}
	}
	p.out = closeContainer(p.out, start, n, codeArrayShort, codeArray16)
	return nil
}

func (p *parser) object(depth int) error {
	start, outer := len(p.out), len(p.pairs)
	p.out = append(p.out, 0)
	p.pos++
	p.space()
	for closed := p.skip('}'); !closed; {
		p.space()
		if p.peek() != '"' {
			return p.expected("a key")
		}
		entry := pair{at: len(p.out), source: p.pos}
		n, err := p.text()
		if err != nil {
			return err
		}
		entry.value = len(p.out)
		entry.keyAt = entry.value - n
		p.space()
		if !p.skip(':') {
			return p.expected("a colon")
		}
		if err := p.value(depth + 1); err != nil {
			return err
		}
		entry.end = len(p.out)
		p.pairs = append(p.pairs, entry)
		p.space()
		if closed = p.skip('}'); !closed && !p.skip(',') {
			return p.expected("a comma or the object's end")
		}
	}
	pairs := p.pairs[outer:]
	p.pairs = p.pairs[:outer]
	if err := sortPairs(p.out, pairs); err != nil {
		return err
	}
	p.out = closeContainer(p.out, start, len(pairs), codeMapShort, codeMap16)
	return nil
}

func (p *parser) skip(c byte) bool {
	if p.peek() == c {
		p.pos++
		return true
	}
	return false
}

// number reads a number by the grammar and writes it.
func (p *parser) number() error {
	start := p.pos
	negative := p.skip('-')
	u, fits, found := uint64(0), true, true
	if !p.skip('0') {
		u, fits, found = p.digits()
	}
	if !found {
		return p.expected("a digit")
	}
	if p.skip('.') {
		fits = false
		if _, _, found := p.digits(); !found {
			return p.expected("a digit")
		}
	}
	if p.skip('e') || p.skip('E') {
		fits = false
		if !p.skip('+') {
			p.skip('-')
		}
		if _, _, found := p.digits(); !found {
			return p.expected("a digit")
		}
	}
	switch {
	case fits && !negative:
		p.out = appendUint(p.out, u)
		return nil
	case fits && u <= 1<<63:
		p.out = appendInt(p.out, -int64(u))
		return nil
	}
	f, err := strconv.ParseFloat(string(p.in[start:p.pos]), 64)
	if err != nil {
		return fault(ErrNumber, start, "a number that is too large for a float of 64 bits")
	}
	p.out, err = appendFloat(p.out, f)
	return err
}

// digits reads one or more digits. It returns their value, and whether it fits.
func (p *parser) digits() (u uint64, fits, found bool) {
	start := p.pos
	fits = true
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		high, low := bits.Mul64(u, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		u = sum
		fits = fits && high == 0 && carry == 0
		p.pos++
	}
	return u, fits, p.pos > start
}

// text reads a string and writes it. It returns the length of the text.
func (p *parser) text() (int, error) {
	start := p.pos
	p.pos++
	from := p.pos
	p.pos += plain(p.in[from:])
	if p.peek() != '"' {
		return p.escapedText(start, from)
	}
	s := p.in[from:p.pos]
	p.pos++
	if !validText(s) {
		return 0, invalidText(start)
	}
	p.out = appendText(p.out, s)
	return len(s), nil
}

// plain returns how many bytes at the beginning of b need no escape in a string: up to
// the first quote, backslash or control character. It checks eight bytes at a time with
// (w-n)&^w, which sets the high bit of a byte below n; a quote or backslash becomes 0 by
// xor. A borrow may also set the bit of a higher byte, but only if a lower one is set.
func plain(b []byte) int {
	const each = ^uint64(0) / 0xff // a 1 in each byte
	n := 0
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^each*'"', w^each*'\\'
		if ((w-each*' ')&^w|(quote-each)&^quote|(slash-each)&^slash)&(each<<7) != 0 {
			break
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= ' ' {
		n++
	}
	return n
}

// escapedText reads the string that begins at start, with its first escape or fault at
// pos.
func (p *parser) escapedText(start, from int) (int, error) {
	s := append(make([]byte, 0, 2*(p.pos-from)+64), p.in[from:p.pos]...)
	for {
		switch c := p.peek(); {
		case p.pos >= len(p.in):
			return 0, p.expected("the end of a string")
		case c == '"':
			p.pos++
			if !validText(s) {
				return 0, invalidText(start)
			}
			p.out = appendText(p.out, s)
			return len(s), nil
		case c < ' ':
			return 0, p.expected("the escape of a control character")
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return 0, err
			}
			s = utf8.AppendRune(s, r)
		default:
			s = append(s, c)
			p.pos++
		}
	}
}

func (p *parser) escape() (rune, error) {
	start := p.pos
	p.pos++
	c := p.peek()
	if c != 'u' {
		e := strings.IndexByte(escapes+"/", c)
		if e < 0 {
			return 0, p.expected("an escape")
		}
		p.pos++
		return rune((escaped + "/")[e]), nil
	}
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.pos+1 < len(p.in) && p.in[p.pos] == '\\' && p.in[p.pos+1] == 'u' {
		p.pos++
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, fault(ErrUTF8, start, "an escape that is half of a surrogate pair")
}

// hex4 reads the u at pos and the four digits that follow it.
func (p *parser) hex4() (rune, error) {
	p.pos++
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.expected("a hex digit")
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r, nil
}
