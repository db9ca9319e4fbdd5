package service

import (
	"context"
	"fmt"
	"time"

	"github.com/refold/refold/internal/presence"
)

// instance is one process of a service.
type instance struct {
	subjects map[string]bool // that it answers
	silence
}

// sentCall is a call that waits for its reply. NATS does not tell which instance
// received it: one of those that were there when it was sent.
type sentCall struct {
	subject string
	at      time.Time
	by      []*instance // those that may have received it
	all     bool        // a query that began after it was sent has added those that had started shortly before
	end     context.CancelCauseFunc
}

// goneError says that every instance that may have received a call is gone.
type goneError struct{ heard time.Time } // the latest of them

func (e *goneError) Error() string {
	return fmt.Sprintf("no instance that may have received the call has answered since %s", e.heard.UTC().Format(time.RFC3339))
}

// sent enters a call in the table of those that wait for a reply, before it is sent.
// The context ends with a goneError when its reply can't come any more. done removes
// the call.
func (ts *Tools) sent(ctx context.Context, subject string) (waiting context.Context, done func()) {
	waiting, end := context.WithCancelCause(ctx)
	c := &sentCall{subject: subject, at: time.Now(), end: end}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, in := range ts.instances {
		if in.subjects[subject] {
			c.by = append(c.by, in)
		}
	}
	ts.calls[c] = struct{}{}
	soon := time.AfterFunc(unansweredAfter, func() {
		select {
		case ts.unanswered <- struct{}{}:
		default:
		}
	})
	return waiting, func() {
		soon.Stop()
		ts.mu.Lock()
		delete(ts.calls, c)
		ts.mu.Unlock()
		end(nil)
	}
}

// learnInstances stores which instances answered a query, and ends the calls whose
// instances are all gone.
func (ts *Tools) learnInstances(found []presence.FoundService, began time.Time) {
	answered := map[*instance]bool{}
	for i := range found {
		id := found[i].Name + " " + found[i].ID
		in := ts.instances[id]
		if in == nil {
			in = &instance{}
			ts.instances[id] = in
		}
		answered[in], in.subjects = true, map[string]bool{}
		in.answered(began)
		for _, e := range found[i].Endpoints {
			in.subjects[e.Subject] = true
		}
	}
	for id, in := range ts.instances {
		if !answered[in] && in.missed(began, ts.o.Every) {
			delete(ts.instances, id)
		}
	}
	for c := range ts.calls {
		if !c.all && began.After(c.at) {
			c.all = true
			for in := range answered {
				if in.subjects[c.subject] {
					c.by = append(c.by, in)
				}
			}
		}
		if heard, gone := c.gone(); gone && began.Sub(heard) >= missesMax*ts.o.Every {
			c.end(&goneError{heard})
		}
	}
}

// gone reports whether all instances that may have received the call are gone, and
// when the latest of them was heard. If none was known, the call's own time counts.
func (c *sentCall) gone() (heard time.Time, gone bool) {
	if !c.all {
		return heard, false
	}
	if len(c.by) == 0 {
		return c.at, true
	}
	for _, in := range c.by {
		if !in.gone {
			return heard, false
		}
		if in.heard.After(heard) {
			heard = in.heard
		}
	}
	return heard, true
}
