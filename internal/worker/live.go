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

// delta is one streaming delta. It is not stored.
type delta struct {
	Effect string `json:"effect"`
	Start  string `json:"start"` // the start of the effect that produced it
	N      int    `json:"n"`     // from 0, per start, without gaps
	Text   string `json:"text"`
}

// liveDeltas publishes a model's text while it streams, for one start of one
// generation. It joins fast text: except for full ones, there is at most one
// delta in deltaEvery.
type liveDeltas struct {
	wire        Transport
	sid, effect string
	ctx         context.Context // when it ends, nothing more is published
	published   *atomic.Uint64  // counts deltas; nil: not counted

	mu    sync.Mutex
	start string
	n     int
	held  []byte    // not published yet
	at    time.Time // of the last delta
	timer *time.Timer
	ended bool
}

// add adds text of the model. The settlement has the whole text, so a failure to
// publish is not reported.
func (l *liveDeltas) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || len(l.held) > heldBytesMax {
		return // nothing but broken characters: a gap, and the settlement has the text
	}
	l.held = append(l.held, text...)
	wait := deltaEvery - time.Since(l.at)
	switch {
	case len(l.held) >= deltaBytesMax || l.at.IsZero() || wait <= 0:
		l.publish()
	case l.timer == nil:
		l.timer = time.AfterFunc(wait, l.flush)
	}
}

// flush publishes the held text when the timer fires.
func (l *liveDeltas) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if !l.ended {
		l.publish()
	}
}

// publish publishes the held text, in pieces if it is long. An incomplete
// character at its end waits for its remaining bytes: the deltas, joined, are the
// text of the settlement. The caller holds the lock.
func (l *liveDeltas) publish() {
	whole := wholeBytes(l.held)
	if whole == 0 || l.ctx.Err() != nil {
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

// wholeBytes returns the length of text without an incomplete character at its end.
func wholeBytes(text []byte) int {
	for n := len(text); n > 0; n-- {
		if r, size := utf8.DecodeLastRune(text[:n]); r != utf8.RuneError || size > 1 {
			return n
		}
	}
	return 0
}

// restart begins another start: the text so far is void.
func (l *liveDeltas) restart(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.n, l.held, l.at = laterULID(l.start, now), 0, nil, time.Time{}
}

// end publishes the held text, and nothing after it.
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

// NewULID returns a fresh ULID, which names one start of a process or of an effect.
func NewULID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// laterULID returns a fresh ULID that is greater than another one, even if the
// clock was set back.
func laterULID(than string, now time.Time) string {
	if last, err := ulid.ParseStrict(than); err == nil && ulid.Timestamp(now) <= last.Time() {
		now = ulid.Time(last.Time() + 1)
	}
	return NewULID(now)
}
