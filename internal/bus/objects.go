package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/spaces"
)

// objectsMax is how many objects of a bucket are listed.
const objectsMax = 65_536

// Objects returns the objects of a bucket of users whose names begin with
// prefix, which is cut off, as files. They are listed once; content is read when
// a file is opened, and ctx bounds that too. The error wraps fs.ErrNotExist if
// there is no such bucket.
func (b *Bus) Objects(ctx context.Context, bucket, prefix string) (fs.FS, error) {
	var store jetstream.ObjectStore
	var listed []*jetstream.ObjectInfo
	err := b.retry(ctx, func(ctx context.Context) (err error) {
		if store, err = b.js.ObjectStore(ctx, bucket); err == nil {
			listed, err = store.List(ctx)
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return nil, fmt.Errorf("there is no object store %s: %w", bucket, fs.ErrNotExist)
	case err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound):
		return nil, fmt.Errorf("list object store %s: %w", bucket, err)
	}
	if len(listed) > objectsMax {
		return nil, fmt.Errorf("object store %s has %d objects, at most %d: use a store of its own for the space", bucket, len(listed), objectsMax)
	}
	var entries []spaces.Object
	nuids := make(map[string]string)
	for _, info := range listed {
		name, ok := strings.CutPrefix(info.Name, prefix)
		if !ok || info.Opts != nil && info.Opts.Link != nil {
			continue // a link leads to another store
		}
		entries = append(entries, spaces.Object{Name: name, Size: int64(info.Size), Modified: info.ModTime})
		nuids[name] = info.NUID
	}
	return spaces.NewObjects(entries, func(name string, size int64) ([]byte, error) {
		return b.readObject(ctx, store, prefix+name, nuids[name], size)
	}), nil
}

// readObject returns the content of an object, of at most size bytes. The error
// wraps spaces.ErrReplaced if it is not the one of that id any more: who reads
// while it is replaced waits for chunks that are gone, until the attempt ends.
func (b *Bus) readObject(ctx context.Context, store jetstream.ObjectStore, name, nuid string, size int64) (content []byte, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		object, err := store.Get(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return spaces.ErrReplaced
		}
		if err != nil {
			return err
		}
		defer object.Close()
		if info, err := object.Info(); err != nil || info.NUID != nuid {
			return cmp.Or(err, spaces.ErrReplaced)
		}
		content, err = io.ReadAll(io.LimitReader(object, size+1))
		return err
	})
	return content, err
}
