package planner

import "unicode/utf8"

// Most arguments are a small object of short texts. They are read without
// encoding them canonically first, and without a copy. The codec reads
// everything else: escapes, fractions, many members, faults.

// quickReader reads the JSON text of arguments at pos.
type quickReader struct {
	text string
	pos  int
	room *membersRoom // for the outermost object's members
}

// Limits of what quickReader reads.
const (
	quickDepthMax   = 4
	quickMembersMax = 16
	quickDigitsMax  = 15 // an integer with this many digits is exact as a float, too
)

// readQuick reads an object as readValue reads its canonical bytes. ok is false
// if it leaves the text to the codec. The value's texts are part of text, and
// its members are in room if there are few.
func readQuick(text string, room *membersRoom) (v value, ok bool) {
	q := quickReader{text: text, room: room}
	q.space()
	if q.peek() != '{' || !utf8.ValidString(text) {
		return value{}, false
	}
	v, ok = q.value(0)
	q.space()
	return v, ok && q.pos == len(text)
}

func (q *quickReader) space() {
	for q.pos < len(q.text) && (q.text[q.pos] == ' ' || q.text[q.pos] == '\n' || q.text[q.pos] == '\t' || q.text[q.pos] == '\r') {
		q.pos++
	}
}

// peek returns the byte at pos, or 0 at the end; a real 0 is no JSON either.
func (q *quickReader) peek() byte {
	if q.pos < len(q.text) {
		return q.text[q.pos]
	}
	return 0
}

// skip moves past c and the space after it, if c stands here.
func (q *quickReader) skip(c byte) bool {
	if q.peek() != c {
		return false
	}
	q.pos++
	q.space()
	return true
}

// value reads the value that stands here, at that depth of nesting.
func (q *quickReader) value(depth int) (value, bool) {
	switch c := q.peek(); {
	case c == '"':
		text, ok := q.string()
		return value{kind: kindString, text: text}, ok
	case c == '{' && depth < quickDepthMax:
		return q.object(depth)
	case c == '[' && depth < quickDepthMax:
		return q.array(depth)
	case c == '-' || c >= '0' && c <= '9':
		return q.integer()
	case c == 't':
		return value{kind: kindBool, truth: true}, q.word("true")
	case c == 'f':
		return value{kind: kindBool}, q.word("false")
	case c == 'n':
		return value{kind: kindNull}, q.word("null")
	}
	return value{}, false
}

func (q *quickReader) word(word string) bool {
	end := q.pos + len(word)
	if end > len(q.text) || q.text[q.pos:end] != word {
		return false
	}
	q.pos = end
	return true
}

// string reads a string without escapes.
func (q *quickReader) string() (string, bool) {
	q.pos++
	start := q.pos
	for q.pos < len(q.text) {
		switch c := q.text[q.pos]; {
		case c == '"':
			q.pos++
			return q.text[start : q.pos-1], true
		case c == '\\' || c < ' ':
			return "", false
		}
		q.pos++
	}
	return "", false
}

// integer reads a number of few digits.
func (q *quickReader) integer() (value, bool) {
	start := q.pos
	if q.peek() == '-' {
		q.pos++
	}
	first := q.pos
	for c := q.peek(); c >= '0' && c <= '9'; c = q.peek() {
		q.pos++
	}
	n := q.pos - first
	switch c := q.peek(); {
	case n == 0, n > quickDigitsMax, n > 1 && q.text[first] == '0', c == '.', c == 'e', c == 'E':
		return value{}, false
	}
	return value{kind: kindNumber, number: parseDecimal(q.text[start:q.pos])}, true
}

func (q *quickReader) array(depth int) (value, bool) {
	v := value{kind: kindArray}
	q.skip('[')
	for closed := q.peek() == ']'; !closed; {
		item, ok := q.value(depth + 1)
		if !ok {
			return value{}, false
		}
		v.items = append(v.items, item)
		q.space()
		if closed = q.peek() == ']'; !closed && !q.skip(',') {
			return value{}, false
		}
	}
	q.pos++
	return v, true
}

func (q *quickReader) object(depth int) (value, bool) {
	v := value{kind: kindObject}
	q.skip('{')
	for closed := q.peek() == '}'; !closed; {
		if q.peek() != '"' || len(v.names) == quickMembersMax {
			return value{}, false
		}
		name, ok := q.string()
		q.space()
		if !ok || !q.skip(':') {
			return value{}, false
		}
		item, ok := q.value(depth + 1)
		if ok && v.names == nil {
			room := q.room
			if depth > 0 {
				room = &membersRoom{}
			}
			v.names, v.items = room.names[:0], room.items[:0]
		}
		if !ok || !v.insert(name, item) {
			return value{}, false
		}
		q.space()
		if closed = q.peek() == '}'; !closed && !q.skip(',') {
			return value{}, false
		}
	}
	q.pos++
	return v, true
}

// membersRoom holds the members of an object that has few, as most do.
type membersRoom struct {
	names [2]string
	items [2]value
}

// insert puts a member of an object into its place. It returns false if the
// object already has that name.
func (v *value) insert(name string, item value) bool {
	at := len(v.names)
	for at > 0 && name < v.names[at-1] {
		at--
	}
	if at > 0 && v.names[at-1] == name {
		return false
	}
	v.names = append(v.names, name)
	v.items = append(v.items, item)
	copy(v.names[at+1:], v.names[at:])
	copy(v.items[at+1:], v.items[at:])
	v.names[at], v.items[at] = name, item
	return true
}
