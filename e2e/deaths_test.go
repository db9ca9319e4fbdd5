package e2e_test

// Effects that kill their bridge. The bridge is this test's binary.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
)

// mortalEnv, if set, makes the test binary a bridge that dies of effects. Each adds its
// name to the file that it names.
const mortalEnv = "E2E_MORTAL_BRIDGE"

// serveMortal runs a bridge with a tool that kills it, and one that takes a moment.
func serveMortal(ledger string) error {
	began := func(tool string) error {
		f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, tool)
		return errors.Join(err, f.Close())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := bridge.Connect(ctx, bridge.Options{URL: os.Getenv("NATS_URL"), Provision: true})
	if err != nil {
		return err
	}
	defer b.Close()
	type nothing struct{}
	killer := mortal(func(what string) error {
		self, err := os.FindProcess(os.Getpid())
		if err = errors.Join(err, began(what)); err == nil {
			err = self.Kill()
		}
		return err
	})
	kill := function.New("lab.kill", func(ctx context.Context, _ nothing) (string, error) {
		err := killer("kill")
		<-ctx.Done()
		return "", errors.Join(err, ctx.Err())
	}, function.RetrySafe(), function.Tries(2))
	note := function.New("lab.note", func(ctx context.Context, _ nothing) (string, error) {
		if err := began("note"); err != nil {
			return "", err
		}
		timer := time.NewTimer(noteTakes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return "noted", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	err = errors.Join(b.Functions([]*function.Function{kill, note}), b.Model("mortal", killer), b.Step("mortal", killer), b.Space("mortal", killer))
	if err != nil {
		return err
	}
	return b.Run(ctx)
}

// mortal is a model, a step hook and a reader of spaces that kill their process.
type mortal func(what string) error

func (m mortal) Generate(ctx context.Context, _ executor.Request, _ func(string)) (executor.Answer, error) {
	err := m("generate")
	<-ctx.Done()
	return executor.Answer{}, errors.Join(err, ctx.Err())
}

func (m mortal) PrepareStep(ctx context.Context, _ executor.StepRequest) (executor.StepChoice, error) {
	err := m("step")
	<-ctx.Done()
	return executor.StepChoice{}, errors.Join(err, ctx.Err())
}

func (m mortal) ReadSpace(ctx context.Context, _ executor.SpaceRequest) (executor.SpaceContent, error) {
	err := m("read")
	<-ctx.Done()
	return executor.SpaceContent{}, errors.Join(err, ctx.Err())
}

const (
	noteTakes = 4 * time.Second
	// shortLease replaces the ten seconds of streams.conf, so that what a dead bridge
	// held comes again soon.
	shortLease = 2 * time.Second
)

// startMortals starts a system whose tools have a bridge of the test's own.
func startMortals(t *testing.T) (s *system, start func() *daemon, began func(tool string) int) {
	t.Helper()
	s = startSystem(t, object{"v": 1, "rules": 1, "config": scripted, "tools": list{
		tool("kill", nil), tool("note", object{"retry_safe": false}),
	}, "spaces": list{object{"space": "mortal", "target": "mortal", "run_ms": 120_000}}})
	s.models(`
rules:
  - shown: {last: tool}
    say: done
  - shown: {asked: ^kill}
    calls: [{tool: kill, arguments: {}}]
  - calls: [{tool: note, arguments: {}}]
`, "scripted")
	ctx, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func(s *system) { defer close(kept); s.keepLeaseShort(ctx) }(s)
	t.Cleanup(func() { stop(); <-kept })
	ledger := filepath.Join(t.TempDir(), "ledger")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := "mortal-" + strings.ReplaceAll(t.Name(), "/", "-")
	if err := os.Symlink(self, program(name)); err != nil {
		t.Fatal(err)
	}
	start = func() *daemon {
		return startDaemonWith(t, []string{mortalEnv + "=" + ledger, "NATS_URL=" + s.url}, name)
	}
	began = func(tool string) (n int) {
		for _, line := range lines(t, ledger) {
			if string(line) == tool {
				n++
			}
		}
		return n
	}
	return s, start, began
}

// keepLeaseShort sets the lease of the mortal bridge's consumers whenever a bridge that
// starts has restored it.
func (s *system) keepLeaseShort(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, name := range []string{"tool-lab", "llm-mortal", "step-mortal", "space-mortal"} {
			consumer, err := s.js.Consumer(ctx, s.names.EffectsStream(), name)
			if err == nil && consumer.CachedInfo().Config.AckWait != shortLease {
				cfg := consumer.CachedInfo().Config
				cfg.AckWait = shortLease
				_, _ = s.js.UpdateConsumer(ctx, s.names.EffectsStream(), cfg) // or at the next tick
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// TestToolKillsItsBridge: the call fails after as many deaths as Tries says, and the
// model is told. A call of another session beside it, which may not run twice, is kept
// away from the second death.
func TestToolKillsItsBridge(t *testing.T) {
	t.Parallel()
	s, start, began := startMortals(t)
	bridge := start()
	died := func() {
		t.Helper()
		_ = bridge.cmd.Wait()
		bridge.cmd = nil
		bridge.start()
	}
	s.run(session.DoorIn, "killer", "kill", nil)
	until(t, time.Minute, "the first death", func() bool { return began("kill") == 1 })
	s.run(session.DoorIn, "other", "note", nil)
	s.view("other", "the other's call", func(v session.View) bool { return v.Batch != nil })
	died()
	until(t, time.Minute, "the second death", func() bool { return began("kill") == 2 })
	died()
	s.wantEnd("other", 1, session.Completed, "")
	s.wantEnd("killer", 1, session.Completed, "")
	for sid, want := range map[string]string{"killer": "failed bridge_lost", "other": "succeeded"} {
		if got := outcomes(t, s, sid); got != want {
			t.Errorf("call of %s: got %q, want %q", sid, got, want)
		}
	}
	if began("kill") != 2 || began("note") != 1 {
		t.Errorf("the killer began %d times, want 2; the other's call %d times, want 1", began("kill"), began("note"))
	}
	verifyAll(t, s.url)
}

// TestOtherEffectsKillTheirBridge: a generation, a step and a read of a space fail after
// three deaths, as calls do.
func TestOtherEffectsKillTheirBridge(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		begin func(s *system)
		fails func(s *system)
	}{
		"generate": {
			func(s *system) { s.run(session.DoorCtl, "s1", "go", object{"provider": "mortal", "model": "m"}) },
			func(s *system) { s.wantEnd("s1", 1, session.Failed, "bridge_lost") },
		},
		"step": {
			func(s *system) {
				s.run(session.DoorCtl, "s1", "go", object{"provider": "scripted", "model": "m", "step_hook": object{"hook": "mortal", "deadline_ms": 300_000, "fallback": "fail"}})
			},
			func(s *system) { s.wantEnd("s1", 1, session.Failed, "bridge_lost") },
		},
		"read": {
			func(s *system) { s.sync("s1", "mortal", nil) },
			func(s *system) {
				until(s.t, time.Minute, "the sync fails", func() bool { return len(logOf(s.t, s.nc, session.DoorSpace, "s1")) > 0 })
				if failed := logOf(s.t, s.nc, session.DoorSpace, "s1")[0]; !bytes.Contains(failed, []byte("bridge_lost")) {
					s.t.Errorf("the sync ended with %q, want bridge_lost", failed)
				}
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, start, began := startMortals(t)
			bridge := start()
			c.begin(s)
			for death := 1; death <= 3; death++ {
				until(t, time.Minute, fmt.Sprintf("death %d", death), func() bool { return began(what) == death })
				_ = bridge.cmd.Wait()
				bridge.cmd = nil
				bridge.start()
			}
			c.fails(s)
			if n := began(what); n != 3 {
				t.Errorf("it began %d times, want 3", n)
			}
			verifyAll(t, s.url)
		})
	}
}

// outcomes returns the status and the code of all stored settlements of a session's
// calls.
func outcomes(t *testing.T, s *system, sid string) string {
	t.Helper()
	var all []string
	for _, payload := range logOf(t, s.nc, session.DoorTool, sid) {
		canonical, err := codec.Canonicalize(payload)
		var env session.Envelope
		if err == nil {
			err = codec.Decode(canonical, &env)
		}
		var body session.ToolCallSettled
		if err == nil {
			err = codec.Decode(env.Data, &body)
		}
		if err != nil {
			t.Fatal(err)
		}
		outcome := body.Status
		if body.Error != nil {
			outcome += " " + body.Error.Code
		}
		all = append(all, outcome)
	}
	return strings.Join(all, ", ")
}
