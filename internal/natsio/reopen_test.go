package natsio_test

// A part whose connection closes while it starts fails with its own error, which
// wraps ErrClosed, before the client library has reported the close.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/internal/natsio"
)

func TestReopenTriesAgainAfterAnyClosedConnection(t *testing.T) {
	t.Parallel()
	other := errors.New("no such target")
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			err   error
			tries int
			want  error
		}{
			{"closed for good", &natsio.ClosedError{Where: "here", Cause: other}, 2, nil},
			{"closed while it started", fmt.Errorf("register a service: %w", natsio.ErrClosed), 2, nil},
			{"another error", other, 1, other},
		} {
			tries := 0
			err := natsio.Reopen(t.Context(), time.Minute, slog.New(slog.DiscardHandler), nil, func(_ context.Context, up func()) error {
				up()
				if tries++; tries == 1 {
					return c.err
				}
				return nil
			})
			if !errors.Is(err, c.want) || tries != c.tries {
				t.Errorf("%s: got %d tries and %v, want %d and %v", c.name, tries, err, c.tries, c.want)
			}
		}
	})
}
