package worker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/internal/prompt"
)

// delta is one streaming delta. It is gone when read; the log never has it.
type delta struct {
	Effect string `json:"effect"`
	Start  string `json:"start"` // which start of the effect says it
	N      int    `json:"n"`     // from 0, per start, without gaps
	Text   string `json:"text"`
}

// liveDeltas publishes what a model says while it says it. One start of one
// generation has one. What comes fast is put together: there are no more than
// one delta in deltaEvery, but for those that are full.
type liveDeltas struct {
	wire        Transport
	sid, effect string
	over        context.Context // when it ends, nobody listens any more
	published   *atomic.Uint64  // counts deltas; nil: nobody does

	mu    sync.Mutex
	start string
	n     int
	held  []byte    // said, and not published yet
	at    time.Time // of the delta that was published last
	timer *time.Timer
	ended bool
}

// say takes what a model says. Nobody waits for a delta, and the settlement has the
// whole text, so a failure is not reported.
func (l *liveDeltas) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || len(l.held) > heldBytesMax {
		return // nothing but broken characters: a gap then, and the log tells
	}
	l.held = append(l.held, text...)
	wait := deltaEvery - time.Since(l.at)
	switch {
	case len(l.held) >= deltaBytesMax || l.at.IsZero() || wait <= 0:
		l.publish()
	case l.timer == nil:
		l.timer = time.AfterFunc(wait, l.later)
	}
}

// later publishes what waited.
func (l *liveDeltas) later() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if !l.ended {
		l.publish()
	}
}

// publish publishes what is held, in pieces if it is long. What does not end
// with a whole character waits for the rest of it: the deltas, joined, are the text of
// the settlement. The lock is held.
func (l *liveDeltas) publish() {
	whole := wholeBytes(l.held)
	if whole == 0 || l.over.Err() != nil {
		return
	}
	text := prompt.Valid(string(l.held[:whole]))
	l.held = append(l.held[:0], l.held[whole:]...)
	l.at = time.Now()
	for text != "" {
		piece := prompt.Clip(text, deltaBytesMax)
		text = text[len(piece):]
		payload, err := json.Marshal(delta{Effect: l.effect, Start: l.start, N: l.n, Text: piece})
		if err != nil {
			return
		}
		l.n++
		if err := l.wire.Live(l.sid, payload); err == nil && l.published != nil {
			l.published.Add(1)
		}
	}
}

// wholeBytes returns how many bytes of text end with a whole character.
func wholeBytes(text []byte) int {
	for n := len(text); n > 0; n-- {
		if r, size := utf8.DecodeLastRune(text[:n]); r != utf8.RuneError || size > 1 {
			return n
		}
	}
	return 0
}

// anew begins another start: what was said so far is void.
func (l *liveDeltas) anew(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.n, l.held, l.at = laterULID(l.start, now), 0, nil, time.Time{}
}

// end publishes what is left, and nothing after it.
func (l *liveDeltas) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.publish()
	l.ended = true
}

// NewULID returns a fresh ULID: the name of a process's start, or of an effect's.
func NewULID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// laterULID returns a fresh ULID that is greater than another one, whatever
// the clock says.
func laterULID(than string, now time.Time) string {
	if last, err := ulid.ParseStrict(than); err == nil && ulid.Timestamp(now) <= last.Time() {
		now = ulid.Time(last.Time() + 1)
	}
	return NewULID(now)
}
