package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refold/refold/bridge/executor"
)

const (
	leftoverAge = time.Hour   // of a temporary file that no call can still use
	settledAge  = time.Minute // after its last use, what the session knows of a host session counts
	asksAtOnce  = 256         // sessions that one sweep asks for
)

// Sessions is what a host asks and tells sessions; a [bridge.Bridge] is one.
type Sessions interface {
	// HostSession tells whether a session is open, and its host session, nil for
	// none.
	HostSession(ctx context.Context, sid string) (open bool, h *executor.HostSession, err error)
	// EndHostSession tells a session that its host session has ended.
	EndHostSession(ctx context.Context, sid string, h executor.HostSession) error
}

// Sweep ends host sessions that no call has used for Options.IdleTTL, and tells
// their sessions; ends those whose session is closed or has ended them itself; and
// removes what calls of a host that was killed have left; the first sweep ends
// their processes. Files of host sessions stay for Options.Keep. What could not be
// asked or told is tried at the next sweep, or told by the next call.
func (h *Host) Sweep(ctx context.Context, sessions Sessions, log *slog.Logger) {
	entries, err := os.ReadDir(filepath.Join(h.root, recordsDir))
	if err != nil {
		log.Warn("host_sessions_not_listed", "error", err.Error())
		return
	}
	h.swept.Do(func() { h.endLeftovers(log) })
	asked := 0
	defer h.removeEnded(log)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || ctx.Err() != nil {
			continue
		}
		age := time.Since(info.ModTime())
		id, isRecord := strings.CutSuffix(e.Name(), ".json")
		switch {
		case strings.HasPrefix(e.Name(), "."):
			if age > leftoverAge {
				_ = os.RemoveAll(filepath.Join(h.root, recordsDir, e.Name())) // or the next time
			}
			continue
		case !isRecord:
			continue
		case h.opts.IdleTTL > 0 && age > h.opts.IdleTTL:
			if rec, ended := h.endUnused(id, statusExpired, log); ended {
				if err := sessions.EndHostSession(ctx, rec.Session, *rec.hostSession(statusExpired)); err != nil {
					// The session hears of it at its next call.
					log.Warn("host_session_end_not_told", "session", rec.Session, "error", err.Error())
				}
			}
			continue
		}
		rec, err := h.record(id)
		if err != nil || rec.Status != statusReady || age < settledAge || asked >= asksAtOnce {
			continue
		}
		asked++
		open, now, err := sessions.HostSession(ctx, rec.Session)
		if err == nil && (!open || now != nil && over(rec, now)) {
			h.endUnused(id, statusClosed, log)
		}
	}
}

// over reports that a session knows the end of a host session, or has another one.
func over(rec record, now *executor.HostSession) bool {
	if now.ID == rec.ID {
		return now.Status != statusReady
	}
	return now.Status == statusReady
}

// endUnused ends a host session unless a call uses it.
func (h *Host) endUnused(id, status string, log *slog.Logger) (record, bool) {
	h.usedMu.Lock()
	defer h.usedMu.Unlock()
	rec, err := h.record(id)
	if err != nil || rec.Status != statusReady || h.used[id] > 0 {
		return rec, false
	}
	rec.Status = status
	if err := h.store(rec); err != nil {
		log.Warn("host_session_not_ended", "session", rec.Session, "error", err.Error())
		return rec, false
	}
	log.Info("host_session_ended", "session", rec.Session, "host_session", id, "status", status)
	return rec, true
}

// use keeps a host session from being ended until done is called.
func (h *Host) use(hs *executor.HostSession) (done func()) {
	if hs == nil {
		return func() {}
	}
	h.usedMu.Lock()
	defer h.usedMu.Unlock()
	if h.used == nil {
		h.used = make(map[string]int)
	}
	h.used[hs.ID]++
	return func() {
		h.usedMu.Lock()
		defer h.usedMu.Unlock()
		if h.used[hs.ID]--; h.used[hs.ID] == 0 {
			delete(h.used, hs.ID)
		}
		if rec, err := h.record(hs.ID); err == nil && rec.Status == statusReady {
			now := time.Now()
			_ = os.Chtimes(h.recordPath(hs.ID), now, now) // its idle time counts from the end of the call
		}
	}
}
