package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Blobs are objects of a NATS object store. A description lies on a subject derived
// from the blob's name, and names the subject of the chunks. nats.go's ObjectStore is
// not used: it reads descriptions from any replica and replaces them, and a reader with
// an old description waits for deleted chunks. Here a description is written once, and
// read from the leader.

// blobChunkBytes is the size of a chunk, as in all NATS clients.
const blobChunkBytes = 128 << 10

// blobBytesMax is the largest blob; readers may set a smaller limit.
const blobBytesMax = 1 << 30

// PutBlob stores content under its hash and returns its name. It does not send
// content that is already stored, so it is idempotent.
func (j *Journal) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	if len(content) > blobBytesMax {
		return codec.Ref{}, fmt.Errorf("put blob %s: %w: it has %d bytes, and a blob has %d at most", ref, ErrTooLarge, len(content), blobBytesMax)
	}
	upload := "" // the name of the stored chunks; empty: none yet
	err := natsio.Backoff(ctx, func() error { return j.putBlob(ctx, ref, content, &upload) })
	if err != nil {
		return codec.Ref{}, fmt.Errorf("put blob %s (%d bytes): %w", ref, len(content), err)
	}
	return ref, nil
}

// putBlob makes one attempt: first the chunks, under a new name, then the
// description, which only one of several writers can store. If an attempt may have
// stored its description, the next one reuses its chunks, whose name is in upload.
// So no chunks are left over, whatever the outcome.
func (j *Journal) putBlob(ctx context.Context, ref codec.Ref, content []byte, upload *string) error {
	digest := digestOf(ref.Hash)
	have, seq, err := j.blobInfo(ctx, ref)
	if err == nil && have.Digest == digest && have.Size == uint64(len(content)) {
		if *upload != "" && *upload != have.NUID {
			j.dropChunks(ctx, *upload)
		}
		return nil
	}
	if err != nil && !errors.Is(err, natsio.ErrNotFound) {
		return err
	}
	if *upload == "" {
		name := nuid.Next()
		if err := j.putChunks(ctx, j.names.BlobChunks(name), content); err != nil {
			j.dropChunks(ctx, name)
			return err
		}
		*upload = name
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: ref.String(), Opts: &jetstream.ObjectMetaOptions{ChunkSize: blobChunkBytes}},
		Bucket:     j.names.BlobsBucket(),
		NUID:       *upload,
		Size:       uint64(len(content)),
		Chunks:     uint32((len(content) + blobChunkBytes - 1) / blobChunkBytes),
		Digest:     digest,
	}
	switch err = j.putBlobInfo(ctx, info, seq); {
	case errors.Is(err, errDescribed):
		j.dropChunks(ctx, info.NUID)
		*upload = ""
	case err == nil && have.NUID != "" && have.NUID != info.NUID:
		j.dropChunks(ctx, have.NUID)
	}
	// After any other error the description may be stored: the chunks stay.
	return err
}

// dropChunks deletes an upload that no description names. A failure is only logged,
// since leftover chunks only take space.
func (j *Journal) dropChunks(ctx context.Context, upload string) {
	subject := j.names.BlobChunks(upload)
	if err := j.purge(context.WithoutCancel(ctx), subject); err != nil {
		j.conn.Log.Warn("chunks_left", "subject", subject, "error", err.Error())
	}
}

