package journal

import (
	"cmp"
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
)

// Blobs are objects of a NATS object store. A description lies on a subject derived
// from the blob's name, and names the subject of the chunks.
//
// The name is the hash of the content, so nothing is ever replaced. A writer asks for
// no content: it looks up whether there is a description, and else stores the chunks,
// then a description that is stored only if none was stored meanwhile. It deletes
// nothing: the stream takes no rollups, and only session-actors and erasers may purge.
// Chunks that no description names, of an upload that failed or lost the race, only take
// space: SweepBlobs deletes them. SweepOrphans deletes blobs that nothing names.
//
// Whoever may write blobs may store a false description, too. So a reader tries them in
// the order of the stream: what somebody adds later never hides what was stored first.
//
// nats.go's ObjectStore is not used: it replaces descriptions, by rollups.

// blobChunkBytes is the size of a chunk, as in all NATS clients.
const blobChunkBytes = 128 << 10

// blobBytesMax is the largest blob; readers may set a smaller limit.
const blobBytesMax = 1 << 30

// descriptionsMax is how many descriptions of a blob a reader tries.
const descriptionsMax = 64

// PutBlob stores content under its hash and returns its name. It does not send
// content that is described already, so it is idempotent.
func (j *Journal) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	return j.putBlob(ctx, content, false)
}

// RestoreBlob is PutBlob for content that a reader missed: it reads the blob, and
// stores it again if it can't be read, even if it is described.
func (j *Journal) RestoreBlob(ctx context.Context, content []byte) error {
	_, err := j.GetBlob(ctx, codec.RefOf(content))
	if errors.Is(err, natsio.ErrNotFound) || errors.Is(err, ErrOtherBytes) {
		_, err = j.putBlob(ctx, content, true)
	}
	return err
}

func (j *Journal) putBlob(ctx context.Context, content []byte, again bool) (codec.Ref, error) {
	u := upload{ref: codec.RefOf(content), content: content, again: again}
	if len(content) > blobBytesMax {
		return codec.Ref{}, fmt.Errorf("put blob %s: %w: it has %d bytes, and a blob has %d at most", u.ref, ErrTooLarge, len(content), blobBytesMax)
	}
	if err := natsio.Backoff(ctx, func() error { return j.put(ctx, &u) }); err != nil {
		return codec.Ref{}, fmt.Errorf("put blob %s (%d bytes): %w", u.ref, len(content), err)
	}
	return u.ref, nil
}

// upload is a blob that is being stored.
type upload struct {
	ref     codec.Ref
	content []byte
	again   bool   // a description that is there does not count
	chunks  string // the name of the stored chunks; empty: none yet
}

// put makes one attempt. The next one uses the chunks that are stored.
func (j *Journal) put(ctx context.Context, u *upload) error {
	have, seq, err := j.lookUpBlob(ctx, u.ref)
	switch {
	case err != nil && !errors.Is(err, natsio.ErrNotFound):
		return err
	case err == nil && u.chunks != "" && have.NUID == u.chunks:
		return nil
	case err == nil && !u.again && describes(have, u.ref) && have.Size == uint64(len(u.content)):
		return j.unmark(ctx, u.ref, have, seq)
	}
	if u.chunks == "" {
		name := nuid.Next()
		if err := j.putChunks(ctx, j.names.BlobChunks(name), u.content); err != nil {
			return err
		}
		u.chunks = name
	}
	return j.putDescription(ctx, u.ref, seq, jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: u.ref.String(), Opts: &jetstream.ObjectMetaOptions{ChunkSize: blobChunkBytes}},
		Bucket:     j.names.BlobsBucket(),
		NUID:       u.chunks,
		Size:       uint64(len(u.content)),
		Chunks:     uint32((len(u.content) + blobChunkBytes - 1) / blobChunkBytes),
		Digest:     digestOf(u.ref.Hash),
	})
}

