package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// outstanding knows the requests that wait for an answer, to end those that
// will not get one: the server denies a publish asynchronously (to the
// requester it looks like a timeout), and a lost connection takes answers
// with it.
type outstanding struct {
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
	subject string // empty: whatever is denied concerns it
	patient bool   // a lost connection does not end it
	cancel  context.CancelCauseFunc
}

// errReconnected ends a request whose answer may have been lost.
var errReconnected = errors.New("the connection was lost and made again")

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

// watch returns a context that ends, with the reason as its cause, when the
// server denies a publish to subject or a subscription without which no answer
// can arrive, and when the connection was lost. Call stop when done.
func (o *outstanding) watch(ctx context.Context, subject string) (watched context.Context, stop func()) {
	return o.watchFor(ctx, subject, false)
}

// watchFor is watch, and with patient the context goes on when the connection
// was lost.
func (o *outstanding) watchFor(ctx context.Context, subject string, patient bool) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &waitingRequest{subject: subject, patient: patient, cancel: cancel}
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

// listen tells of denials and of connections made anew until stop is called.
// Neither waits: denied has room for some, lost for one.
func (o *outstanding) listen(denied chan<- *PermissionError, lost chan<- struct{}) (stop func()) {
	l := &listener{denied, lost}
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

// denied ends the requests that the violation is about.
func (o *outstanding) denied(p *PermissionError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiting {
		if w.subject == "" || w.subject == p.Subject || p.Op == "subscribe" && strings.HasPrefix(p.Subject, o.inbox) {
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

// reconnected ends all requests but the patient ones: each is repeated by who
// made it.
func (o *outstanding) reconnected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.waiting {
		if !w.patient {
			w.cancel(errReconnected)
		}
	}
	for l := range o.listening {
		select {
		case l.lost <- struct{}{}:
		default:
		}
	}
}

// because returns the cause of ctx's end in place of err, if ctx ended.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// Waits between two attempts at one request.
const (
	retryWaitMin = 5 * time.Millisecond
	retryWaitMax = time.Second
)

// repeat calls f until it succeeds, fails for good, or ctx ends. Each attempt
// has apiTimeout; it ends at once if the server denies a publish to subject
// (any, if empty). The last error comes back typed.
func (b *Bus) repeat(ctx context.Context, subject string, f func(context.Context) error) error {
	wait := retryWaitMin
	for {
		err := b.attempt(ctx, subject, f)
		if err == nil || !isTransient(err) {
			return typed(err)
		}
		if ended := sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w (last attempt: %w)", ended, typed(err))
		}
		wait = min(2*wait, retryWaitMax)
	}
}

// retry is repeat for requests whose subjects are many: any denial ends it.
func (b *Bus) retry(ctx context.Context, f func(context.Context) error) error {
	return b.repeat(ctx, "", f)
}

func (b *Bus) attempt(ctx context.Context, subject string, f func(context.Context) error) error {
	watched, stop := b.open.watch(ctx, subject)
	defer stop()
	limited, cancel := context.WithTimeout(watched, apiTimeout)
	defer cancel()
	return because(watched, f(limited))
}

// sleep waits for d or the end of ctx, whose error it returns then.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
