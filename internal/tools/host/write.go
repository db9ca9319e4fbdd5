package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

type writeFileArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// writeFile gives a file the content, or changes nothing. A repeat gives the
// same result.
func (h *Host) writeFile(ctx context.Context, p *workdir, args writeFileArguments) (string, error) {
	l := h.lock(p)
	l.Lock()
	defer l.Unlock()
	rel, err := p.target(args.Path)
	if err != nil {
		return "", err
	}
	if err := p.commit(ctx, []write{{path: rel, content: args.Content}}); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(args.Content), rel), nil
}

// target resolves a path for writing: of a regular file, or of nothing yet.
func (p *workdir) target(name string) (string, error) {
	rel, err := p.resolve(name)
	if err != nil {
		return "", err
	}
	fi, err := p.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, "/"):
		return "", refuse(CodeIsDirectory, "%s names a directory; give the path of a file", name)
	case errors.Is(err, fs.ErrNotExist):
		return rel, nil
	case err != nil:
		return "", err
	}
	return rel, regular(name, fi.Mode())
}

// content reads a whole file for editing.
func (p *workdir) content(ctx context.Context, name string) (string, error) {
	f, fi, err := p.openText(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(&cancelled{ctx, f}, fileBytesMax+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > fileBytesMax:
		return "", refuse(CodeTooLarge, "%s has %d bytes; files over %d can't be edited: use the shell (sed, awk)", name, fi.Size(), fileBytesMax)
	case binary(data[:min(len(data), sniffBytes)]):
		return "", refuse(CodeBinaryFile, "%s is binary (%d bytes) and can't be edited as text; use the shell", name, fi.Size())
	}
	return string(data), nil
}

type editFileArguments struct {
	Path       string `json:"path"`
	OldText    string `json:"old_text"`
	NewText    string `json:"new_text"`
	ReplaceAll *bool  `json:"replace_all,omitempty"`
}

// editFile replaces a text that occurs in the file exactly once, or with
// replace_all every occurrence.
func (h *Host) editFile(ctx context.Context, p *workdir, args editFileArguments) (string, error) {
	if args.OldText == "" {
		return "", refuse(CodeInvalidArguments, "old_text is empty; copy the text to replace from the file, or use write_file for a new file")
	}
	if args.OldText == args.NewText {
		return "", refuse(CodeInvalidArguments, "old_text and new_text are equal; nothing would change")
	}
	l := h.lock(p)
	l.Lock()
	defer l.Unlock()
	rel, err := p.target(args.Path)
	if err != nil {
		return "", err
	}
	before, err := p.content(ctx, rel)
	if err != nil {
		return "", err
	}
	after, n, err := replace(args, before)
	if err != nil {
		return "", err
	}
	if err := p.commit(ctx, []write{{path: rel, content: after, existed: true, before: before}}); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d of %s in %s", n, plural(n, "place"), rel), nil
}

func plural(n int, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// replace performs the edit. Models do not see line ends and write \n: if the
// text is not found and the file's lines end in \r\n, it is searched with \r\n.
func replace(args editFileArguments, before string) (after string, n int, err error) {
	from, to := args.OldText, args.NewText
	n = strings.Count(before, from)
	if n == 0 && strings.Contains(before, "\r\n") && !strings.Contains(from, "\r") {
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(to, "\n", "\r\n")
		n = strings.Count(before, from)
	}
	all := args.ReplaceAll != nil && *args.ReplaceAll
	switch {
	case n == 0:
		return "", 0, refuse(CodeNoMatch, "old_text was found 0 times in %s; %s", args.Path, nearest(before, from))
	case n > 1 && !all:
		return "", 0, refuse(CodeManyMatches, "old_text was found %d times in %s; add lines around it until it is unique, or set replace_all", n, args.Path)
	}
	after = strings.ReplaceAll(before, from, to)
	if len(after) > fileBytesMax {
		return "", 0, refuse(CodeTooLarge, "%s would have %d bytes; files over %d can't be edited", args.Path, len(after), fileBytesMax)
	}
	return after, n, nil
}

// nearest says where the first line of a text that was not found is in the file.
func nearest(content, text string) string {
	first := ""
	for line := range strings.Lines(text) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	if first != "" {
		n := 0
		for line := range strings.Lines(content) {
			if n++; strings.Contains(line, first) {
				return fmt.Sprintf("its first line is like line %d: compare white space and the lines below, and copy them exactly", n)
			}
		}
	}
	return "read the file again and copy the text exactly"
}
