package codec

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Check returns nil if data is exactly one value in canonical form, within
// DepthMax and BytesMax, and else an *Error about the first byte that is not.
// It does not allocate unless it fails.
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

// scan checks the canonical value at pos, which stands inside depth
// containers, and returns where it ends.
func scan(b []byte, pos, depth int) (int, error) {
	h, err := readHead(b, pos, true)
	if err != nil {
		return 0, err
	}
	switch h.kind {
	case kindText:
		end := h.next + h.n
		if !utf8.Valid(b[h.next:end]) {
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

// readKey reads the map key at pos: text.
func readKey(b []byte, pos int, strict bool) (key []byte, next int, err error) {
	h, err := readHead(b, pos, strict)
	if err != nil {
		return nil, 0, err
	}
	if h.kind != kindText {
		return nil, 0, fault(ErrKeyType, pos, "a map key is text, this one is "+h.kind.String())
	}
	next = h.next + h.n
	key = b[h.next:next]
	if !utf8.Valid(key) {
		return nil, 0, invalidText(pos)
	}
	return key, next, nil
}

// ordered makes sure that key, which stands at pos, may follow before.
func ordered(before, key []byte, pos int) error {
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
