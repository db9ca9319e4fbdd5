package bus

import (
	"context"
	"regexp"
	"strings"
	"sync"
)

// violations turns the server's asynchronous "permissions violation" into the
// end of the request that caused it: to the requester a denied publish looks
// like a timeout otherwise.
type violations struct {
	inbox string // prefix of the subjects that answers come on

	mu      sync.Mutex
	waiting map[*violationWait]struct{}
}

type violationWait struct {
	subject string // empty: whatever is denied
	cancel  context.CancelCauseFunc
}

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

// watch returns a context that ends with a *PermissionError as its cause when
// the server denies a publish to subject (any subject, if empty), or a
// subscription, without which no answer can arrive. Call stop when done.
func (v *violations) watch(ctx context.Context, subject string) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &violationWait{subject: subject, cancel: cancel}
	v.mu.Lock()
	if v.waiting == nil {
		v.waiting = make(map[*violationWait]struct{})
	}
	v.waiting[w] = struct{}{}
	v.mu.Unlock()
	return ctx, func() {
		v.mu.Lock()
		delete(v.waiting, w)
		v.mu.Unlock()
		cancel(nil)
	}
}

// denied ends the requests that the violation is about.
func (v *violations) denied(p *PermissionError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.waiting {
		if w.subject == "" || w.subject == p.Subject || p.Op == "subscribe" && strings.HasPrefix(p.Subject, v.inbox) {
			w.cancel(p)
		}
	}
}

// because returns the cause of ctx's end in place of err, if ctx ended with
// one that says more than that it ended.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() {
		return cause
	}
	return err
}
