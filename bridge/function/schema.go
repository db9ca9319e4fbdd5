package function

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/codec"
)

// object is a JSON Schema under construction.
type object = map[string]any

// schemed is a type with a schema of its own.
type schemed interface{ ArgsSchema() json.RawMessage }

// Types with special schemas.
var (
	typeRaw       = reflect.TypeFor[json.RawMessage]()
	typeNumber    = reflect.TypeFor[json.Number]()
	typeTime      = reflect.TypeFor[time.Time]()
	typeDuration  = reflect.TypeFor[time.Duration]()
	typeSchemed   = reflect.TypeFor[schemed]()
	typeUnmarshal = reflect.TypeFor[json.Unmarshaler]()
	typeText      = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// rawSchema returns a schema in the form of registries.
func rawSchema(schema object) (codec.Raw, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	return rawSchemaOf(text)
}

func rawSchemaOf(text []byte) (codec.Raw, error) {
	raw, err := codec.FromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	return raw, nil
}

// SchemaOf returns the JSON Schema of a type that is an object in JSON, derived as New
// derives that of its arguments: for the form of an answer.
func SchemaOf[T any]() (json.RawMessage, error) {
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

func schemaOf(in reflect.Type) (object, error) {
	d := &derivation{root: in, defs: object{}, names: map[reflect.Type]string{}}
	schema, err := d.of(in)
	if err != nil {
		return nil, err
	}
	if schema["type"] != "object" {
		return nil, fmt.Errorf("a %s is not a JSON object: use a struct, or the option ArgsSchema", in)
	}
	if len(d.defs) > 0 {
		schema["$defs"] = d.defs
	}
	return schema, nil
}

type derivation struct {
	root   reflect.Type
	within []reflect.Type          // structs being derived, outermost first
	names  map[reflect.Type]string // of recursive structs, in $defs
	defs   object
}

// of returns the schema of the JSON that encoding/json decodes into a t.
func (d *derivation) of(t reflect.Type) (object, error) {
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer:
		return d.of(t.Elem())
	case t == typeRaw, t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return object{}, nil
	case t == typeNumber:
		return object{"type": "number"}, nil
	case t == typeTime:
		return object{"type": "string", "format": "date-time"}, nil
	case t == typeDuration:
		return nil, errors.New("a time.Duration is a number of nanoseconds in JSON: use seconds, or a string")
	case t.Implements(typeSchemed) || pointer.Implements(typeSchemed):
		var own object
		if err := json.Unmarshal(reflect.New(t).Interface().(schemed).ArgsSchema(), &own); err != nil {
			return nil, fmt.Errorf("ArgsSchema of %s: is not a JSON object: %w", t, err)
		}
		return own, nil
	case pointer.Implements(typeUnmarshal):
		return nil, fmt.Errorf("%s has its own UnmarshalJSON: give it a method ArgsSchema() json.RawMessage", t)
	case pointer.Implements(typeText):
		return object{"type": "string"}, nil
	case t.Kind() == reflect.Struct:
		return d.ofStruct(t)
	}
	return d.ofKind(t)
}

// ofKind is of for a type that is not a struct and has none of the special methods.
func (d *derivation) ofKind(t reflect.Type) (object, error) {
	switch k := t.Kind(); k {
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.String:
		return object{"type": "string"}, nil
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}, nil
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return object{"type": "integer", "minimum": 0}, nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := int64(math.MaxInt64) >> (64 - t.Bits())
		return object{"type": "integer", "minimum": -most - 1, "maximum": most}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return object{"type": "integer", "minimum": 0, "maximum": uint64(math.MaxUint64) >> (64 - t.Bits())}, nil
	case reflect.Slice, reflect.Array:
		if k == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}, nil
		}
		items, err := d.of(t.Elem())
		schema := object{"type": "array", "items": items}
		if k == reflect.Array {
			schema["minItems"], schema["maxItems"] = t.Len(), t.Len()
		}
		return schema, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(typeText) {
			return nil, fmt.Errorf("%s: the keys of a map must be strings", t)
		}
		values, err := d.of(t.Elem())
		return object{"type": "object", "additionalProperties": values}, err
	}
	return nil, fmt.Errorf("%s can't be encoded as JSON", t)
}

