package host

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
)

// recordsDir holds one record per host session, in the host's root. No session
// id begins with a dot, so it is no session's working directory.
const recordsDir = ".sessions"

// tempPrefix begins the names of temporary directories of commands, in their
// working directory.
const tempPrefix = ".refold-tmp-"

// sessionID matches the sessions that may have a directory.
var sessionID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Statuses of a host session, as the fold knows them.
const (
	statusReady   = "ready"
	statusClosed  = "closed"
	statusExpired = "expired"
	statusError   = "error"
)

// record is a host session on disk. These files are all that a host knows of
// its sessions, so a host that was killed has lost none, and hosts that share a
// root share sessions. The modification time is the last use.
type record struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	WorkDir string `json:"work_dir"` // relative to the base
	Route   string `json:"route,omitempty"`
	Status  string `json:"status"`
}

func (r record) hostSession(status string) *executor.HostSession {
	return &executor.HostSession{ID: r.ID, Status: status, Route: r.Route}
}

// hostSessionID is the same at every start of one call, and differs between
// calls: an open that is carried out a second time, even after later ones,
// finds its own session and touches no other.
func hostSessionID(call executor.Call) string {
	key := cmp.Or(call.IdempotencyKey, call.Session)
	sum := sha256.Sum256([]byte(key))
	return "h" + hex.EncodeToString(sum[:10])
}

type openArguments struct {
	WorkDir *string `json:"workdir,omitempty"`
}

func (h *Host) open(call executor.Call) (executor.Result, error) {
	var args openArguments
	if err := decode(call.Arguments, &args); err != nil {
		return executor.Result{}, err
	}
	if err := h.Prepare(); err != nil {
		return executor.Result{}, refuse(CodeIO, "the host is not usable: %v", err)
	}
	if !sessionID.MatchString(call.Session) {
		return executor.Result{}, refuse(CodeInvalidArguments, "session %.80q: an id is 1 to 64 of A-Z, a-z, 0-9, _ and -", call.Session)
	}
	h.openMu.Lock()
	defer h.openMu.Unlock()
	rel, err := h.workDir(call.Session, args.WorkDir)
	if err != nil {
		return executor.Result{}, err
	}
	rec, err := h.create(record{
		ID: hostSessionID(call), Session: call.Session, WorkDir: rel, Route: h.opts.Route, Status: statusReady,
	})
	if err != nil {
		return executor.Result{}, err
	}
	p, err := openWorkdir(h.base, rec.WorkDir)
	if err != nil {
		return executor.Result{}, err
	}
	defer p.close()
	// A repeat returns the result of the first start, even if the session was
	// closed since: two settlements of one call must be equal.
	ready := rec.hostSession(statusReady)
	if len(p.dir) <= rootBytesMax && utf8.ValidString(p.dir) {
		ready.Root = p.dir
	}
	return executor.Result{Output: "host session ready; working directory: " + p.dir, HostSession: ready}, nil
}

// workDir determines and creates the directory of a new host session, relative
// to the base: the requested one, else the fixed one, else the session's own.
func (h *Host) workDir(session string, asked *string) (string, error) {
	rel := session
	if h.opts.WorkDir != "" {
		rel = "."
	}
	base, err := openWorkdir(h.base, ".")
	if err != nil {
		return "", err
	}
	defer base.close()
	if asked != nil {
		if rel, err = base.resolve(*asked); err != nil {
			var e *executor.Error
			if errors.As(err, &e) && e.Code == CodePathEscapes {
				return "", refuse(CodePathEscapes, "workdir %s leads out of %s; leave workdir out, or use a path inside", *asked, base.dir)
			}
			return "", err
		}
		// The root itself contains all sessions' directories and the records.
		if top, _, _ := strings.Cut(rel, "/"); h.opts.WorkDir == "" && (top == recordsDir || top == ".") {
			return "", refuse(CodeInvalidArguments, "workdir %s is the host's own directory; choose one inside it", *asked)
		}
	}
	if err := base.root.MkdirAll(rel, 0o755); err != nil {
		return "", err
	}
	return rel, nil
}

