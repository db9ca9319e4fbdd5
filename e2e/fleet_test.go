//go:build unix

package e2e_test

// Host tools on a fleet: a host session is on one worker, and another worker
// answers for a killed one.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

const fleetRules = opening + `
  - shown: {asked: ^wait, last: user}
    calls: [{tool: shell, arguments: {command: 'read x < GATE'}}, {tool: stat, arguments: {path: .}}]
  - shown: {asked: ^stat, last: user}
    calls: [{tool: stat, arguments: {path: .}}]
  - shown: {asked: ^where, last: user}
    calls: [{tool: shell, arguments: {command: pwd}}]
  - shown: {last: tool}
    say: '${result}'
`

// worker starts a bridge that is one worker of the fleet.
func (s *system) worker(name, work string, more ...string) *daemon {
	s.t.Helper()
	return startDaemon(s.t, "bridge", append([]string{"--nats", s.url, "--tools", "host", "--worker", name, "--workdir", work,
		"--worker-lost", "5s", "--concurrency", "1"}, more...)...)
}

// wantHost waits until a session's host session is as it should be.
func (s *system) wantHost(sid, status, route string) {
	s.t.Helper()
	s.view(sid, "its host session "+status+" at "+route, func(v session.View) bool {
		return v.Host != nil && v.Host.Status == status && v.Host.Route == route
	})
}

func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startSystem(t, nil)
	s.models(g.in(fleetRules), "scripted")
	first := s.worker("w1", t.TempDir(), "--sandbox-read", filepath.Dir(g.path))
	sids := []string{"s1", "s2", "s3"}
	for _, sid := range sids {
		s.run(session.DoorIn, sid, "open", scripted)
		s.wantEnd(sid, 1, session.Completed, "")
		s.wantHost(sid, "ready", "host-w1")
	}
	otherDir := t.TempDir()
	s.worker("w2", otherDir)

	// One call runs, and stands in the way of two others: w2 may not have them.
	s.run(session.DoorIn, "s1", "wait", scripted)
	g.reached()
	s.run(session.DoorIn, "s2", "stat", scripted)
	s.run(session.DoorIn, "s3", "where", scripted)
	for _, sid := range sids[1:] {
		s.view(sid, "a call at w1", func(v session.View) bool {
			return slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool { return e.Target == "host-w1" })
		})
	}
	first.kill()
	for sid, want := range map[string]string{"s1": "outcome_unknown", "s2": "failed", "s3": "failed"} {
		s.wantEnd(sid, 2, session.Completed, "")
		s.wantHost(sid, "error", "host-w1")
		if got := settlements(t, s.nc, sid)["r2t1c0"]; got != want {
			t.Errorf("%s: the call is settled %s, want %s", sid, got, want)
		}
	}
	// What comes next is opened where there is a worker.
	for _, sid := range sids {
		s.run(session.DoorIn, sid, "open", scripted)
		s.wantEnd(sid, 3, session.Completed, "")
		s.wantHost(sid, "ready", "host-w2")
	}
	s.run(session.DoorIn, "s1", "where", scripted)
	s.wantEnd("s1", 4, session.Completed, "")
	if _, err := os.Stat(filepath.Join(otherDir, "s1")); err != nil {
		t.Errorf("s1 has no directory on the second worker: %v", err)
	}
	verifyAll(t, s.url)
}

// TestWorkerBack: a worker that returns in time, with its files, continues.
func TestWorkerBack(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models(fleetRules, "scripted")
	dir := t.TempDir()
	first := startDaemon(t, "bridge", "--nats", s.url, "--tools", "host", "--workdir", dir)
	s.run(session.DoorIn, "s1", "open", scripted)
	s.wantEnd("s1", 1, session.Completed, "")
	name, err := os.ReadFile(filepath.Join(dir, ".worker"))
	if err != nil {
		t.Fatal(err)
	}
	route := "host-" + strings.TrimSpace(string(name))
	s.wantHost("s1", "ready", route)
	first.kill()
	s.run(session.DoorIn, "s1", "stat", scripted)
	s.view("s1", "its call", func(v session.View) bool { return v.Run != nil && v.Run.Number == 2 && len(v.Open) > 0 })
	first.start()
	s.wantEnd("s1", 2, session.Completed, "")
	if got := settlements(t, s.nc, "s1")["r2t1c0"]; got != "succeeded" {
		t.Errorf("the call is settled %s, want succeeded", got)
	}
	s.wantHost("s1", "ready", route)
}

// TestHostSessionExpires: without a call the session is told all the same.
func TestHostSessionExpires(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models(fleetRules, "scripted")
	s.worker("w1", t.TempDir(), "--host-ttl", "1s")
	s.run(session.DoorIn, "s1", "open", scripted)
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantHost("s1", "expired", "host-w1")
	s.run(session.DoorIn, "s1", "open again", scripted)
	s.wantEnd("s1", 2, session.Completed, "")
}

// TestFleetRights: a worker with only the rights of refold roles answers for
// another one.
func TestFleetRights(t *testing.T) {
	t.Parallel()
	guarded := startGuarded(t)
	s := guarded.start(nil)
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all streams are there
	s.models(fleetRules, "scripted")
	work := func(name string) *daemon {
		return startDaemon(t, "bridge", guarded.daemon("tools", "--tools", "host", "--worker", name, "--workdir", t.TempDir(), "--worker-lost", "5s")...)
	}
	first := work("w1")
	s.run(session.DoorIn, "s1", "open", scripted)
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantHost("s1", "ready", "host-w1")
	first.kill()
	work("w2")
	s.run(session.DoorIn, "s1", "stat", scripted)
	s.wantEnd("s1", 2, session.Completed, "")
	s.wantHost("s1", "error", "host-w1")
	if got := settlements(t, s.nc, "s1")["r2t1c0"]; got != "failed" {
		t.Errorf("the call is settled %s, want failed", got)
	}
}
