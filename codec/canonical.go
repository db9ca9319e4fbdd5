package codec

import (
	"math"
)

// Canonicalize returns the canonical bytes of a value from another program: a JSON
// object, or a msgpack map in any spelling. The first byte that is not JSON white
// space decides which. Canonical data is returned as the same slice; otherwise the
// result is new. Neither data nor the result may exceed BytesMax.
func Canonicalize(data []byte) ([]byte, error) {
	if len(data) > BytesMax {
		return nil, tooLarge(len(data), BytesMax)
	}
	if len(data) > 0 && isMapCode(data[0]) {
		if Check(data) == nil {
			return data, nil
		}
		return respell(data)
	}
	if pos := skipSpace(data, 0); pos < len(data) && data[pos] == '{' {
		return FromJSON(data)
	}
	if len(data) == 0 {
		return nil, fault(ErrTruncated, 0, "no bytes where a JSON object or a msgpack map should begin")
	}
	return nil, fault(ErrNotObject, 0, "neither a JSON object nor a msgpack map begins")
}

// IsMap reports whether the canonical value v is a map.
func IsMap(v Raw) bool { return len(v) > 0 && isMapCode(v[0]) }

func isMapCode(c byte) bool {
	return c >= codeMapShort && c < codeArrayShort || c == codeMap16 || c == codeMap32
}

// respell returns the canonical form of one msgpack value in any spelling.
func respell(data []byte) ([]byte, error) {
	s := speller{in: data, out: make([]byte, 0, len(data)+len(data)/8)}
	next, err := s.value(0, 0)
	if err != nil {
		return nil, err
	}
	if next < len(data) {
		return nil, trailing(next)
	}
	if len(s.out) > BytesMax {
		return nil, tooLarge(len(s.out), BytesMax)
	}
	return s.out, nil
}

// speller copies values and writes them in canonical form.
type speller struct {
	in, out []byte
	pairs   []pair // of the maps being written, inner ones last
}

// value respells the value at pos and returns where it ends.
func (s *speller) value(pos, depth int) (int, error) {
	h, err := readHead(s.in, pos, false)
	if err != nil {
		return 0, err
	}
	end := h.next
	switch h.kind {
	case kindNil:
		s.out = append(s.out, codeNil)
	case kindFalse, kindTrue:
		s.out = appendBool(s.out, h.kind == kindTrue)
	case kindUint:
		s.out = appendUint(s.out, h.bits)
	case kindInt:
		s.out = appendInt(s.out, int64(h.bits))
	case kindFloat:
		s.out, err = appendFloat(s.out, math.Float64frombits(h.bits))
	case kindText:
		end += h.n
		if !validText(s.in[h.next:end]) {
			return 0, invalidText(pos)
		}
		s.out = appendText(s.out, s.in[h.next:end])
	case kindBin:
		end += h.n
		s.out = appendBin(s.out, s.in[h.next:end])
	case kindArray, kindMap:
		if depth >= DepthMax {
			return 0, tooDeep(pos)
		}
		if h.kind == kindMap {
			return s.mapPairs(h, depth)
		}
		s.out = appendArrayHead(s.out, h.n)
		for range h.n {
			if end, err = s.value(end, depth+1); err != nil {
				return 0, err
			}
		}
	}
	return end, err
}

// mapPairs respells the map whose header is h, pair by pair, and sorts them.
func (s *speller) mapPairs(h head, depth int) (int, error) {
	s.out = appendMapHead(s.out, h.n)
	outer := len(s.pairs)
	at := h.next
	for range h.n {
		key, next, err := readKey(s.in, at, false)
		if err != nil {
			return 0, err
		}
		p := pair{at: len(s.out), source: at}
		s.out = appendText(s.out, key)
		p.value = len(s.out)
		p.keyAt = p.value - len(key)
		if at, err = s.value(next, depth+1); err != nil {
			return 0, err
		}
		p.end = len(s.out)
		s.pairs = append(s.pairs, p)
	}
	err := sortPairs(s.out, s.pairs[outer:])
	s.pairs = s.pairs[:outer]
	return at, err
}
