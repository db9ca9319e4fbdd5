package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// StepsMax is how many steps all sections of one patch may take together: about
// a second. A step is a line that is read or compared, or 64 bytes of one.
const StepsMax = 32 << 20

// budget counts the steps left for a patch.
type budget struct {
	ctx  context.Context
	left int
}

// spend counts the steps of reading lines once. The error is ctx's, or an
// *Error if no steps are left.
func (b *budget) spend(lines, bytes int) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.left -= lines + bytes/64; b.left < 0 {
		return &Error{Detail: "the hunks and headers are too many for files of this size; send several smaller patches"}
	}
	return nil
}

// file is a text split into lines.
type file struct {
	budget *budget
	bytes  int      // of the text
	raw    []string // with their line ends
	lines  []string // without them
	eol    string   // the line end of new lines
	views  [len(levels)][]string
}

func newFile(b *budget, content string) *file {
	f := &file{budget: b, bytes: len(content), eol: "\n"}
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

// at returns the lines as a level compares them, computed once.
func (f *file) at(level int) []string {
	if f.views[level] == nil {
		f.views[level] = mapped(f.lines, level)
	}
	return f.views[level]
}

// update returns the content after the hunks of a section, or an *Error.
func update(b *budget, s *Section, content string) (string, error) {
	f := newFile(b, content)
	if err := b.spend(len(f.lines), f.bytes); err != nil {
		return "", placed(err, s, 0)
	}
	out := output{eol: f.eol}
	done := 0 // lines of the file that were copied to out or removed
	for i, h := range s.Hunks {
		start, lines, err := f.locate(h, done)
		if err != nil {
			return "", placed(err, s, i+1)
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

// placed adds section and hunk to an *Error.
func placed(err error, s *Section, hunk int) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.Path, wrong.Hunk = s.Path, hunk
		wrong.Line = cmp.Or(wrong.Line, s.Line)
	}
	return err
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

// end completes the line before a new one: the file's last line may have no
// line end.
func (o *output) end() {
	if s := o.b.String(); s != "" && s[len(s)-1] != '\n' {
		o.b.WriteString(o.eol)
	}
}

// locate returns where the hunk's old lines begin, at or after from. It returns
// the hunk's lines without blank context at its end that the file doesn't have.
func (f *file) locate(h Hunk, from int) (int, []Line, error) {
	repeat := -1 // the line of the last header: the hunk may begin with it
	for _, header := range h.Headers {
		place, err := f.find([]string{header}, from, false)
		if err != nil {
			return 0, nil, err
		}
		if place < 0 {
			return 0, nil, &Error{Line: h.Line, Detail: fmt.Sprintf(
				"header not found from line %d of the file on: %s; copy a whole line of the file, or leave the header out", from+1, quote(header))}
		}
		repeat, from = place, place+1
	}
	lines := h.Lines
	want := old(lines)
	if len(want) == 0 { // nothing to search: below the header, or at the end
		if repeat < 0 || h.AtEnd {
			from = len(f.lines)
		}
		return from, lines, nil
	}
	for {
		place, err := f.find(want, from, h.AtEnd)
		if err == nil && place < 0 && repeat >= 0 {
			place, err = f.find(want, repeat, h.AtEnd)
		}
		if err != nil || place >= 0 {
			return place, lines, err
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

// missing returns the error for a hunk: which of its lines was not found, and
// what the file has there.
func (f *file) missing(h Hunk, from int) *Error {
	want := old(h.Lines)
	loosest := len(levels) - 1
	have, loose := f.at(loosest), mapped(want, loosest)
	place, matched, after := search(have[from:], loose)
	line := h.Line
	if place >= 0 { // possible only with AtEnd
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
