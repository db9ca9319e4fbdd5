package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

type readFileArguments struct {
	Path   string `json:"path"`
	Offset *whole `json:"offset,omitempty"` // line, from 1
	Limit  *whole `json:"limit,omitempty"`  // lines
}

// readFile shows lines of a text file unchanged, with a note below them if the
// file continues.
func (h *Host) readFile(ctx context.Context, p *workdir, args readFileArguments) (string, error) {
	first, err := positive("offset", args.Offset, 1)
	if err != nil {
		return "", err
	}
	limit, err := positive("limit", args.Limit, math.MaxInt64)
	if err != nil {
		return "", err
	}
	f, fi, err := p.openText(args.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := bufio.NewReaderSize(&cancelled{ctx, f}, 64<<10)
	if head, _ := r.Peek(sniffBytes); binary(head) {
		return "", refuse(CodeBinaryFile, "%s is binary (%d bytes) and can't be shown as text; use the shell, for example: file, strings, xxd | head", args.Path, fi.Size())
	}
	w := window{first: first, limit: limit, bytesMax: h.opts.OutputBytes}
	if err := w.read(r); err != nil {
		return "", err
	}
	return w.show(args.Path)
}

// binary tells binary from text as most tools do: by a zero byte.
func binary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

// window is a range of lines of a file, and counts of the others.
type window struct {
	first, limit int64
	bytesMax     int

	text  strings.Builder
	shown int64 // lines
	lines int64 // of the file
	cut   int64 // bytes left out of a single line over bytesMax
	full  bool
}

// read reads the whole file, to count its lines, and keeps the window.
func (w *window) read(r *bufio.Reader) error {
	begin := true // of a line
	for {
		part, err := r.ReadSlice('\n')
		if len(part) > 0 {
			if begin {
				w.lines++
			}
			w.take(part, begin)
			begin = part[len(part)-1] == '\n'
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// take keeps a line, or a part of a long one, if it is in the window and fits.
// Only the window's first line is shown in part.
func (w *window) take(part []byte, begin bool) {
	if w.lines < w.first || w.full {
		if w.full && w.cut > 0 && w.lines == w.first {
			w.cut += int64(len(part))
		}
		return
	}
	if w.lines-w.first >= w.limit {
		w.full = true
		return
	}
	room := w.bytesMax - w.text.Len()
	if len(part) > room {
		w.full = true
		if w.lines > w.first {
			w.dropUnfinished(begin)
			return
		}
		kept := cutText(string(part), room)
		w.text.WriteString(kept)
		w.cut = int64(len(part) - len(kept))
		w.shown = 1
		return
	}
	w.text.Write(part)
	if begin {
		w.shown++
	}
}

// dropUnfinished removes the beginning of a line that is too long.
func (w *window) dropUnfinished(begin bool) {
	if begin {
		return
	}
	whole := w.text.String()
	whole = whole[:strings.LastIndexByte(whole, '\n')+1]
	w.text.Reset()
	w.text.WriteString(whole)
	w.shown--
}

// show returns the lines and, if they are not the whole file, a note.
func (w *window) show(name string) (string, error) {
	switch {
	case w.lines == 0:
		return "[the file is empty]", nil
	case w.first > w.lines:
		return "", refuse(CodeInvalidArguments, "offset %d is past the end: %s has %d lines", w.first, name, w.lines)
	}
	text := validText(w.text.String())
	last := w.first + w.shown - 1
	if last == w.lines && w.first == 1 && w.cut == 0 {
		return text, nil
	}
	var note strings.Builder
	fmt.Fprintf(&note, "[lines %d to %d of %d", w.first, last, w.lines)
	if w.cut > 0 {
		fmt.Fprintf(&note, "; line %d is cut, %d bytes of it are left out: use the shell to see them", last, w.cut)
	}
	if last < w.lines {
		fmt.Fprintf(&note, "; go on with offset %d", last+1)
	}
	note.WriteByte(']')
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + note.String(), nil
}

// cancelled is a reader that fails once its context has ended: file systems
// ignore contexts.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context is cancelled.
func (c *cancelled) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
