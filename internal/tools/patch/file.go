package patch

import (
	"fmt"
	"strings"
)

// searchMax bounds hunks and headers times lines of one update: about a second
// of searching at worst.
const searchMax = 32 << 20

// file is a text as lines.
type file struct {
	raw   []string // with their line ends
	lines []string // without
	eol   string   // what new lines end in
	views [len(levels)][]string
}

func newFile(content string) *file {
	f := &file{eol: "\n"}
	if content != "" {
		f.raw = strings.SplitAfter(content, "\n")
		if f.raw[len(f.raw)-1] == "" {
			f.raw = f.raw[:len(f.raw)-1]
		}
	}
	if len(f.raw) > 0 && strings.HasSuffix(f.raw[0], "\r\n") {
		f.eol = "\r\n"
	}
	f.lines = make([]string, len(f.raw))
	for i, l := range f.raw {
		l = strings.TrimSuffix(l, "\n")
		if f.eol == "\r\n" {
			l = strings.TrimSuffix(l, "\r")
		}
		f.lines[i] = l
	}
	return f
}

// at returns the lines as a level compares them; computed once.
func (f *file) at(level int) []string {
	if f.views[level] == nil {
		f.views[level] = mapped(f.lines, level)
	}
	return f.views[level]
}

// update returns the content after the hunks of a section, or an *Error.
func update(s *Section, content string) (string, error) {
	f := newFile(content)
	searches := len(s.Hunks)
	for _, h := range s.Hunks {
		searches += len(h.Headers)
	}
	if searches > 0 && len(f.lines) > searchMax/searches {
		return "", &Error{Path: s.Path, Line: s.Line, Detail: fmt.Sprintf(
			"%d hunks and headers are too many for a file of %d lines; send several patches", searches, len(f.lines))}
	}
	out := output{eol: f.eol}
	done := 0 // lines of the file that are in out, or were removed
	for i, h := range s.Hunks {
		start, lines, err := f.locate(h, done)
		if err != nil {
			err.Path, err.Hunk = s.Path, i+1
			return "", err
		}
		out.raw(f.raw[done:start])
		done = start
		for _, l := range lines {
			switch l.Op {
			case ' ':
				out.raw(f.raw[done : done+1])
				done++
			case '-':
				done++
			case '+':
				out.line(l.Text)
			}
		}
	}
	out.raw(f.raw[done:])
	return out.b.String(), nil
}

// output collects the lines of a changed file.
type output struct {
	b   strings.Builder
	eol string
}

func (o *output) raw(lines []string) {
	for _, l := range lines {
		o.end()
		o.b.WriteString(l)
	}
}

func (o *output) line(text string) {
	o.end()
	o.b.WriteString(text)
	o.b.WriteString(o.eol)
}

// end gives the line before a new one its line end: the file's last line may
// have had none.
func (o *output) end() {
	if s := o.b.String(); s != "" && s[len(s)-1] != '\n' {
		o.b.WriteString(o.eol)
	}
}

// locate returns where the hunk's old lines begin, at or after from, and the
// hunk's lines less the blank context at its end that the file doesn't have.
func (f *file) locate(h Hunk, from int) (int, []Line, *Error) {
	repeat := -1 // the line that a header found: the hunk may begin with it
	for _, header := range h.Headers {
		place := f.find([]string{header}, from, false)
		if place < 0 {
			return 0, nil, &Error{Line: h.Line, Detail: fmt.Sprintf(
				"header not found from line %d of the file on: %s; copy a whole line of the file, or leave the header out", from+1, quote(header))}
		}
		repeat, from = place, place+1
	}
	lines := h.Lines
	want := old(lines)
	if len(want) == 0 { // nothing to find: below the header, or at the end
		if repeat < 0 || h.AtEnd {
			from = len(f.lines)
		}
		return from, lines, nil
	}
	for {
		if place := f.find(want, from, h.AtEnd); place >= 0 {
			return place, lines, nil
		}
		if repeat >= 0 {
			if place := f.find(want, repeat, h.AtEnd); place >= 0 {
				return place, lines, nil
			}
		}
		kept := withoutBlankEnd(lines)
		if len(kept) == len(lines) || len(old(kept)) == 0 {
			return 0, nil, f.missing(h, from)
		}
		lines, want = kept, old(kept)
	}
}

func withoutBlankEnd(lines []Line) []Line {
	for n := len(lines); n > 0 && lines[n-1] == (Line{Op: ' '}); n-- {
		lines = lines[:n-1]
	}
	return lines
}

func old(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op != '+' {
			out = append(out, l.Text)
		}
	}
	return out
}

// missing says which line of the hunk was not found, and what stands there.
func (f *file) missing(h Hunk, from int) *Error {
	want := old(h.Lines)
	loosest := len(levels) - 1
	have, loose := f.at(loosest), mapped(want, loosest)
	place, matched, after := search(have[from:], loose)
	line := h.Line
	if place >= 0 { // only with AtEnd
		return &Error{Line: line, Detail: fmt.Sprintf(
			"the lines stand at line %d, but not at the end of the file; leave out %q", from+place+1, markEOF)}
	}
	if earlier, _, _ := search(have, loose); earlier >= 0 {
		return &Error{Line: line, Detail: fmt.Sprintf(
			"the lines stand at line %d, before the place of the hunk or header above (line %d); put hunks in the file's order", earlier+1, from)}
	}
	at := from + after
	switch {
	case matched == 0:
		return &Error{Line: line, Detail: fmt.Sprintf(
			"line not found: %s; read the file again and copy its lines exactly", quote(want[0]))}
	case at == len(f.lines):
		return &Error{Line: line, Detail: fmt.Sprintf(
			"line not found: %s; the lines above it match up to line %d, where the file ends", quote(want[matched]), at)}
	}
	return &Error{Line: line, Detail: fmt.Sprintf(
		"line not found: %s; the lines above it match up to line %d, and line %d is %s", quote(want[matched]), at, at+1, quote(f.lines[at]))}
}