// ofStruct is of for structs. A recursive struct becomes a reference.
func (d *derivation) ofStruct(t reflect.Type) (object, error) {
	if slices.Contains(d.within, t) || d.names[t] != "" {
		if t == d.root {
			return object{"$ref": "#"}, nil
		}
		if d.names[t] == "" {
			d.names[t] = d.name(t)
		}
		return object{"$ref": "#/$defs/" + d.names[t]}, nil
	}
	d.within = append(d.within, t)
	properties, required := object{}, []string{}
	err := d.fields(t, properties, &required)
	d.within = d.within[:len(d.within)-1]
	if err != nil {
		return nil, err
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	if name := d.names[t]; name != "" {
		d.defs[name] = schema
		return object{"$ref": "#/$defs/" + name}, nil
	}
	return schema, nil
}

// name returns a unique name for $defs.
func (d *derivation) name(t reflect.Type) string {
	base, _, _ := strings.Cut(t.Name(), "[")
	if base == "" {
		base = "value"
	}
	name := base
	for n := 2; ; n++ {
		taken := false
		for _, other := range d.names {
			taken = taken || other == name
		}
		if !taken {
			return name
		}
		name = base + strconv.Itoa(n)
	}
}

// fields adds the fields of t that encoding/json decodes.
func (d *derivation) fields(t reflect.Type, properties object, required *[]string) error {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-":
			continue
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			if !field.IsExported() && field.Type.Kind() == reflect.Pointer {
				return fmt.Errorf("%s.%s: encoding/json can't fill a pointer to an unexported struct", t, field.Name)
			}
			if err := d.embed(embedded, properties, required); err != nil {
				return err
			}
			continue
		case !field.IsExported():
			continue
		case has("string"):
			return fmt.Errorf("%s.%s: the option string of its json tag is not supported", t, field.Name)
		}
		if name == "" {
			name = field.Name
		}
		if properties[name] != nil {
			return fmt.Errorf("%s.%s: two fields are called %q", t, field.Name, name)
		}
		schema, err := d.of(field.Type)
		if err == nil {
			err = annotate(schema, field)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, field.Name, err)
		}
		properties[name] = schema
		if field.Type.Kind() != reflect.Pointer && !has("omitempty") && !has("omitzero") {
			*required = append(*required, name)
		}
	}
	return nil
}

func (d *derivation) embed(t reflect.Type, properties object, required *[]string) error {
	if slices.Contains(d.within, t) {
		return fmt.Errorf("%s embeds itself", t)
	}
	d.within = append(d.within, t)
	defer func() { d.within = d.within[:len(d.within)-1] }()
	return d.fields(t, properties, required)
}

// annotate adds a field's tags to its schema. Tags for the values of a list apply
// to its items.
func annotate(schema object, field reflect.StructField) error {
	if text, ok := field.Tag.Lookup("description"); ok {
		schema["description"] = text // also next to a $ref
	}
	for _, keyword := range [...]string{"minItems", "maxItems"} {
		if err := constrain(schema, field.Tag, keyword, "array"); err != nil {
			return err
		}
	}
	values := schema
	for values["type"] == "array" {
		values, _ = values["items"].(object)
	}
	for _, keyword := range [...]string{"minLength", "maxLength", "pattern"} {
		if err := constrain(values, field.Tag, keyword, "string"); err != nil {
			return err
		}
	}
	for _, keyword := range [...]string{"minimum", "maximum", "enum"} {
		if err := constrain(values, field.Tag, keyword, "integer", "number", "string"); err != nil {
			return err
		}
	}
	return nil
}

// constrain adds one keyword, if the tag has it. The schema must have one of types.
func constrain(schema object, tag reflect.StructTag, keyword string, types ...string) error {
	text, ok := tag.Lookup(keyword)
	if !ok {
		return nil
	}
	kind, _ := schema["type"].(string)
	if !slices.Contains(types, kind) || kind == "string" && (keyword == "minimum" || keyword == "maximum") {
		return fmt.Errorf("tag %s: does not go with %s", keyword, orAnything(kind))
	}
	switch keyword {
	case "pattern":
		schema[keyword] = text
		return nil
	case "enum":
		var values []any
		for value := range strings.SplitSeq(text, ",") {
			value = strings.TrimSpace(value)
			if kind == "string" {
				values = append(values, value)
				continue
			}
			n, err := number(value)
			if err != nil {
				return fmt.Errorf("tag enum: %w", err)
			}
			values = append(values, n)
		}
		schema[keyword] = values
		return nil
	}
	n, err := number(text)
	if err != nil {
		return fmt.Errorf("tag %s: %w", keyword, err)
	}
	schema[keyword] = n
	return nil
}

func number(text string) (json.Number, error) {
	var n json.Number
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return "", fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func orAnything(kind string) string {
	if kind == "" {
		return "a value of any type"
	}
	return "a value of the type " + kind
}
