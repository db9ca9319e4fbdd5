package subjects

import (
	"strconv"
	"strings"
)

// Keys of the snapshots bucket.
const (
	snapshotKeyPrefix   = "s."
	quarantineKeyPrefix = "q."
	guardKeyPrefix      = "g."
)

// Key filters of the snapshots bucket: all snapshots, all quarantines.
const (
	SnapshotKeys   = snapshotKeyPrefix + "*"
	QuarantineKeys = quarantineKeyPrefix + "*"
)

// SnapshotKey returns the key of a session's snapshot: s.<sid>.
func SnapshotKey(sid string) (string, error) { return sessionKey(snapshotKeyPrefix, sid) }

// QuarantineKey returns the key of a session's quarantine: q.<sid>.
func QuarantineKey(sid string) (string, error) { return sessionKey(quarantineKeyPrefix, sid) }

// GuardKey returns the key of the note that owners of a lane write after one of them
// died: g.<lane>.
func GuardKey(lane int) string { return guardKeyPrefix + strconv.Itoa(lane) }

// ProbeKey is the key under which a session-actor checks that the bucket takes values.
const ProbeKey = "p"

// FillerKey is the key under which the eraser stores noise, so that the server begins a
// new block of the bucket.
const FillerKey = "f"

// ParseSnapshotKey returns the session of a snapshot's key.
func ParseSnapshotKey(key string) (sid string, ok bool) { return parseKey(snapshotKeyPrefix, key) }

// ParseQuarantineKey returns the session of a quarantine's key.
func ParseQuarantineKey(key string) (sid string, ok bool) { return parseKey(quarantineKeyPrefix, key) }

func sessionKey(prefix, sid string) (string, error) {
	if err := ValidSession(sid); err != nil {
		return "", err
	}
	return prefix + sid, nil
}

func parseKey(prefix, key string) (string, bool) {
	sid, ok := strings.CutPrefix(key, prefix)
	return sid, ok && ValidSession(sid) == nil
}

// SnapshotsSubject is the subject under which the stream of the snapshots
// bucket holds a key.
func (n Names) SnapshotsSubject(key string) string { return "$KV." + n.SnapshotsBucket() + "." + key }

// BlobSubject is the subject under which the stream of the object store holds the
// description of a blob; encoded is the blob's name in URL-safe base64.
func (n Names) BlobSubject(encoded string) string { return "$O." + n.BlobsBucket() + ".M." + encoded }

// BlobChunks is the subject under which the stream of the object store holds
// the chunks of one upload.
func (n Names) BlobChunks(upload string) string { return "$O." + n.BlobsBucket() + ".C." + upload }
