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

	"github.com/refold/refold/internal/roles"
)

// requestTracker ends requests that will get no reply. The server denies a publish
// asynchronously, which looks like a timeout to the requester; and replies are lost
// with their connection.
type requestTracker struct {
	inbox string // prefix of reply subjects

	mu      sync.Mutex
	waiters map[*waiter]struct{}
}

// waiter has the callbacks of one or more requests. They must not block.
type waiter struct {
	denied func(*PermissionError)
	lost   func() // the connection was lost and has reconnected
}

func newRequestTracker() *requestTracker {
	return &requestTracker{inbox: nats.InboxPrefix, waiters: make(map[*waiter]struct{})}
}

func (o *requestTracker) add(w *waiter) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiters[w] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiters, w)
	}
}

func (o *requestTracker) each(f func(*waiter)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiters {
		f(w)
	}
}

// Retryable is an error after which the same request may succeed.
type Retryable string

func (e Retryable) Error() string { return string(e) }

// ErrReconnected ends a request whose reply may have been lost.
const ErrReconnected = Retryable("the connection was lost and made again")

var violationText = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// denialIn parses the server's text; nil if it is about something else.
func (c *Conn) denialIn(text string) *PermissionError {
	p := parseViolation(text)
	if p != nil {
		p.Lacks = roles.Lacking(c.names, p.Op == "publish", p.Subject)
	}
	return p
}

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

// Watch returns a context that ends, with the reason as its cause, when the server
// denies a publish to subject (any, if empty) or the subscription of replies, and when
// the connection is lost, unless survivesReconnect. The caller must call stop.
func (c *Conn) Watch(ctx context.Context, subject string, survivesReconnect bool) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	remove := c.requests.add(&waiter{
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

// Listen sends denials and reconnects to the channels until stop is called. It never
// blocks: lost needs room for one, denied for some. A denial that does not fit is
// dropped; the request is retried and denied again.
func (c *Conn) Listen(denied chan<- *PermissionError, lost chan<- struct{}) (stop func()) {
	return c.requests.add(&waiter{
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

// Concerns reports whether a denial ends a request on subject: the server denies the
// publish, or the subscription of replies.
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

// Bounds of the wait between two attempts of a request.
const (
	RetryWaitMin = 5 * time.Millisecond
	RetryWaitMax = time.Second
)

// Repeat calls f, as Attempt does, until it succeeds, fails for good, or ctx ends. It
// returns the last error, typed.
func (c *Conn) Repeat(ctx context.Context, subject string, f func(context.Context) error) error {
	return Backoff(ctx, func() error { return c.Attempt(ctx, subject, f) })
}

// Backoff calls f until it succeeds, fails for good, or ctx ends, with exponential
// backoff. It returns the last error, typed.
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

// Retry is Repeat for requests on several subjects: any denial ends it.
func (c *Conn) Retry(ctx context.Context, f func(context.Context) error) error {
	return c.Repeat(ctx, "", f)
}

// Answer is embedded in every struct into which a reply of the JetStream API is decoded.
type Answer struct {
	Error *jetstream.APIError `json:"error"`
}

func (a *Answer) refusal() error {
	if a.Error == nil {
		return nil
	}
	return a.Error
}

// Ask sends one request of the JetStream API and decodes the reply. request has no
// API prefix. A refusal by the server is a *jetstream.APIError.
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

// Attempt calls f once, within RequestTimeout. Its context ends at once if the server
// denies a publish to subject (any, if empty), and if the connection is lost.
func (c *Conn) Attempt(ctx context.Context, subject string, f func(context.Context) error) error {
	watched, stop := c.Watch(ctx, subject, false)
	defer stop()
	limited, cancel := context.WithTimeout(watched, RequestTimeout)
	defer cancel()
	return Cause(watched, f(limited))
}

// Sleep waits for d. It returns the error of ctx if that ends first.
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
