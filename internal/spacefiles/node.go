package spacefiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/space"
)

// node is a value of a JSON or YAML file, with its line.
type node struct {
	kind    kind
	line    int
	text    string // of a text; the literal of a number or a truth value
	members []member
	items   []*node
	raw     []byte // only for JSON: as written
}

type member struct {
	name  string
	line  int
	value *node
}

type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "true or false"
	kindNumber kind = "a number"
	kindText   kind = "a text"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// jsonReader reads a JSON text into nodes.
type jsonReader struct {
	data  []byte
	dec   *json.Decoder
	line  int // at offset at
	at    int // offset up to which lines are counted
	nodes int
	say   func(p space.Problem)
}

// parseJSON reads a JSON text. Problems go to say. After one that ends the
// reading it returns nil; a duplicate key does not end it.
func parseJSON(data []byte, say func(p space.Problem)) *node {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1, say: say}
	r.dec.UseNumber()
	if !utf8.Valid(data) {
		say(space.Problem{Code: space.NotUTF8, Line: 1 + bytes.Count(data[:invalidAt(data)], []byte("\n")), Detail: "the file is not UTF-8"})
		return nil
	}
	n, err := r.value(0)
	if err == nil {
		if _, err = r.dec.Token(); err == nil {
			err = errors.New("there is more after the value")
		} else if errors.Is(err, io.EOF) {
			return n
		}
	}
	offset := int(r.dec.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = int(syntax.Offset)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the file ends inside a value")
	}
	say(space.Problem{Code: space.NotJSON, Line: 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n")), Detail: strings.TrimPrefix(err.Error(), "json: ")})
	return nil
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// here returns the line of the latest token.
func (r *jsonReader) here() int {
	end := int(r.dec.InputOffset())
	r.line += bytes.Count(r.data[r.at:end], []byte("\n"))
	r.at = end
	return r.line
}

func (r *jsonReader) value(depth int) (*node, error) {
	start := int(r.dec.InputOffset())
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	if r.nodes++; r.nodes > nodesMax || depth > nestingMax {
		return nil, fmt.Errorf("the file has more than %d values, or they stand in one another more than %d deep", nodesMax, nestingMax)
	}
	n := &node{line: r.here()}
	switch v := token.(type) {
	case json.Delim:
		if n.kind = kindObject; v == '[' {
			n.kind = kindList
		}
		err = r.container(n, depth)
	case string:
		n.kind, n.text = kindText, v
	case json.Number:
		n.kind, n.text = kindNumber, v.String()
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(v)
	default:
		n.kind = kindNull
	}
	n.raw = bytes.TrimLeft(r.data[start:r.dec.InputOffset()], " \t\r\n,:")
	return n, err
}

// container reads the contents of a list or an object, and its end.
func (r *jsonReader) container(n *node, depth int) error {
	for r.dec.More() {
		if n.kind == kindList {
			item, err := r.value(depth + 1)
			if err != nil {
				return err
			}
			n.items = append(n.items, item)
			continue
		}
		key, err := r.dec.Token()
		if err != nil {
			return err
		}
		if len(n.members) == membersMax {
			return fmt.Errorf("an object has more than %d members", membersMax)
		}
		m := member{line: r.here()}
		m.name, _ = key.(string)
		if m.value, err = r.value(depth + 1); err != nil {
			return err
		}
		if n.get(m.name) != nil {
			r.say(space.Problem{Code: space.Duplicate, Line: m.line, Path: m.name, Detail: "stands twice in one object"})
			continue
		}
		n.members = append(n.members, m)
	}
	_, err := r.dec.Token()
	return err
}
