package natsio_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/natsio"
)

// machine is a machine whose clock can be set, and the server that it asks.
type machine struct {
	started time.Time     // by the server
	running time.Duration // of the process
	asleep  time.Duration // of the machine
	ahead   time.Duration // of its clock
	trip    time.Duration // to the server, and back
	down    bool
}

func (m *machine) server() time.Time { return m.started.Add(m.running + m.asleep) }

func (m *machine) local() (time.Time, time.Duration) { return m.server().Add(m.ahead), m.running }

func (m *machine) ask(context.Context) (time.Time, error) {
	if m.down {
		return time.Time{}, errors.New("no server")
	}
	m.running += m.trip
	at := m.server()
	m.running += m.trip
	return at, nil
}

func TestClockShowsTheServersTime(t *testing.T) {
	t.Parallel()
	m, logged := &machine{started: time.UnixMilli(1763715600000), trip: 20 * time.Millisecond, ahead: 11 * time.Minute}, new(bytes.Buffer)
	c := natsio.NewClock(m.local, m.ask, slog.New(slog.NewTextHandler(logged, nil)))
	measure := func() {
		if err := c.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name    string
		do      func()
		off     time.Duration // of the shown time, from the server's
		aheadMS int64
		lines   int // clock_off, so far
	}{
		{"not measured", func() {}, 11 * time.Minute, 0, 0},
		{"measured", measure, 0, 660_000, 1},
		{"later", func() { m.running += time.Hour }, 0, 660_000, 1},
		{"the clock is set", func() { m.ahead = -time.Hour }, 0, 660_000, 1},
		{"measured again", measure, 0, -3_600_000, 2},
		{"and again", measure, 0, -3_600_000, 2},
		{"the server is down", func() {
			m.down = true
			if err := c.Measure(t.Context()); err == nil {
				t.Error("Measure without a server: got no error")
			}
			m.down = false
		}, 0, -3_600_000, 2},
		{"the clock is right", func() { m.ahead = 300 * time.Millisecond; measure() }, 0, 0, 2},
		{"the machine was suspended", func() { m.asleep += time.Hour }, -time.Hour, 0, 2},
		{"measured after that", measure, 0, 0, 2},
	} {
		step.do()
		if off := c.Now().Sub(m.server()); (off - step.off).Abs() > m.trip {
			t.Errorf("%s: the clock is %v off, want %v", step.name, off, step.off)
		}
		if got := c.AheadMS(); got-step.aheadMS > 40 || step.aheadMS-got > 40 {
			t.Errorf("%s: AheadMS is %d, want %d", step.name, got, step.aheadMS)
		}
		if got := strings.Count(logged.String(), "clock_off"); got != step.lines {
			t.Errorf("%s: %d lines clock_off, want %d", step.name, got, step.lines)
		}
	}
	if got := strings.Count(logged.String(), "clock_right"); got != 1 {
		t.Errorf("%d lines clock_right, want 1", got)
	}
}

// Round trips differ; a measurement that agrees with the time known moves nothing.
func TestClockIsSteady(t *testing.T) {
	t.Parallel()
	m := &machine{started: time.UnixMilli(1763715600000), trip: time.Millisecond}
	c := natsio.NewClock(m.local, m.ask, slog.New(slog.DiscardHandler))
	for _, trip := range []time.Duration{time.Millisecond, 300 * time.Millisecond, 2 * time.Millisecond, time.Second} {
		before, at := c.Now(), m.running
		m.trip = trip
		if err := c.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Now().Sub(before), m.running-at; got != want {
			t.Errorf("a round trip of %v: the clock went on by %v, want %v", 2*trip, got, want)
		}
	}
}
