package codec

import "unicode/utf8"

// quickWriter is a struct that writes itself, for the few that make up most of
// what is encoded: a walk by its plan takes some ten times as long. It appends
// exactly what Marshal would write without it, or returns false, and then
// Marshal walks the value. So errors are made in one place.
type quickWriter interface {
	AppendCanonical(out []byte) (written []byte, ok bool)
}

// quickReader is a struct that reads itself from the beginning of data and
// returns how many bytes it read. It takes only what Unmarshal would take, for
// the same value, and keeps nothing of data; else it says no, and Unmarshal
// reads by the plan, from a zero value on.
type quickReader interface {
	ReadCanonical(data []byte) (n int, ok bool)
}

// AppendInt writes an integer.
func AppendInt(out []byte, i int64) []byte { return appendInt(out, i) }

// AppendHash writes a hash.
func AppendHash(out []byte, h *Hash) []byte { return appendBin(out, h[:]) }

// AppendText writes a text if it is valid UTF-8, and says whether it is.
func AppendText(out []byte, text string) ([]byte, bool) {
	if !utf8.ValidString(text) {
		return out, false
	}
	return appendText(out, text), true
}

// AppendRaw writes bytes that are canonical already, inside so many containers,
// and says whether they are; none are nil.
func AppendRaw(out []byte, raw Raw, inside int) ([]byte, bool) {
	e := encoder{b: out}
	err := e.raw(raw, inside)
	return e.b, err == nil
}

// leastBytes is how many bytes a value of the plan takes at least: what bounds
// how many of them there can be in the rest of the input.
func (p *plan) leastBytes() int {
	if p.op != opStruct {
		return 1
	}
	least := 1
	for i := range p.fields {
		if f := &p.fields[i]; !f.omit {
			least += 1 + len(f.name) + 1
		}
	}
	return least
}