// putDescription makes one attempt to store a description of a blob whose last one is at
// sequence seq (0: there is none). If it is not, the error is errDescribed.
func (j *Journal) putDescription(ctx context.Context, ref codec.Ref, seq uint64, info jetstream.ObjectInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	subject := j.blobSubject(ref)
	err = j.conn.Attempt(ctx, subject, func(ctx context.Context) error {
		ack, err := j.conn.JS.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: j.conn.Stamp(nil), Data: data}, jetstream.WithExpectLastSequencePerSubject(seq))
		if err == nil && j.conn.IsElsewhere(ack.Domain) {
			return errDescribed
		}
		return err
	})
	if natsio.IsConflict(err) { // with another writer, or with this one's last attempt
		return errDescribed
	}
	return err
}

// errDescribed means that another description was stored first.
const errDescribed = natsio.Retryable("another writer described the blob first")

// describes reports whether a description is one of a blob, as far as it says itself.
func describes(info jetstream.ObjectInfo, ref codec.Ref) bool {
	return !info.Deleted && isUpload(info.NUID) && info.Digest == digestOf(ref.Hash)
}

// lookUpBlob returns the last description of a blob and its sequence. Any replica
// answers. It reads by the description's subject, for which writers have permission
// that may read no content. The description of a deleted object comes with ErrNotFound,
// and so does one of another system, whose chunks may not have arrived.
func (j *Journal) lookUpBlob(ctx context.Context, ref codec.Ref) (info jetstream.ObjectInfo, seq uint64, err error) {
	subject := j.directSubject(j.names.BlobsStream()) + "." + j.blobSubject(ref)
	var m stored
	err = j.conn.Attempt(ctx, subject, func(ctx context.Context) error {
		msg, err := j.conn.NC.RequestWithContext(ctx, subject, nil)
		if err == nil {
			m, _, err = parseDirect(msg)
		}
		if errors.Is(err, nats.ErrNoResponders) {
			return j.whyNoStream(ctx, j.names.BlobsStream(), err)
		}
		return err
	})
	if err != nil {
		return info, 0, natsio.Typed(err)
	}
	if json.Unmarshal(m.data, &info) != nil { // no description: the next one comes after it
		info = jetstream.ObjectInfo{}
	}
	if info.Deleted || j.conn.IsForeign(m.header) {
		err = natsio.ErrNotFound
	}
	return info, m.seq, err
}

