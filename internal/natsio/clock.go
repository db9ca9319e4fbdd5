package natsio

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// ClockOffMax is how far this machine's clock may differ from the server's
	// before that is told: starts of effects are exact to a second.
	ClockOffMax = time.Second

	clockEvery    = time.Minute // between two measurements
	clockTick     = time.Second // between two looks for a step of this machine's clock
	clockStepMax  = time.Second // a larger step is measured at once
	clockAnswerBy = 5 * time.Second
)

// LocalClock reads this machine's clock: the time that it shows, and how long the
// process has run, which can't be set.
type LocalClock func() (shown time.Time, running time.Duration)

// NewLocalClock returns the clock of the operating system.
func NewLocalClock() LocalClock {
	began := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(began)
	}
}

// Clock is the server's clock as this process knows it. Times of events and
// effects are the server's, so they are compared with this clock only. It is safe
// for concurrent use.
//
// A measurement asks the server for its time, and halves the round trip. Until the
// next one only the time that this process runs counts: setting this machine's
// clock changes nothing. Before the first measurement it shows this machine's time.
type Clock struct {
	local LocalClock
	ask   func(context.Context) (time.Time, error)
	log   *slog.Logger

	mu       sync.Mutex
	server   time.Time     // the server's time when this process had run for at
	shown    time.Time     // what this machine showed at the latest measurement
	at       time.Duration // of server and shown
	ahead    time.Duration // of this machine, at the latest measurement
	measured bool
	told     time.Duration // the offset that the log has told; 0: none
}

// NewClock returns a clock that ask measures.
func NewClock(local LocalClock, ask func(context.Context) (time.Time, error), log *slog.Logger) *Clock {
	shown, at := local()
	return &Clock{local: local, ask: ask, log: log, server: shown, shown: shown, at: at}
}

// Now returns the server's time.
func (c *Clock) Now() time.Time {
	_, running := c.local()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(running - c.at)
}

// Ahead returns how far this machine's clock was ahead of the server's at the latest
// measurement; ok is false before the first one.
func (c *Clock) Ahead() (ahead time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.measured
}

// AheadMS returns how many milliseconds this machine's clock is ahead of the
// server's, for a heartbeat: 0 if it is within ClockOffMax or not known, or if c is
// nil.
func (c *Clock) AheadMS() int64 {
	if c == nil {
		return 0
	}
	if ahead, ok := c.Ahead(); ok && ahead.Abs() > ClockOffMax {
		return ahead.Milliseconds()
	}
	return 0
}

// Measure compares the clocks once. After an error the earlier measurement stays.
func (c *Clock) Measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clockAnswerBy)
	defer cancel()
	_, asked := c.local()
	server, err := c.ask(ctx)
	if err != nil {
		return err
	}
	shown, answered := c.local()
	half := (answered - asked) / 2
	c.mu.Lock()
	server = server.Add(half) // about now
	if known := c.server.Add(answered - c.at); c.measured && known.Sub(server).Abs() <= half {
		server = known // no measurement says more: the clock stays steady
	}
	c.server, c.shown, c.at, c.measured = server, shown, answered, true
	c.ahead = shown.Sub(server)
	ahead, told := c.ahead, c.told
	off := ahead.Abs() > ClockOffMax
	switch {
	case off && (ahead-told).Abs() <= ClockOffMax, !off && told == 0:
		c.mu.Unlock()
		return nil
	case off:
		c.told = ahead
	default:
		c.told = 0
	}
	c.mu.Unlock()
	if off {
		c.log.Warn("clock_off", "ahead_ms", ahead.Milliseconds(),
			"note", "this machine's clock differs from the NATS server's: deadlines follow the server, but set both by NTP (timedatectl set-ntp true), since credentials that expire and certificates go by each machine's clock")
	} else {
		c.log.Info("clock_right", "ahead_ms", ahead.Milliseconds())
	}
	return nil
}

// Keep measures each minute, and soon after this machine's clock was set or the
// machine was suspended, until ctx ends.
func (c *Clock) Keep(ctx context.Context) {
	due, failed := clockEvery, false
	if _, ok := c.Ahead(); !ok {
		due = 0
	}
	_, last := c.local()
	for Sleep(ctx, clockTick) == nil {
		_, running := c.local()
		if running-last < due && !c.stepped() {
			continue
		}
		last, due = running, clockEvery
		switch err := c.Measure(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			due = clockAnswerBy
			if !failed {
				c.log.Warn("clock_not_measured", "error", err.Error(), "note", "the time of the latest measurement is used, or this machine's before the first one: keep its clock right by NTP, and give this user the permissions that refold roles prints")
			}
			failed = true
		default:
			failed = false
		}
	}
}

// stepped reports whether this machine's clock was set since the latest
// measurement, or the machine was suspended: then the process seems to have run for
// less time than the clock shows.
func (c *Clock) stepped() bool {
	shown, running := c.local()
	c.mu.Lock()
	defer c.mu.Unlock()
	return (shown.Sub(c.shown) - (running - c.at)).Abs() > clockStepMax
}

// NewClock returns the clock of the server that has this connection. Nothing is
// measured yet.
func (c *Conn) NewClock(local LocalClock) *Clock { return NewClock(local, c.ServerTime, c.Log) }

// ServerTime asks the leader of the log for its time, since the timestamps of events
// are the leader's. Users of every role may ask for it.
func (c *Conn) ServerTime(ctx context.Context) (at time.Time, err error) {
	request := "STREAM.INFO." + c.names.LogStream()
	var info struct {
		Answer
		At time.Time `json:"ts"`
	}
	err = c.Attempt(ctx, c.API+request, func(ctx context.Context) error { return c.Ask(ctx, request, struct{}{}, &info) })
	return info.At, err
}
