package bus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
)

// PutBlob keeps content under its hash and returns its name. Content that is
// there already is not sent again, so calling twice is calling once.
func (b *Bus) PutBlob(ctx context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	objects, err := b.blobs(ctx)
	if err != nil {
		return codec.Ref{}, fmt.Errorf("put blob %s: %w", ref, err)
	}
	// Not attempt's deadline: a large blob takes the time that it takes. Its
	// chunks are acknowledged one by one, under timeouts of their own.
	wait := retryWaitMin
	for {
		err := putObject(ctx, objects, ref, content)
		if err == nil {
			return ref, nil
		}
		if ctx.Err() != nil || !isTransient(err) {
			return codec.Ref{}, fmt.Errorf("put blob %s (%d bytes): %w", ref, len(content), typed(err))
		}
		if ended := sleep(ctx, wait); ended != nil {
			return codec.Ref{}, fmt.Errorf("put blob %s: %w (last attempt: %w)", ref, ended, err)
		}
		wait = min(2*wait, retryWaitMax)
	}
}

func putObject(ctx context.Context, objects jetstream.ObjectStore, ref codec.Ref, content []byte) error {
	info, err := objects.GetInfo(ctx, ref.String())
	if err == nil && info.Size == uint64(len(content)) {
		return nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	_, err = objects.PutBytes(ctx, ref.String(), content)
	return err
}

// GetBlob returns the content of a blob, verified against its name. One that
// does not exist is ErrNotFound; one whose bytes have another hash is an error
// and never content.
func (b *Bus) GetBlob(ctx context.Context, ref codec.Ref) ([]byte, error) {
	objects, err := b.blobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", ref, err)
	}
	wait := retryWaitMin
	for {
		content, err := objects.GetBytes(ctx, ref.String())
		if err == nil {
			if got := codec.RefOf(content); got != ref {
				return nil, fmt.Errorf("get blob %s: the store holds other bytes, %s: restore it from a backup", ref, got)
			}
			return content, nil
		}
		again := isTransient(err)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			// The replica that answered may be behind: the leader knows.
			if again, err = b.blobExists(ctx, ref); err == nil && !again {
				err = ErrNotFound
			}
		}
		if !again {
			return nil, fmt.Errorf("get blob %s: %w", ref, typed(err))
		}
		if ended := sleep(ctx, wait); ended != nil {
			return nil, fmt.Errorf("get blob %s: %w", ref, ended)
		}
		wait = min(2*wait, retryWaitMax)
	}
}

// blobExists asks the leader whether the object store has a blob.
func (b *Bus) blobExists(ctx context.Context, ref codec.Ref) (bool, error) {
	meta := b.names.BlobSubject(base64.URLEncoding.EncodeToString([]byte(ref.String())))
	m, err := b.leaderGet(ctx, b.names.BlobsStream(), getRequest{LastFor: meta})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(m.data, &info); err != nil {
		return false, fmt.Errorf("description of blob %s: %w", ref, err)
	}
	return !info.Deleted, nil
}

func (b *Bus) deleteBlob(ctx context.Context, ref codec.Ref) error {
	objects, err := b.blobs(ctx)
	if err != nil {
		return err
	}
	err = objects.Delete(ctx, ref.String())
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	return typed(err)
}

// blobs returns the object store; the first call looks it up.
func (b *Bus) blobs(ctx context.Context) (jetstream.ObjectStore, error) {
	b.mu.Lock()
	objects := b.objects
	b.mu.Unlock()
	if objects != nil {
		return objects, nil
	}
	err := b.retry(ctx, func(ctx context.Context) (err error) {
		objects, err = b.js.ObjectStore(ctx, b.names.BlobsBucket())
		return err
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.objects = objects
	b.mu.Unlock()
	return objects, nil
}
