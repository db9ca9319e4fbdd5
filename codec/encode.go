package codec

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
)

// Marshal returns the canonical encoding of v, from which Unmarshal restores v. The
// caller owns the result. It fails if v has text that is not UTF-8, a float that is not
// finite, a Raw or a type's own text that is not canonical, or a Go type without an
// encoding, or if it exceeds a limit.
func Marshal(v any) ([]byte, error) { return MarshalIn(make([]byte, 0, marshalBytes), v) }

// MarshalIn is Marshal into room, which it overwrites, and grows if necessary: for a
// caller that encodes many values.
func MarshalIn(room []byte, v any) ([]byte, error) {
	e := encoder{b: room[:0]}
	if v == nil {
		return append(e.b, codeNil), nil
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		if rv = rv.Elem(); !rv.IsValid() {
			return append(e.b, codeNil), nil
		}
	}
	p, err := planOf(rv.Type())
	if err != nil {
		return nil, err
	}
	if err := e.value(p, rv, 0); err != nil {
		return nil, err
	}
	if len(e.b) > BytesMax {
		return nil, tooLarge(len(e.b), BytesMax)
	}
	return e.b, nil
}

// marshalBytes is the initial capacity of Marshal: most events fit.
const marshalBytes = 512

type encoder struct {
	b []byte
}

// value writes v, which is inside depth containers.
func (e *encoder) value(p *plan, v reflect.Value, depth int) (err error) {
	switch p.op {
	case opBool:
		e.b = appendBool(e.b, v.Bool())
	case opInt:
		e.b = appendInt(e.b, v.Int())
	case opUint:
		e.b = appendUint(e.b, v.Uint())
	case opFloat:
		e.b, err = appendFloat(e.b, v.Float())
	case opText:
		e.b, err = appendCheckedText(e.b, v.String())
	case opBin:
		e.b = appendBin(e.b, v.Bytes())
	case opBinArray, opHash:
		e.b = appendBin(e.b, addressable(v).Bytes())
	case opRef:
		e.b = addressable(v).Addr().Interface().(*Ref).appendTo(e.b)
	case opRaw:
		err = e.raw(v.Bytes(), depth)
	case opAny:
		if v.IsNil() {
			e.b = append(e.b, codeNil)
			return nil
		}
		return e.dynamic(v.Elem(), depth)
	case opPointer:
		return e.pointer(p, v, depth)
	case opMethod:
		err = e.method(v)
	default:
		if depth >= DepthMax {
			return tooDeep(len(e.b))
		}
		return e.container(p, v, depth+1)
	}
	return err
}

// container writes a value whose parts are inside depth containers.
func (e *encoder) container(p *plan, v reflect.Value, depth int) error {
	switch p.op {
	case opStruct:
		return e.strct(p, v, depth)
	case opMap:
		return e.pairs(p, v, depth)
	case opPairs:
		return e.rawPairs(v.Interface().(Pairs), depth)
	default:
		n := v.Len()
		e.b = appendArrayHead(e.b, n)
		for i := range n {
			if err := e.value(p.elem, v.Index(i), depth); err != nil {
				return inElement(err, i)
			}
		}
	}
	return nil
}

// strct writes the fields that are not left out, in the order of the plan.
func (e *encoder) strct(p *plan, v reflect.Value, depth int) error {
	start, n := len(e.b), 0
	if p.optional {
		e.b = append(e.b, 0)
	} else {
		e.b = appendMapHead(e.b, len(p.fields))
	}
	for i := range p.fields {
		f := &p.fields[i]
		fv := f.of(v)
		if f.omit && f.plan.isEmpty(fv) {
			continue
		}
		written, err := e.field(f, fv, depth)
		if err != nil {
			return inField(err, f.name)
		}
		if written {
			n++
		}
	}
	if p.optional {
		e.b = closeContainer(e.b, start, n, codeMapShort, codeMap16)
	}
	return nil
}

// field writes one pair of a struct, or nothing if its value is left out.
func (e *encoder) field(f *field, v reflect.Value, depth int) (written bool, err error) {
	start := len(e.b)
	e.b = append(e.b, f.key...)
	value := len(e.b)
	if err := e.value(f.plan, v, depth); err != nil {
		return false, err
	}
	if f.nilIsAbsent() && e.b[value] == codeNil {
		e.b = e.b[:start]
		return false, nil
	}
	return true, nil
}

func (e *encoder) pairs(p *plan, v reflect.Value, depth int) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	e.b = appendMapHead(e.b, len(keys))
	for _, key := range keys {
		var err error
		if e.b, err = appendCheckedText(e.b, key.String()); err != nil {
			return err
		}
		if err := e.value(p.elem, v.MapIndex(key), depth); err != nil {
			return inField(err, key.String())
		}
	}
	return nil
}

// rawPairs writes Pairs, whose keys must be in order.
func (e *encoder) rawPairs(pairs Pairs, depth int) (err error) {
	e.b = appendMapHead(e.b, len(pairs))
	for i, entry := range pairs {
		if i > 0 {
			if err := ordered([]byte(pairs[i-1].Key), []byte(entry.Key), len(e.b)); err != nil {
				return err
			}
		}
		if e.b, err = appendCheckedText(e.b, entry.Key); err != nil {
			return err
		}
		if err := e.raw(entry.Value, depth); err != nil {
			return inField(err, entry.Key)
		}
	}
	return nil
}

// pointer writes the value that v points to. Only a nil pointer is written as nil.
func (e *encoder) pointer(p *plan, v reflect.Value, depth int) error {
	start := len(e.b)
	if v.IsNil() {
		e.b = append(e.b, codeNil)
		return nil
	}
	err := e.value(p.elem, v.Elem(), depth)
	if err == nil && e.b[start] == codeNil {
		return fault(ErrGoType, start, "a pointer to nil, which would be read as a nil pointer,")
	}
	return err
}

// raw writes canonical bytes, and nil if there are none.
func (e *encoder) raw(raw []byte, depth int) error {
	if len(raw) == 0 {
		e.b = append(e.b, codeNil)
		return nil
	}
	start := len(e.b)
	e.b = append(e.b, raw...)
	return e.verify(start, depth)
}

// verify returns an error if the bytes from start on are not one canonical value.
func (e *encoder) verify(start, depth int) error {
	end, err := scan(e.b, start, depth)
	if err == nil && end < len(e.b) {
		return trailing(end)
	}
	return err
}

// dynamic writes the value of an interface.
func (e *encoder) dynamic(v reflect.Value, depth int) error {
	p, err := planOf(v.Type())
	if err != nil {
		return err
	}
	return e.value(p, v, depth)
}

// method writes the text that the value's own method returns.
func (e *encoder) method(v reflect.Value) error {
	text, err := addressable(v).Addr().Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return &Error{Kind: ErrMismatch, Offset: len(e.b), What: "a value that has no text form", Cause: err}
	}
	e.b, err = appendCheckedText(e.b, string(text))
	return err
}
