//go:build linux

package e2e_test

// An event that kills the session-actor. The unknown bug is injected into a
// build of its own (go build -overlay), and the address space is limited.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// deadly is what an event says whose fold allocates without end in the injected
// build.
const deadly = "kill whoever folds this"

// killerSource is compiled into package engine of the injected build.
const killerSource = `package engine

import (
	"bytes"

	"github.com/refold/refold/actors/session"
)

var held [][]byte

func deadlyEvolve(s *session.State, e session.Event) ([]session.Notice, error) {
	for bytes.Contains(e.Payload, []byte("` + deadly + `")) {
		held = append(held, make([]byte, 64<<20))
	}
	return s.Evolve(e)
}
`

// plantKiller builds a session-actor that a deadly event kills, and returns the
// name of a program that runs it in an address space of limited size.
func plantKiller(t *testing.T) (name string) {
	t.Helper()
	const addressSpace = 3 << 20 // KiB
	read, err := filepath.Abs("../internal/engine/host.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(read)
	if err != nil {
		t.Fatal(err)
	}
	injected := bytes.Replace(source, []byte("evolve: (*session.State).Evolve"), []byte("evolve: deadlyEvolve"), 1)
	if bytes.Equal(source, injected) {
		t.Fatalf("%s does not set the fold any more: plant the killer elsewhere", read)
	}
	overlay := jsonText(t, object{"Replace": object{
		read: writeFile(t, "host.go", string(injected)),
		filepath.Join(filepath.Dir(read), "killer_injected.go"): writeFile(t, "killer.go", killerSource),
	}})
	binary := filepath.Join(t.TempDir(), "session-actor")
	build := exec.Command("go", "build", "-overlay", writeFile(t, "overlay.json", overlay), "-o", binary, "../cmd/session-actor")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build with an injected killer: %v\n%s", err, said)
	}
	name = "session-actor-" + filepath.Base(t.Name())
	script := fmt.Sprintf("#!/bin/sh\nulimit -v %d && exec %s \"$@\"\n", addressSpace, binary)
	if err := os.WriteFile(program(name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// died waits until the daemon has ended for want of memory for the nth time, or
// until something holds; it reports whether it died.
func (d *daemon) died(n int, within time.Duration, what string, holds func() bool) (died bool) {
	d.t.Helper()
	until(d.t, within, what, func() bool {
		died = strings.Count(d.out.String(), "fatal error: ") == n
		return died || holds()
	})
	if died {
		d.kill() // it has ended, or is writing where it was
		if !strings.Contains(d.out.String(), "out of memory") {
			d.t.Fatal("the session-actor ended, and not for want of memory")
		}
	}
	return died
}

// stop is a quarantine, as any program reads it.
type stop struct {
	Seq    uint64 `json:"seq"`
	Reason string `json:"reason"`
	Kills  int    `json:"kills"`
}

// stopped returns the quarantine of a session; false: it has none.
func (s *system) stopped(sid string) (is stop, yes bool) {
	s.t.Helper()
	value, yes := s.key("q." + sid)
	if yes {
		if err := json.Unmarshal(value, &is); err != nil {
			s.t.Fatal(err)
		}
	}
	return is, yes
}

// key returns what is under a key of the snapshots bucket.
func (s *system) key(key string) (value []byte, found bool) {
	s.t.Helper()
	kv, err := s.js.KeyValue(s.t.Context(), s.names.SnapshotsBucket())
	if err != nil {
		s.t.Fatal(err)
	}
	entry, err := kv.Get(s.t.Context(), key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, false
	case err != nil:
		s.t.Fatal(err)
	}
	return entry.Value(), true
}

// guarded returns how many lanes ever had a note of the guard.
func (s *system) guarded() int {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), s.names.SnapshotsStream())
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(s.names.SnapshotsSubject("g.*")))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(info.State.Subjects)
}

