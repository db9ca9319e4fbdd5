package web

import (
	"net/http"
	"sync"
	"time"
)

// usage counts what callers use.
type usage struct {
	mu  sync.Mutex
	all map[string]*used
	now func() time.Time
}

// used is what a caller uses.
type used struct {
	tokens  float64 // requests that may come at once
	at      time.Time
	streams int
	bytes   int64 // of files, since day
	day     time.Time
}

// callersMax is how many callers are counted. Those that were idle are forgotten first.
const callersMax = 100_000

func newUsage() usage { return usage{all: map[string]*used{}, now: time.Now} }

// of returns what a caller uses. The caller holds the lock.
func (u *usage) of(key string, perSecond int) *used {
	now := u.now()
	if u.all[key] == nil {
		if len(u.all) >= callersMax {
			for other, of := range u.all {
				if of.streams == 0 && now.Sub(of.at) > time.Minute && now.Sub(of.day) > day {
					delete(u.all, other)
				}
			}
		}
		u.all[key] = &used{tokens: 2 * float64(perSecond), at: now, day: now}
	}
	of := u.all[key]
	of.tokens = min(2*float64(perSecond), of.tokens+now.Sub(of.at).Seconds()*float64(perSecond))
	of.at = now
	if now.Sub(of.day) > day {
		of.bytes, of.day = 0, now
	}
	return of
}

const day = 24 * time.Hour

// request counts a request.
func (u *usage) request(key string, perSecond int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.of(key, perSecond)
	if of.tokens < 1 {
		p := problem(http.StatusTooManyRequests, CodeTooManyRequests, "this token may send %d requests a second: send fewer", perSecond)
		p.after = time.Second
		return p
	}
	of.tokens--
	return nil
}

// stream counts an open stream until end is called.
func (u *usage) stream(key string, l *Limits) (end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.of(key, l.PerSecond)
	if of.streams >= l.Streams {
		p := problem(http.StatusTooManyRequests, CodeTooManyStreams, "this token has %d streams open: close one", l.Streams)
		p.after = time.Second
		return nil, p
	}
	of.streams++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		of.streams--
	}, nil
}

// store counts the bytes of a file.
func (u *usage) store(key string, bytes int64, l *Limits) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.of(key, l.PerSecond)
	if of.bytes+bytes > l.DayBytes {
		p := problem(http.StatusTooManyRequests, CodeQuota, "this token may store %d bytes of files within 24 hours, and has stored %d", l.DayBytes, of.bytes)
		p.after = of.day.Add(day).Sub(u.now())
		return p
	}
	of.bytes += bytes
	return nil
}
