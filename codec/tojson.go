package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// ToJSON returns canonical bytes as JSON text, without white space, with keys in
// their order. A binary becomes text: one of 32 bytes (a Hash) lower-case hex, any other
// standard base64 with padding. FromJSON converts everything else back to the same bytes.
func ToJSON(data []byte) ([]byte, error) {
	if len(data) > BytesMax {
		return nil, tooLarge(len(data), BytesMax)
	}
	out, next, err := appendJSON(make([]byte, 0, len(data)+len(data)/2), data, 0, 0)
	if err != nil {
		return nil, err
	}
	if next < len(data) {
		return nil, trailing(next)
	}
	return out, nil
}

// ToJSONIndent is ToJSON with a line for each value, indented by two spaces.
func ToJSONIndent(data []byte) ([]byte, error) {
	text, err := ToJSON(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fault(ErrJSON, 0, "this text does not parse")
	}
	return out.Bytes(), nil
}

// appendJSON writes the value at pos to out and returns where it ends.
func appendJSON(out, b []byte, pos, depth int) ([]byte, int, error) {
	h, err := readHead(b, pos, true)
	if err != nil {
		return nil, 0, err
	}
	end := h.next
	switch h.kind {
	case kindNil:
		out = append(out, "null"...)
	case kindFalse:
		out = append(out, "false"...)
	case kindTrue:
		out = append(out, "true"...)
	case kindUint:
		out = strconv.AppendUint(out, h.bits, 10)
	case kindInt:
		out = strconv.AppendInt(out, int64(h.bits), 10)
	case kindFloat:
		out = appendJSONFloat(out, math.Float64frombits(h.bits))
	case kindText:
		end += h.n
		if !validText(b[h.next:end]) {
			return nil, 0, invalidText(pos)
		}
		out = appendJSONText(out, b[h.next:end])
	case kindBin:
		end += h.n
		out = append(out, '"')
		if h.n == len(Hash{}) {
			out = hex.AppendEncode(out, b[h.next:end])
		} else {
			out = base64.StdEncoding.AppendEncode(out, b[h.next:end])
		}
		out = append(out, '"')
	case kindArray, kindMap:
		if depth >= DepthMax {
			return nil, 0, tooDeep(pos)
		}
		if h.kind == kindMap {
			return appendJSONObject(out, b, h, depth)
		}
		out = append(out, '[')
		for i := range h.n {
			if i > 0 {
				out = append(out, ',')
			}
			if out, end, err = appendJSON(out, b, end, depth+1); err != nil {
				return nil, 0, err
			}
		}
		out = append(out, ']')
	}
	return out, end, nil
}

func appendJSONObject(out, b []byte, h head, depth int) ([]byte, int, error) {
	at := h.next
	var before []byte
	out = append(out, '{')
	for i := range h.n {
		key, next, err := readKey(b, at, true)
		if err != nil {
			return nil, 0, err
		}
		if i > 0 {
			if err := ordered(before, key, at); err != nil {
				return nil, 0, err
			}
			out = append(out, ',')
		}
		before = key
		out = append(appendJSONText(out, key), ':')
		if out, at, err = appendJSON(out, b, next, depth+1); err != nil {
			return nil, 0, err
		}
	}
	return append(out, '}'), at, nil
}

// appendJSONFloat writes the shortest digits that parse to f. An integral f, which is
// beyond 2^53 here, always gets an exponent: without one it would parse as an integer.
func appendJSONFloat(out []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || f == math.Trunc(f) {
		format = 'e'
	}
	return strconv.AppendFloat(out, f, format, -1, 64)
}

// The characters with a short escape, except the slash, and the letters of these
// escapes.
const escaped, escapes = "\"\\\b\f\n\r\t", `"\bfnrt`

// appendJSONText writes valid UTF-8 as a JSON string, with no unnecessary escapes.
func appendJSONText(out, s []byte) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[from:i]...)
		from = i + 1
		if e := strings.IndexByte(escaped, c); e >= 0 {
			out = append(out, '\\', escapes[e])
		} else {
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(out, s[from:]...), '"')
}
