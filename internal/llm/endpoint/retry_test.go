package endpoint

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for try, ms := range []int64{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		want := time.Duration(ms) * time.Millisecond
		for range 100 {
			if got := backoff(try); got > want || got < want*3/4 {
				t.Errorf("try %d: %v, want %v to %v", try, got, want*3/4, want)
			}
		}
	}
	if got := backoff(1 << 30); got > retryWaitMax || got < retryWaitMax*3/4 {
		t.Errorf("after many tries: %v", got)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	if err := wait(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("a pause that passes: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a pause that is cancelled: %v", err)
	}
}
