package natsio

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// requestTracker knows the requests that wait for an answer, to end those that
// will not get one: the server denies a publish asynchronously (to the
// requester it looks like a timeout), and a lost connection takes answers
// with it.
type requestTracker struct {
	inbox string // prefix of the subjects that answers come on

	mu        sync.Mutex
	waiting   map[*waitingRequest]struct{}
	listening map[*listener]struct{}
}

// listener is told what ends requests, instead of having a context for each.
type listener struct {
	denied chan<- *PermissionError
	lost   chan<- struct{}
}

type waitingRequest struct {
	subject           string // empty: whatever is denied concerns it
	survivesReconnect bool   // a lost connection does not end it
	cancel            context.CancelCauseFunc
}

// Retryable is an error after which the same request may succeed.
type Retryable string

func (e Retryable) Error() string { return string(e) }

// ErrReconnected ends a request whose answer may have been lost.
const ErrReconnected = Retryable("the connection was lost and made again")

var violationText = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// parseViolation reads the server's text; nil if it is about something else.
func parseViolation(text string) *PermissionError {
	m := violationText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	op := strings.ToLower(m[1])
	if op == "subscription" {
		op = "subscribe"
	}
	return &PermissionError{Op: op, Subject: m[2]}
}

// Watch returns a context that ends, with the reason as its cause, when the
// server denies a publish to subject or a subscription without which no answer
// can arrive, and when the connection was lost, unless survivesReconnect. Call
// stop when done.
func (c *Conn) Watch(ctx context.Context, subject string, survivesReconnect bool) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	o, w := c.requests, &waitingRequest{subject, survivesReconnect, cancel}
	o.mu.Lock()
	if o.waiting == nil {
		o.waiting = make(map[*waitingRequest]struct{})
	}
	o.waiting[w] = struct{}{}
	o.mu.Unlock()
	return ctx, func() {
		o.mu.Lock()
		delete(o.waiting, w)
		o.mu.Unlock()
		cancel(nil)
	}
}

// Listen tells of denials and of connections made anew until stop is called.
// Neither waits: denied has room for some, lost for one.
func (c *Conn) Listen(denied chan<- *PermissionError, lost chan<- struct{}) (stop func()) {
	o, l := c.requests, &listener{denied, lost}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listening == nil {
		o.listening = make(map[*listener]struct{})
	}
	o.listening[l] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.listening, l)
	}
}

// Concerns reports whether a denial ends a request on subject: the server takes
// no publish there, or this user gets no replies.
func (c *Conn) Concerns(p *PermissionError, subject string) bool {
	return c.requests.concerns(p, subject)
}

func (o *requestTracker) concerns(p *PermissionError, subject string) bool {
	return subject == p.Subject || p.Op == "subscribe" && strings.HasPrefix(p.Subject, o.inbox)
}

// denied ends the requests that the violation is about.
func (o *requestTracker) denied(p *PermissionError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiting {
		if w.subject == "" || o.concerns(p, w.subject) {
			w.cancel(p)
		}
	}
	for l := range o.listening {
		select {
		case l.denied <- p:
		default: // what it is about is sent again, and denied again
		}
	}
}

// reconnected ends all requests that do not survive it. Their callers repeat them.
func (o *requestTracker) reconnected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiting {
		if !w.survivesReconnect {
			w.cancel(ErrReconnected)
		}
	}
	for l := range o.listening {
		select {
		case l.lost <- struct{}{}:
		default:
		}
	}
}

// Cause returns the cause of ctx's end in place of err, if ctx ended.
func Cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// Waits between two attempts at one request.
const (
	RetryWaitMin = 5 * time.Millisecond
	RetryWaitMax = time.Second
)

// Repeat calls f until it succeeds, fails for good, or ctx ends. Each attempt
// has RequestTimeout; it ends at once if the server denies a publish to subject
// (any, if empty). The last error comes back typed.
func (c *Conn) Repeat(ctx context.Context, subject string, f func(context.Context) error) error {
	wait := RetryWaitMin
	for {
		err := c.Attempt(ctx, subject, f)
		if err == nil || !IsTransient(err) {
			return Typed(err)
		}
		if ended := Sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w (last attempt: %w)", ended, Typed(err))
		}
		wait = min(2*wait, RetryWaitMax)
	}
}

// Retry is Repeat for requests whose subjects are many: any denial ends it.
func (c *Conn) Retry(ctx context.Context, f func(context.Context) error) error {
	return c.Repeat(ctx, "", f)
}

// Attempt calls f once, within RequestTimeout. It ends at once if the server denies
// a publish to subject (any, if empty).
func (c *Conn) Attempt(ctx context.Context, subject string, f func(context.Context) error) error {
	watched, stop := c.Watch(ctx, subject, false)
	defer stop()
	limited, cancel := context.WithTimeout(watched, RequestTimeout)
	defer cancel()
	return Cause(watched, f(limited))
}

// Sleep waits for d or the end of ctx, whose error it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
