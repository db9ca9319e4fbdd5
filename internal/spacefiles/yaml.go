package spacefiles

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/space"
)

// parseYAML reads a YAML text, which begins in that line of its file, into
// nodes. Anchors, aliases, tags, merges and more than one document are refused.
// It returns nil after a problem that ends the reading.
func parseYAML(text string, line int, code space.ProblemCode, say func(space.Problem)) *node {
	bad := func(at int, format string, args ...any) *node {
		say(space.Problem{Code: code, Line: at, Detail: fmt.Sprintf(format, args...)})
		return nil
	}
	if err := yamlfile.Check([]byte(text)); err != nil {
		return bad(line, "%v", err)
	}
	for _, t := range lexer.Tokenize(text) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			return bad(line+t.Position.Line-1, "anchors, aliases, merges, tags and directives are not read: write the value out")
		case token.DocumentHeaderType, token.DocumentEndType:
			return bad(line+t.Position.Line-1, "there is more than one document")
		}
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		at, detail := line, err.Error()
		var fault yaml.Error
		if errors.As(err, &fault) && fault.GetToken() != nil {
			at, detail = line+fault.GetToken().Position.Line-1, fault.GetMessage()
		}
		return bad(at, "%s", detail)
	}
	y := yamlReader{line: line, say: say, code: code}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return &node{kind: kindObject, line: line}
	}
	n := y.value(file.Docs[0].Body)
	if y.failed {
		return nil
	}
	return n
}

type yamlReader struct {
	line   int // in which the text begins in the file
	say    func(space.Problem)
	code   space.ProblemCode
	failed bool
}

func (y *yamlReader) value(v ast.Node) *node {
	n := &node{kind: kindNull, line: y.line}
	if t := v.GetToken(); t != nil {
		n.line = y.line + t.Position.Line - 1
		n.text = t.Value
	}
	switch v := v.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.kind = kindBool
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind = kindNumber
	case *ast.StringNode:
		n.kind, n.text = kindText, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = kindText, v.Value.Value
	case *ast.SequenceNode:
		n.kind = kindList
		for _, item := range v.Values {
			n.items = append(n.items, y.value(item))
		}
	case *ast.MappingNode:
		n.kind = kindObject
		for _, m := range v.Values {
			y.member(n, m)
		}
	case *ast.MappingValueNode:
		n.kind = kindObject
		y.member(n, v)
	default:
		y.failed = true
		y.say(space.Problem{Code: y.code, Line: n.line, Detail: "a " + strings.ToLower(v.Type().String()) + " is not read: write a text, a number, a list or a mapping"})
	}
	return n
}

func (y *yamlReader) member(n *node, v *ast.MappingValueNode) {
	key := y.value(v.Key)
	n.members = append(n.members, member{name: key.text, line: key.line, value: y.value(v.Value)}) // the parser has refused duplicate keys
}
