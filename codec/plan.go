package codec

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// op is the way in which the values of a Go type are encoded and decoded.
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
	opMethod // MarshalText and UnmarshalText
)

// plan is how the values of one Go type are encoded and decoded. It is immutable, and
// made once for each type.
type plan struct {
	op       op
	zeroer   bool // the type has an IsZero method that counts
	optional bool // of a struct: a field may be left out
	least    int  // the fewest bytes of a value
	typ      reflect.Type
	elem     *plan         // of a pointer, slice, array, map
	empty    reflect.Value // of a slice: an empty one that is not nil
	fields   []field       // of a struct: in the byte order of their names
	bug      error         // why the type has no encoding; then nothing else is set
}

type field struct {
	name  string
	key   []byte // the name, encoded
	index []int
	omit  bool // omitempty: the zero value is left out
	plan  *plan
}

// nilIsAbsent reports whether a nil on the wire counts as the zero value: for
// an interface, which may hold several Go values that are encoded as nil.
func (f *field) nilIsAbsent() bool { return f.omit && f.plan.op == opAny }

// of returns the field of a struct.
func (f *field) of(strct reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return strct.Field(f.index[0])
	}
	return strct.FieldByIndex(f.index)
}

// Error lets the library return a plan as an error; see planOf.
func (p *plan) Error() string { return "codec: this type is a key of package codec" }

// discard is the writer of planOf.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteByte(byte) error        { return nil }

// planOf returns the plan of t. A pure package has no lock, so plans are cached in the
// library's registry of types, which is safe for concurrent use. The key is **t, which
// nothing else encodes, and the registered encoder returns the plan as its error. The
// default encoder of a pointer writes nil without an error; then the plan is made. Two
// callers may both make it, and either result is valid.
func planOf(t reflect.Type) (*plan, error) {
	key := reflect.Zero(reflect.PointerTo(reflect.PointerTo(t)))
	enc := msgpack.GetEncoder()
	enc.ResetWriter(discard{})
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

// compiler makes plans. It keeps the unfinished ones for recursive types.
type compiler struct {
	made []*plan
}

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
	typeMarshaler       = reflect.TypeFor[msgpack.Marshaler]()
	typeTextMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	typeTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeZeroer          = reflect.TypeFor[zeroer]()
)

// zeroer is a type with its own definition of the zero value.
type zeroer interface{ IsZero() bool }

// opOf returns the op of t.
func opOf(t reflect.Type) (op, error) {
	switch t {
	case typeHash:
		return opHash, nil
	case typeRef:
		return opRef, nil
	case typeRaw:
		return opRaw, nil
	case typePairs:
		return opPairs, nil
	}
	all := reflect.PointerTo(t) // has the methods of t too
	switch {
	case t.Kind() == reflect.Pointer:
		if k := t.Elem().Kind(); k == reflect.Pointer || k == reflect.Interface {
			return 0, goType(t, "it could be nil in two ways")
		}
		return opPointer, nil
	case t.Kind() == reflect.Interface:
		if t.NumMethod() > 0 {
			return 0, goType(t, "of interfaces, only any can be decoded")
		}
		return opAny, nil
	case all.Implements(typeCustomEncoder), all.Implements(typeMarshaler):
		return 0, goType(t, "it writes itself by an interface of the msgpack library")
	case all.Implements(typeTextMarshaler) && all.Implements(typeTextUnmarshaler):
		return opMethod, nil
	}
	return opOfKind(t)
}

// opOfKind is opOf for a type without its own encoding.
func opOfKind(t reflect.Type) (op, error) {
	switch t.Kind() {
	case reflect.Bool:
		return opBool, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return opInt, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return opUint, nil
	case reflect.Float32, reflect.Float64:
		return opFloat, nil
	case reflect.String:
		return opText, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return opBin, nil
		}
		return opSlice, nil
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return opBinArray, nil
		}
		return opArray, nil
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return 0, goType(t, "the keys of a map are text")
		}
		return opMap, nil
	case reflect.Struct:
		return opStruct, nil
	}
	return 0, goType(t, "there is no encoding for its kind")
}

