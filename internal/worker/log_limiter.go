package worker

import (
	"sync"
	"time"
)

// logEvery is how long a trouble that goes on is not told of again.
const logEvery = 10 * time.Second

// logLimiter tells of what goes wrong for every effect alike once in logEvery, and how
// often it happened: a full disk is one trouble, however many effects meet it.
type logLimiter struct {
	mu   sync.Mutex
	told map[string]trouble
}

// trouble is what was not told of since.
type trouble struct {
	since time.Time
	times int
}

// allow counts one occurrence of what goes wrong, and reports whether it is to
// be told of now. times is how often it happened since it was told of last.
func (q *logLimiter) allow(what string, now time.Time) (times int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.told[what]
	last.times++
	if ok = last.since.IsZero() || now.Sub(last.since) >= logEvery || now.Before(last.since); ok {
		times, last = last.times, trouble{since: now}
	}
	if q.told == nil {
		q.told = make(map[string]trouble)
	}
	q.told[what] = last
	return times, ok
}