// create stores a record unless there is one with its id, and returns the
// stored one.
func (h *Host) create(rec record) (record, error) {
	temp, err := h.writeRecord(rec)
	if err != nil {
		return rec, err
	}
	defer os.Remove(temp)
	// Unlike a rename, a link does not replace: only one of two hosts succeeds.
	err = os.Link(temp, h.recordPath(rec.ID))
	if !errors.Is(err, fs.ErrExist) {
		return rec, err
	}
	return h.record(rec.ID)
}

// writeRecord writes a record to a temporary file.
func (h *Host) writeRecord(rec record) (temp string, err error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return "", err
	}
	temp = h.recordPath("." + rec.ID + "." + rand.Text())
	return temp, writeSynced(temp, data)
}

func writeSynced(name string, data []byte) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

func (h *Host) recordPath(id string) string {
	return filepath.Join(h.root, recordsDir, id+".json")
}

func (h *Host) record(id string) (record, error) {
	var rec record
	if id == "" || id != path.Base(id) || id[0] == '.' {
		return rec, fs.ErrNotExist
	}
	data, err := os.ReadFile(h.recordPath(id))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(data, &rec); err != nil || rec.ID != id {
		return rec, fmt.Errorf("record of host session %s is damaged: %w", id, errors.Join(err, fs.ErrNotExist))
	}
	return rec, nil
}

// find returns the record of a call's host session. If there is none, the error
// says why, and the host session has its new status: the session's tools go,
// and open_session is offered again.
func (h *Host) find(call executor.Call) (record, *executor.HostSession, error) {
	if call.HostSession == nil {
		return record{}, nil, refuse(CodeNoHostSession, "no host session is open; call open_session first")
	}
	asked := *call.HostSession
	lost := func(status, why string) (record, *executor.HostSession, error) {
		return record{}, &executor.HostSession{ID: asked.ID, Status: status, Route: asked.Route},
			refuse(CodeNoHostSession, "%s; call open_session to open another", why)
	}
	rec, err := h.record(asked.ID)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return rec, nil, err // a fault of this host, perhaps a temporary one
	case err != nil || rec.Session != call.Session:
		return lost(statusError, fmt.Sprintf("host session %.40q is not known on this host%s", asked.ID, elsewhere(asked.Route, h.opts.Route)))
	case rec.Status != statusReady:
		return lost(rec.Status, "the host session is "+rec.Status)
	case h.idle(rec):
		rec.Status = statusExpired
		if err := h.store(rec); err != nil {
			return rec, nil, err
		}
		return lost(statusExpired, fmt.Sprintf("the host session was not used for %v and expired; its files are still there", h.opts.IdleTTL))
	}
	return rec, nil, nil
}

func elsewhere(route, here string) string {
	if route == "" || route == here {
		return ""
	}
	return fmt.Sprintf(" (%.40q; it was opened on %.40q)", here, route)
}

// idle reports whether the session has expired; if not, it records a use.
func (h *Host) idle(rec record) bool {
	if h.opts.IdleTTL == 0 {
		return false
	}
	name, now := h.recordPath(rec.ID), time.Now()
	fi, err := os.Stat(name)
	if err == nil && now.Sub(fi.ModTime()) > h.opts.IdleTTL {
		return true
	}
	// If the time can't be written, the session expires early: a nuisance,
	// which the next open repairs.
	_ = os.Chtimes(name, now, now)
	return false
}

func (h *Host) store(rec record) error {
	temp, err := h.writeRecord(rec)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, h.recordPath(rec.ID)); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// closeSession carries out host.session.close. It succeeds if the session is
// closed already, or not known here: afterwards there is none, as wanted.
func (h *Host) closeSession(call executor.Call) (executor.Result, error) {
	if err := decode(call.Arguments, &struct{}{}); err != nil {
		return executor.Result{}, err
	}
	if call.HostSession == nil {
		return executor.Result{}, refuse(CodeNoHostSession, "no host session is open, so there is none to close")
	}
	rec, err := h.record(call.HostSession.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return executor.Result{}, err
	}
	if err == nil && rec.Session == call.Session && rec.Status != statusClosed {
		rec.Status = statusClosed
		if err := h.store(rec); err != nil {
			return executor.Result{}, err
		}
	}
	closed := *call.HostSession
	closed.Status = statusClosed
	return executor.Result{Output: "host session closed; its files stay where they are", HostSession: &closed}, nil
}
