package archive

// The format: what is written is read, and every damage of a file is told as what it is.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

const sid = "s1"

var blob = bytes.Repeat([]byte("content "), 1000)

func header(n uint64) Header {
	return Header{Session: sid, Prefix: "refold", Count: n, First: 3, Last: 1 + 2*n, Install: Install{Seq: 1, Payload: []byte(`{"v":1}`)}}
}

func eventAt(seq uint64) session.Event {
	return session.Event{Session: sid, Door: session.DoorIn, Seq: seq, Time: int64(seq) * 1000, Payload: fmt.Appendf(nil, `{"id":"%d"}`, seq)}
}

// written returns the name of an archive of three events, at 3, 5 and 7, and one blob.
func written(t *testing.T) string {
	t.Helper()
	w, err := Create(t.TempDir(), header(3))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, seq := range []uint64{3, 5, 7} {
		if err := w.Event(eventAt(seq)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Blob(blob), w.Blob(blob)); err != nil {
		t.Fatal(err)
	}
	w.Missing(codec.RefOf([]byte("lost")))
	name, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestArchiveIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	name := written(t)
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Header.Session != sid || f.End.Events != 3 || f.End.Blobs != 1 || !slices.Equal(f.End.Missing, []codec.Ref{codec.RefOf([]byte("lost"))}) {
		t.Errorf("got %+v and %+v", f.Header, f.End)
	}
	for _, c := range []struct {
		from, to uint64
		want     []uint64
	}{{0, 0, []uint64{3, 5, 7}}, {4, 6, []uint64{5}}, {5, 5, []uint64{5}}, {8, 0, nil}, {1, 2, nil}} {
		var got []uint64
		for e, err := range f.Events(c.from, c.to) {
			if want := eventAt(e.Seq); err != nil || fmt.Sprint(e) != fmt.Sprint(want) {
				t.Errorf("got %v (%v), want %v", e, err, want)
			}
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("from %d to %d: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if e, err := f.Event(5); err != nil || e.Seq != 5 {
		t.Errorf("event 5: got %v (%v)", e, err)
	}
	if content, err := f.Blob(codec.RefOf(blob)); err != nil || !bytes.Equal(content, blob) {
		t.Errorf("the blob has %d bytes (%v), want %d", len(content), err, len(blob))
	}
	if _, err := f.Event(4); !errors.Is(err, ErrNotFound) {
		t.Errorf("event 4: got %v, want ErrNotFound", err)
	}
	if _, err := f.Blob(codec.RefOf([]byte("lost"))); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing blob: got %v, want ErrNotFound", err)
	}
	if names, err := os.ReadDir(filepath.Dir(name)); err != nil || len(names) != 1 {
		t.Errorf("the directory has %v (%v), want the archive alone", names, err)
	}
}

// TestEveryDamageIsTold: no prefix of a file, and no file with one changed byte, can be
// opened.
func TestEveryDamageIsTold(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(written(t))
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(data []byte) error {
		f, err := read(bytes.NewReader(data))
		if err == nil {
			err = errors.Join(f.Close(), nil)
			t.Errorf("a damaged file of %d bytes is read", len(data))
		}
		return err
	}
	for n := range len(whole) {
		if err := damaged(whole[:n]); n == 0 && !errors.Is(err, ErrNotArchive) || n > 0 && !errors.Is(err, ErrTruncated) {
			t.Errorf("the first %d of %d bytes: got %v, want ErrTruncated", n, len(whole), err)
		}
	}
	for i := range whole {
		data := slices.Clone(whole)
		data[i] ^= 0x41
		var newer *NewerError
		switch err := damaged(data); {
		case i < len(magic) && !errors.Is(err, ErrNotArchive):
			t.Errorf("byte %d is another one: got %v, want ErrNotArchive", i, err)
		case i == len(magic) && !errors.As(err, &newer):
			t.Errorf("a later version: got %v, want a NewerError", err)
		case i > len(magic) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated):
			t.Errorf("byte %d is another one: got %v, want ErrCorrupt", i, err)
		}
	}
	if err := damaged(append(slices.Clone(whole), whole[len(magic)+1:]...)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("bytes after the end: got %v, want ErrCorrupt", err)
	}
}

// TestFalseRecordsAreCorrupt: a file that somebody made is refused, whatever its records
// claim.
func TestFalseRecordsAreCorrupt(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(*Writer) error{
		"fewer events than the header says": func(w *Writer) error { return w.Event(eventAt(3)) },
		"events out of order": func(w *Writer) error {
			return errors.Join(w.Event(eventAt(3)), w.Event(eventAt(7)), w.Event(eventAt(5)))
		},
		"an event without a subject": func(w *Writer) error { return w.record(kindEvent, make([]byte, eventHeadBytes)) },
		"an event of no length":      func(w *Writer) error { return w.record(kindEvent) },
		"a blob with another name":   func(w *Writer) error { return w.record(kindBlob, make([]byte, 40)) },
		"a blob without a name":      func(w *Writer) error { return w.record(kindBlob, []byte("short")) },
		"a second header":            func(w *Writer) error { return w.json(kindHeader, w.header) },
		"an unknown record": func(w *Writer) error {
			_, err := w.zip.Write([]byte{'X', 0, 0, 0, 0})
			return err
		},
		"a record over its limit": func(w *Writer) error {
			_, err := w.zip.Write([]byte{'E', 0xff, 0xff, 0xff, 0xff})
			return err
		},
	} {
		dir := t.TempDir()
		w, err := Create(dir, header(3))
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(w); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if name, err := w.Finish(nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %q and %v, want ErrCorrupt", what, name, err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
			t.Errorf("%s: the directory has %v (%v), want nothing", what, names, err)
		}
	}
	long, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := append([]byte{byte(kindHeader), 0, 0xff, 0xff, 0xff}, `{}`...)
	if _, err := read(bytes.NewReader(append([]byte(magic+"\x01"), long.EncodeAll(claims, nil)...))); !errors.Is(err, ErrTruncated) {
		t.Errorf("a header that claims more than there is: got %v, want ErrTruncated", err)
	}
}

// TestFailedCheckLeavesNothing: the older file stays as it was.
func TestFailedCheckLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, refused := t.TempDir(), errors.New("refused")
	before := []byte("older")
	if err := os.WriteFile(Name(dir, sid), before, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, Header{Session: sid, Prefix: "refold", Count: 1, First: 3, Last: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Event(eventAt(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(func(f *File) error {
		if f.Header.Count != 1 {
			t.Errorf("got %+v", f.Header)
		}
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
	if got, err := os.ReadFile(Name(dir, sid)); err != nil || !bytes.Equal(got, before) {
		t.Errorf("the older file has %q (%v)", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the directory has %v (%v)", names, err)
	}
}
