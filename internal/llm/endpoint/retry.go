package endpoint

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Failure is an attempt without an answer.
type Failure struct {
	Err *executor.Error
	// Paid means that the provider may charge for it: a part of an answer may have
	// arrived.
	Paid bool
	// Thoughts means that the server refused earlier thoughts.
	Thoughts bool
	// NoThoughts means that the server refused turns without a thought.
	NoThoughts bool
	// Files means that the server refused images or documents, if the request had any.
	Files bool
	// Changed means that the next attempt sends another request, and may do so at once.
	Changed bool
	after   time.Duration // the wait that the server requests; 0: none
	refusal *ServerError  // of the request, as it is; nil: the failure is another one
}

// Final returns a failure that a retry would only repeat.
func Final(code, format string, args ...any) *Failure {
	return &Failure{Err: llm.Fail(code, format, args...)}
}

// Temporary returns a failure that a retry may avoid.
func Temporary(code, format string, args ...any) *Failure {
	f := Final(code, format, args...)
	f.Err.Retryable = true
	return f
}

// Generate makes an attempt, and retries it by the package's laws. It returns ctx's
// error if ctx is over, and executor.ErrStopping if the bridge stops while it waits. Every attempt streams to delta if req can notify readers of
// a new one; otherwise only the first attempt that produces text does.
func (e *Endpoint) Generate(
	ctx context.Context, req *executor.Request, delta func(text string),
	once func(ctx context.Context, delta func(text string)) (executor.Answer, *Failure),
) (executor.Answer, error) {
	broken := 0
	for try := 0; ; try++ {
		streamed := false
		answer, failed := once(ctx, func(text string) {
			streamed = true
			delta(text)
		})
		if failed == nil {
			return answer, nil
		}
		if err := ctx.Err(); err != nil {
			return executor.Answer{}, err
		}
		if streamed || failed.Paid {
			broken++
		}
		req.Tried(failed.Err, failed.after)
		pause, again := failed.again(ctx, try)
		if failed.Changed {
			pause, again = 0, true
		}
		if again && broken <= brokenMax {
			pause = req.Again(pause)
			deadline, bounded := ctx.Deadline()
			again = !bounded || time.Until(deadline) > pause // the rate limit may leave no time
		}
		if !again || broken > brokenMax {
			// The bridge must not retry either if an attempt was paid for.
			failed.Err.Retryable = failed.Err.Retryable && broken == 0
			return executor.Answer{}, failed.Err
		}
		e.log.WarnContext(ctx, "generation is retried", "session", req.Session, "effect", req.Effect,
			"code", failed.Err.Code, "detail", failed.Err.Detail, "wait_ms", pause.Milliseconds())
		if err := e.wait(ctx, pause); err != nil {
			return executor.Answer{}, err
		}
		if streamed && !req.Anew() {
			delta = func(string) {}
		}
	}
}

// again says whether to retry, and after which time. try counts from 0.
func (f *Failure) again(ctx context.Context, try int) (time.Duration, bool) {
	if !f.Err.Retryable {
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

// backoff returns the time before the next attempt: twice that of the previous
// one, less up to a quarter, so that not all clients retry at the same time.
func backoff(try int) time.Duration {
	pause := retryWaitMax
	if try < 6 { // 500 ms << 6 exceeds the maximum
		pause = min(retryWaitMax, retryWaitMin<<try)
	}
	return pause - rand.N(pause/4)
}

// sentAt returns when a response was sent, by the clock that its dates are of.
func sentAt(header http.Header) time.Time {
	if at, err := http.ParseTime(header.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}

// retryAfter returns the wait that a response requests, 0 if none. now is when it
// was sent.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if d, ok := number(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := header.Get("Retry-After")
	if d, ok := number(text, time.Second); ok {
		return d
	}
	if d, err := time.ParseDuration(text); err == nil { // 2s: not by the standard
		return max(0, min(d, 24*time.Hour))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// number parses a number of units, up to a day: no caller waits longer.
func number(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(24*time.Hour))), true
}
