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
	"github.com/refold/refold/internal/spaces"
)

// objectsMax is how many objects of a bucket are listed.
const objectsMax = 65_536

// Objects returns the objects of a bucket of users whose names begin with
// prefix, which is cut off, as files. They are listed once; content is read when
// a file is opened, and ctx bounds that too. The error wraps fs.ErrNotExist if
// there is no such bucket. It creates no consumer: readers of spaces may not.
func (j *Journal) Objects(ctx context.Context, bucket, prefix string) (fs.FS, error) {
	var entries []spaces.Object
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
			continue // a link leads to another store
		}
		name, ok := strings.CutPrefix(info.Name, prefix)
		if !ok || nuids[name] != "" {
			continue
		}
		if len(entries) == objectsMax {
			return nil, fmt.Errorf("object store %s has more than %d objects: use a store of its own for the space", bucket, objectsMax)
		}
		entries = append(entries, spaces.Object{Name: name, Size: int64(info.Size), Modified: time.UnixMilli(m.time)})
		nuids[name] = info.NUID
	}
	return spaces.NewObjects(entries, func(name string, size int64) ([]byte, error) {
		return j.readObject(ctx, bucket, prefix+name, nuids[name], size)
	}), nil
}

// readObject returns the content of an object, of at most size bytes. The error
// wraps spaces.ErrReplaced if it is not the one of that id any more.
func (j *Journal) readObject(ctx context.Context, bucket, name, nuid string, size int64) ([]byte, error) {
	stream := "OBJ_" + bucket
	described, err := j.leaderGet(ctx, stream, getRequest{LastFor: "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))})
	if errors.Is(err, natsio.ErrNotFound) {
		return nil, spaces.ErrReplaced
	}
	if err != nil {
		return nil, err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(described.data, &info); err != nil || info.Deleted || info.NUID != nuid || !isUpload(nuid) {
		return nil, errors.Join(spaces.ErrReplaced, err)
	}
	var content []byte
	for m, err := range j.read(ctx, stream, "$O."+bucket+".C."+nuid, 1, 0, true) {
		if err != nil {
			return nil, err
		}
		if content = append(content, m.data...); int64(len(content)) > size {
			return nil, spaces.ErrReplaced
		}
	}
	sum := sha256.Sum256(content)
	if info.Digest != "SHA-256="+base64.URLEncoding.EncodeToString(sum[:]) { // its chunks went while they were read
		return nil, spaces.ErrReplaced
	}
	return content, nil
}
