package secrets

import (
	"bytes"
	"io"
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
}

// Write writes all except the possible beginning of a value.
func (w *writer) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p...)
	if err := w.flush(w.redactor.settled(w.kept)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error { return w.flush(len(w.kept)) }

func (w *writer) flush(n int) error {
	if n == 0 {
		return nil
	}
	_, err := w.to.Write(w.redactor.Bytes(w.kept[:n]))
	w.kept = append(w.kept[:0], w.kept[n:]...)
	return err
}

// settled returns how many bytes at the beginning of text can't be part of a
// value that continues after text.
func (r *Redactor) settled(text []byte) int {
	if r == nil {
		return len(text)
	}
	end := len(text)
	for _, s := range r.spellings {
		for n := min(len(s)-1, len(text)); n > len(text)-end; n-- {
			if bytes.HasSuffix(text, s[:n]) {
				end = len(text) - n
				break
			}
		}
	}
	for _, found := range r.find(text) { // a complete value must not be split
		if found.from < end && end < found.to {
			end = found.from
		}
	}
	return end
}
