package sim

// The host processes: which lanes they run, by heartbeats, and how they end.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/presence"
)

// host is a host process.
type host struct {
	*proc
	sim     *sim
	host    *engine.Host
	log     *slog.Logger
	runs    [laneCount]*laneRun // nil: it does not run the lane
	epochs  [laneCount]int      // epochs that its lanes have begun
	heard   map[string]presence.Member
	leaving time.Time // when SIGTERM came; zero: it did not
	loaded  bool
	keeps   int // sessions that a lane may keep in memory
	dues    int // wakes that it is settling
}

// hostLeaves is how long a host may take to end: its drains, its last requests to
// the server, and its last snapshots.
const hostLeaves = drainFor + 15*time.Second

func (s *sim) startHost(i int) {
	s.lives++
	p := s.start(fmt.Sprintf("h%d.%d", i, s.lives))
	s.startClock(p, s.skewed())
	h := &host{proc: p, sim: s, log: slog.New(resets{s}), heard: map[string]presence.Member{}, keeps: 2 + s.draw(4)}
	h.host = engine.NewOn(world{p, s}, p.name, p.now, slog.New(slog.DiscardHandler), engine.Options{Lanes: laneCount, SessionsMax: h.keeps, SnapshotEach: uint64(1 + s.draw(8))})
	s.hosts[i] = h
	go func() {
		for p.ctx.Err() == nil && h.host.Load(p.ctx) != nil { // a process would be started again
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		h.loaded = true
	}()
	s.rest()
}

// resets counts the reasons of lane resets, from the log.
type resets struct{ sim *sim }

func (resets) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l resets) WithAttrs([]slog.Attr) slog.Handler             { return l }
func (l resets) WithGroup(string) slog.Handler                  { return l }

func (l resets) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lane_reset" {
		r.Attrs(func(a slog.Attr) bool {
			l.sim.did(a.Value.String())
			return true
		})
	}
	return nil
}

// share applies the host's share of the lanes.
func (h *host) share() {
	if h.dead || !h.loaded || time.Since(h.bornAt) < 100*time.Millisecond {
		return
	}
	known := make([]presence.Member, 0, len(h.heard))
	for _, name := range sortedKeys(h.heard) {
		known = append(known, h.heard[name])
	}
	h.host.Share(known, true)
	for n, r := range h.runs {
		switch want := h.host.Wants(n); {
		case r != nil && r.over:
			h.runs[n] = nil
			if want {
				h.runLane(n)
			}
		case r == nil && want:
			h.runLane(n)
		case r != nil && !want:
			r.drain()
		}
	}
	h.sim.rest()
}

// beat delivers the heartbeats of live hosts.
func (s *sim) beat() {
	for _, from := range s.hosts {
		if from.dead || from.cut() {
			continue
		}
		body := from.host.Heartbeat()
		for _, to := range s.hosts {
			if !to.dead && !to.cut() {
				to.heard[from.name] = presence.Member{Instance: from.name, Heard: time.Now(), Body: body}
			}
		}
	}
	for i, h := range s.hosts {
		h.share()
		s.looksGone(i)
	}
}

// stopHost sends a host SIGTERM.
func (s *sim) stopHost(i int) {
	h := s.hosts[i]
	if !h.leaving.IsZero() {
		return
	}
	s.did("host stops")
	s.say("%s is told to stop", h.name)
	h.leaving = time.Now()
	h.host.Leave()
	s.beat()
}

// looksGone starts another host when this one has stopped.
func (s *sim) looksGone(i int) {
	h := s.hosts[i]
	if h.leaving.IsZero() || h.dead {
		return
	}
	if took := time.Since(h.leaving); took > hostLeaves {
		s.breaks("%s was told to stop %v ago, and still runs", h.name, took)
	}
	for _, r := range h.runs {
		if r != nil && !r.over {
			return
		}
	}
	s.did("host stopped")
	s.say("%s has stopped", h.name)
	s.kill(h.proc)
	s.startHost(i)
}

// keep does the lanes' regular checks.
func (h *host) keep() {
	for _, r := range h.runs {
		if r != nil && !h.dead {
			r.keep()
		}
	}
}

// steps returns the lanes that can take a step.
func (h *host) steps() (all []*laneRun) {
	for _, r := range h.runs {
		if r != nil && !h.dead && r.isReady() {
			all = append(all, r)
		}
	}
	return all
}

// pullDue takes a due wake and settles it; false: there is none.
func (h *host) pullDue() bool {
	h.sim.mu.Lock()
	full := h.dues == slotsMax
	h.sim.mu.Unlock()
	if full || h.dead || !h.leaving.IsZero() || h.cut() {
		return false
	}
	c := h.sim.dues
	d, found, err := c.Pull("")
	if err != nil || !found {
		return false
	}
	if h.sim.fault(60) {
		h.sim.say("%s: delivery of %s is lost", h.name, d.Subject)
		return true
	}
	sid, wake, err := h.sim.names.ParseDue(d.Subject)
	if err != nil {
		panic(err)
	}
	h.sim.say("%s: delivered %s, time %d", h.name, d.Subject, d.Count)
	h.sim.mu.Lock()
	h.dues++
	h.sim.mu.Unlock()
	go func() {
		again := h.host.SettleDue(context.WithValue(h.ctx, carries{}, fmt.Sprint(d.Seq, d.Count)), sid, wake, d.Data, d.Time)
		h.sim.mu.Lock()
		defer h.sim.mu.Unlock()
		h.dues--
		if h.dead {
			return
		}
		text := fmt.Sprintf("%s has done %s, time %d, again in %v", h.name, d.Subject, d.Count, again)
		h.sim.mail = append(h.sim.mail, &posted{from: h.proc, key: text, text: text, arrive: func() {
			if again > 0 {
				c.Nak(d.Seq, again)
			} else {
				c.Ack(d.Seq)
			}
		}})
	}()
	return true
}

// view returns a View as the host answers it; nil if the session has no event.
func (h *host) view(ctx context.Context, sid string) ([]byte, error) {
	data, err := h.host.View(ctx, sid)
	if errors.Is(err, engine.ErrNoSession) {
		return nil, nil
	}
	return data, err
}

// posted is a message in flight to the server.
type posted struct {
	from   *proc
	key    string // orders messages that are sent at the same instant
	text   string
	keeps  bool // it is a lane's request, sent by the clock
	n      int
	arrive func()
}

// inFlight returns the indices in mail of messages that can arrive: those of
// processes that are not cut off.
func (s *sim) inFlight() (ready []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.mail, func(a, b *posted) int {
		switch {
		case a.n != 0 && b.n != 0:
			return a.n - b.n
		case a.n != 0:
			return -1
		case b.n != 0:
			return 1
		}
		return strings.Compare(a.key, b.key)
	})
	for i, l := range s.mail {
		if l.n == 0 {
			s.seen++
			l.n = s.seen
		}
		if !l.from.cut() {
			ready = append(ready, i)
		}
	}
	return ready
}

// post delivers a message, or loses it.
func (s *sim) post(i int) {
	s.mu.Lock()
	l := s.mail[i]
	s.mail = slices.Delete(s.mail, i, i+1)
	s.mu.Unlock()
	if s.fault(30) {
		s.did("ack lost")
		s.say("%s: lost", l.text)
		return
	}
	s.say("%s", l.text)
	l.arrive()
	s.rest()
}
