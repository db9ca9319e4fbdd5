package codec

import (
	"bytes"
	"encoding"
	"reflect"
)

// Unmarshal decodes canonical bytes into the value that v points to. It succeeds only
// if Marshal would return data again: it refuses every other spelling, unknown and
// missing fields, an optional field with its zero value, and bytes after the value. The
// result shares no memory with data. After an error the value is zero.
func Unmarshal(data []byte, v any) error { return unmarshal(data, v, BytesMax, false) }

// UnmarshalLimit is Unmarshal with a smaller size limit than BytesMax.
func UnmarshalLimit(data []byte, v any, bytesMax int) error {
	return unmarshal(data, v, min(bytesMax, BytesMax), false)
}

// Decode is Unmarshal for bytes of other publishers that Canonicalize has returned: an
// optional field may be present with its zero value. Everything else is as strict.
func Decode(data []byte, v any) error { return unmarshal(data, v, BytesMax, true) }

func unmarshal(data []byte, v any, bytesMax int, lax bool) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fault(ErrGoType, 0, "the value to decode into is not a pointer, or nil,")
	}
	p, err := planOf(rv.Type().Elem())
	if err != nil {
		return err
	}
	rv = rv.Elem()
	rv.SetZero()
	if len(data) > bytesMax {
		return tooLarge(len(data), bytesMax)
	}
	d := decoder{b: data, lax: lax}
	err = d.value(p, rv, 0)
	if err == nil && d.pos < len(data) {
		err = trailing(d.pos)
	}
	if err == nil {
		return nil
	}
	rv.SetZero()
	if bad := Check(data); bad != nil {
		return bad // a fault of the form comes before one of the type
	}
	return err
}

// decoder reads canonical bytes from pos on.
type decoder struct {
	b   []byte
	pos int
	lax bool // optional fields may be present with their zero value

	recent [recentTexts]string // short texts read before, by first byte and length
}

// Equal short texts, such as roles and names of effects, share one copy: otherwise a
// decoded transcript would be mostly copies of three words.
const (
	recentTexts    = 16
	recentBytesMax = 32
)

func (d *decoder) str(s []byte) string {
	if len(s) == 0 || len(s) > recentBytesMax {
		return string(s)
	}
	kept := &d.recent[(int(s[0])+len(s))%recentTexts]
	if *kept != string(s) {
		*kept = string(s)
	}
	return *kept
}

func (d *decoder) head() (head, error) {
	h, err := readHead(d.b, d.pos, true)
	if err == nil {
		d.pos = h.next
	}
	return h, err
}

// want reads a header that must be of one kind.
func (d *decoder) want(k kind) (head, error) {
	start := d.pos
	h, err := d.head()
	if err == nil && h.kind != k {
		err = mismatch(start, k.String(), h.kind)
	}
	return h, err
}

// body returns the bytes of the text or binary whose header is h, and moves past
// them. They share memory with the input.
func (d *decoder) body(h head) []byte {
	d.pos = h.next + h.n
	return d.b[h.next:d.pos]
}

// text reads a text. Its bytes share memory with the input.
func (d *decoder) text() ([]byte, error) {
	start := d.pos
	if start < len(d.b) && d.b[start]-codeTextShort < 32 {
		n := int(d.b[start] - codeTextShort)
		if end := start + 1 + n; end <= len(d.b) && validShort(d.b, start+1, n) {
			d.pos = end
			return d.b[start+1 : end], nil
		}
	}
	h, err := d.want(kindText)
	if err != nil {
		return nil, err
	}
	s := d.body(h)
	if !validText(s) {
		return nil, invalidText(start)
	}
	return s, nil
}

func mismatch(pos int, want string, got kind) error {
	return fault(ErrMismatch, pos, "this is "+got.String()+" where "+want+" should be,")
}

// value decodes into v, which is zero and inside depth containers.
func (d *decoder) value(p *plan, v reflect.Value, depth int) error {
	switch p.op {
	case opText:
		s, err := d.text()
		if err != nil {
			return err
		}
		v.SetString(d.str(s))
		return nil
	case opBool, opInt, opUint, opFloat:
		return d.scalar(p, v)
	case opBin, opBinArray, opHash:
		return d.binary(p, v)
	case opRef, opMethod:
		return d.method(p, v)
	case opRaw:
		raw, err := d.raw(depth)
		if err != nil {
			return err
		}
		v.SetBytes(bytes.Clone(raw))
		return nil
	case opAny:
		x, err := d.any(depth)
		if x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return err
	case opPointer:
		if d.pos < len(d.b) && d.b[d.pos] == codeNil {
			d.pos++
			return nil
		}
		to := reflect.New(p.elem.typ)
		v.Set(to)
		return d.value(p.elem, to.Elem(), depth)
	}
	if depth >= DepthMax {
		return tooDeep(d.pos)
	}
	return d.container(p, v, depth+1)
}

