package endpoint

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge/executor"
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

// TestStoppingBridgeEndsTheWaitForAProvider: a bridge that stops ends the wait
// before the next try, also one that the provider asked for.
func TestStoppingBridgeEndsTheWaitForAProvider(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"backoff": 0, "Retry-After": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, err := New(Config{BaseURL: "http://127.0.0.1"}, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				stopping, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Millisecond, stop)
				began := time.Now()
				_, err = e.Generate(executor.WithStopping(t.Context(), stopping), &executor.Request{}, func(string) {},
					func(context.Context, func(string)) (executor.Answer, *Failure) {
						failed := Temporary("overloaded", "later")
						failed.after = after
						return executor.Answer{}, failed
					})
				if took := time.Since(began); !errors.Is(err, executor.ErrStopping) || took != time.Millisecond {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}
