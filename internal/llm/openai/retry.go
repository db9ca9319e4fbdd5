package openai

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// again says whether to try again, and after which time. try counts from 0.
func (f *failure) again(ctx context.Context, try int) (time.Duration, bool) {
	if !f.err.Retryable {
		return 0, false
	}
	pause := backoff(try)
	if f.after > 0 {
		pause = max(f.after, retryWaitMin)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return pause, try < retriesMax
	}
	return pause, time.Until(deadline) > pause
}

// backoff returns the time before the next try: doubled from one to the next,
// and up to a quarter shorter, so that many don't come back at once.
func backoff(try int) time.Duration {
	pause := retryWaitMax
	if try < 6 { // 500 ms << 6 is beyond the most
		pause = min(retryWaitMax, retryWaitMin<<try)
	}
	return pause - rand.N(pause/4)
}

// retryAfter returns what a response asks to wait, 0 if it doesn't say.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if d, ok := number(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := header.Get("Retry-After")
	if d, ok := number(text, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// number reads a number of units, of at most a day: more is no answer for
// anybody who waits.
func number(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(24*time.Hour))), true
}

// wait returns after d, or with ctx's error when ctx is over.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
