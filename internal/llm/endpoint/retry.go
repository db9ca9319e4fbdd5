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

// Failure is a try that brought no answer.
type Failure struct {
	Err *executor.Error
	// Paid says that some of an answer came, or may have: the provider counts it.
	Paid bool
	// Thoughts says that the server refused what it is sent of earlier thoughts.
	Thoughts bool
	// Changed says that the next try is another request, and may be made at once.
	Changed bool
	after   time.Duration // what the server asks to wait; 0: it doesn't say
}

// Final returns a failure that another try would only repeat.
func Final(code, format string, args ...any) *Failure {
	return &Failure{Err: llm.Fail(code, format, args...)}
}

// Passing returns a failure that another try may not have.
func Passing(code, format string, args ...any) *Failure {
	f := Final(code, format, args...)
	f.Err.Retryable = true
	return f
}

// Generate asks once, and again if that may help; see the package's laws. When
// ctx is over, it returns ctx's error. delta is handed on to every try, if req
// can tell those who watch that another one begins; else to the first one that
// has words.
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
			again = !bounded || time.Until(deadline) > pause // its rate may leave no time
		}
		if !again || broken > brokenMax {
			// What was paid for already is not begun again by the bridge either.
			failed.Err.Retryable = failed.Err.Retryable && broken == 0
			return executor.Answer{}, failed.Err
		}
		e.log.WarnContext(ctx, "generation is asked again", "session", req.Session, "effect", req.Effect,
			"code", failed.Err.Code, "detail", failed.Err.Detail, "wait_ms", pause.Milliseconds())
		if err := e.wait(ctx, pause); err != nil {
			return executor.Answer{}, err
		}
		if streamed && !req.Anew() {
			delta = func(string) {}
		}
	}
}

// again says whether to try again, and after which time. try counts from 0.
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

// number reads a number of units, of at most a day: no caller waits longer.
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
