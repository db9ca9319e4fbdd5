package bridge

import (
	"log/slog"
	"sync"
	"time"
)

// quietFor is how long a trouble that goes on is not told of again.
const quietFor = 10 * time.Second

// quiet tells of what goes wrong for every effect alike once in quietFor, and how
// often it happened: a full disk is one trouble, however many effects meet it.
type quiet struct {
	mu   sync.Mutex
	told map[string]trouble
}

// trouble is what was not told of since.
type trouble struct {
	since time.Time
	times int
}

// warn logs a warning, or counts it. times in the line is how often it happened
// since the line before.
func (q *quiet) warn(log *slog.Logger, now time.Time, message string, err error) {
	q.mu.Lock()
	last := q.told[message]
	last.times++
	if tells := last.since.IsZero() || now.Sub(last.since) >= quietFor || now.Before(last.since); !tells {
		q.told[message] = last
		q.mu.Unlock()
		return
	}
	if q.told == nil {
		q.told = make(map[string]trouble)
	}
	q.told[message] = trouble{since: now}
	q.mu.Unlock()
	log.Warn(message, "error", err.Error(), "times", last.times) //nolint:sloglint // each caller has a literal
}
