package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// TestWaitEnds: a wait ends after its time, with its context, or when the bridge
// begins to stop.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := executor.Wait(t.Context(), time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := executor.Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its context ends: got %v", err)
		}
		stopping, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		ctx = executor.WithStopping(t.Context(), stopping)
		began = time.Now()
		if err := executor.Wait(ctx, time.Hour); !errors.Is(err, executor.ErrStopping) || time.Since(began) != time.Second {
			t.Errorf("the bridge stops: got %v after %v", err, time.Since(began))
		}
		if ctx.Err() != nil {
			t.Error("the context ended, too: what runs has the grace time")
		}
	})
}
