package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// File is an archive that was read and checked. It is safe for concurrent use, and its
// caller closes it.
type File struct {
	Header Header
	End    End

	spool  *os.File // the bodies of events and blobs; it has no name
	names  subjects.Names
	events []place // ascending
	blobs  map[codec.Hash]place
}

// place is where a body is.
type place struct {
	seq  uint64 // of an event
	at   int64
	size uint32
	was  *session.Original // of an event whose text was removed
}

// Open reads and checks a whole file. An error names the file; what is wrong with it is
// ErrNotArchive, ErrTruncated, ErrCorrupt or a *NewerError.
func Open(name string) (*File, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Is reports whether a file begins as an archive does. It leaves the file at its start.
func Is(file io.ReadSeeker) (bool, error) {
	head := make([]byte, len(magic))
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return string(head[:n]) == magic, err
}

func read(in io.Reader) (*File, error) {
	buffered := bufio.NewReaderSize(in, 1<<16)
	head := make([]byte, len(magic)+1)
	switch n, err := io.ReadFull(buffered, head); {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, err
	case n == 0 || !bytes.HasPrefix([]byte(magic), head[:min(n, len(magic))]):
		return nil, ErrNotArchive
	case n < len(head):
		return nil, ErrTruncated
	}
	if version := int(head[len(magic)]); version > Version {
		return nil, &NewerError{version}
	} else if version == 0 {
		return nil, ErrNotArchive
	}
	zip, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer zip.Close()
	spool, err := os.CreateTemp("", "refold-archive-*")
	if err != nil {
		return nil, err
	}
	r := &reader{in: bufio.NewReaderSize(zip, 1<<16), sum: sha256.New(), out: bufio.NewWriterSize(spool, 1<<16), file: &File{spool: spool, blobs: map[codec.Hash]place{}}}
	if err := errors.Join(os.Remove(spool.Name()), r.run()); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return r.file, nil
}

// reader reads the records of a file.
type reader struct {
	in   *bufio.Reader
	sum  hash.Hash // of all records before the one at hand
	out  *bufio.Writer
	size int64             // of all records so far
	at   int64             // in the spool
	was  *session.Original // the next event, before its text was removed
	file *File
}

func (r *reader) run() error {
	f := r.file
	body, err := r.whole(kindHeader)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &f.Header); err != nil {
		return fmt.Errorf("%w: its header: %w", ErrCorrupt, err)
	}
	if f.names, err = subjects.New(f.Header.Prefix); err == nil {
		err = subjects.ValidSession(f.Header.Session)
	}
	if err != nil {
		return fmt.Errorf("%w: its header: %w", ErrCorrupt, err)
	}
	for {
		k, size, err := r.head()
		if err != nil {
			return err
		}
		switch {
		case k == kindEvent && len(f.blobs) == 0:
			err = r.event(size)
		case k == kindBefore && len(f.blobs) == 0 && size == beforeBytes:
			err = r.before()
		case k == kindBlob:
			err = r.blob(size)
		case k == kindEnd:
			return r.end(size)
		default:
			err = fmt.Errorf("%w: a record of the kind %q is out of place", ErrCorrupt, k)
		}
		if err != nil {
			return err
		}
	}
}

// head reads what a record has before its body.
func (r *reader) head() (kind, int64, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, 0, damage(err)
	}
	k, size := kind(head[0]), int64(binary.BigEndian.Uint32(head[1:]))
	if size > k.bytesMax() {
		return 0, 0, fmt.Errorf("%w: a record of the kind %q has %d bytes, at most %d are allowed", ErrCorrupt, k, size, k.bytesMax())
	}
	if r.size += headBytes + size; r.size > SizeMax {
		return 0, 0, fmt.Errorf("%w: it has over %d bytes of records", ErrCorrupt, int64(SizeMax))
	}
	if k != kindEnd {
		r.sum.Write(head[:])
	}
	return k, size, nil
}

