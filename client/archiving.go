package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
)

// Archived says what is in the archive of a session.
type Archived struct {
	Session string      `json:"session"`
	File    string      `json:"file"`
	Was     bool        `json:"was"` // the file was there already, as it would be written now
	Events  uint64      `json:"events"`
	Blobs   uint64      `json:"blobs"`
	Missing []codec.Ref `json:"missing,omitempty"` // blobs that events name, and that the store does not have
	Last    uint64      `json:"last"`              // sequence of the last event
	Hash    codec.Hash  `json:"hash"`              // of the state after it
	Chain   codec.Hash  `json:"chain"`
	Bytes   int64       `json:"bytes"` // of the file
}

// Archive writes a session into one file, dir/SESSION.refold, which OpenArchive reads:
// its events up to now, the install record that it pinned, and the blobs that they
// name. When it returns, the file was written to the disk, read back and folded to the
// same state. A file of that name that has an earlier part of the session is replaced;
// one that has another session, or a longer one, is an error. So is a session that
// differs from what was stored of it (see Replay), or was erased. After an error
// nothing has changed, except that a file which was there may have its new content.
func (c *Client) Archive(ctx context.Context, sid, dir string) (*Archived, error) {
	r, err := c.Replay(ctx, sid, 0, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("archive session %s: %w", sid, err)
	case !r.Identical():
		return nil, fmt.Errorf("archive session %s: it differs from what was stored of it: %s; refold verify %s shows all", sid, r.Differences[0], sid)
	case r.State.IsErased():
		return nil, fmt.Errorf("archive session %s: it was erased: nothing is left of it", sid)
	}
	a, err := c.kept(ctx, r, dir)
	if err == nil && a == nil {
		a, err = c.writeArchive(ctx, r, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("archive session %s: %w", sid, err)
	}
	info, err := os.Stat(a.File)
	if err != nil {
		return nil, err
	}
	a.Bytes = info.Size()
	return a, nil
}

// kept returns what the directory has of the session as it is; nil if it has none, or an
// earlier part.
func (c *Client) kept(ctx context.Context, r *Replayed, dir string) (*Archived, error) {
	name := archive.Name(dir, r.Session)
	f, err := archive.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; move it away, or archive to another directory", err)
	}
	defer f.Close()
	h := &f.Header
	if h.Last == r.Seq && h.Chain == r.Chain && h.Hash == r.Hash {
		if err := sameState(ctx, f, r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return archivedIn(name, f), nil
	}
	if h.Last < r.Seq {
		part, err := c.Replay(ctx, r.Session, h.Last, nil)
		if err == nil && part.Seq == h.Last && part.Chain == h.Chain {
			return nil, nil
		}
		if err != nil && !errors.Is(err, ErrNoSession) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is of another session with this name, or of a later state of it: move it away, or archive to another directory", name)
}

func archivedIn(name string, f *archive.File) *Archived {
	h := &f.Header
	return &Archived{Session: h.Session, File: name, Was: true, Events: h.Count, Blobs: f.End.Blobs, Missing: f.End.Missing, Last: h.Last, Hash: h.Hash, Chain: h.Chain}
}

// sameState returns nil if the events of a file fold to the state of r.
func sameState(ctx context.Context, f *archive.File, r *Replayed) error {
	again, err := inArchive(f).Replay(ctx, r.Session, 0, nil)
	switch {
	case err != nil:
		return err
	case !again.Identical():
		return errors.New(again.Differences[0])
	case again.Hash != r.Hash || again.Chain != r.Chain:
		return fmt.Errorf("its events fold to the state %s, those of the log to %s", again.Hash, r.Hash)
	}
	return nil
}

// writeArchive writes the events that r was folded from.
func (c *Client) writeArchive(ctx context.Context, r *Replayed, dir string) (*Archived, error) {
	h := archive.Header{
		Session: r.Session, Prefix: c.bus.Names().Prefix(), Written: time.Now().UnixMilli(),
		Count: r.Events, Chain: r.Chain, Hash: r.Hash, Last: r.Seq,
	}
	for e, err := range c.Read(ctx, r.Session, 0, r.Seq) {
		if err != nil {
			return nil, err
		}
		h.First = e.Seq
		break
	}
	record, canonical, err := c.pinnedRecord(ctx, r.State.Install, h.First)
	if err != nil {
		return nil, err
	}
	h.Install = archive.Install{Seq: record.Seq, Time: record.Time, Payload: record.Payload}
	w, err := archive.Create(dir, h)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	of := blobsOf{seen: map[codec.Hash]bool{}}
	of.named(canonical)
	for e, err := range c.Read(ctx, r.Session, 0, r.Seq) {
		if err == nil {
			of.named(e.Payload)
			err = w.Event(e)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := c.archiveBlobs(ctx, w, &of); err != nil {
		return nil, err
	}
	var a *Archived
	name, err := w.Finish(func(f *archive.File) error {
		a = archivedIn("", f)
		return sameState(ctx, f, r)
	})
	if err != nil {
		return nil, err
	}
	a.File, a.Was = name, false
	return a, nil
}

// archiveBlobs adds the blobs that events name, and those that manifests among them
// name.
func (c *Client) archiveBlobs(ctx context.Context, w *archive.Writer, of *blobsOf) error {
	for len(of.next) > 0 {
		at := of.next[0]
		of.next = of.next[1:]
		content, err := c.bus.GetBlob(ctx, at.ref)
		switch {
		case errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes):
			if at.is {
				w.Missing(at.ref)
			}
			continue
		case err != nil:
			return err
		}
		if err := w.Blob(content); err != nil {
			return err
		}
		if len(content) <= space.ManifestBytesMax {
			if m, _ := space.Parse(content); m != nil {
				of.named(content)
			}
		}
	}
	return nil
}

// blobsOf collects the names of blobs.
type blobsOf struct {
	seen map[codec.Hash]bool
	next []namedBlob
}

type namedBlob struct {
	ref codec.Ref
	is  bool // it has the form of a name; else it is a hash, which may be that of a manifest
}

var blobName = regexp.MustCompile(`(?:sha256-)?[0-9a-f]{64}`)

// named adds what the bytes of a message or a manifest name: names of blobs are text in
// all of them.
func (b *blobsOf) named(in []byte) {
	for _, text := range blobName.FindAll(in, -1) {
		ref, err := codec.ParseRef(string(text))
		is := err == nil
		if !is {
			if ref.Hash, err = codec.ParseHash(string(text)); err != nil {
				continue
			}
		}
		if !b.seen[ref.Hash] {
			b.seen[ref.Hash] = true
			b.next = append(b.next, namedBlob{ref, is})
		}
	}
}
