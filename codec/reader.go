package codec

// Reader reads a canonical map entry by entry, for the few events that are read too
// often for a walk by plan. It takes exactly what Unmarshal takes. At the first
// fault it stops, and End says so: the caller then uses Unmarshal for the error.
type Reader struct {
	b    []byte
	pos  int
	left int    // entries of the map that were not read
	text string // a copy of b, of which strings are cut; empty: each is a copy of its own
	bad  bool
}

// Read returns a reader of the value that data begins with.
func Read(data []byte) Reader { return Reader{b: data} }

// OneCopy has all strings that are read from here on cut from one copy of all
// bytes. It spares an allocation for each, and the bytes stay as long as one of
// them is kept.
func (r *Reader) OneCopy() { r.text = string(r.b) }

// Pos returns how many bytes were read.
func (r *Reader) Pos() int { return r.pos }

// Map begins the map that stands here and returns what EndMap wants.
func (r *Reader) Map() (outer int) {
	outer, r.left = r.left, r.begin(kindMap)
	return outer
}

// EndMap ends the map that Map began: every entry was read.
func (r *Reader) EndMap(outer int) {
	r.bad = r.bad || r.left != 0
	r.left = outer
}

// Array begins the array that stands here and returns how many items it has.
// Each takes a byte at least, so room for so many is no more than the bytes
// justify.
func (r *Reader) Array() (n int) { return r.begin(kindArray) }

// End returns how many bytes were read, and whether all was as it should be.
func (r *Reader) End() (n int, ok bool) { return r.pos, !r.bad }

// Fail ends the reading: what was read is not what it should be.
func (r *Reader) Fail() { r.bad = true }

// Has reports whether the next entry of the map has this key, of less than 32
// bytes, and moves to its value. Keys asked for in their order, each once, are
// read only if they stand so.
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

// Must moves to the value of a key that is always there.
func (r *Reader) Must(key string) {
	if !r.Has(key) {
		r.bad = true
	}
}

// Text reads a text. Its bytes are part of the input.
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

// SomeBytes is SomeText for bytes, which are part of the input.
func (r *Reader) SomeBytes(key string) []byte {
	if !r.Has(key) {
		return nil
	}
	s := r.Text()
	r.bad = r.bad || len(s) == 0
	return s
}

// SomeText reads the text of a key that is left out if the text is empty.
func (r *Reader) SomeText(key string) string {
	if !r.Has(key) {
		return ""
	}
	s := r.Str()
	r.bad = r.bad || s == ""
	return s
}

// Some reads the integer of a key that is left out if the integer is 0.
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

// True reads the truth value of a key that is left out if the value is false.
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

// Raw reads a value that stands inside so many containers. The result is new.
func (r *Reader) Raw(inside int) Raw { return append(Raw(nil), r.Value(inside)...) }

// Value is Raw for bytes that are part of the input.
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

// head reads the header that stands here.
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
