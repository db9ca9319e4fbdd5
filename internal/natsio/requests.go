package natsio

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// requestTracker ends the requests that will get no answer: the server denies a
// publish asynchronously (to the requester it looks like a timeout), and a lost
// connection takes answers with it.
type requestTracker struct {
	inbox string // prefix of the subjects that answers come on

	mu      sync.Mutex
	waiting map[*waiting]struct{}
}

// waiting is told what ends requests. Its functions don't block.
type waiting struct {
	denied func(*PermissionError)
	lost   func() // the connection was lost, and made again
}

func newRequestTracker() *requestTracker {
	return &requestTracker{inbox: nats.InboxPrefix, waiting: make(map[*waiting]struct{})}
}

func (o *requestTracker) add(w *waiting) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[w] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiting, w)
	}
}

// each calls f with all that wait.
func (o *requestTracker) each(f func(*waiting)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiting {
		f(w)
	}
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
	remove := c.requests.add(&waiting{
		denied: func(p *PermissionError) {
			if subject == "" || c.Concerns(p, subject) {
				cancel(p)
			}
		},
		lost: func() {
			if !survivesReconnect {
				cancel(ErrReconnected)
			}
		},
	})
	return ctx, func() {
		remove()
		cancel(nil)
	}
}

// Listen tells of denials and of reconnects until stop is called.
// Neither waits: denied has room for some, lost for one. What a denial that does
// not fit is about is sent again, and denied again.
func (c *Conn) Listen(denied chan<- *PermissionError, lost chan<- struct{}) (stop func()) {
	return c.requests.add(&waiting{
		denied: func(p *PermissionError) {
			select {
			case denied <- p:
			default:
			}
		},
		lost: func() {
			select {
			case lost <- struct{}{}:
			default:
			}
		},
	})
}

// Concerns reports whether a denial ends a request on subject: the server takes
// no publish there, or this user gets no replies.
func (c *Conn) Concerns(p *PermissionError, subject string) bool {
	return subject == p.Subject || p.Op == "subscribe" && strings.HasPrefix(p.Subject, c.requests.inbox)
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
	return Backoff(ctx, func() error { return c.Attempt(ctx, subject, f) })
}

// Backoff calls f until it succeeds, fails for good, or ctx ends, with longer and
// longer waits. The last error comes back typed.
func Backoff(ctx context.Context, f func() error) error {
	for wait := RetryWaitMin; ; wait = min(2*wait, RetryWaitMax) {
		err := f()
		if err == nil || !IsTransient(err) {
			return Typed(err)
		}
		if ended := Sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w (last attempt: %w)", ended, Typed(err))
		}
	}
}

// Retry is Repeat for requests whose subjects are many: any denial ends it.
func (c *Conn) Retry(ctx context.Context, f func(context.Context) error) error {
	return c.Repeat(ctx, "", f)
}

// Answer is embedded in what an answer of the JetStream API is read into.
type Answer struct {
	Error *jetstream.APIError `json:"error"`
}

func (a *Answer) refusal() error {
	if a.Error == nil {
		return nil
	}
	return a.Error
}

// Ask sends one request of the JetStream API, without its prefix, and reads the answer.
// What the server refuses is a *jetstream.APIError.
func (c *Conn) Ask(ctx context.Context, request string, body any, answer interface{ refusal() error }) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	msg, err := c.NC.RequestWithContext(ctx, c.API+request, data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(msg.Data, answer); err != nil {
		return fmt.Errorf("the answer of JetStream does not parse: %w", err)
	}
	return answer.refusal()
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
