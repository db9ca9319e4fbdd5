package patch

import (
	"regexp"
	"strings"
)

// Kind says what a section does with its file.
type Kind string

const (
	Add    Kind = "add"
	Update Kind = "update"
	Delete Kind = "delete"
)

// Patch is a parsed patch. Callers may make the paths of its sections canonical
// before they call Changes.
type Patch struct {
	Sections []Section
}

// Section is the part of a patch about one file.
type Section struct {
	Kind    Kind
	Path    string
	MoveTo  string // updates: the new path, or empty
	Content string // additions: the whole file
	Hunks   []Hunk // updates
	Line    int    // of the patch, from 1
}

// Hunk is one place in a file and its change.
type Hunk struct {
	Headers []string // texts after @@, to be found in this order before the lines
	Lines   []Line
	AtEnd   bool // the old lines are the file's last ones
	Line    int  // of the patch, from 1
}

// Line is one line of a hunk, without its line end.
type Line struct {
	Op   byte // ' ' context, '-' removed, '+' added
	Text string
}

const (
	markBegin  = "*** Begin Patch"
	markEnd    = "*** End Patch"
	markAdd    = "*** Add File: "
	markUpdate = "*** Update File: "
	markDelete = "*** Delete File: "
	markMove   = "*** Move to: "
	markEOF    = "*** End of File"
)

// lineNumbers matches the header of a unified diff, which models confuse with
// this format's. Its numbers are often wrong, and are ignored.
var lineNumbers = regexp.MustCompile(`^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

// Parse parses a whole patch. It ignores white space and a shell's
// here-document around it. The error is an *[Error].
func Parse(text string) (*Patch, error) {
	if n := strings.Count(text, "\n"); n > 0 && strings.Count(text, "\r\n") == n {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	r := &reader{lines: strings.Split(text, "\n")}
	if err := r.unwrap(); err != nil {
		return nil, err
	}
	p := &Patch{}
	for r.skipBlank(); !r.done(); r.skipBlank() {
		s, err := r.section()
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	if len(p.Sections) == 0 {
		return nil, &Error{Line: r.at + 1, Detail: "the patch names no file; write a section such as \"" + markUpdate + "PATH\""}
	}
	return p, nil
}

// reader reads the lines of a patch; at is the index of the next one.
type reader struct {
	lines []string
	at    int
}

func (r *reader) done() bool   { return r.at >= len(r.lines) }
func (r *reader) peek() string { return r.lines[r.at] }

func (r *reader) skipBlank() {
	for !r.done() && strings.TrimSpace(r.peek()) == "" {
		r.at++
	}
}

// unwrap skips the begin mark and removes the end mark.
func (r *reader) unwrap() error {
	for n := len(r.lines); n > 0 && strings.TrimSpace(r.lines[n-1]) == ""; n-- {
		r.lines = r.lines[:n-1]
	}
	r.skipBlank()
	if !r.done() {
		first, last := strings.TrimSpace(r.peek()), strings.TrimSpace(r.lines[len(r.lines)-1])
		if tag, ok := strings.CutPrefix(first, "<<"); ok && len(r.lines)-r.at > 1 && strings.Trim(tag, `'"`) == last {
			r.at++
			r.lines = r.lines[:len(r.lines)-1]
		}
	}
	if r.done() || strings.TrimSpace(r.peek()) != markBegin {
		return &Error{Line: r.at + 1, Detail: "the first line must be \"" + markBegin + "\""}
	}
	r.at++
	last := len(r.lines) - 1
	if last < r.at || strings.TrimSpace(r.lines[last]) != markEnd {
		return &Error{Line: last + 1, Detail: "the last line must be \"" + markEnd + "\"; send the whole patch again"}
	}
	r.lines = r.lines[:last]
	return nil
}

