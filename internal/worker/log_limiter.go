package worker

import (
	"sync"
	"time"
)

// logEvery is the least time between two log lines about one trouble.
const logEvery = 10 * time.Second

// logLimiter limits a log message to one in logEvery and counts its occurrences:
// a full disk is one trouble, however many effects it fails.
type logLimiter struct {
	mu       sync.Mutex
	troubles map[string]trouble
}

// trouble counts the occurrences since its last log line.
type trouble struct {
	since time.Time
	times int
}

// allow counts one occurrence, and reports whether to log it now. times is the
// number of occurrences since the last log line.
func (q *logLimiter) allow(what string, now time.Time) (times int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.troubles[what]
	last.times++
	if ok = last.since.IsZero() || now.Sub(last.since) >= logEvery || now.Before(last.since); ok {
		times, last = last.times, trouble{since: now}
	}
	if q.troubles == nil {
		q.troubles = make(map[string]trouble)
	}
	q.troubles[what] = last
	return times, ok
}
