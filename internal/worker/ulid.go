package worker

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewULID returns a fresh ULID: the name of a process's start.
func NewULID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// newStart returns a fresh ULID for a start of an effect. It tells the starts of
// one effect apart, and nothing rests on nobody being able to guess it.
func newStart(now time.Time) string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(now)) // fails past the year 10889
	binary.BigEndian.PutUint16(id[6:], uint16(mathrand.Uint32()))
	binary.BigEndian.PutUint64(id[8:], mathrand.Uint64())
	return id.String()
}
