package secrets

import (
	"bytes"
	"io"
)

// Writer returns a writer that replaces values in what it passes on to w, also a
// value that comes in several pieces: it keeps back the end of a piece that may be
// the beginning of a value. Close passes on what is kept back, and leaves w open.
// One goroutine at a time may use it.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{redactor: r, to: w} }

type writer struct {
	redactor *Redactor
	to       io.Writer
	kept     []byte
}

// Write passes on all but what may be the beginning of a value.
func (w *writer) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p...)
	if err := w.pass(w.redactor.settled(w.kept)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error { return w.pass(len(w.kept)) }

// pass passes on the first n bytes that are kept.
func (w *writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	_, err := w.to.Write(w.redactor.Bytes(w.kept[:n]))
	w.kept = append(w.kept[:0], w.kept[n:]...)
	return err
}

// settled returns how many bytes of text no byte that follows can make a part of a
// value.
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
	for _, found := range r.find(text) { // one that is whole is passed on whole
		if found.from < end && end < found.to {
			end = found.from
		}
	}
	return end
}
