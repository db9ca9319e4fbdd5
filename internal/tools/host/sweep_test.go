package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// told is what sessions say and hear.
type told struct {
	closed  bool
	now     *executor.HostSession
	err     error
	asked   int
	expired []executor.HostSession
	deleted []string
}

func (t *told) Deleted(_ context.Context, from uint64, fn func(string)) (uint64, error) {
	for _, sid := range t.deleted[from:] {
		fn(sid)
	}
	return uint64(len(t.deleted)), t.err
}

func (t *told) HostSession(context.Context, string) (bool, *executor.HostSession, error) {
	t.asked++
	return !t.closed, t.now, t.err
}

func (t *told) EndHostSession(_ context.Context, _ string, h executor.HostSession) error {
	t.expired = append(t.expired, h)
	return t.err
}

// unused makes it look as if nobody had used the host session for d.
func (r *rig) unused(d time.Duration) {
	r.t.Helper()
	at := time.Now().Add(-d)
	must(r.t, os.Chtimes(r.h.recordPath(r.hs.ID), at, at))
}

func (r *rig) wantStatus(want string) {
	r.t.Helper()
	if rec, err := r.h.record(r.hs.ID); err != nil || rec.Status != want {
		r.t.Errorf("host session: got %+v, %v; want it %s", rec, err, want)
	}
}

func TestSweepExpires(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	r := newRig(t, Options{IdleTTL: time.Minute, Route: "host-w1"}, map[string]string{"f": "x"})
	s := &told{}
	r.h.Sweep(t.Context(), s, log)
	r.wantStatus(statusReady)

	r.unused(2 * time.Minute)
	done := r.h.use(r.hs) // a call that takes longer than the idle time
	r.h.Sweep(t.Context(), s, log)
	r.wantStatus(statusReady)
	done() // its end is a use
	r.h.Sweep(t.Context(), s, log)
	r.wantStatus(statusReady)

	r.unused(2 * time.Minute)
	s.err = errors.New("no right to say so")
	r.h.Sweep(t.Context(), s, log)
	r.h.Sweep(t.Context(), s, log)
	r.wantStatus(statusExpired)
	if want := (executor.HostSession{ID: r.hs.ID, Status: statusExpired, Route: "host-w1"}); len(s.expired) != 1 || s.expired[0] != want {
		t.Errorf("told: %+v, want once %+v", s.expired, want)
	}
	if got := r.call(ToolReadFile, args{"path": "f"}); got.HostSession == nil || got.HostSession.Status != statusExpired {
		t.Errorf("the next call: %+v, want it to say expired", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "f")); err != nil {
		t.Errorf("the files: %v, want them kept", err)
	}
}

func TestSweepEndsHostSessionsOfClosedSessions(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		told told
		want string
	}{
		"open, ours":          {told{now: &executor.HostSession{Status: statusReady}}, statusReady},
		"open, not heard yet": {told{}, statusReady},
		"closed":              {told{closed: true}, statusClosed},
		"lost, it thinks":     {told{now: &executor.HostSession{Status: statusError}}, statusClosed},
		"another, ready":      {told{now: &executor.HostSession{ID: "h2", Status: statusReady}}, statusClosed},
		"another, over":       {told{now: &executor.HostSession{ID: "h2", Status: statusClosed}}, statusReady},
		"no answer":           {told{closed: true, err: errors.New("nobody")}, statusReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{}, nil)
			if c.told.now != nil && c.told.now.ID == "" {
				c.told.now.ID = r.hs.ID
			}
			r.h.Sweep(t.Context(), &c.told, log)
			if r.wantStatus(statusReady); c.told.asked != 0 {
				t.Error("asked for a host session that was just used")
			}
			r.unused(2 * time.Minute)
			r.h.Sweep(t.Context(), &c.told, log)
			r.wantStatus(c.want)
		})
	}
}

func TestSweepRemovesLeftovers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	old, fresh := filepath.Join(r.dir, tempPrefix+"old"), filepath.Join(r.root, recordsDir, ".h1.half")
	young := filepath.Join(r.dir, tempPrefix+"young")
	must(t, errors.Join(os.MkdirAll(filepath.Join(old, "below"), 0o755), os.Mkdir(young, 0o700), os.WriteFile(fresh, nil, 0o600)))
	at := time.Now().Add(-2 * leftoverAge)
	must(t, os.Chtimes(old, at, at))
	r.h.Sweep(t.Context(), &told{}, slog.New(slog.DiscardHandler))
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a killed host left: %v, want it gone", err)
	}
	for _, name := range []string{fresh, young} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("what a call may be using: %v, want it there", err)
		}
	}
	r.wantStatus(statusReady)
}
