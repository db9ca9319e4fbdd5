package sessiontools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
)

// Results finds results of earlier calls.
type Results interface {
	// ResultOf returns the text of the result of a call of session sid, such as r1t2c0.
	// An *executor.Error says why there is none; other errors are temporary.
	ResultOf(ctx context.Context, sid, call string) (string, error)
}

const (
	resultBytesMax = 32 << 10 // bytes in the result of read_result, besides its last line
	aroundBytesMax = 150      // of a long line, shown before and after a match
	aroundMax      = 20       // lines shown before and after a match
)

func (t *Tools) readResult(ctx context.Context, sid string, a arguments) (executor.Result, error) {
	if t.Results == nil {
		return executor.Result{Error: &executor.Error{Code: "tool_not_served", Detail: "this bridge can't read results: call the tool again"}}, nil
	}
	pattern, err := regexp.Compile(a.Pattern)
	if err != nil {
		return refused("pattern: %v", err), nil
	}
	text, err := t.Results.ResultOf(ctx, sid, a.Call)
	var fault *executor.Error
	switch {
	case errors.As(err, &fault):
		return executor.Result{Error: fault}, nil
	case err != nil:
		return executor.Result{}, err
	case a.Offset < 0 || a.Offset > len(text) || a.Offset == len(text) && a.Offset > 0:
		return refused("offset: the result of %s has %d bytes: give a smaller one", a.Call, len(text)), nil
	}
	most := resultBytesMax
	if a.MaxBytes > 0 {
		most = min(a.MaxBytes, most)
	}
	start := a.Offset
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	if a.Pattern == "" {
		end := cutAt(text, start, most)
		return executor.Result{Output: text[start:end] + resultNote(a.Call, start, end, len(text))}, nil
	}
	found, end := grep(text, start, most, pattern, min(max(a.LinesAround, 0), aroundMax))
	if found == "" {
		found = "no line matches"
	}
	return executor.Result{Output: found + resultNote(a.Call, start, end, len(text))}, nil
}

// cutAt returns the end of at most n bytes of a text from start on: between characters,
// and after one at least.
func cutAt(text string, start, n int) int {
	end := min(start+n, len(text))
	for end < len(text) && end > start && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == start && start < len(text) {
		_, size := utf8.DecodeRuneInString(text[start:])
		end += size
	}
	return end
}

// resultNote is the last line of what is read: which bytes were looked at, of how many,
// and where to go on.
func resultNote(call string, start, end, size int) string {
	next := "that is its end"
	if end < size {
		next = fmt.Sprintf("go on with offset %d", end)
	}
	return fmt.Sprintf("\n[bytes %d to %d of %d of the result of %s: %s]", start, end, size, call, next)
}

// textLine is a line of a result, and where it begins.
type textLine struct {
	at   int
	text string
}

// grep returns the lines of a text from start on that match, with as many lines around,
// and at most so many bytes of them. Each begins with the number of its first byte that is
// shown, and a colon if it matches, else a dash. end is where the next search begins.
func grep(text string, start, most int, pattern *regexp.Regexp, around int) (found string, end int) {
	var out strings.Builder
	var before []textLine
	at, after, shown := start, 0, start // shown: the end of the latest line that was shown
	write := func(l textLine, mark string, match []int) bool {
		from, part := aroundMatch(l.text, match)
		line, gap := fmt.Sprintf("%d%s %s\n", l.at+from, mark, part), ""
		if out.Len() > 0 && shown < l.at {
			gap = "--\n"
		}
		if out.Len() > 0 && out.Len()+len(gap)+len(line) > most {
			return false
		}
		out.WriteString(gap + line)
		shown = l.at + len(l.text)
		return true
	}
	for line := range strings.Lines(text[start:]) {
		l := textLine{at, line}
		match := pattern.FindStringIndex(strings.TrimRight(line, "\r\n"))
		ok := true
		switch {
		case match != nil:
			for _, b := range before {
				ok = ok && write(b, "-", nil)
			}
			ok, before, after = ok && write(l, ":", match), nil, around
		case after > 0:
			ok, after = write(l, "-", nil), after-1
		case around > 0:
			if before = append(before, l); len(before) > around {
				before = before[1:]
			}
		}
		if !ok {
			return strings.TrimRight(out.String(), "\n"), l.at
		}
		at += len(line)
	}
	return strings.TrimRight(out.String(), "\n"), len(text)
}

// aroundMatch returns a line without its end; of a long one the part around a match, or
// its beginning, and where that begins in the line.
func aroundMatch(line string, match []int) (from int, part string) {
	line = strings.TrimRight(line, "\r\n")
	if len(line) <= lineBytesMax {
		return 0, line
	}
	if match != nil {
		from = max(0, match[0]-aroundBytesMax)
	}
	to := min(len(line), from+lineBytesMax)
	part = strings.ToValidUTF8(line[from:to], "")
	if to < len(line) {
		part += "…"
	}
	if from > 0 {
		part = "…" + part
	}
	return from, part
}
