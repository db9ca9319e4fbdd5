package planner

import "strings"

// check checks arguments against the schema in at most that many steps. problem
// is "" or the failure with the least (instance path, keyword) in byte order;
// took is the number of steps.
func (s *schema) check(v *value, steps int) (problem string, took int) {
	// Most values match, so the location is searched only after a failure.
	e := evaluation{steps: steps, marks: s.marks, quiet: 1}
	if e.node(s.root, v, nil, nil) && e.steps > 0 {
		return "", steps - e.steps
	}
	left := e.steps
	if left > 0 {
		e = evaluation{steps: left, marks: s.marks}
		e.node(s.root, v, nil, nil)
		left = e.steps
	}
	if left <= 0 {
		return "too much work to check against the schema: send less, or less deeply nested", steps
	}
	return e.worst.String(), steps - left
}

// evaluation is one check. A failure inside one of several alternatives (anyOf,
// oneOf, not, if, contains, propertyNames) is not reported: the keyword itself is.
type evaluation struct {
	steps int  // steps left
	depth int  // schemas being evaluated, nested in each other
	marks bool // see schema
	quiet int  // >0: only the outcome counts
	found bool
	worst failure
}

// location is the place of a value in the instance.
type location struct {
	parent *location
	token  string
}

// pointer returns the location as a JSON pointer.
func (p *location) pointer() string {
	var tokens []string
	for ; p != nil; p = p.parent {
		tokens = append(tokens, escapeToken(p.token))
	}
	var out strings.Builder
	for i := len(tokens) - 1; i >= 0; i-- {
		out.WriteByte('/')
		out.WriteString(tokens[i])
	}
	return out.String()
}

// failure is a keyword that doesn't hold, with its schema, the location, and
// the member or item in question, if any.
type failure struct {
	pointer string
	keyword string
	name    string
	node    *node
}

func (f *failure) less(g *failure) bool {
	if f.pointer != g.pointer {
		return f.pointer < g.pointer
	}
	if f.keyword != g.keyword {
		return f.keyword < g.keyword
	}
	return f.name < g.name
}

// fail records that a keyword of n doesn't hold. It returns false.
func (e *evaluation) fail(n *node, at *location, keyword, name string) bool {
	if e.quiet > 0 {
		return false
	}
	f := failure{pointer: at.pointer(), keyword: keyword, name: name, node: n}
	e.spend(1 + len(f.pointer)/16)
	if !e.found || f.less(&e.worst) {
		e.found, e.worst = true, f
	}
	return false
}

// holds returns ok. If it is false, it records that a keyword of n doesn't hold.
func (e *evaluation) holds(ok bool, n *node, at *location, keyword string) bool {
	return ok || e.fail(n, at, keyword, "")
}

// counts evaluates two keywords that bound a count from above and below.
func (e *evaluation) counts(count int, most, least *int, n *node, at *location, above, below string) bool {
	ok := e.holds(most == nil || count <= *most, n, at, above)
	return e.holds(least == nil || count >= *least, n, at, below) && ok
}

// spend takes steps. When none are left, evaluation stops and fails.
func (e *evaluation) spend(steps int) { e.steps -= steps }

// stop reports whether the outcome can't change any more.
func (e *evaluation) stop(ok bool) bool { return e.steps <= 0 || !ok && e.quiet > 0 }

// try evaluates an alternative: only its outcome counts.
func (e *evaluation) try(n *node, v *value, at *location, marks []bool) bool {
	e.quiet++
	ok := e.node(n, v, at, marks)
	e.quiet--
	return ok
}

// node evaluates one schema. If the schema holds, the members or items that it
// has evaluated are set in marks; marks is nil if they do not matter.
func (e *evaluation) node(n *node, v *value, at *location, marks []bool) bool {
	if e.spend(1); e.steps <= 0 {
		return false
	}
	if n.never {
		return e.fail(n, at, "false", "")
	}
	if e.depth++; e.depth > CheckDepthMax {
		e.steps = 0 // before the stack grows large
	}
	ok := e.keywords(n, v, at, marks)
	e.depth--
	return ok
}

// keywords evaluates a schema that is an object.
func (e *evaluation) keywords(n *node, v *value, at *location, marks []bool) bool {
	var own []bool
	if e.marks && len(v.items) > 0 {
		own = make([]bool, len(v.items))
		e.spend(len(own) / 16)
	}
	ok := e.assertions(n, v, at)
	if e.stop(ok) {
		return false
	}
	ok = e.contents(n, v, at, own) && ok
	if e.stop(ok) {
		return false
	}
	ok = e.inPlace(n, v, at, own) && ok
	// unevaluated* sees only what other keywords have evaluated, and a keyword that
	// failed has evaluated nothing.
	ok = ok && e.unevaluated(n, v, at, own)
	if e.stop(ok) {
		return false
	}
	if ok && marks != nil {
		for i, marked := range own {
			marks[i] = marks[i] || marked
		}
	}
	return ok
}

