package planner

import (
	"strconv"
	"strings"
)

// lowering turns a schema document into nodes. It skips what it doesn't
// understand: wellFormed decides whether that is allowed.
type lowering struct {
	doc     *value
	nodes   map[string]*node // by JSON pointer
	order   []*node          // in the order of making
	anchors map[string]string
	refs    []*reference // to be resolved
	marks   bool
	problem string

	patterns patternRoom
	pointers int      // bytes of all pointers of nodes
	referred []*value // schemas only because a reference leads there
	values   int      // JSON values in referred
}

func newLowering(doc *value, patternBytes int) *lowering {
	return &lowering{doc: doc, nodes: make(map[string]*node), anchors: make(map[string]string), patterns: patternRoom{registry: patternBytes}}
}

// lower makes all nodes and resolves all references, or says what is wrong.
func (l *lowering) lower() string {
	l.node(l.doc, "")
	// A reference may lead to a place that is not a schema by its position; the
	// node made there may hold further references.
	for i := 0; i < len(l.refs) && l.problem == ""; i++ {
		l.resolve(l.refs[i])
	}
	if l.problem == "" && l.loops() {
		l.fail("", "refers to itself without going into the value: no value could be checked")
	}
	return l.problem
}

func (l *lowering) schema() *schema {
	return &schema{root: l.nodes[""], marks: l.marks}
}

func (l *lowering) fail(pointer, problem string) {
	if l.problem == "" {
		if pointer != "" {
			problem = "at " + quoted(pointer) + ": " + problem
		}
		l.problem = problem
	}
}

// node makes the node of the schema v, which stands at pointer.
func (l *lowering) node(v *value, pointer string) *node {
	if n, ok := l.nodes[pointer]; ok {
		return n
	}
	n := &node{}
	if l.pointers += len(pointer); l.pointers > SchemaPointersBytesMax {
		// A long name counts again for each schema inside it.
		l.fail("", "its schemas' places take more than "+strconv.Itoa(SchemaPointersBytesMax)+" bytes as JSON pointers: nest less, or shorten the names")
	}
	if l.problem != "" {
		return n
	}
	l.nodes[pointer] = n
	l.order = append(l.order, n)
	switch v.kind {
	case kindBool:
		n.never = !v.truth
	case kindObject:
		l.core(n, v, pointer)
		l.assertions(n, v, pointer)
		l.applicators(n, v, pointer)
		l.objects(n, v, pointer)
	}
	return n
}

// core reads the keywords that name places and refer to them.
func (l *lowering) core(n *node, v *value, pointer string) {
	if id, ok := v.member("$id"); ok && (pointer != "" || id.kind != kindString) {
		l.fail(pointer, "an $id inside the document is not supported: refer by '#/…'")
	}
	if name, ok := v.member("$schema"); ok && strings.TrimSuffix(name.text, "#") != dialect {
		l.fail(pointer, "$schema is "+dialect+", or is left out")
	}
	for _, keyword := range [...]string{"$anchor", "$dynamicAnchor"} {
		if name, ok := v.member(keyword); ok && name.kind == kindString {
			if at, ok := l.anchors[name.text]; ok && at != pointer {
				l.fail(pointer, "anchor "+quoted(name.text)+" stands twice")
			}
			l.anchors[name.text] = pointer
		}
	}
	for _, keyword := range [...]string{"$ref", "$dynamicRef"} {
		if target, ok := v.member(keyword); ok && target.kind == kindString {
			if !strings.HasPrefix(target.text, "#") {
				l.fail(pointer, keyword+" "+quoted(target.text)+" leaves the document: a schema is self-contained")
			}
			ref := &reference{target: target.text}
			n.refs = append(n.refs, ref)
			l.refs = append(l.refs, ref)
		}
	}
}

// resolve finds a reference's node.
func (l *lowering) resolve(ref *reference) {
	pointer, ok := unescapePercent(strings.TrimPrefix(ref.target, "#"))
	if ok && pointer != "" && pointer[0] != '/' {
		pointer, ok = l.anchors[pointer]
	}
	if ok {
		var v *value
		if v, ok = l.find(pointer); ok {
			ref.node = l.refer(v, pointer)
			return
		}
	}
	l.fail("", "refers to "+quoted(ref.target)+", which it doesn't hold")
}

// refer returns the node that a reference leads to.
func (l *lowering) refer(v *value, pointer string) *node {
	if n, ok := l.nodes[pointer]; ok {
		return n
	}
	if l.values += v.values(); l.values > SchemaReferredMax {
		l.fail("", "refers to places outside of $defs that hold more than "+strconv.Itoa(SchemaReferredMax)+" values together: put them into $defs")
	}
	l.referred = append(l.referred, v)
	return l.node(v, pointer)
}

// find returns the value at a JSON pointer. Each value has only one pointer: ~
// is written ~0, and / is written ~1.
func (l *lowering) find(pointer string) (*value, bool) {
	v := l.doc
	for pointer != "" {
		var token string
		token, pointer = cutToken(pointer)
		if escapeToken(unescapeToken(token)) != token {
			return nil, false
		}
		switch v.kind {
		case kindObject:
			next, ok := v.member(unescapeToken(token))
			if !ok {
				return nil, false
			}
			v = next
		case kindArray:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) || strconv.Itoa(i) != token {
				return nil, false
			}
			v = &v.items[i]
		default:
			return nil, false
		}
	}
	return v, v.kind == kindObject || v.kind == kindBool
}

// loops reports whether some schema applies itself to the same value.
func (l *lowering) loops() bool {
	const unseen, active, done = 0, 1, 2
	state := make(map[*node]int, len(l.order))
	var visit func(n *node) bool
	visit = func(n *node) bool {
		switch state[n] {
		case active:
			return true
		case done:
			return false
		}
		state[n] = active
		for _, next := range n.inPlace() {
			if visit(next) {
				return true
			}
		}
		state[n] = done
		return false
	}
	for _, n := range l.order {
		if state[n] == unseen && visit(n) {
			return true
		}
	}
	return false
}

// inPlace returns the schemas that n applies to the same value as itself.
func (n *node) inPlace() []*node {
	var out []*node
	for _, ref := range n.refs {
		out = append(out, ref.node)
	}
	out = append(append(append(out, n.allOf...), n.anyOf...), n.oneOf...)
	for _, sub := range [...]*node{n.not, n.cond, n.then, n.els} {
		if sub != nil {
			out = append(out, sub)
		}
	}
	for _, p := range n.dependentSchemas {
		out = append(out, p.node)
	}
	return out
}

func cutToken(pointer string) (token, rest string) {
	pointer = pointer[1:]
	if end := strings.IndexByte(pointer, '/'); end >= 0 {
		return pointer[:end], pointer[end:]
	}
	return pointer, ""
}

func escapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func unescapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// unescapePercent decodes the %XX of a URL's fragment.
func unescapePercent(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out.WriteByte(s[i])
			continue
		}
		if len(s)-i < 3 {
			return "", false
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out.WriteByte(byte(c))
		i += 2
	}
	return out.String(), true
}
