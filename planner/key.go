package planner

import (
	"path"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
)

// Key names what a call uses: a bare key (`host.fs`), or a part of it
// (`host.fs:a/b`). The zero Key names nothing.
type Key struct {
	Bare string `msgpack:"bare,omitempty"`
	Part string `msgpack:"part,omitempty"` // empty: all of Bare
}

// String returns the key as people write it.
func (k Key) String() string {
	if k.Part == "" {
		return k.Bare
	}
	return k.Bare + ":" + k.Part
}

// overlaps reports whether two keys share a resource: a key overlaps itself,
// and a bare key all of its parts. The zero Key overlaps nothing.
func (k Key) overlaps(other Key) bool {
	return k.Bare != "" && k.Bare == other.Bare &&
		(k.Part == "" || other.Part == "" || k.Part == other.Part)
}

// template is a parsed resource key template: a bare key, and the pieces that
// make up its part.
type template struct {
	bare   string
	pieces []piece // none: always the bare key
	path   bool    // the part is a path
}

// piece is literal text, or the name of an argument.
type piece struct {
	text     string
	argument bool
}

// parseTemplate reads `bare` or `bare:part`, where part is text with
// placeholders: host.fs:{path}. problem says what is wrong.
func parseTemplate(text string) (t template, problem string) {
	if text == "" {
		return template{}, ""
	}
	if len(text) > TemplateBytesMax {
		return template{}, "a resource key template is at most " + strconv.Itoa(TemplateBytesMax) + " bytes"
	}
	bare, rest, parted := strings.Cut(text, ":")
	if !isDotted(bare, TemplateBytesMax) {
		return template{}, "begins with a bare key: A-Za-z0-9_- in parts joined by dots, then perhaps a colon"
	}
	t.bare = bare
	if !parted {
		return t, ""
	}
	if rest == "" {
		return template{}, "has nothing after its colon"
	}
	placeholders := 0
	for rest != "" {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			t.pieces = append(t.pieces, piece{text: rest})
			break
		}
		if open > 0 {
			t.pieces = append(t.pieces, piece{text: rest[:open]})
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < open || !IsName(rest[open+1:end]) {
			return template{}, "a placeholder is {argument}, an argument's name 1 to " + strconv.Itoa(NameBytesMax) + " of A-Za-z0-9_-"
		}
		if placeholders++; placeholders > PlaceholdersMax {
			return template{}, "has more than " + strconv.Itoa(PlaceholdersMax) + " placeholders"
		}
		t.pieces = append(t.pieces, piece{text: rest[open+1 : end], argument: true})
		rest = rest[end+1:]
	}
	return t, ""
}

// fill returns the key of a call with these arguments, an object. root is the
// working directory that paths are relative to, or "" if it is not known. fill
// returns the bare key, which overlaps every possible part, if an argument is
// missing or not text, the part is empty, or a path is not known to lie in
// root.
func (t template) fill(arguments *value, root string) Key {
	var part strings.Builder
	for _, p := range t.pieces {
		if !p.argument {
			part.WriteString(p.text)
			continue
		}
		v, ok := arguments.member(p.text)
		if !ok || v.kind != kindString {
			return Key{Bare: t.bare}
		}
		part.WriteString(v.text)
	}
	k := Key{Bare: t.bare, Part: part.String()}
	if t.path && len(t.pieces) > 0 {
		k.Part = below(root, k.Part)
	}
	if len(k.Part) > KeyBytesMax {
		// Equal paths still give equal keys, and plans stay small.
		k.Part = codec.RefOf([]byte(k.Part)).String()
	}
	return k
}

// below returns the path of name relative to root, cleaned as text, so that all
// spellings of one path give one result. It returns "" for a name that is
// empty, holds a zero byte or leads out of root, and for an absolute name if
// root is not absolute.
func below(root, name string) string {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return ""
	}
	name = path.Clean(name)
	if path.IsAbs(name) {
		rest, ok := strings.CutPrefix(name, strings.TrimSuffix(path.Clean(root), "/"))
		if !ok || rest != "" && rest[0] != '/' {
			return ""
		}
		name = path.Clean(strings.TrimPrefix(rest, "/"))
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return ""
	}
	return name
}
