package bridge

import (
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"
)

// newULID returns a fresh ULID: the name of a process's or an effect's start.
func newULID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}
