package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const removalsMax = 64

// removeEnded removes the files and records of host sessions that ended more
// than Options.Keep ago, or whose session was deleted. It keeps a directory if a host session that must stay
// uses it, or a directory above or below it.
func (h *Host) removeEnded(log *slog.Logger) {
	if h.opts.Keep == 0 && len(h.deleted) == 0 || h.opts.WorkDir != "" {
		return
	}
	h.openMu.Lock() // no removed session is opened meanwhile
	defer h.openMu.Unlock()
	stays, goes, err := h.over()
	if err != nil { // it is unknown who uses the directories
		log.Warn("host_sessions_not_removed", "error", err.Error())
		return
	}
	if len(goes) == 0 {
		return
	}
	root, err := os.OpenRoot(h.base)
	if err != nil {
		log.Warn("host_session_not_removed", "error", err.Error())
		return
	}
	defer root.Close()
	for _, rec := range goes[:min(len(goes), removalsMax)] {
		if isOwn(rec.WorkDir) && !sharedWith(rec.WorkDir, stays) {
			err = root.RemoveAll(filepath.FromSlash(rec.WorkDir)) // root confines it, whatever the record contains
		}
		if err == nil {
			err = os.Remove(h.recordPath(rec.ID))
		}
		if err != nil { // the next sweep retries
			log.Warn("host_session_not_removed", "session", rec.Session, "host_session", rec.ID, "error", err.Error())
			err = nil
			continue
		}
		log.Info("host_session_removed", "session", rec.Session, "host_session", rec.ID, "directory", rec.WorkDir)
	}
}

// over returns the host sessions that ended long enough ago, or whose session was deleted,
// and all others.
func (h *Host) over() (stays, goes []record, err error) {
	entries, err := os.ReadDir(filepath.Join(h.root, recordsDir))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		id, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord || strings.HasPrefix(id, ".") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, nil, err
		}
		rec, err := h.record(id)
		if err != nil {
			return nil, nil, err
		}
		kept := h.opts.Keep == 0 || time.Since(info.ModTime()) <= h.opts.Keep
		if rec.Status != statusReady && (!kept || h.deleted[rec.Session]) {
			goes = append(goes, rec)
		} else {
			stays = append(stays, rec)
		}
	}
	return stays, goes, nil
}

// isOwn reports whether a directory belongs to a host session, and not to the host.
func isOwn(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	return filepath.IsLocal(dir) && top != "." && top != recordsDir
}

// sharedWith reports whether one of others uses a directory, or one above or
// below it.
func sharedWith(dir string, others []record) bool {
	return slices.ContainsFunc(others, func(o record) bool {
		return o.WorkDir == dir || strings.HasPrefix(o.WorkDir, dir+"/") || strings.HasPrefix(dir, o.WorkDir+"/") || o.WorkDir == "."
	})
}
