package secrets

import (
	"io"
	"slices"
)

// Writer returns a writer to w that replaces values, also if one is split between
// writes: it holds back the end of a text that may be the beginning of a value.
// Close writes the rest, and leaves w open. The writer is not safe for concurrent
// use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{redactor: r, to: w} }

type writer struct {
	redactor *Redactor
	to       io.Writer
	kept     []byte
	found    bool // a value was replaced
}

// chunkBytes bounds what is decoded at once.
const chunkBytes = 64 << 10

// Write writes all except the possible beginning of a value.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.redactor == nil {
		return w.to.Write(p)
	}
	for len(p) > 0 {
		more := min(len(p), chunkBytes)
		w.kept = append(w.kept, p[:more]...)
		if err := w.flush(false); err != nil {
			return n, err
		}
		n, p = n+more, p[more:]
	}
	return n, nil
}

func (w *writer) Close() error {
	if len(w.kept) == 0 {
		return nil
	}
	return w.flush(true)
}

// flush writes what is settled, or everything. What is held back is bounded by
// what a value may take.
func (w *writer) flush(everything bool) error {
	found, n := w.redactor.scan(w.kept, everything)
	if n = max(n, len(w.kept)-w.redactor.span); n == 0 {
		return nil
	}
	var out []byte
	at := 0
	for _, s := range found {
		if s.from >= n {
			break
		}
		out = append(append(out, w.kept[at:s.from]...), Mark...)
		at, w.found = s.to, true
	}
	n = max(n, at)
	_, err := w.to.Write(append(out, w.kept[at:n]...))
	w.kept = slices.Clone(w.kept[n:])
	return err
}