func (j *Journal) putChunks(ctx context.Context, subject string, content []byte) error {
	ctx, stop := j.conn.Watch(ctx, subject, false)
	defer stop()
	var sent []jetstream.PubAckFuture
	for len(content) > 0 {
		n := min(len(content), blobChunkBytes)
		future, err := j.conn.JS.PublishMsgAsync(&nats.Msg{Subject: subject, Data: content[:n]})
		if err != nil {
			return err
		}
		sent, content = append(sent, future), content[n:]
	}
	for _, future := range sent {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// errDescribed means that another description was stored first, and that this one
// never will be.
const errDescribed = natsio.Retryable("another writer described the blob first")

// putBlobInfo replaces the description at sequence former (0: none). errDescribed
// means that another writer did; after any other error the outcome is unknown.
func (j *Journal) putBlobInfo(ctx context.Context, info jetstream.ObjectInfo, former uint64) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	w := &write{
		subject: j.blobSubject(info.Name), data: data, fenced: true, after: former, alone: true,
		headers: []string{subjects.HeaderRollup, subjects.RollupSubject},
	}
	if err := j.blobs.commitOne(ctx, w); err != nil {
		return err
	}
	if w.existing != nil && !bytes.Equal(w.existing, data) {
		return errDescribed
	}
	return nil
}

// GetBlob returns the content of a blob, verified against its name. One that
// does not exist is ErrNotFound; one whose bytes have another hash is
// ErrOtherBytes and never content.
func (j *Journal) GetBlob(ctx context.Context, ref codec.Ref) ([]byte, error) {
	return j.GetBlobUpTo(ctx, ref, blobBytesMax)
}

// GetBlobUpTo is GetBlob with a limit of bytesMax bytes; a larger blob is ErrTooLarge.
// It allocates for the bytes that arrive, not for the size that the store claims.
func (j *Journal) GetBlobUpTo(ctx context.Context, ref codec.Ref, bytesMax int) ([]byte, error) {
	content, err := j.getBlob(ctx, ref, bytesMax)
	if errors.Is(err, ErrOtherBytes) {
		if _, _, gone := j.blobInfo(ctx, ref); errors.Is(gone, natsio.ErrNotFound) {
			err = fmt.Errorf("%w: it was deleted during the read", natsio.ErrNotFound)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", ref, err)
	}
	return content, nil
}

func (j *Journal) getBlob(ctx context.Context, ref codec.Ref, bytesMax int) ([]byte, error) {
	info, _, err := j.blobInfo(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case info.NUID == "":
		return nil, fmt.Errorf("%w: its description names no chunks; restore it from a backup", ErrOtherBytes)
	case info.Size > uint64(bytesMax):
		return nil, fmt.Errorf("%w: it has %d bytes, and the limit is %d", ErrTooLarge, info.Size, bytesMax)
	}
	content, err := j.chunks(ctx, j.names.BlobsStream(), j.names.BlobChunks(info.NUID), info.Size)
	if errors.Is(err, errTooMany) {
		return nil, fmt.Errorf("%w: more than %d bytes; restore it from a backup", ErrOtherBytes, info.Size)
	}
	if err != nil {
		return nil, err
	}
	if got := codec.RefOf(content); got != ref {
		return nil, fmt.Errorf("%w: %s; restore it from a backup", ErrOtherBytes, got)
	}
	return content, nil
}

// deleteBlob deletes a blob. A missing blob is no error.
func (j *Journal) deleteBlob(ctx context.Context, ref codec.Ref) error {
	info, seq, err := j.blobInfo(ctx, ref)
	if errors.Is(err, natsio.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	upload := info.NUID
	info.Deleted, info.Size, info.Chunks, info.Digest = true, 0, 0, ""
	if err := j.putBlobInfo(ctx, info, seq); err != nil {
		return natsio.Typed(err)
	}
	if upload == "" {
		return nil
	}
	return j.purge(ctx, j.names.BlobChunks(upload))
}

// blobInfo is describe for a blob.
func (j *Journal) blobInfo(ctx context.Context, ref codec.Ref) (info jetstream.ObjectInfo, seq uint64, err error) {
	return j.describe(ctx, j.names.BlobsStream(), j.blobSubject(ref.String()))
}

// describe reads the description of an object from the leader, and its sequence. The
// description of a deleted object comes with ErrNotFound. NUID and Digest are emptied if
// NUID is not the name of an upload: it may have a wildcard.
func (j *Journal) describe(ctx context.Context, stream, subject string) (info jetstream.ObjectInfo, seq uint64, err error) {
	m, err := j.leaderGet(ctx, stream, getRequest{LastFor: subject})
	if err != nil {
		return info, 0, err
	}
	if err := json.Unmarshal(m.data, &info); err != nil {
		return info, 0, fmt.Errorf("description of an object on %s: %w", subject, err)
	}
	if !isUpload(info.NUID) {
		info.NUID, info.Digest = "", ""
	}
	if info.Deleted {
		err = natsio.ErrNotFound
	}
	return info, m.seq, err
}

// errTooMany means that an object's chunks have more bytes than its description.
var errTooMany = errors.New("more bytes than the description says")

// chunks reads the content of an object. More than size bytes are errTooMany.
func (j *Journal) chunks(ctx context.Context, stream, subject string, size uint64) (content []byte, err error) {
	for m, err := range j.read(ctx, stream, subject, 1, 0, true) {
		if err != nil {
			return nil, err
		}
		if uint64(len(content)+len(m.data)) > size {
			return nil, errTooMany
		}
		if content == nil { // most objects are one chunk, and size is only a claim
			content = make([]byte, 0, min(size, 8*blobChunkBytes))
		}
		content = append(content, m.data...)
	}
	return content, nil
}

// digestOf returns the digest as descriptions have it.
func digestOf(sum [sha256.Size]byte) string {
	return "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:])
}

// isUpload reports whether name may be the name of chunks: one token of a subject.
func isUpload(name string) bool {
	return name != "" && !strings.ContainsAny(name, ".*> \t\r\n\x00")
}

func (j *Journal) blobSubject(name string) string {
	return j.names.BlobSubject(base64.URLEncoding.EncodeToString([]byte(name)))
}

// purgeTime bounds the cleanup after a failure, which continues after the end of the
// caller's context.
const purgeTime = 30 * time.Second

func (j *Journal) purge(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTime)
	defer cancel()
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		return j.conn.Ask(ctx, "STREAM.PURGE."+j.names.BlobsStream(), map[string]string{"filter": subject}, new(natsio.Answer))
	})
}

// HasBlob reports whether a blob is stored, without reading it.
func (j *Journal) HasBlob(ctx context.Context, ref codec.Ref) (bool, error) {
	_, _, err := j.blobInfo(ctx, ref)
	if errors.Is(err, natsio.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for blob %s: %w", ref, err)
	}
	return true, nil
}