// section reads one section, of which the next line is the first.
func (r *reader) section() (Section, error) {
	s := Section{Line: r.at + 1}
	line := r.peek()
	for _, m := range []struct {
		mark string
		kind Kind
	}{{markAdd, Add}, {markUpdate, Update}, {markDelete, Delete}} {
		if rest, ok := strings.CutPrefix(line, m.mark); ok {
			s.Kind, s.Path = m.kind, strings.TrimSpace(rest)
		}
	}
	switch {
	case s.Kind == "":
		return s, &Error{Line: s.Line, Detail: "expected \"" + markAdd + "\", \"" + markUpdate + "\" or \"" + markDelete + "\" and a path, not " + quote(line)}
	case s.Path == "":
		return s, &Error{Line: s.Line, Detail: "the section names no path"}
	}
	r.at++
	var err error
	switch s.Kind {
	case Add:
		s.Content = r.added()
		if r.skipBlank(); !r.done() && !r.atSection() {
			err = &Error{Path: s.Path, Line: r.at + 1, Detail: "a line of a new file begins with '+', not " + quote(r.peek())}
		}
	case Update:
		err = r.update(&s)
	}
	return s, err
}

func (r *reader) added() string {
	var b strings.Builder
	for ; !r.done() && strings.HasPrefix(r.peek(), "+"); r.at++ {
		b.WriteString(r.peek()[1:])
		b.WriteByte('\n')
	}
	return b.String()
}

// update reads an update after its first line: a move, and hunks up to the next
// section.
func (r *reader) update(s *Section) error {
	if !r.done() {
		if rest, ok := strings.CutPrefix(r.peek(), markMove); ok {
			s.MoveTo = strings.TrimSpace(rest)
			if s.MoveTo == "" {
				return &Error{Path: s.Path, Line: r.at + 1, Detail: "the move names no path"}
			}
			r.at++
		}
	}
	for !r.atSectionAfterBlank() {
		h, err := r.hunk(s.Path, len(s.Hunks)+1)
		if err != nil {
			return err
		}
		s.Hunks = append(s.Hunks, h)
	}
	if len(s.Hunks) == 0 && s.MoveTo == "" {
		return &Error{Path: s.Path, Line: s.Line, Detail: "the update has no hunk; write lines that begin with ' ', '-' or '+'"}
	}
	return nil
}

// atSection reports whether the next line begins another section. The mark of
// the end of a file belongs to a hunk.
func (r *reader) atSection() bool {
	return strings.HasPrefix(r.peek(), "*** ") && strings.TrimRight(r.peek(), " \t") != markEOF
}

// atSectionAfterBlank reports whether only blank lines, which are no hunk,
// stand before the next section or the end.
func (r *reader) atSectionAfterBlank() bool {
	start := r.at
	r.skipBlank()
	section := r.done() || r.atSection()
	r.at = start
	return section
}

// hunk reads headers and lines up to the next hunk or section.
func (r *reader) hunk(file string, number int) (Hunk, error) {
	h := Hunk{Line: r.at + 1}
	explicit := false
	for ; !r.done() && strings.HasPrefix(r.peek(), "@@"); r.at++ {
		explicit = true
		if text := strings.TrimSpace(r.peek()[2:]); text != "" && !lineNumbers.MatchString(r.peek()) {
			h.Headers = append(h.Headers, strings.TrimPrefix(r.peek()[2:], " "))
		}
	}
	for ; !r.done() && !r.atSection(); r.at++ {
		line := r.peek()
		if strings.TrimRight(line, " \t") == markEOF {
			h.AtEnd = true
			r.at++
			break
		}
		if strings.HasPrefix(line, "@@") {
			break
		}
		l, ok := parseLine(line)
		if !ok {
			return h, &Error{Path: file, Hunk: number, Line: r.at + 1,
				Detail: "a line of an update begins with ' ', '-', '+' or '@@', not " + quote(line)}
		}
		h.Lines = append(h.Lines, l)
	}
	if len(h.Lines) == 0 && (explicit || h.AtEnd) {
		return h, &Error{Path: file, Hunk: number, Line: h.Line, Detail: "the hunk has no lines"}
	}
	return h, nil
}

// parseLine reads one line of a hunk. An empty one is empty context: many
// writers omit the space.
func parseLine(line string) (Line, bool) {
	if line == "" {
		return Line{Op: ' '}, true
	}
	switch line[0] {
	case ' ', '-', '+':
		return Line{Op: line[0], Text: line[1:]}, true
	}
	return Line{}, false
}
