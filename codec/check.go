package codec

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf8"
)

// Check returns nil if data is exactly one value in canonical form, within DepthMax
// and BytesMax. Otherwise it returns an *Error with the offset of the first fault. It
// allocates only for an error.
func Check(data []byte) error {
	if len(data) > BytesMax {
		return tooLarge(len(data), BytesMax)
	}
	next, err := scan(data, 0, 0)
	if err != nil {
		return err
	}
	if next < len(data) {
		return trailing(next)
	}
	return nil
}

// scan checks the canonical value at pos, which is inside depth containers, and
// returns where it ends. It is the fast path for values of one byte and short texts,
// which are most values.
func scan(b []byte, pos, depth int) (int, error) {
	if pos < len(b) {
		switch c := b[pos]; {
		case c < codeMapShort, c >= codeIntShort, c == codeNil, c == codeFalse, c == codeTrue:
			return pos + 1, nil
		case c >= codeTextShort && c < codeNil:
			n := int(c - codeTextShort)
			if end := pos + 1 + n; end <= len(b) && validShort(b, pos+1, n) {
				return end, nil
			}
		}
	}
	return scanLong(b, pos, depth)
}

// scanLong is scan without the fast path.
func scanLong(b []byte, pos, depth int) (int, error) {
	h, err := readHead(b, pos, true)
	if err != nil {
		return 0, err
	}
	switch h.kind {
	case kindText:
		end := h.next + h.n
		if !validText(b[h.next:end]) {
			return 0, invalidText(pos)
		}
		return end, nil
	case kindBin:
		return h.next + h.n, nil
	case kindArray:
		if depth >= DepthMax {
			return 0, tooDeep(pos)
		}
		at := h.next
		for range h.n {
			if at, err = scan(b, at, depth+1); err != nil {
				return 0, err
			}
		}
		return at, nil
	case kindMap:
		if depth >= DepthMax {
			return 0, tooDeep(pos)
		}
		return scanPairs(b, h, depth)
	}
	return h.next, nil
}

// scanPairs checks the pairs of the map whose header is h.
func scanPairs(b []byte, h head, depth int) (int, error) {
	at := h.next
	var before []byte
	for i := range h.n {
		key, next, err := readKey(b, at, true)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			if err := ordered(before, key, at); err != nil {
				return 0, err
			}
		}
		before = key
		if at, err = scan(b, next, depth+1); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// readKey reads the map key at pos, which must be a text.
func readKey(b []byte, pos int, strict bool) (key []byte, next int, err error) {
	if pos < len(b) && b[pos]-codeTextShort < 32 {
		n := int(b[pos] - codeTextShort)
		next = pos + 1 + n
		if next <= len(b) && validShort(b, pos+1, n) {
			return b[pos+1 : next], next, nil
		}
	}
	h, err := readHead(b, pos, strict)
	if err != nil {
		return nil, 0, err
	}
	if h.kind != kindText {
		return nil, 0, fault(ErrKeyType, pos, "a map key is text, this one is "+h.kind.String())
	}
	next = h.next + h.n
	key = b[h.next:next]
	if !validText(key) {
		return nil, 0, invalidText(pos)
	}
	return key, next, nil
}

// validText reports whether b is valid UTF-8. Most text is ASCII, which it checks by
// words of eight bytes: that takes a third of the time.
func validText(b []byte) bool {
	var seen uint64
	n := len(b)
	if n < 8 {
		for _, c := range b {
			seen |= uint64(c)
		}
	} else {
		for at := 0; at < n-8; at += 8 {
			seen |= binary.LittleEndian.Uint64(b[at:])
		}
		seen |= binary.LittleEndian.Uint64(b[n-8:])
	}
	return seen&highBits == 0 || utf8.Valid(b)
}

// highBits are the bits of a word that are zero in ASCII.
const highBits = 0x8080808080808080

// validShort is validText for the n bytes at pos, fewer than 32. Up to eight of them
// it reads as one word, if b is long enough.
func validShort(b []byte, pos, n int) bool {
	if n <= 8 && pos+8 <= len(b) {
		if binary.LittleEndian.Uint64(b[pos:])&(highBits>>(64-8*uint(n))) == 0 {
			return true
		}
	}
	return validText(b[pos : pos+n])
}

// ordered returns an error if key, which is at pos, must not follow before.
func ordered(before, key []byte, pos int) error {
	if len(before) > 0 && len(key) > 0 && before[0] < key[0] {
		return nil
	}
	switch bytes.Compare(before, key) {
	case 0:
		return duplicateKey(key, pos)
	case 1:
		return fault(ErrNotCanonical, pos, "the key "+quote(key)+" stands after "+quote(before))
	}
	return nil
}

func duplicateKey(key []byte, pos int) error {
	return fault(ErrDuplicateKey, pos, "the key "+quote(key)+" stands twice in one map")
}

func invalidText(pos int) error { return fault(ErrUTF8, pos, "text that is not valid UTF-8") }

func tooDeep(pos int) error {
	return fault(ErrDepth, pos, "more than "+strconv.Itoa(DepthMax)+" containers inside each other")
}

func tooLarge(n, limit int) error {
	return fault(ErrSize, limit, strconv.Itoa(n)+" bytes where at most "+strconv.Itoa(limit)+" are allowed, cut off")
}

func trailing(pos int) error {
	return fault(ErrTrailing, pos, "bytes after the end of the value, beginning")
}
