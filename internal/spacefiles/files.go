package spacefiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/media"
	"github.com/refold/refold/space"
)

// readFile returns the content of a file of at most max bytes. It reads each path
// once. If ok is false, b.read[name].problem has the problem, without its location.
func (b *builder) readFile(name string, max int64) (content []byte, ok bool) {
	s, found := b.read[name]
	if !found {
		s = b.open(name, max)
		b.read[name] = s
	}
	if s.problem.Code == "" && int64(len(s.content)) > max {
		s.problem = tooLarge(name, int64(len(s.content)), max)
		b.read[name] = s
	}
	return s.content, s.problem.Code == ""
}

func tooLarge(name string, size, max int64) space.Problem {
	return space.Problem{Code: space.TooLarge, Detail: fmt.Sprintf("%q has %d bytes, at most %d", clip(name, 128), size, max)}
}

// open reads a file. It checks the kind and size before the content, and the
// size again afterwards.
func (b *builder) open(name string, max int64) (s seen) {
	bad := func(code space.ProblemCode, format string, args ...any) seen {
		s.problem = space.Problem{Code: code, Detail: fmt.Sprintf("%q: ", clip(name, 128)) + fmt.Sprintf(format, args...)}
		return s
	}
	if b.ctx.Err() != nil {
		return bad(space.MissingFile, "the time was over before it was read")
	}
	if !space.IsPath(name) {
		return bad(space.PathEscapes, "is no path below the root: use names joined by single slashes")
	}
	info, err := fs.Stat(b.fsys, name)
	if err != nil {
		return bad(codeOf(err), "%s", textOf(err))
	}
	s.info = info
	switch {
	case !info.Mode().IsRegular():
		return bad(space.NotRegular, "is a %s and no file", kindOf(info.Mode()))
	case info.Size() > max:
		s.problem = tooLarge(name, info.Size(), max)
		return s
	case b.bytes+info.Size() > space.SpaceBytesMax:
		return bad(space.TooLarge, "the files have more than %d bytes in all: split the space", space.SpaceBytesMax)
	}
	f, err := b.fsys.Open(name)
	if errors.Is(err, ErrReplaced) {
		s.info = nil // changed then sees a difference
	}
	if err != nil {
		return bad(codeOf(err), "%s", textOf(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return bad(space.NotRegular, "is no file any more")
	}
	s.content, err = io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return bad(codeOf(err), "%s", textOf(err))
	}
	if int64(len(s.content)) > max {
		s.problem = tooLarge(name, int64(len(s.content)), max)
		return s
	}
	b.bytes += int64(len(s.content))
	return s
}

// codeOf distinguishes a link that leads out from a file that can't be read.
func codeOf(err error) space.ProblemCode {
	if strings.Contains(err.Error(), "escapes from parent") { // os.Root exports no error for it
		return space.PathEscapes
	}
	return space.MissingFile
}

// textOf returns the text of an error without its path, which may be the machine's.
func textOf(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// changed reports whether a file has changed since it was read, or a glob would
// find other files.
func (b *builder) changed() bool {
	if before, problems := b.listed, len(b.problems); before != nil {
		b.listed = nil
		again := b.list()
		b.problems = b.problems[:problems]
		if !slices.Equal(before, again) {
			return true
		}
	}
	for name, s := range b.read {
		if !space.IsPath(name) {
			continue
		}
		info, err := fs.Stat(b.fsys, name)
		switch {
		case (err == nil) != (s.info != nil):
			return true
		case err == nil && (info.Size() != s.info.Size() || !info.ModTime().Equal(s.info.ModTime())):
			return true
		case s.problem.Code == "" && int64(len(s.content)) != s.info.Size():
			return true
		}
	}
	return false
}

// file reads a file of the space and returns its index. Problems are reported
// at the location that names the file, or for the file itself.
func (b *builder) file(name string, max int64, at location) (index int, content []byte, ok bool) {
	content, ok = b.readFile(name, max)
	if !ok {
		p := b.read[name].problem
		p.File, p.Line, p.Path = at.file, at.line, at.path
		if p.Code == space.TooLarge || p.Code == space.NotRegular {
			p.File, p.Line, p.Path = name, 0, ""
		}
		b.say(p)
		return 0, nil, false
	}
	return b.keep(name, content), content, true
}

// text is file for text.
func (b *builder) text(name string, max int64, at location) (index int, text string, ok bool) {
	index, content, ok := b.file(name, max, at)
	if ok && !utf8.Valid(content) {
		b.say(space.Problem{Code: space.NotUTF8, File: name, Line: 1 + bytes.Count(content[:invalidAt(content)], []byte("\n")), Detail: "the file is not UTF-8"})
		return 0, "", false
	}
	return index, string(content), ok
}

// keep adds content under a path and returns its index.
func (b *builder) keep(name string, content []byte) int {
	if i, ok := b.at[name]; ok {
		return i
	}
	ref := codec.RefOf(content)
	b.contents[ref] = content
	return b.add(space.File{Path: name, Ref: ref, Size: int64(len(content)), MediaType: MediaType(name, content)})
}

// MediaType returns a file's media type: of an image or a PDF by its content, of a
// text by its name. It is the same on every machine.
func MediaType(name string, content []byte) string {
	kind := media.Type(content)
	switch {
	case slices.Contains(shown, kind):
		return kind
	case !media.IsText(content):
		return "application/octet-stream"
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return "text/markdown"
	case ".json":
		return "application/json"
	case ".html", ".htm":
		return "text/html"
	case ".csv":
		return "text/csv"
	}
	return "text/plain"
}

// shown are the types of files that some model is shown as such.
var shown = []string{media.PNG, media.JPEG, media.GIF, media.WebP, media.HEIC, media.HEIF, media.PDF}

// list returns all files below the root in byte order, except for those in
// .git. It does not follow links to folders.
func (b *builder) list() []string {
	if b.listed != nil {
		return b.listed
	}
	b.listed = []string{}
	entries := 0
	err := fs.WalkDir(b.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > walkMax {
			b.say(space.Problem{Code: space.TooMany, File: IndexName, Detail: fmt.Sprintf("the folder has more than %d files and folders: name files without globs, or use a folder of their own", walkMax)})
			return fs.SkipAll
		}
		switch {
		case b.ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			b.say(space.Problem{Code: codeOf(err), File: name, Detail: textOf(err)})
			return fs.SkipDir
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.IsDir() && name != IndexName:
			b.listed = append(b.listed, name)
		}
		return nil
	})
	if err != nil {
		b.say(space.Problem{Code: space.MissingFile, Detail: textOf(err)})
	}
	slices.Sort(b.listed)
	return b.listed
}

func (b *builder) match(pattern string, at location) []string {
	if b.patterns++; b.patterns > patternsMax {
		if b.patterns == patternsMax+1 {
			b.say(at.problem(space.TooMany, "the index has more than %d paths and globs", patternsMax))
		}
		return nil
	}
	if !strings.ContainsAny(pattern, "*?[{\\") {
		return []string{pattern}
	}
	matches, ok := Glob(pattern)
	if !ok {
		b.say(at.problem(space.WrongType, "%q is no glob of at most %d bytes and %d alternatives in braces", clip(pattern, 64), patternBytesMax, patternBraces))
		return nil
	}
	var found []string
	for _, name := range b.list() {
		if matches(name) && !b.isFolder(name) {
			found = append(found, name)
		}
	}
	return found
}

// tellEmpty reports a glob that matches no file.
func (b *builder) tellEmpty(pattern string, at location) {
	if _, ok := Glob(pattern); ok && b.patterns <= patternsMax {
		b.say(at.problem(space.MissingFile, "%q matches no file", clip(pattern, 64)))
	}
}

// Glob returns a function that matches paths with slashes. ok is false if
// pattern is not a glob, or would take long to match.
func Glob(pattern string) (matches func(name string) bool, ok bool) {
	if len(pattern) > patternBytesMax || strings.Count(pattern, "{") > patternBraces || !doublestar.ValidatePattern(pattern) {
		return nil, false
	}
	return func(name string) bool { return doublestar.MatchUnvalidated(pattern, name) }, true
}

// isFolder reports whether a listed name is a link to a folder.
func (b *builder) isFolder(name string) bool {
	info, err := fs.Stat(b.fsys, name)
	return err == nil && info.IsDir()
}

// location is a place to report a problem at.
type location struct {
	file string
	line int
	path string
}

func (p location) problem(code space.ProblemCode, format string, args ...any) space.Problem {
	return space.Problem{Code: code, File: p.file, Line: p.line, Path: p.path, Detail: fmt.Sprintf(format, args...)}
}
