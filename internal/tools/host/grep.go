package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/refold/refold/planner"
)

type grepArguments struct {
	Pattern    string  `json:"pattern"`
	Path       *string `json:"path,omitempty"`
	Glob       *string `json:"glob,omitempty"`
	IgnoreCase *bool   `json:"ignore_case,omitempty"`
}

// grep lists the lines that a regular expression matches, as path:line:text, in
// the order of paths. It skips binary files, links and .git.
func (h *Host) grep(ctx context.Context, p *workdir, args grepArguments) (string, error) {
	s := search{ctx: ctx, dir: p, bytesMax: h.opts.OutputBytes}
	if err := s.prepare(args); err != nil {
		return "", err
	}
	start := "."
	if args.Path != nil {
		start = *args.Path
	}
	rel, err := p.resolve(start)
	if err != nil {
		return "", err
	}
	fi, err := p.root.Stat(rel)
	switch {
	case err != nil:
		return "", err
	case fi.IsDir():
		err = fs.WalkDir(p.tree(ctx), rel, s.visit)
	case regular(start, fi.Mode()) != nil:
		return "", regular(start, fi.Mode())
	default:
		err = s.file(rel)
	}
	if err != nil && !errors.Is(err, errFull) {
		return "", err
	}
	return s.show(), nil
}

// errFull ends a search with enough matches.
var errFull = errors.New("enough matches")

type search struct {
	ctx      context.Context
	dir      *workdir
	bytesMax int
	re       *regexp.Regexp
	states   int      // of re's program
	globs    []string // empty: all files

	out     strings.Builder
	shown   int
	files   int // searched
	skipped int // files that can't be read, or have a line over the limit
	full    bool
}

func (s *search) prepare(args grepArguments) error {
	if args.Pattern == "" {
		return refuse(CodeInvalidArguments, "the pattern is empty; it would match every line")
	}
	expr := args.Pattern
	if args.IgnoreCase != nil && *args.IgnoreCase {
		expr = "(?i)" + expr
	}
	if len(expr) > regexBytesMax {
		return refuse(CodeTooLarge, "the pattern has %d bytes; use one of at most %d", len(expr), regexBytesMax)
	}
	// The size is counted before compiling: a{1000}{1000} is small.
	states, err := planner.PatternStates(expr)
	if err == nil && states > regexStatesMax {
		return refuse(CodeTooLarge, "the pattern is too large: its repeats make %d states, at most %d; repeat less", states, regexStatesMax)
	}
	var re *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile(expr)
	}
	if err != nil {
		return refuse(CodeInvalidArguments, "%v; the syntax is RE2 (no look-around, no back-references), with \\ before a character meant as such", err)
	}
	s.re, s.states = re, states
	if args.Glob != nil {
		if s.globs, err = s.dir.patterns(*args.Glob); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether the glob matches a file. A glob without a slash is
// matched against the file's name, others against its path.
func (s *search) wanted(rel string) bool {
	return len(s.globs) == 0 || slices.ContainsFunc(s.globs, func(glob string) bool {
		if !strings.Contains(glob, "/") {
			return doublestar.MatchUnvalidated(glob, path.Base(rel))
		}
		return doublestar.MatchUnvalidated(glob, rel)
	})
}

// visit is called for each entry of the walk. Unreadable directories are skipped.
func (s *search) visit(rel string, d fs.DirEntry, err error) error {
	if ctxErr := s.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	switch {
	case err != nil:
		s.skipped++
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case d.IsDir():
		if d.Name() == ".git" && !s.dir.git {
			return fs.SkipDir
		}
		return nil
	case !d.Type().IsRegular() || !s.wanted(rel):
		return nil
	}
	err = s.file(rel)
	if err == nil || errors.Is(err, errFull) || s.ctx.Err() != nil {
		return err
	}
	s.skipped++
	return nil
}

// file searches one file, line by line.
func (s *search) file(rel string) error {
	f, _, err := s.dir.openText(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(&cancelled{s.ctx, f}, 64<<10)
	if head, _ := r.Peek(sniffBytes); binary(head) {
		return nil
	}
	s.files++
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), lineBytesMax)
	for n := 1; lines.Scan(); n++ {
		if line := lines.Bytes(); s.matches(line) {
			if err := s.match(rel, n, string(line)); err != nil {
				return err
			}
		}
	}
	if err := s.ctx.Err(); err != nil { // may end a line in the middle
		return err
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		s.skipped++
		return nil
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// matches reports whether the expression matches a line. A match takes the
// program's states times the line's bytes at worst, so a match against a long
// line checks the context.
func (s *search) matches(line []byte) bool {
	if len(line) <= matchStepsMax/s.states {
		return s.re.Match(line)
	}
	return s.re.MatchReader(&runes{ctx: s.ctx, line: line})
}

// matchStepsMax is how many steps a match may take without checking the
// context: a tenth of a second.
const matchStepsMax = 4 << 20

// runes reads a line character by character, and ends early if its context has
// ended.
type runes struct {
	ctx  context.Context
	line []byte
	read int
}

// ReadRune returns the next character, or io.EOF.
func (r *runes) ReadRune() (char rune, size int, err error) {
	if r.read++; len(r.line) == 0 || r.read%64 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	char, size = utf8.DecodeRune(r.line)
	r.line = r.line[size:]
	return char, size, nil
}

// match adds one line, or ends the search.
func (s *search) match(rel string, n int, line string) error {
	if short := cutText(line, lineShownMax); short != line {
		line = short + " […]"
	}
	text := validText(fmt.Sprintf("%s:%d:%s\n", rel, n, line))
	if s.shown == matchesMax || s.out.Len()+len(text) > s.bytesMax {
		s.full = true
		return errFull
	}
	s.out.WriteString(text)
	s.shown++
	return nil
}

func (s *search) show() string {
	var note string
	switch {
	case s.full:
		note = fmt.Sprintf("[stopped after %d matching lines; there are more: use path, glob or a stricter pattern]", s.shown)
	case s.shown == 0:
		note = fmt.Sprintf("no matches in %d files", s.files)
	}
	if s.skipped > 0 {
		note += fmt.Sprintf("[%d files or directories were not read to the end: not readable, or a line over %d bytes]", s.skipped, lineBytesMax)
	}
	return s.out.String() + note
}