func (j *Journal) putChunks(ctx context.Context, subject string, content []byte) error {
	ctx, stop := j.conn.Watch(ctx, subject, false)
	defer stop()
	var sent []jetstream.PubAckFuture
	for len(content) > 0 {
		n := min(len(content), blobChunkBytes)
		future, err := j.conn.JS.PublishMsgAsync(&nats.Msg{Subject: subject, Header: j.conn.Stamp(nil), Data: content[:n]})
		if err != nil {
			return err
		}
		sent, content = append(sent, future), content[n:]
	}
	elsewhere := false
	for _, future := range sent {
		select {
		case ack := <-future.Ok():
			elsewhere = elsewhere || j.conn.IsElsewhere(ack.Domain)
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if elsewhere {
		return j.awaitChunks(ctx, subject, uint64(len(sent)))
	}
	return nil
}

// awaitChunks returns nil once the stream has n messages on a subject: another domain
// acknowledged some of them first.
func (j *Journal) awaitChunks(ctx context.Context, subject string, n uint64) error {
	ctx, cancel := context.WithTimeout(ctx, natsio.RequestTimeout)
	defer cancel()
	return natsio.Backoff(ctx, func() error {
		state, err := j.state(ctx, j.names.BlobsStream(), subject)
		if have := state.Subjects[subject]; err == nil && have < n {
			err = natsio.Retryable(fmt.Sprintf("%d of %d chunks are stored", have, n))
		}
		return err
	})
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
	var content []byte
	err := natsio.Backoff(ctx, func() (err error) {
		content, err = j.getBlob(ctx, ref, bytesMax)
		return err
	})
	if errors.Is(err, ErrOtherBytes) {
		if _, gone := j.leaderGet(ctx, j.names.BlobsStream(), getRequest{LastFor: j.blobSubject(ref)}); errors.Is(gone, natsio.ErrNotFound) {
			err = fmt.Errorf("%w: it was deleted during the read", natsio.ErrNotFound)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", ref, err)
	}
	return content, nil
}

// errNotApplied means that a replica has a description that the leader does not have: a
// follower may apply what is committed before the leader does, and a writer that found the
// blob there does not store it again (TestContractR3/blobs_at_once).
const errNotApplied = natsio.Retryable("the leader has not applied the description of the blob")

func (j *Journal) getBlob(ctx context.Context, ref codec.Ref, bytesMax int) ([]byte, error) {
	var failed error
	next := uint64(1)
	for range descriptionsMax {
		m, err := j.leaderGet(ctx, j.names.BlobsStream(), getRequest{Seq: next, NextFor: j.blobSubject(ref)})
		if errors.Is(err, natsio.ErrNotFound) {
			if next == 1 {
				if _, _, other := j.lookUpBlob(ctx, ref); other == nil {
					return nil, errNotApplied
				}
			}
			return nil, cmp.Or(failed, err)
		}
		if err != nil {
			return nil, err
		}
		content, err := j.described(ctx, ref, m, bytesMax)
		switch {
		case err == nil:
			return content, nil
		case errors.Is(err, natsio.ErrNotFound):
		case errors.Is(err, ErrOtherBytes), errors.Is(err, ErrTooLarge):
			failed = cmp.Or(failed, err)
		default:
			return nil, err
		}
		next = m.seq + 1
	}
	return nil, cmp.Or(failed, natsio.ErrNotFound)
}

// described returns the content that a description names, if it is the blob's.
func (j *Journal) described(ctx context.Context, ref codec.Ref, m stored, bytesMax int) ([]byte, error) {
	var info jetstream.ObjectInfo
	switch err := json.Unmarshal(m.data, &info); {
	case info.Deleted:
		return nil, natsio.ErrNotFound
	case err != nil || !isUpload(info.NUID):
		return nil, fmt.Errorf("%w: its description names no chunks", ErrOtherBytes)
	case info.Size > uint64(bytesMax):
		return nil, fmt.Errorf("%w: it has %d bytes, and the limit is %d", ErrTooLarge, info.Size, bytesMax)
	}
	content, err := j.chunks(ctx, j.names.BlobsStream(), j.names.BlobChunks(info.NUID), info.Size)
	if errors.Is(err, errTooMany) {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrOtherBytes, info.Size)
	}
	if err != nil {
		return nil, err
	}
	if got := codec.RefOf(content); got != ref {
		return nil, fmt.Errorf("%w: %s", ErrOtherBytes, got)
	}
	return content, nil
}

// deleteBlob deletes a blob: its descriptions, then their chunks. A missing blob is no
// error.
func (j *Journal) deleteBlob(ctx context.Context, ref codec.Ref) error {
	var chunks []string
	for m, err := range j.read(ctx, j.names.BlobsStream(), j.blobSubject(ref), 1, 0, true) {
		if err != nil {
			return err
		}
		var info jetstream.ObjectInfo
		if json.Unmarshal(m.data, &info) == nil && describes(info, ref) {
			chunks = append(chunks, j.names.BlobChunks(info.NUID))
		}
	}
	if len(chunks) == 0 {
		return nil
	}
	for _, subject := range append([]string{j.blobSubject(ref)}, chunks...) {
		if err := j.purge(ctx, subject); err != nil {
			return err
		}
	}
	return nil
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

func (j *Journal) blobSubject(ref codec.Ref) string {
	return j.names.BlobSubject(base64.URLEncoding.EncodeToString([]byte(ref.String())))
}

// purgeTime bounds one deletion.
const purgeTime = 30 * time.Second

func (j *Journal) purge(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTime)
	defer cancel()
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		return j.conn.Ask(ctx, "STREAM.PURGE."+j.names.BlobsStream(), map[string]string{"filter": subject}, new(natsio.Answer))
	})
}

// HasBlob reports whether a blob is described, without reading it. Whoever is about to
// name it asks KeepBlob.
func (j *Journal) HasBlob(ctx context.Context, ref codec.Ref) (bool, error) {
	_, _, err := j.lookUpBlob(ctx, ref)
	if errors.Is(err, natsio.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for blob %s: %w", ref, err)
	}
	return true, nil
}
