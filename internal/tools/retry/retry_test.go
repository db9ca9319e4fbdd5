package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for after, want := range map[time.Duration]bool{0: true, time.Second - EndMargin - 1: true, time.Second - EndMargin: false, time.Hour: false} {
			if got := Fits(ctx, now.Add(after)); got != want {
				t.Errorf("after %v of a second: got %t, want %t", after, got, want)
			}
		}
		if !Fits(t.Context(), now.Add(time.Hour)) {
			t.Error("without a deadline: got false")
		}
	})
}