// container decodes a value whose parts are inside depth containers.
func (d *decoder) container(p *plan, v reflect.Value, depth int) error {
	switch p.op {
	case opStruct:
		return d.strct(p, v, depth)
	case opSlice:
		return d.slice(p, v, depth)
	case opMap:
		return d.pairs(p, v, depth)
	case opPairs:
		return d.rawPairs(v, depth)
	}
	start := d.pos
	h, err := d.want(kindArray)
	if err != nil {
		return err
	}
	if h.n != v.Len() {
		return fault(ErrMismatch, start, "an array of another length than this one has")
	}
	for i := range h.n {
		if err := d.value(p.elem, v.Index(i), depth); err != nil {
			return inElement(err, i)
		}
	}
	return nil
}

func (d *decoder) scalar(p *plan, v reflect.Value) error {
	start := d.pos
	h, err := d.head()
	if err != nil {
		return err
	}
	number := h.kind == kindUint || h.kind == kindInt
	fits := false
	switch p.op {
	case opBool:
		if h.kind != kindFalse && h.kind != kindTrue {
			return mismatch(start, "a boolean", h.kind)
		}
		v.SetBool(h.kind == kindTrue)
		return nil
	case opInt:
		if !number {
			return mismatch(start, "an integer", h.kind)
		}
		i := int64(h.bits)
		if fits = (h.kind == kindInt || i >= 0) && !v.OverflowInt(i); fits {
			v.SetInt(i)
		}
	case opUint:
		if !number {
			return mismatch(start, "an integer", h.kind)
		}
		if fits = h.kind == kindUint && !v.OverflowUint(h.bits); fits {
			v.SetUint(h.bits)
		}
	case opFloat:
		if !number && h.kind != kindFloat {
			return mismatch(start, "a number", h.kind)
		}
		f := h.float()
		switch h.kind {
		case kindUint:
			fits = h.bits <= integralMax
			f = float64(h.bits)
		case kindInt:
			fits = int64(h.bits) >= -integralMax
			f = float64(int64(h.bits))
		default:
			fits = true
		}
		if v.Kind() == reflect.Float32 && float64(float32(f)) != f {
			fits = false
		}
		if fits {
			v.SetFloat(f)
		}
	}
	if !fits {
		return fault(ErrMismatch, start, "a number that does not fit")
	}
	return nil
}

// binary decodes a binary of any or fixed length.
func (d *decoder) binary(p *plan, v reflect.Value) error {
	start := d.pos
	h, err := d.want(kindBin)
	if err != nil {
		return err
	}
	s := d.body(h)
	if p.op == opBin {
		v.SetBytes(append(make([]byte, 0, len(s)), s...))
		return nil
	}
	if len(s) != v.Len() {
		return fault(ErrMismatch, start, "a binary of another length than this one has")
	}
	copy(v.Bytes(), s)
	return nil
}

// raw checks the value at pos and returns its bytes, which share memory with the input.
func (d *decoder) raw(depth int) ([]byte, error) {
	start := d.pos
	end, err := scan(d.b, start, depth)
	if err != nil {
		return nil, err
	}
	d.pos = end
	return d.b[start:end], nil
}

// method decodes a text with the type's own method, and refuses a text that the type
// would not write for the value.
func (d *decoder) method(p *plan, v reflect.Value) error {
	start := d.pos
	s, err := d.text()
	if err != nil {
		return err
	}
	to := v.Addr().Interface()
	if err := to.(encoding.TextUnmarshaler).UnmarshalText(s); err != nil {
		return &Error{Kind: ErrMismatch, Offset: start, What: "text that is not of the form it should have here", Cause: err}
	}
	if p.op == opRef { // ParseRef accepts only one text for each value
		return nil
	}
	again, err := to.(encoding.TextMarshaler).MarshalText()
	if err != nil || !bytes.Equal(s, again) {
		return &Error{Kind: ErrNotCanonical, Offset: start, What: "text that is not in the one form of its value", Cause: err}
	}
	return nil
}
