package codec

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// op says how the values of a Go type are encoded and decoded.
type op uint8

const (
	opBool op = iota
	opInt
	opUint
	opFloat
	opText
	opBin      // []byte and its like
	opBinArray // [n]byte
	opHash
	opRef
	opRaw
	opPairs
	opAny
	opPointer
	opSlice
	opArray
	opMap
	opStruct
	opTuple  // a struct as an array of its fields: as_array
	opMethod // MarshalText and UnmarshalText
	opCustom // the library's interfaces, by the library
)

// plan is how the values of one Go type are encoded and decoded. It is made
// once for each type and never changed after.
type plan struct {
	op       op
	zeroer   bool // the type has an IsZero method that counts
	optional bool // of a struct: it has a field that may be left out
	typ      reflect.Type
	elem     *plan         // of a pointer, slice, array, map
	empty    reflect.Value // of a slice: the one that is empty and not nil
	fields   []field       // of a struct: in the byte order of their names; of a tuple: as declared
	bug      error         // the type has no encoding; all else is unset
}

// field is one field of a struct.
type field struct {
	name  string
	index []int
	omit  bool // omitempty: the zero value is left out
	plan  *plan
}

// nilIsAbsent reports whether a nil on the wire counts as the zero value: for
// a type that may encode several Go values as nil.
func (f *field) nilIsAbsent() bool {
	return f.omit && (f.plan.op == opAny || f.plan.op == opCustom)
}

// of returns the field's place in a struct.
func (f *field) of(strct reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return strct.Field(f.index[0])
	}
	return strct.FieldByIndex(f.index)
}

// Error lets a plan travel as an error through the library; see planOf.
func (p *plan) Error() string { return "codec: this type is a key of package codec" }

// nowhere is the writer with which planOf asks.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteByte(byte) error        { return nil }

// planOf returns the plan of t. Plans are kept in the library's own registry
// of types, which is safe for concurrent use, because a pure package holds no
// lock: under **t, which nothing else encodes, stands an encoder whose only
// answer is the plan. The default one for a pointer writes nil and answers
// nothing; then the plan is made. Two callers may make it twice: either will do.
func planOf(t reflect.Type) (*plan, error) {
	key := reflect.Zero(reflect.PointerTo(reflect.PointerTo(t)))
	enc := msgpack.GetEncoder()
	enc.ResetWriter(nowhere{})
	answer := enc.EncodeValue(key)
	msgpack.PutEncoder(enc)
	p, ok := answer.(*plan)
	if !ok {
		p = &plan{}
		if bug := new(compiler).fill(p, t); bug != nil {
			p = &plan{bug: bug}
		}
		msgpack.Register(key.Interface(), func(*msgpack.Encoder, reflect.Value) error { return p }, nil)
	}
	return p, p.bug
}

// compiler makes plans. It knows those under way, for types that contain
// themselves.
type compiler struct {
	made []*plan
}

// compile returns the plan of t.
func (c *compiler) compile(t reflect.Type) (*plan, error) {
	for _, p := range c.made {
		if p.typ == t {
			return p, nil
		}
	}
	p := &plan{}
	return p, c.fill(p, t)
}

var (
	typeHash  = reflect.TypeFor[Hash]()
	typeRef   = reflect.TypeFor[Ref]()
	typeRaw   = reflect.TypeFor[Raw]()
	typePairs = reflect.TypeFor[Pairs]()

	typeCustomEncoder   = reflect.TypeFor[msgpack.CustomEncoder]()
	typeCustomDecoder   = reflect.TypeFor[msgpack.CustomDecoder]()
	typeMarshaler       = reflect.TypeFor[msgpack.Marshaler]()
	typeUnmarshaler     = reflect.TypeFor[msgpack.Unmarshaler]()
	typeTextMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	typeTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeZeroer          = reflect.TypeFor[zeroer]()
)

// zeroer is a type that knows its zero value.
type zeroer interface{ IsZero() bool }

// fill makes p the plan of t.
func (c *compiler) fill(p *plan, t reflect.Type) error {
	p.typ = t
	c.made = append(c.made, p)
	switch t {
	case typeHash:
		p.op = opHash
		return nil
	case typeRef:
		p.op = opRef
		return nil
	case typeRaw:
		p.op = opRaw
		return nil
	case typePairs:
		p.op = opPairs
		return nil
	}
	if t.Kind() == reflect.Pointer {
		if k := t.Elem().Kind(); k == reflect.Pointer || k == reflect.Interface {
			return goType(t, "it could be nil in two ways")
		}
		return c.container(p, opPointer)
	}
	all := reflect.PointerTo(t) // has the methods of t too
	p.zeroer = t.Kind() != reflect.Interface && all.Implements(typeZeroer)
	switch {
	case t.Kind() == reflect.Interface:
		p.op = opAny
		if t.NumMethod() > 0 {
			return goType(t, "only the empty interface can be decoded")
		}
		return nil
	case all.Implements(typeCustomEncoder) && all.Implements(typeCustomDecoder),
		all.Implements(typeMarshaler) && all.Implements(typeUnmarshaler):
		p.op = opCustom
		return nil
	case all.Implements(typeTextMarshaler) && all.Implements(typeTextUnmarshaler):
		p.op = opMethod
		return nil
	}
	return c.fillKind(p, t)
}