// damage is what an error of reading says of the file.
func damage(err error) error {
	var failed *os.PathError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return ErrTruncated
	case errors.As(err, &failed):
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// whole reads a small record of a kind.
func (r *reader) whole(want kind) ([]byte, error) {
	k, size, err := r.head()
	if err == nil && k != want {
		err = fmt.Errorf("%w: it begins with a record of the kind %q", ErrCorrupt, k)
	}
	if err != nil {
		return nil, err
	}
	return r.bytes(size, true)
}

// bytes reads a part of a body that has been allowed to be as long.
func (r *reader) bytes(size int64, counts bool) ([]byte, error) {
	var body bytes.Buffer // grows with what is there, not with what is claimed
	if _, err := io.CopyN(&body, r.in, size); err != nil {
		return nil, damage(err)
	}
	if counts {
		r.sum.Write(body.Bytes())
	}
	return body.Bytes(), nil
}

// before reads what the next event was before its text was removed.
func (r *reader) before() error {
	body, err := r.bytes(beforeBytes, true)
	if err != nil {
		return err
	}
	r.was = new(session.Original)
	copy(r.was.Content[:], body[copy(r.was.Leaf[:], body):])
	return nil
}

func (r *reader) event(size int64) error {
	body, err := r.bytes(size, true)
	if err != nil {
		return err
	}
	seq, f := uint64(0), r.file
	if len(body) >= eventHeadBytes {
		seq = binary.BigEndian.Uint64(body)
	}
	if seq == 0 || len(f.events) > 0 && f.events[len(f.events)-1].seq >= seq {
		return fmt.Errorf("%w: event %d of %d is out of order", ErrCorrupt, len(f.events)+1, f.Header.Count)
	}
	if _, err := f.event(body); err != nil {
		return err
	}
	f.events = append(f.events, place{seq: seq, at: r.at, size: uint32(size), was: r.was})
	r.was = nil
	return r.spool(body)
}

func (r *reader) spool(body []byte) error {
	n, err := r.out.Write(body)
	r.at += int64(n)
	return err
}

func (r *reader) blob(size int64) error {
	body, err := r.bytes(size, true)
	if err != nil {
		return err
	}
	var name codec.Hash
	if content := body[min(copy(name[:], body), len(body)):]; codec.Sum(content) != name {
		return fmt.Errorf("%w: the content of blob %s is another one", ErrCorrupt, codec.Ref{Hash: name})
	}
	r.file.blobs[name] = place{at: r.at + int64(len(name)), size: uint32(size) - uint32(len(name))}
	return r.spool(body)
}

func (r *reader) end(size int64) error {
	f := r.file
	body, err := r.bytes(size, false)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &f.End); err != nil {
		return fmt.Errorf("%w: its end: %w", ErrCorrupt, err)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) { // reads the stream's checksum
		if err == nil {
			err = errors.New("there are bytes after its end")
		}
		return damage(err)
	}
	h, n := &f.Header, uint64(len(f.events))
	switch {
	case f.End.Sum != codec.Hash(r.sum.Sum(nil)):
		return fmt.Errorf("%w: its sum is another one", ErrCorrupt)
	case f.End.Events != n || h.Count != n || f.End.Blobs != uint64(len(f.blobs)):
		return fmt.Errorf("%w: it has %d events and %d blobs, and should have %d and %d", ErrCorrupt, n, len(f.blobs), h.Count, f.End.Blobs)
	case n == 0 || h.First != f.events[0].seq || h.Last != f.events[n-1].seq:
		return fmt.Errorf("%w: its events are not from %d to %d", ErrCorrupt, h.First, h.Last)
	}
	return r.out.Flush()
}

// event decodes the body of an event.
func (f *File) event(body []byte) (session.Event, error) {
	size := eventHeadBytes
	if len(body) >= size {
		size += int(binary.BigEndian.Uint16(body[16:]))
	}
	if len(body) < size {
		return session.Event{}, fmt.Errorf("%w: an event of %d bytes", ErrCorrupt, len(body))
	}
	door, sid, err := f.names.ParseStored(string(body[eventHeadBytes:size]))
	if err != nil || sid != f.Header.Session {
		return session.Event{}, fmt.Errorf("%w: an event has the subject %q", ErrCorrupt, body[eventHeadBytes:size])
	}
	return session.Event{
		Session: sid, Door: door, Seq: binary.BigEndian.Uint64(body), Time: int64(binary.BigEndian.Uint64(body[8:])), Payload: body[size:],
	}, nil
}

func (f *File) body(p place) ([]byte, error) {
	body := make([]byte, p.size)
	_, err := f.spool.ReadAt(body, p.at)
	return body, err
}

func (f *File) find(seq uint64) (at int, found bool) {
	return slices.BinarySearchFunc(f.events, seq, func(p place, seq uint64) int { return cmp.Compare(p.seq, seq) })
}

// Event returns the event at a sequence, or ErrNotFound.
func (f *File) Event(seq uint64) (session.Event, error) {
	at, found := f.find(seq)
	if !found {
		return session.Event{}, fmt.Errorf("event %d: %w", seq, ErrNotFound)
	}
	return f.eventAt(f.events[at])
}

func (f *File) eventAt(p place) (session.Event, error) {
	body, err := f.body(p)
	if err != nil {
		return session.Event{}, err
	}
	e, err := f.event(body)
	e.Original = p.was
	return e, err
}

// Events yields the events with sequences from from to to (0: no end), in order.
func (f *File) Events(from, to uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		at, _ := f.find(from)
		for _, p := range f.events[at:] {
			if to != 0 && p.seq > to {
				return
			}
			e, err := f.eventAt(p)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Blob returns the content of a blob, or ErrNotFound.
func (f *File) Blob(ref codec.Ref) ([]byte, error) {
	p, found := f.blobs[ref.Hash]
	if !found {
		return nil, fmt.Errorf("blob %s: %w", ref, ErrNotFound)
	}
	return f.body(p)
}

// Close frees what the file takes.
func (f *File) Close() error { return f.spool.Close() }
