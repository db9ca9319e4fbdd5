package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

func (m *Meters) on() bool { return m.events != nil }

func nothing() {}

// folding starts to measure the fold of an event; it measures one event in 16.
func (m *Meters) folding(e session.Event) (ended func()) {
	if !m.on() || e.Seq%16 != 0 {
		return nothing
	}
	began := time.Now()
	return func() { m.foldDuration.Record(time.Since(began).Seconds()) }
}

// finished counts events whose outputs are stored.
func (m *Meters) finished(outputs []*outputs, now time.Time) {
	for _, o := range outputs {
		if o.failed == nil {
			m.folded.Add(1)
		}
		if o.tally == nil {
			continue
		}
		o.tally.end(o.failed == nil)
		o.tally = nil
		m.latency.Record(max(0, now.Sub(time.UnixMilli(o.arrival.Event.Time)).Seconds()))
	}
}

// stored counts messages that were stored together.
func (m *Meters) stored(messages int, took time.Duration, errs []error) {
	m.storeDuration.Record(took.Seconds())
	m.commitMessages.Record(float64(messages))
	for _, err := range errs {
		if err != nil {
			m.commitErrors.Add(1, commitCodeOf(err))
		}
	}
}

func commitCodeOf(err error) string {
	var violation *journal.ViolationError
	var large *natsio.MaxPayloadError
	switch {
	case errors.As(err, &violation):
		return "payload_differs"
	case errors.As(err, &large):
		return "too_large"
	case errors.Is(err, natsio.ErrStreamFull):
		return "stream_full"
	case errors.Is(err, journal.ErrUnknownOutcome):
		return "unknown_outcome"
	}
	return meter.Other
}

// runningLane is a lane that this process runs.
type runningLane struct {
	owned           func() bool  // reports whether this process owns it
	sessions, bytes atomic.Int64 // in memory
}

func (m *Meters) began(lane int, owned func() bool, first bool) {
	if first {
		m.takeovers.Add(1, strconv.Itoa(lane))
		m.takenOver.Add(1)
	} else {
		m.resets.Add(1, strconv.Itoa(lane))
	}
	m.lanes.Store(lane, &runningLane{owned: owned})
}

// left removes a lane that the process no longer runs.
func (m *Meters) left(lane int) {
	m.lanes.Delete(lane)
	for _, g := range []*meter.Gauge{m.pending, m.unstored, m.oldest, m.memory, m.memoryBytes} {
		g.Set(0, strconv.Itoa(lane))
	}
}

// readOwned yields, for each lane that this process runs, whether it owns it now. A
// process that lost a lane reports nothing about the lane's waiting events.
func (m *Meters) readOwned(yield func(v float64, labels ...string)) {
	m.lanes.Range(func(number, running any) bool {
		owned, lane := 0.0, strconv.Itoa(number.(int))
		if running.(*runningLane).owned() {
			owned = 1
		} else {
			for _, g := range []*meter.Gauge{m.pending, m.unstored, m.oldest} {
				g.Set(0, lane)
			}
		}
		yield(owned, lane)
		return true
	})
}

// stats returns what `nats micro stats` and the inspector show of this host.
func (h *Host) stats() presence.ActorStats {
	all := presence.ActorStats{Owned: []int{}, Takeovers: h.meters.takenOver.Load(), Events: h.meters.folded.Load()}
	all.Lanes, _, _ = h.assignment.now()
	h.meters.lanes.Range(func(number, running any) bool {
		of := running.(*runningLane)
		if of.owned() {
			all.Owned = append(all.Owned, number.(int))
		}
		all.Sessions += of.sessions.Load()
		all.Bytes += of.bytes.Load()
		return true
	})
	slices.Sort(all.Owned)
	return all
}

func (m *Meters) readForeign(yield func(v float64, labels ...string)) {
	if read := m.foreign.Load(); read != nil {
		beats, others := (*read)()
		yield(float64(beats), "heartbeat")
		yield(float64(others), "other")
	}
}

func (m *Meters) delivered(lane int, pending uint64) {
	m.pending.Set(float64(pending), strconv.Itoa(lane))
}

func (m *Meters) loaded(from string, took time.Duration) {
	m.loads.Add(1, from)
	m.loadDuration.Record(took.Seconds())
}

// ended counts an outcome, good or bad.
func (m *Meters) ended(c *meter.Counter, well bool, good, bad string) {
	if !well {
		good = bad
	}
	c.Add(1, good)
}

func (m *Meters) stopped(cause error) {
	m.quarantines.Add(1, reasonOf(cause))
	m.notices.Add(1, session.NoticeSessionQuarantined)
}

func (m *Meters) released() { m.notices.Add(1, session.NoticeSessionReleased) }

// gaugesEvery is how often the owner of lane 0 reads the server's gauges.
const gaugesEvery = 15 * time.Second

// readGauges updates the gauges that are read from the server, while this host owns
// lane 0, until ctx ends.
func (h *Host) readGauges(ctx context.Context) {
	if !h.meters.on() {
		return
	}
	m := h.meters
	for {
		if ahead, ok := h.clock.Ahead(); ok {
			m.clockAhead.Set(ahead.Seconds())
		}
		if h.ownsFirst.Load() {
			m.readServer(ctx, h)
		} else {
			for _, g := range []*meter.Gauge{m.quarantined, m.missing, m.logBytes, m.logBytesMax, m.durability, m.waiting, m.untaken} {
				g.Clear()
			}
		}
		if !pause(ctx, gaugesEvery) {
			return
		}
	}
}

func (m *Meters) readServer(ctx context.Context, h *Host) {
	ctx, cancel := context.WithTimeout(ctx, gaugesEvery)
	defer cancel()
	if all, err := h.quarantined.all(ctx, h, time.Now().Add(-gaugesEvery)); err == nil {
		m.quarantined.Set(float64(len(all)))
	}
	m.durability.Clear()
	m.durability.Set(1, h.bus.Durability().String())
	backlog, err := h.bus.Backlog(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Debug("backlog_not_read", "error", err.Error())
		}
		m.missing.Clear()
		m.waiting.Clear()
		m.untaken.Clear()
		return
	}
	m.missing.Clear()
	if missing, err := h.world.LogMissing(ctx); err == nil {
		m.missing.Set(float64(missing))
	}
	m.logBytes.Set(float64(backlog.LogBytes))
	if backlog.LogBytesMax > 0 {
		m.logBytesMax.Set(float64(backlog.LogBytesMax))
	}
	for _, t := range backlog.Targets {
		m.waiting.Set(float64(t.Waiting), string(t.Class), t.Target)
		m.untaken.Set(float64(t.Untaken), string(t.Class), t.Target)
	}
}
