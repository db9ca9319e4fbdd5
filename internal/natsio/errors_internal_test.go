package natsio

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A server without room is distinguished from a full stream, since the remedies differ.
// For a caller that only needs to know that nothing is stored, both are ErrStreamFull.
func TestNoRoomIsAlsoStreamFull(t *testing.T) {
	t.Parallel()
	for code, room := range map[jetstream.ErrorCode]bool{codeNoResources: true, codeStoreFailed: false, CodeStorageLimit: false} {
		err := Typed(&jetstream.APIError{Code: 503, ErrorCode: code, Description: "no"})
		if !errors.Is(err, ErrStreamFull) || errors.Is(err, ErrNoRoom) != room {
			t.Errorf("%d: got %v; want an ErrStreamFull, an ErrNoRoom too: %v", code, err, room)
		}
		if says := strings.Contains(err.Error(), "make room on its disk"); says != room {
			t.Errorf("%d: it says %q", code, err)
		}
	}
}