// assertions evaluates the keywords that look at the value itself.
func (e *evaluation) assertions(n *node, v *value, at *location) bool {
	ok := e.holds(!n.typed || n.types&typesOf(v) != 0, n, at, "type")
	if n.konst != nil || n.enum != nil {
		key := v.key()
		e.spend(len(key) / 16)
		ok = e.holds(n.konst.has(key), n, at, "const") && ok
		ok = e.holds(n.enum.has(key), n, at, "enum") && ok
	}
	switch v.kind {
	case kindNumber:
		return e.number(n, v.number, at) && ok
	case kindString:
		return e.text(n, v.text, at) && ok
	}
	return ok
}

// has reports whether the set holds the value with that key. A nil set holds all.
func (e *enumeration) has(key string) bool {
	if e == nil {
		return true
	}
	_, ok := e.keys[key]
	return ok
}

// number evaluates the keywords for numbers.
func (e *evaluation) number(n *node, d decimal, at *location) bool {
	ok := e.holds(n.maximum == nil || d.compare(*n.maximum) <= 0, n, at, "maximum")
	ok = e.holds(n.minimum == nil || d.compare(*n.minimum) >= 0, n, at, "minimum") && ok
	ok = e.holds(n.exclusiveMaximum == nil || d.compare(*n.exclusiveMaximum) < 0, n, at, "exclusiveMaximum") && ok
	ok = e.holds(n.exclusiveMinimum == nil || d.compare(*n.exclusiveMinimum) > 0, n, at, "exclusiveMinimum") && ok
	if n.multipleOf != nil {
		e.spend(10)
		ok = e.holds(d.multipleOf(*n.multipleOf), n, at, "multipleOf") && ok
	}
	return ok
}

// text evaluates the keywords for strings.
func (e *evaluation) text(n *node, s string, at *location) bool {
	ok := true
	if n.maxLength != nil || n.minLength != nil {
		e.spend(len(s) / 64)
		ok = e.counts(len([]rune(s)), n.maxLength, n.minLength, n, at, "maxLength", "minLength")
	}
	return (n.pattern == nil || e.holds(e.match(n.pattern, s), n, at, "pattern")) && ok
}

// match matches s. Its time grows with the text and with the pattern's size.
func (e *evaluation) match(p *pattern, s string) bool {
	if e.spend(1 + len(s)*p.states/32); e.steps <= 0 {
		return false
	}
	return p.re.MatchString(s)
}

// inPlace evaluates the keywords that apply schemas to the same value.
func (e *evaluation) inPlace(n *node, v *value, at *location, own []bool) bool {
	ok := true
	for _, ref := range n.refs {
		ok = e.node(ref.node, v, at, own) && ok
		if e.stop(ok) {
			return false
		}
	}
	for _, sub := range n.allOf {
		ok = e.node(sub, v, at, own) && ok
		if e.stop(ok) {
			return false
		}
	}
	ok = e.holds(len(n.anyOf) == 0 || e.anyOf(n.anyOf, v, at, own), n, at, "anyOf") && ok
	ok = e.holds(len(n.oneOf) == 0 || e.oneOf(n.oneOf, v, at, own), n, at, "oneOf") && ok
	ok = e.holds(n.not == nil || !e.try(n.not, v, at, nil), n, at, "not") && ok
	if n.cond == nil {
		return ok
	}
	branch := n.els
	if e.try(n.cond, v, at, own) {
		branch = n.then
	}
	if branch != nil {
		ok = e.node(branch, v, at, own) && ok
	}
	return ok
}

// anyOf reports whether one alternative holds. If marks are recorded, all are
// tried: each one that holds adds its own.
func (e *evaluation) anyOf(subs []*node, v *value, at *location, own []bool) bool {
	held := false
	for _, sub := range subs {
		if e.try(sub, v, at, own) {
			held = true
		}
		if held && own == nil {
			return true
		}
	}
	return held
}

// oneOf reports whether exactly one alternative holds.
func (e *evaluation) oneOf(subs []*node, v *value, at *location, own []bool) bool {
	held := 0
	for _, sub := range subs {
		if e.try(sub, v, at, own) {
			held++
		}
		if held > 1 {
			return false
		}
	}
	return held == 1
}
