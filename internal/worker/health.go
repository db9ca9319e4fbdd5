package worker

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/prompt"
)

// health is what the latest tries of a provider came to. It is healthy until a
// try fails, and again when one is answered. The zero value is healthy.
type health struct {
	mu    sync.Mutex
	since time.Time // of the first failure since the last answer; zero: healthy
	code  string    // of the latest failure
	what  string
	tries map[digest]time.Time // when generations that failed are tried again
}

// failed takes in a try that failed at now, or one that tells of no trouble.
func (h *health) failed(fault *executor.Error, now time.Time) {
	switch fault.Code {
	case codeBadRequest, codeContentFilter, codeContextLength:
		h.answered()
		return
	case codeAuth, codeNetwork, codeOverloaded, codeRateLimited, session.CodeDeadlineExceeded:
	default:
		if !fault.Retryable {
			return // it is about the generation, not about the provider
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = now
	}
	h.code, h.what = fault.Code, fault.Detail
}

// answered takes in that the provider answered.
func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = time.Time{}
}

// again notes when a generation is tried next.
func (h *health) again(of digest, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tries == nil {
		h.tries = make(map[digest]time.Time)
	}
	h.tries[of] = at
}

// over forgets the next try of a generation: its start has ended.
func (h *health) over(of digest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tries, of)
}

// trouble returns what is wrong with the provider, nil if nothing is. held is
// until when nothing starts; zero: it starts.
func (h *health) trouble(held time.Time) *session.Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return nil
	}
	next := held
	for _, at := range h.tries {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	t := &session.Trouble{Code: h.code, Detail: h.what, Since: h.since.UnixMilli()}
	if !next.IsZero() {
		t.Next = next.UnixMilli()
	}
	return t
}

// Troubles returns what an executor says is wrong now.
func (s *Target) Troubles() []string {
	if of, ok := s.Executor.(interface{ Troubles() []string }); ok {
		return of.Troubles()
	}
	return nil
}

// trouble returns what is wrong with a target now, nil if nothing is.
func (s *Target) trouble(began, now time.Time) *session.Trouble {
	var t *session.Trouble
	if s.Pace != nil {
		t = s.Pace.health.trouble(s.Pace.nothingUntil(now))
	}
	if t == nil {
		if all := s.Troubles(); len(all) > 0 {
			t = &session.Trouble{Code: session.TroubleExecutor, Detail: all[0]}
			if more := len(all) - 1; more > 0 {
				t.Detail = fmt.Sprintf("%s (and %d more)", prompt.Clip(all[0], session.TroubleDetailMax-20), more)
			}
		}
	}
	if s.Lacks != "" && (t == nil || t.Code == codeAuth) {
		t = &session.Trouble{Code: session.TroubleLacks, Detail: s.Lacks, Since: began.UnixMilli()}
	}
	if t != nil {
		t.Target = s.String()
	}
	return t
}

// nothingUntil returns until when nothing of the provider starts; zero: it may.
func (p *Pacer) nothingUntil(now time.Time) time.Time {
	p.mu.Lock()
	until := p.until
	p.mu.Unlock()
	if open := p.breaker.openUntil(); open.After(until) {
		until = open
	}
	if until.Before(now) {
		return time.Time{}
	}
	return until
}

// heartbeat is the body of a bridge's heartbeats.
type heartbeat struct {
	Targets  []string          `json:"targets"`
	Rules    int               `json:"rules"` // the newest version that it knows
	Troubles []session.Trouble `json:"troubles,omitempty"`
}

// Heartbeats returns what makes the body of each heartbeat of a bridge that
// serves these targets.
func (w *Worker) Heartbeats(targets []string, all []Target) func() []byte {
	began := w.now()
	return func() []byte {
		beat := heartbeat{Targets: targets, Rules: session.RulesVersion}
		for i := range all {
			if t := all[i].trouble(began, w.now()); t != nil && len(beat.Troubles) < session.TroublesMax {
				t.Code = prompt.Clip(t.Code, session.CodeBytesMax)
				t.Detail = prompt.Clip(w.vault.given.Redactor().Text(t.Detail), session.TroubleDetailMax)
				beat.Troubles = append(beat.Troubles, *t)
			}
		}
		body, err := json.Marshal(beat)
		if err != nil {
			panic("bridge: a heartbeat does not encode: " + err.Error()) // it has texts and numbers alone
		}
		return body
	}
}
