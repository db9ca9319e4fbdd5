package codec

import (
	"bytes"
	"reflect"
	"strconv"

	"github.com/refold/refold/codec/nearest"
)

// strct decodes a map into a struct. Both have their keys in order, so it walks them
// in parallel.
func (d *decoder) strct(p *plan, v reflect.Value, depth int) error {
	start := d.pos
	h, err := d.want(kindMap)
	if err != nil {
		return err
	}
	next := 0 // the first field that may follow
	for range h.n {
		f, err := d.fieldName(p, next, start)
		if err != nil {
			return err
		}
		next = f + 1
		if err := d.field(&p.fields[f], v, depth); err != nil {
			return inField(err, p.fields[f].name)
		}
	}
	return p.absent(next, len(p.fields), start)
}

// fieldName reads a key of the map at start and returns the index of its field, from
// next on. It may skip only optional fields.
func (d *decoder) fieldName(p *plan, next, start int) (int, error) {
	at := d.pos
	for i := next; i < len(p.fields); i++ {
		if f := &p.fields[i]; bytes.HasPrefix(d.b[at:], f.key) {
			d.pos += len(f.key)
			return i, p.absent(next, i, start)
		}
	}
	key, _, err := readKey(d.b, at, true)
	if err != nil {
		return 0, err
	}
	return 0, &Error{Kind: ErrUnknownField, Offset: at, What: p.unknown(key), Field: clip(string(key))}
}

// unknown describes an unknown field, with the field that was probably meant.
func (p *plan) unknown(key []byte) string {
	all := make([]string, len(p.fields))
	for i := range p.fields {
		all[i] = p.fields[i].name
	}
	text := "the unknown field " + quote(key)
	if meant := nearest.Name(string(key), all); meant != "" {
		text += " (did you mean " + strconv.Quote(meant) + "?)"
	}
	return text
}

// field decodes a value into its field of v.
func (d *decoder) field(f *field, v reflect.Value, depth int) error {
	at := d.pos
	fv := f.of(v)
	if err := d.value(f.plan, fv, depth); err != nil {
		return err
	}
	if f.omit && !d.lax && (f.plan.isEmpty(fv) || d.b[at] == codeNil && f.nilIsAbsent()) {
		return fault(ErrNotCanonical, at, "the zero value of an optional field, which is left out,")
	}
	return nil
}

// absent returns an error if a field with an index from from to to-1, which the map at
// pos lacks, is always written.
func (p *plan) absent(from, to, pos int) error {
	for i := from; i < to; i++ {
		if f := &p.fields[i]; !f.omit {
			return &Error{Kind: ErrMissingField, Offset: pos, What: "the field " + strconv.Quote(f.name) + " is missing from the map", Field: f.name}
		}
	}
	return nil
}

// elementBytes bounds the allocation of a slice before its elements are read; a longer
// slice grows during the read. If elements take at most elementTimes as much as on the
// wire, the rest of the input is the bound.
const (
	elementBytes = 64 << 10
	elementTimes = 8
)

// room returns for how many of n elements a slice is allocated before they are read
// from the rest of the input.
func (p *plan) room(n, rest int) int {
	size := max(1, int(p.typ.Size()))
	most := elementBytes/size + 1
	if size <= elementTimes*p.least {
		most = max(most, rest/p.least)
	}
	return min(n, most)
}

func (d *decoder) slice(p *plan, v reflect.Value, depth int) error {
	h, err := d.want(kindArray)
	if err != nil {
		return err
	}
	if h.n == 0 {
		v.Set(p.empty)
		return nil
	}
	v.Grow(p.elem.room(h.n, len(d.b)-d.pos))
	for i := range h.n {
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		if err := d.value(p.elem, v.Index(i), depth); err != nil {
			return inElement(err, i)
		}
	}
	return nil
}

// key reads a map key, which must follow before.
func (d *decoder) key(before []byte, first bool) ([]byte, error) {
	at := d.pos
	key, next, err := readKey(d.b, at, true)
	if err != nil {
		return nil, err
	}
	d.pos = next
	if first {
		return key, nil
	}
	return key, ordered(before, key, at)
}

func (d *decoder) pairs(p *plan, v reflect.Value, depth int) error {
	h, err := d.want(kindMap)
	if err != nil {
		return err
	}
	v.Set(reflect.MakeMap(p.typ))
	var key []byte
	for i := range h.n {
		if key, err = d.key(key, i == 0); err != nil {
			return err
		}
		elem := reflect.New(p.elem.typ).Elem()
		if err := d.value(p.elem, elem, depth); err != nil {
			return inField(err, string(key))
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(p.typ.Key()), elem)
	}
	return nil
}

func (d *decoder) rawPairs(v reflect.Value, depth int) error {
	h, err := d.want(kindMap)
	if err != nil {
		return err
	}
	pairs := Pairs{}
	var key []byte
	for i := range h.n {
		if key, err = d.key(key, i == 0); err != nil {
			return err
		}
		raw, err := d.raw(depth)
		if err != nil {
			return inField(err, string(key))
		}
		pairs = append(pairs, Pair{Key: string(key), Value: bytes.Clone(raw)})
	}
	v.Set(reflect.ValueOf(pairs))
	return nil
}

// any decodes a value into the Go type that fits it: nil, bool, int64, uint64 (above
// the range of int64), float64, string, []byte, []any, map[string]any.
func (d *decoder) any(depth int) (any, error) {
	start := d.pos
	h, err := d.head()
	if err != nil {
		return nil, err
	}
	switch h.kind {
	case kindNil:
		return nil, nil
	case kindFalse, kindTrue:
		return h.kind == kindTrue, nil
	case kindUint:
		if int64(h.bits) < 0 {
			return h.bits, nil
		}
		return int64(h.bits), nil
	case kindInt:
		return int64(h.bits), nil
	case kindFloat:
		return h.float(), nil
	case kindText:
		s := d.body(h)
		if !validText(s) {
			return nil, invalidText(start)
		}
		return string(s), nil
	case kindBin:
		return append([]byte{}, d.body(h)...), nil
	}
	if depth >= DepthMax {
		return nil, tooDeep(start)
	}
	if h.kind == kindMap {
		return d.anyMap(h, depth+1)
	}
	list := []any{}
	for i := range h.n {
		x, err := d.any(depth + 1)
		if err != nil {
			return nil, inElement(err, i)
		}
		list = append(list, x)
	}
	return list, nil
}

func (d *decoder) anyMap(h head, depth int) (any, error) {
	m := map[string]any{}
	var key []byte
	for i := range h.n {
		var err error
		if key, err = d.key(key, i == 0); err != nil {
			return nil, err
		}
		x, err := d.any(depth)
		if err != nil {
			return nil, inField(err, string(key))
		}
		m[string(key)] = x
	}
	return m, nil
}
