package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// wrong is what keeps this host from its promises: what WatchStreams finds, and lanes
// that stall.
type wrong struct {
	mu     sync.Mutex
	found  []streams.Finding
	stalls map[int]stall // by lane
	latest string        // the latest failure of work that is tried again
	failed time.Time     // when that was
}

// stall is why a lane stores nothing, and since when.
type stall struct {
	why   string
	since time.Time
}

// stallAfter is how long nothing of a lane with unacknowledged events may be stored.
const stallAfter = 5 * time.Second

// reasons returns what is wrong, in sentences for people.
func (w *wrong) reasons() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.found {
		all = append(all, f.String())
	}
	for _, lane := range slices.Sorted(maps.Keys(w.stalls)) {
		all = append(all, fmt.Sprintf("lane %d stores nothing: %s", lane, w.stalls[lane].why))
	}
	return all
}

// shortly returns the first reasons, each cut, for a heartbeat.
func (w *wrong) shortly() []string {
	all := w.reasons()
	all = all[:min(len(all), session.TroublesMax)]
	for i, why := range all {
		all[i] = short(why)
	}
	return all
}

// short cuts a reason to what a trouble may say.
func short(why string) string {
	return strings.ToValidUTF8(why[:min(len(why), session.TroubleDetailMax)], "")
}

// fails records why work is tried again.
func (w *wrong) fails(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = time.Now()
	w.latest = what + ": " + err.Error()
}

// holds returns what holds up a session of a lane that waits for a bridge of a consumer:
// the lane stalls, or one of the consumers is paused. since is zero if it is not known.
func (w *wrong) holds(lane int, bridges string) (why string, since time.Time, holds bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, stalls := w.stalls[lane]; stalls {
		return s.why, s.since, true
	}
	for _, f := range w.found {
		if f.Paused != "" && (f.Paused == subjects.LaneName(lane) || f.Paused == bridges) {
			return f.Trouble, time.Time{}, true
		}
	}
	return "", time.Time{}, false
}

// stall records that a lane stalls, or that it does not, at a time of the server. It
// returns the cause, and whether that is new.
func (w *wrong) stall(lane int, stalls bool, now time.Time) (why string, changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, before := w.stalls[lane]
	if stalls == before {
		return "", false
	}
	if !stalls {
		delete(w.stalls, lane)
		return "", true
	}
	why = "the server does not answer"
	if time.Since(w.failed) < 2*stallAfter {
		why = w.latest
	}
	if w.stalls == nil {
		w.stalls = map[int]stall{}
	}
	w.stalls[lane] = stall{why, now}
	return why, true
}

// checkStall reports once when the lane begins to stall, and when it goes on.
func (l *Lane) checkStall() {
	stalls := len(l.order) > 0 && l.now.Sub(l.moved) >= stallAfter
	switch why, changed := l.host.wrong.stall(l.number, stalls, l.host.now()); {
	case !changed:
	case stalls:
		l.log.Error("lane_stalled", "unacknowledged", len(l.order), "cause", why)
	default:
		l.log.Info("lane_goes_on")
	}
}

// watchStreams checks the streams until ctx ends. The owner of lane 0 creates those
// again that can be derived. It sends an error to lost if the log is lost.
func (h *Host) watchStreams(ctx context.Context, lost chan<- error) {
	conf := h.bus.Provisioned()
	if conf == nil {
		return // this process did not provision
	}
	err := h.bus.WatchStreams(ctx, conf, func(found []streams.Finding) {
		h.wrong.mu.Lock()
		h.wrong.found = found
		h.wrong.mu.Unlock()
		h.meters.streamsWrong.Set(float64(len(found)))
		if !h.ownsFirst.Load() {
			return
		}
		for _, f := range found {
			if !f.Missing {
				continue
			}
			if _, err := h.bus.Remake(ctx, conf, f.Stream); err != nil && ctx.Err() == nil {
				h.log.Warn("stream_not_made_again", "stream", f.Stream, "error", err.Error())
			}
		}
		if err := h.restoreWakes(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("wakes_not_restored", "error", err.Error())
		}
	})
	if err != nil {
		lost <- err
	}
}

// restoreWakes asks all open wakes again if the stream of timers was created since.
func (h *Host) restoreWakes(ctx context.Context) error {
	lost, err := h.bus.WakesLost(ctx)
	if err != nil || !lost {
		return err
	}
	sessions, wakes, err := audit.RestoreWakes(ctx, h.bus, h.installs.Pinned)
	if err == nil {
		err = h.bus.WakesRestored(ctx)
	}
	if err == nil && wakes > 0 {
		h.log.Info("wakes_restored", "wakes", wakes, "sessions", sessions)
	}
	return err
}
