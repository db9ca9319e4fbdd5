package codec

// Reader reads a canonical map entry by entry, for the few events that are too frequent
// for Unmarshal. It accepts exactly what Unmarshal accepts. It stops at the first fault,
// and End reports it; the caller then calls Unmarshal for the error.
type Reader struct {
	b    []byte
	pos  int
	left int    // unread entries of the map
	text string // a copy of b, of which strings are substrings; empty: each string is its own copy
	bad  bool
}

// Read returns a reader of the value at the beginning of data.
func Read(data []byte) Reader { return Reader{b: data} }

// OneCopy makes all later strings substrings of one copy of the input. That saves their
// allocations, but any of them keeps all bytes in memory.
func (r *Reader) OneCopy() { r.text = string(r.b) }

// Pos returns how many bytes were read.
func (r *Reader) Pos() int { return r.pos }

// Map begins the map at the current position and returns the argument of EndMap.
func (r *Reader) Map() (outer int) {
	outer, r.left = r.left, r.begin(kindMap)
	return outer
}

// EndMap ends the map that Map began. Unread entries are a fault.
func (r *Reader) EndMap(outer int) {
	r.bad = r.bad || r.left != 0
	r.left = outer
}

// Array begins the array at the current position and returns how many items it has. The
// input has at least a byte for each of them.
func (r *Reader) Array() (n int) { return r.begin(kindArray) }

// End returns how many bytes were read, and whether there was no fault.
func (r *Reader) End() (n int, ok bool) { return r.pos, !r.bad }

// Fail records a fault that the caller found.
func (r *Reader) Fail() { r.bad = true }

// Has reports whether the next entry of the map has this key, which must be shorter than
// 32 bytes, and moves to its value. A caller that tries all keys in their order accepts
// only a map in that order.
func (r *Reader) Has(key string) bool {
	if r.bad || r.left == 0 || r.pos >= len(r.b) || r.b[r.pos] != codeTextShort|byte(len(key)) {
		return false
	}
	end := r.pos + 1 + len(key)
	if end > len(r.b) || string(r.b[r.pos+1:end]) != key {
		return false
	}
	r.pos = end
	r.left--
	return true
}

// Must moves to the value of a required key.
func (r *Reader) Must(key string) {
	if !r.Has(key) {
		r.bad = true
	}
}

// Text reads a text. Its bytes share memory with the input.
func (r *Reader) Text() []byte {
	if r.bad {
		return nil
	}
	d := decoder{b: r.b, pos: r.pos}
	s, err := d.text()
	r.pos, r.bad = d.pos, err != nil
	return s
}

// Str reads a text as a string.
func (r *Reader) Str() string {
	s := r.Text()
	if r.text != "" {
		return r.text[r.pos-len(s) : r.pos]
	}
	return string(s)
}

// SomeBytes is SomeText for bytes, which share memory with the input.
func (r *Reader) SomeBytes(key string) []byte {
	if !r.Has(key) {
		return nil
	}
	s := r.Text()
	r.bad = r.bad || len(s) == 0
	return s
}

// SomeText reads the text of an optional key, which may not be empty.
func (r *Reader) SomeText(key string) string {
	if !r.Has(key) {
		return ""
	}
	s := r.Str()
	r.bad = r.bad || s == ""
	return s
}

// Some reads the integer of an optional key, which may not be 0.
func (r *Reader) Some(key string) int64 {
	if !r.Has(key) {
		return 0
	}
	i := r.Int()
	r.bad = r.bad || i == 0
	return i
}

// Int reads an integer that an int64 holds.
func (r *Reader) Int() int64 {
	h := r.head()
	i := int64(h.bits)
	r.bad = r.bad || h.kind != kindUint && h.kind != kindInt || h.kind == kindUint && i < 0
	return i
}

// True reads the boolean of an optional key, which may not be false.
func (r *Reader) True(key string) bool {
	if !r.Has(key) {
		return false
	}
	r.bad = r.bad || r.head().kind != kindTrue
	return !r.bad
}

// Hash reads a hash.
func (r *Reader) Hash() (hash Hash) {
	h := r.head()
	if r.bad = r.bad || h.kind != kindBin || h.n != len(hash); !r.bad {
		r.pos += copy(hash[:], r.b[h.next:])
	}
	return hash
}

// Raw reads a value that is inside so many containers. The result is a copy.
func (r *Reader) Raw(inside int) Raw { return append(Raw(nil), r.Value(inside)...) }

// Value is Raw without the copy: the result shares memory with the input.
func (r *Reader) Value(inside int) Raw {
	if r.bad {
		return nil
	}
	from := r.pos
	end, err := scan(r.b, from, inside)
	if r.bad = err != nil; r.bad {
		return nil
	}
	r.pos = end
	return r.b[from:end]
}

// head reads the header at the current position.
func (r *Reader) head() head {
	if r.bad {
		return head{}
	}
	h, err := readHead(r.b, r.pos, true)
	r.pos, r.bad = h.next, err != nil
	return h
}

// begin reads the header of a container and returns its length.
func (r *Reader) begin(k kind) int {
	h := r.head()
	if r.bad = r.bad || h.kind != k; r.bad {
		return 0
	}
	return h.n
}
