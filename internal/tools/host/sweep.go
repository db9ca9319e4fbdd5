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
	settledAge  = time.Minute // since the last use; before, the session may not know of its host session yet
	asksAtOnce  = 256         // sessions that one sweep asks for
)

// Sessions gives a host access to the sessions; a [bridge.Bridge] implements it.
type Sessions interface {
	// HostSession returns whether a session is open, and its host session, or nil.
	HostSession(ctx context.Context, sid string) (open bool, h *executor.HostSession, err error)
	// EndHostSession notifies a session that its host session has ended.
	EndHostSession(ctx context.Context, sid string, h executor.HostSession) error
	// Deleted calls fn with the sessions that were deleted, from a position of their list
	// on (0: the first), and returns the position of the next call.
	Deleted(ctx context.Context, from uint64, fn func(sid string)) (next uint64, err error)
}

// Sweep ends host sessions that no call has used for Options.IdleTTL, and
// notifies their sessions. It ends those whose session is closed or has ended
// them itself, and removes leftovers of the calls of a host that was killed;
// the first sweep kills their processes. Files of host sessions stay for
// Options.Keep; those of a deleted session go at once. Failures are retried by the next sweep, and a session that was
// not notified learns it at its next call.
func (h *Host) Sweep(ctx context.Context, sessions Sessions, log *slog.Logger) {
	entries, err := os.ReadDir(filepath.Join(h.root, recordsDir))
	if err != nil {
		log.Warn("host_sessions_not_listed", "error", err.Error())
		return
	}
	h.swept.Do(func() { h.endLeftovers(log) })
	h.removeTemps(entries, log)
	h.learnDeleted(ctx, sessions, entries, log)
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
				_ = os.RemoveAll(filepath.Join(h.root, recordsDir, e.Name())) // or at the next sweep
			}
			continue
		case !isRecord:
			continue
		case h.opts.IdleTTL > 0 && age > h.opts.IdleTTL:
			if rec, ended := h.endUnused(id, statusExpired, log); ended {
				if err := sessions.EndHostSession(ctx, rec.Session, *rec.hostSession(statusExpired)); err != nil {
					// The session learns it at its next call.
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

// learnDeleted notes which sessions with a record were deleted since the last sweep; the
// first one reads the whole list.
func (h *Host) learnDeleted(ctx context.Context, sessions Sessions, entries []os.DirEntry, log *slog.Logger) {
	here := map[string]bool{}
	for _, e := range entries {
		if id, isRecord := strings.CutSuffix(e.Name(), ".json"); isRecord && !strings.HasPrefix(id, ".") {
			if rec, err := h.record(id); err == nil {
				here[rec.Session] = true
			}
		}
	}
	next, err := sessions.Deleted(ctx, h.deletedFrom, func(sid string) {
		if here[sid] {
			h.deleted[sid] = true
		}
	})
	if err != nil {
		log.Warn("deleted_sessions_not_read", "error", err.Error())
		return
	}
	h.deletedFrom = next
}

// over reports whether a session knows that a host session ended, or has
// another one.
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

// use prevents a host session from being ended until done is called.
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
			_ = os.Chtimes(h.recordPath(hs.ID), now, now) // the idle time counts from the end of the call
		}
	}
}