// release ends a quarantine by the CLI.
func (s *system) release(sid string) {
	s.t.Helper()
	if out, errOut, status := run(s.t, time.Minute, nil, "refold", "--nats", s.url, "release", sid, "--yes"); status != 0 {
		s.t.Fatalf("release %s: status %d\n%s%s", sid, status, out, errOut)
	}
}

// TestAttackKiller: an event that kills each session-actor that folds it is
// found after a few starts. Its session is quarantined; all others continue,
// also in its lane. After a release it kills once more and is stopped again. A
// build without the bug continues with it.
func TestAttackKiller(t *testing.T) {
	t.Parallel()
	const (
		startsMax = 7
		within    = 90 * time.Second
	)
	s := startSystem(t, nil)
	s.models("rules:\n  - say: hi\n", "scripted")
	attacked := "s1"
	others := []string{inLaneOf(attacked), "elsewhere1", "elsewhere2", "elsewhere3"}
	for _, sid := range append([]string{attacked}, others...) {
		s.run(session.DoorIn, sid, "hello", scripted)
		s.wantEnd(sid, 1, session.Completed, "")
	}
	if err := s.actor.drain(time.Minute); err != nil {
		t.Fatal(err)
	}

	if n := s.guarded(); n != 0 {
		t.Errorf("%d lanes have a note of the guard, want none before anything ended uncleanly", n)
	}

	s.actor = startDaemon(t, plantKiller(t), "--nats", s.url)
	killer := s.run(session.DoorIn, attacked, deadly, scripted)
	for _, sid := range others {
		s.run(session.DoorIn, sid, "are you there?", scripted)
	}
	isStopped := func() bool { _, yes := s.stopped(attacked); return yes }
	starts := 1
	for ; s.actor.died(starts, within, "a death or a quarantine", isStopped); starts++ {
		if starts == startsMax {
			t.Fatalf("the session-actor died at %d starts, and nothing is quarantined", starts)
		}
		s.actor.start()
	}
	t.Logf("quarantined at start %d", starts)
	is, _ := s.stopped(attacked)
	if is.Seq != killer || is.Kills != 4 || !strings.Contains(is.Reason, "session-actors ended, one after the other") {
		t.Errorf("quarantine: got %+v, want one at %d that tells of 4 session-actors that ended", is, killer)
	}
	for _, sid := range others {
		s.wantEnd(sid, 2, session.Completed, "")
		if is, yes := s.stopped(sid); yes {
			t.Errorf("%s killed nobody and is quarantined: %+v", sid, is)
		}
	}
	if answer, err := s.nc.Request("refold.view."+attacked, nil, 10*time.Second); err != nil || !strings.Contains(string(answer.Data), `"quarantined":{"seq":`) || !strings.Contains(string(answer.Data), "session-actors ended") {
		t.Errorf("view: got %+v %v, want the reason", answer, err)
	}

	// Released, it kills again, once.
	s.release(attacked)
	s.actor.died(starts, within, "a death after the release", func() bool { return false })
	if is, yes := s.stopped(attacked); !yes || is.Kills != 5 {
		t.Errorf("quarantine after the release: got %+v %v, want one of 5 session-actors", is, yes)
	}
	s.actor.start()
	for _, sid := range others {
		s.run(session.DoorIn, sid, "still there?", scripted)
		s.wantEnd(sid, 3, session.Completed, "")
	}
	if err := s.actor.drain(time.Minute); err != nil {
		t.Fatal(err)
	}

	// A build that stands it.
	s.actor = startDaemon(t, "session-actor", "--nats", s.url)
	s.run(session.DoorIn, others[0], "and now?", scripted) // its lane has an owner then, who knows what is stopped
	s.wantEnd(others[0], 4, session.Completed, "")
	s.release(attacked)
	s.wantEnd(attacked, 2, session.Completed, "")
	until(t, time.Minute, "the end of the quarantine", func() bool { return !isStopped() })
	if note, found := s.key(subjects.GuardKey(subjects.Lane(subjects.Partition(attacked)))); found {
		t.Errorf("the guard's note is left: %s", note)
	}
	verifyAll(t, s.url)
}
