package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// Writer writes one archive. Its caller calls Abort in any case: it does nothing after
// Finish.
type Writer struct {
	name string // the final one
	file *os.File
	out  *bufio.Writer
	zip  *zstd.Encoder
	sum  hash.Hash

	header Header
	names  subjects.Names
	end    End
	size   int64
	have   map[codec.Hash]bool // blobs
}

// Create begins the archive of a session in a directory, under a temporary name.
func Create(dir string, h Header) (*Writer, error) {
	names, err := subjects.New(h.Prefix)
	if err != nil {
		return nil, err
	}
	if err := subjects.ValidSession(h.Session); err != nil {
		return nil, err
	}
	name := Name(dir, h.Session)
	file, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return nil, err
	}
	w := &Writer{name: name, file: file, out: bufio.NewWriterSize(file, 1<<16), sum: sha256.New(), header: h, names: names, have: map[codec.Hash]bool{}}
	if w.zip, err = zstd.NewWriter(w.out, zstd.WithEncoderConcurrency(1)); err == nil {
		_, err = w.out.WriteString(magic + string(rune(Version)))
	}
	if err == nil {
		err = w.json(kindHeader, h)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Name returns the name of a session's archive in a directory.
func Name(dir, sid string) string { return filepath.Join(dir, sid+Extension) }

// record writes the parts of a body as one record.
func (w *Writer) record(k kind, parts ...[]byte) error {
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > k.bytesMax() {
		return fmt.Errorf("a record %q of %d bytes: at most %d", k, size, k.bytesMax())
	}
	if w.size += headBytes + size; w.size > SizeMax {
		return fmt.Errorf("the session has over %d bytes: an archive can't have more", int64(SizeMax))
	}
	head := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(size))
	for _, p := range append([][]byte{head}, parts...) {
		w.sum.Write(p)
		if _, err := w.zip.Write(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) json(k kind, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.record(k, text)
}

// Event adds the next event.
func (w *Writer) Event(e session.Event) error {
	if e.Session != w.header.Session || len(w.have) > 0 {
		return fmt.Errorf("event %d of session %s: it does not come next in the archive of %s", e.Seq, e.Session, w.header.Session)
	}
	subject, err := w.names.Stored(e.Door, e.Session)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64(nil, e.Seq)
	head = binary.BigEndian.AppendUint64(head, uint64(e.Time))
	head = binary.BigEndian.AppendUint16(head, uint16(len(subject)))
	if o := e.Original; o != nil {
		if err := w.record(kindBefore, o.Leaf[:], o.Content[:]); err != nil {
			return err
		}
	}
	w.end.Events++
	return w.record(kindEvent, append(head, subject...), e.Payload)
}

// Blob adds a blob, unless the archive has it.
func (w *Writer) Blob(content []byte) error {
	name := codec.Sum(content)
	if w.have[name] {
		return nil
	}
	w.have[name] = true
	w.end.Blobs++
	return w.record(kindBlob, name[:], content)
}

// Missing notes a blob that the store does not have.
func (w *Writer) Missing(ref codec.Ref) { w.end.Missing = append(w.end.Missing, ref) }

// Finish ends the file, writes it to the disk, and reads it back. check, if not nil, is
// called with what was read. If nothing failed, the file gets its name, in place of an
// older file of that name, and Finish returns it. Else nothing is left of it.
func (w *Writer) Finish(check func(*File) error) (name string, err error) {
	defer w.Abort()
	w.end.Sum = codec.Hash(w.sum.Sum(nil))
	if err := errors.Join(w.json(kindEnd, w.end), w.zip.Close(), w.out.Flush(), w.file.Sync()); err != nil {
		return "", err
	}
	f, err := Open(w.file.Name())
	if err != nil {
		return "", fmt.Errorf("read back: %w", err)
	}
	if check != nil {
		err = check(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read back: %w", err)
	}
	if err := os.Rename(w.file.Name(), w.name); err != nil {
		return "", err
	}
	return w.name, syncDir(filepath.Dir(w.name))
}

// syncDir writes the names of a directory to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Abort removes the temporary file.
func (w *Writer) Abort() {
	if w.file == nil {
		return
	}
	_ = w.zip.Close() // its goroutines
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
	w.file = nil
}
