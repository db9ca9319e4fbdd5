package planner

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/refold/refold/codec"
)

// The values that a condition sees, as the CEL library wants them: see cel.go.

// failed is the value of everything that can't be evaluated. Evaluations share
// it, so it has a node: the library writes one into an error that has none.
var failed = types.NewErrWithNodeID(noNode, "failed")

// The library's own shared error has no node: it gets one before the first
// evaluation.
var _ = types.LabelErrNode(noNode, types.NoSuchOverloadErr())

// noNode stands in an error for the node that failed. Nothing reads it.
const noNode = -1

// opaque implements the conversions of objects and scopes: nothing converts to
// or from them.
type opaque struct{}

func (opaque) ConvertToNative(reflect.Type) (any, error) { return nil, errors.New("failed") }
func (opaque) ConvertToType(ref.Type) ref.Val            { return failed }

// scope shows the facts of a step to a when.
type scope struct {
	opaque
	facts   *StepFacts
	context ref.Val // read on first use
	calls   ref.Val // read on first use

	tool, arguments string // of approvals
	args            ref.Val

	cost    int // of all evaluations so far
	costMax int // at this cost no further condition is evaluated; 0: no limit
}

var scopeType = cel.OpaqueType("scope")

// Equal compares scopes. An evaluation has only one.
func (s *scope) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

// Type returns a type that no expression can name.
func (s *scope) Type() ref.Type { return scopeType }

// Value returns the scope.
func (s *scope) Value() any { return s }

// Parent returns nil: this is the outermost activation.
func (s *scope) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case varContext:
		if s.context == nil {
			s.context = readContext(s.facts.Context)
		}
		return s.context, true
	case varCalls:
		if s.calls == nil {
			s.calls = readCalls(s.facts.Calls)
		}
		return s.calls, true
	case varLast:
		return types.NewStringList(types.DefaultTypeAdapter, s.facts.Last), true
	case varStep:
		return types.Int(s.facts.Step), true
	case varScope:
		return s, true
	case varTool:
		return types.String(s.tool), true
	case varArgs:
		if s.args == nil {
			arguments, err := codec.FromJSON([]byte(s.arguments))
			if err != nil {
				arguments = nil
			}
			s.args = readContext(arguments)
		}
		return s.args, true
	}
	for _, u := range usage {
		if u.name == name {
			return types.Int(u.count(&s.facts.Usage)), true
		}
	}
	return nil, false
}

// jsonObject is a JSON object that can be asked for a member by name, but not
// iterated.
type jsonObject struct {
	opaque
	raw    codec.Raw // its canonical bytes: equal objects have equal ones
	names  []string  // in byte order
	values []ref.Val
}

var objectType = cel.ObjectType("object", traits.ContainerType|traits.FieldTesterType|traits.IndexerType)

// readContext returns the object that bytes hold, or an empty one.
func readContext(raw codec.Raw) ref.Val {
	if !codec.IsMap(raw) || codec.Check(raw) != nil {
		raw = codec.AppendMap(nil, 0)
	}
	v, _ := readMember(raw)
	return v
}

// readCalls returns the calls of the last step as a list of objects. Arguments
// that are too long or no object are left out.
func readCalls(calls []LastCall) ref.Val {
	list := make([]ref.Val, len(calls))
	for i := range calls {
		c := &calls[i]
		var args codec.Raw
		if 0 < len(c.Arguments) && len(c.Arguments) <= WhenArgumentsBytesMax {
			if raw, err := codec.FromJSON([]byte(c.Arguments)); err == nil && codec.IsMap(raw) {
				args = raw
			}
		}
		raw := codec.AppendMap(nil, 3)
		if args != nil {
			raw = append(codec.AppendString(codec.AppendMap(nil, 4), varArgs), args...)
		}
		for _, member := range [...][2]string{{"name", c.ToolName}, {"status", c.Status}, {varTool, c.ToolID}} {
			raw = codec.AppendString(codec.AppendString(raw, member[0]), member[1])
		}
		list[i], _ = readMember(raw)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

// readMember returns the value that canonical bytes begin with, and the bytes
// after it.
func readMember(raw []byte) (v ref.Val, rest []byte) {
	token, rest, err := codec.Next(raw)
	if err != nil {
		return failed, nil
	}
	switch token.Kind {
	case codec.Bool:
		return types.Bool(token.True), rest
	case codec.Text:
		return types.String(token.Bytes), rest
	case codec.Binary:
		return types.Bytes(token.Bytes), rest
	case codec.Number:
		if i, ok := token.Int64(); ok {
			return types.Int(i), rest
		}
		f, _ := strconv.ParseFloat(string(token.AppendNumber(nil)), 64)
		return types.Double(f), rest
	case codec.Array:
		items := make([]ref.Val, token.Len)
		for i := range items {
			items[i], rest = readMember(rest)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, items), rest
	case codec.Map:
		o := &jsonObject{names: make([]string, token.Len), values: make([]ref.Val, token.Len)}
		for i := range o.names {
			token, rest, _ = codec.Next(rest)
			o.names[i] = string(token.Bytes)
			o.values[i], rest = readMember(rest)
		}
		o.raw = raw[:len(raw)-len(rest)]
		return o, rest
	}
	return types.NullValue, rest
}

// Get returns a member, or failed if there is none.
func (o *jsonObject) Get(name ref.Val) ref.Val {
	if text, ok := name.(types.String); ok {
		if i, ok := slices.BinarySearch(o.names, string(text)); ok {
			return o.values[i]
		}
	}
	return failed
}

// IsSet reports whether there is a member, for has.
func (o *jsonObject) IsSet(name ref.Val) ref.Val { return o.Contains(name) }

// Contains reports whether there is a member, for in. Only text can name one.
func (o *jsonObject) Contains(name ref.Val) ref.Val {
	return types.Bool(o.Get(name) != failed)
}

// Equal compares with another object; all else is different.
func (o *jsonObject) Equal(other ref.Val) ref.Val {
	p, ok := other.(*jsonObject)
	return types.Bool(ok && bytes.Equal(o.raw, p.raw))
}

// Type returns a type that no expression can name.
func (o *jsonObject) Type() ref.Type { return objectType }

// Value returns the object.
func (o *jsonObject) Value() any { return o }