// fill makes p the plan of t.
func (c *compiler) fill(p *plan, t reflect.Type) (err error) {
	p.typ = t
	c.made = append(c.made, p)
	if p.op, err = opOf(t); err != nil {
		return err
	}
	switch p.op {
	case opPointer, opSlice, opArray, opMap:
		p.elem, err = c.compile(t.Elem())
	case opStruct:
		err = c.fillStruct(p, t)
	}
	if p.op == opSlice {
		p.empty = reflect.MakeSlice(t, 0, 0)
	}
	p.least = p.leastBytes()
	special := p.op == opHash || p.op == opRef || p.op == opPointer || p.op == opAny
	p.zeroer = !special && reflect.PointerTo(t).Implements(typeZeroer)
	return err
}

// leastBytes returns the fewest bytes of a value of the plan. It bounds how many of
// them the rest of the input can have.
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

func (c *compiler) fillStruct(p *plan, t reflect.Type) error {
	if err := c.addFields(p, t, nil); err != nil {
		return err
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

// addFields adds the fields of t, which is at index in the struct of p.
func (c *compiler) addFields(p *plan, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		sf.Index = slices.Concat(index, sf.Index)
		if err := c.addField(p, sf); err != nil {
			return inField(err, sf.Name)
		}
	}
	return nil
}

// addField adds the field sf, unless it is not encoded.
func (c *compiler) addField(p *plan, sf reflect.StructField) error {
	name, rest, _ := strings.Cut(sf.Tag.Get("msgpack"), ",")
	switch {
	case sf.Name == "_msgpack":
		return goType(p.typ, "it has options for the whole struct")
	case name == "-" || !sf.IsExported() && !sf.Anonymous:
		return nil
	}
	options := strings.Split(rest, ",")
	if slices.ContainsFunc(options, func(o string) bool { return o == "intern" || strings.HasPrefix(o, "alias") }) {
		return goType(p.typ, "the field "+sf.Name+" has an option that would give it a second spelling")
	}
	must := slices.Contains(options, "inline")
	may := sf.Anonymous && name == "" && !slices.Contains(options, "noinline")
	how, err := opOf(sf.Type)
	switch {
	case err != nil:
		return err
	case (must || may) && how == opStruct:
		return c.addFields(p, sf.Type, sf.Index)
	case must, may && how == opPointer, !sf.IsExported():
		return goType(p.typ, "the field "+sf.Name+" cannot be inlined")
	case name == "":
		name = sf.Name
	case !utf8.ValidString(name):
		return goType(p.typ, "the name of the field "+sf.Name+" is not valid UTF-8")
	}
	sub, err := c.compile(sf.Type)
	p.fields = append(p.fields, field{
		name: name, key: appendText(nil, name), index: sf.Index, plan: sub,
		omit: slices.Contains(options, "omitempty"),
	})
	return err
}

// isEmpty reports whether omitempty leaves v out: false, 0, "", a nil pointer, slice,
// map or interface, a struct or array of only such values, or a value whose IsZero
// method returns true. An empty slice or map that is not nil is kept.
func (p *plan) isEmpty(v reflect.Value) bool {
	if p.zeroer {
		return addressable(v).Addr().Interface().(zeroer).IsZero()
	}
	switch p.op {
	case opText:
		return v.String() == ""
	case opInt:
		return v.Int() == 0
	case opUint:
		return v.Uint() == 0
	case opRaw:
		return v.Len() == 0
	case opStruct:
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

// goType returns the error of a Go type without an encoding.
func goType(t reflect.Type, why string) error {
	return fault(ErrGoType, 0, "the Go type "+t.String()+" has no encoding: "+why)
}
