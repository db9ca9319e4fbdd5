package journal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/spacefiles"
)

const objectsMax = 65_536

// Objects returns the objects of a user's bucket whose names begin with prefix, as
// files without that prefix. It lists them once; opening a file reads its content, and
// ctx bounds that too. The error wraps fs.ErrNotExist if there is no such bucket. It
// creates no consumer, for which readers of spaces have no permission.
func (j *Journal) Objects(ctx context.Context, bucket, prefix string) (fs.FS, error) {
	var entries []spacefiles.Object
	nuids := make(map[string]string)
	for m, err := range j.read(ctx, "OBJ_"+bucket, "$O."+bucket+".M.>", 1, 0, true) {
		switch {
		case errors.Is(err, natsio.ErrNoStream):
			return nil, fmt.Errorf("there is no object store %s: %w", bucket, fs.ErrNotExist)
		case err != nil:
			return nil, fmt.Errorf("list object store %s: %w", bucket, err)
		}
		var info jetstream.ObjectInfo
		if json.Unmarshal(m.data, &info) != nil || info.Deleted || info.Opts != nil && info.Opts.Link != nil {
			continue // links to other stores are not followed
		}
		name, ok := strings.CutPrefix(info.Name, prefix)
		if !ok || nuids[name] != "" {
			continue
		}
		if len(entries) == objectsMax {
			return nil, fmt.Errorf("object store %s has more than %d objects: use a store of its own for the space", bucket, objectsMax)
		}
		entries = append(entries, spacefiles.Object{Name: name, Size: int64(info.Size), Modified: time.UnixMilli(m.time)})
		nuids[name] = info.NUID
	}
	return spacefiles.NewObjects(entries, func(name string, size int64) ([]byte, error) {
		return j.readObject(ctx, bucket, prefix+name, nuids[name], size)
	}), nil
}

// readObject returns the content of an object, of at most size bytes. The error wraps
// spacefiles.ErrReplaced if the object does not have this nuid any more.
func (j *Journal) readObject(ctx context.Context, bucket, name, nuid string, size int64) ([]byte, error) {
	stream, subject := "OBJ_"+bucket, "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name))
	info, _, err := j.describe(ctx, stream, subject)
	if errors.Is(err, natsio.ErrNotFound) || err == nil && (info.NUID == "" || info.NUID != nuid) {
		return nil, spacefiles.ErrReplaced
	}
	if err != nil {
		return nil, err
	}
	content, err := j.chunks(ctx, stream, "$O."+bucket+".C."+nuid, uint64(size))
	// The chunks may be deleted during the read.
	if errors.Is(err, errTooMany) || err == nil && info.Digest != digestOf(sha256.Sum256(content)) {
		return nil, spacefiles.ErrReplaced
	}
	return content, err
}