// fillKind makes p the plan of t, a type without methods that matter.
func (c *compiler) fillKind(p *plan, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool:
		p.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.op = opInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.op = opUint
	case reflect.Float32, reflect.Float64:
		p.op = opFloat
	case reflect.String:
		p.op = opText
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			p.op = opBin
			return nil
		}
		p.empty = reflect.MakeSlice(t, 0, 0)
		return c.container(p, opSlice)
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			p.op = opBinArray
			return nil
		}
		return c.container(p, opArray)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return goType(t, "the keys of a map are text")
		}
		return c.container(p, opMap)
	case reflect.Struct:
		return c.fillStruct(p, t)
	default:
		return goType(t, "there is no encoding for its kind")
	}
	return nil
}

func (c *compiler) container(p *plan, o op) (err error) {
	p.op = o
	p.elem, err = c.compile(p.typ.Elem())
	return err
}

// fillStruct makes p the plan of the struct t.
func (c *compiler) fillStruct(p *plan, t reflect.Type) error {
	p.op = opStruct
	omitAll := false
	if marker, ok := t.FieldByName("_msgpack"); ok {
		options := strings.Split(marker.Tag.Get("msgpack"), ",")
		omitAll = slices.Contains(options, "omitempty")
		if slices.Contains(options, "as_array") || slices.Contains(options, "asArray") {
			p.op = opTuple
		}
	}
	for i := range t.NumField() {
		if err := c.addField(p, t.Field(i), omitAll); err != nil {
			return err
		}
	}
	if p.op == opTuple {
		return nil
	}
	slices.SortStableFunc(p.fields, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	for i := range p.fields {
		if i > 0 && p.fields[i].name == p.fields[i-1].name {
			return goType(t, "two fields are called "+p.fields[i].name)
		}
		p.optional = p.optional || p.fields[i].omit
	}
	return nil
}

// addField adds the field sf, if it is one that is encoded.
func (c *compiler) addField(p *plan, sf reflect.StructField, omitAll bool) error {
	name, rest, _ := strings.Cut(sf.Tag.Get("msgpack"), ",")
	if name == "-" || sf.Name == "_msgpack" || !sf.IsExported() && !sf.Anonymous {
		return nil
	}
	options := strings.Split(rest, ",")
	if slices.ContainsFunc(options, func(o string) bool { return o == "intern" || strings.HasPrefix(o, "alias") }) {
		return goType(p.typ, "the field "+sf.Name+" has an option that would give it a second spelling")
	}
	sub, err := c.compile(sf.Type)
	if err != nil {
		return inField(err, sf.Name)
	}
	must := slices.Contains(options, "inline")
	may := sf.Anonymous && name == "" && !slices.Contains(options, "noinline")
	switch {
	case (must || may) && sub.op == opStruct:
		for _, f := range sub.fields {
			f.index = slices.Concat(sf.Index, f.index)
			p.fields = append(p.fields, f)
		}
		return nil
	case must, !sf.IsExported():
		return goType(p.typ, "the field "+sf.Name+" cannot be inlined")
	}
	if name == "" {
		name = sf.Name
	}
	p.fields = append(p.fields, field{
		name: name, index: sf.Index, plan: sub,
		omit: p.op == opStruct && (omitAll || slices.Contains(options, "omitempty")),
	})
	return nil
}

// isEmpty reports whether v is what omitempty leaves out: false, 0, "", a nil
// pointer, slice, map or interface, a struct or array of nothing else, or a
// value whose IsZero method says so. An empty slice or map that is not nil
// is there: [] clears, absent leaves.
func (p *plan) isEmpty(v reflect.Value) bool {
	if p.zeroer {
		return addressable(v).Addr().Interface().(zeroer).IsZero()
	}
	switch p.op {
	case opText, opRaw:
		return v.Len() == 0
	case opStruct, opTuple:
		for i := range p.fields {
			if f := &p.fields[i]; !f.plan.isEmpty(f.of(v)) {
				return false
			}
		}
		return true
	case opArray:
		for i := range v.Len() {
			if !p.elem.isEmpty(v.Index(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// addressable returns v, or a copy of it that has an address.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// goType reports a Go type that has no encoding.
func goType(t reflect.Type, why string) error {
	return fault(ErrGoType, 0, "the Go type "+t.String()+" has no encoding: "+why)
}
