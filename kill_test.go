package refold_test

// A program that owns an agent is killed at each of its statements, and inside of its
// tool, and run again: one answer, and each call is settled once.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/refoldtest"
)

// The environment of the program.
const (
	killDirVar = "REFOLD_TEST_KILL_DIR"
	killAtVar  = "REFOLD_TEST_KILL_AT"  // empty: nowhere
	killURLVar = "REFOLD_TEST_KILL_URL" // of NATS; empty: the log is in the directory
	unsafeVar  = "REFOLD_TEST_UNSAFE"   // not empty: the tool is not retry-safe
)

// The places where the program dies.
var killPlaces = []string{"before open", "opened", "agent", "asked", "in the tool", "text", "waited"}

// outcome is what the program prints.
type outcome struct {
	Run    uint32
	Answer string
	Calls  []refold.Call
	Starts int // of the tool, in all lives of the program
}

// killed is the program. It ends with a line of JSON.
func killed(dir, at string) {
	if err := program(dir, at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func program(dir, at string) error {
	die := func(here string) {
		if here == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the kill may take a moment
		}
	}
	die("before open")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	log := embedded.Dir(filepath.Join(dir, "data"))
	if url := os.Getenv(killURLVar); url != "" {
		nc, err := nats.Connect(url)
		if err != nil {
			return err
		}
		defer nc.Close()
		log = refold.NATS(nc)
	}
	rt, err := refold.Open(ctx, log)
	if err != nil {
		return err
	}
	defer rt.Close()
	die("opened")
	starts := filepath.Join(dir, "starts")
	var options []refold.ToolOption
	if os.Getenv(unsafeVar) == "" {
		options = append(options, refold.RetrySafe())
	}
	agent, err := rt.Agent("helper", refold.System("Be brief."), refold.Tools(refold.Func("weather.get",
		func(context.Context, struct{}) (string, error) {
			f, err := os.OpenFile(starts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			_, err = f.WriteString("x")
			die("in the tool")
			return "rain", errors.Join(err, f.Close())
		}, options...)),
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", `{}`)), refoldtest.Say("It rains."))))
	if err != nil {
		return err
	}
	die("agent")
	run, err := agent.Session("hello").Ask(ctx, "Weather?", refold.Submission("order-7"))
	if err != nil {
		return err
	}
	die("asked")
	for u, err := range run.Updates(ctx) {
		if err != nil {
			return err
		}
		if _, text := u.(refold.Text); text {
			die("text")
		}
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	die("waited")
	written, err := os.ReadFile(starts)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(outcome{run.Number(), answer.Text, answer.Calls, len(written)})
}

// live runs the program once. killedAt is where it dies; empty: nowhere.
func live(t *testing.T, dir, killedAt string, env ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), killDirVar+"="+dir, killAtVar+"="+killedAt), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(text), err
}

func TestKilledProgramFinishesItsRunWhenItRunsAgain(t *testing.T) {
	t.Parallel()
	for _, at := range killPlaces {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			die(t, dir, at)
			least, most := 1, 1
			switch at {
			case "in the tool":
				least, most = 2, 2 // it runs twice, and is settled once
			case "asked", "text", "waited":
				most = 2 // it may have begun, or have ended without the server knowing that its effect is done
			}
			for range 2 { // the second time there is nothing left to do
				got := finish(t, dir)
				if got.Run != 1 || got.Answer != "It rains." || len(got.Calls) != 1 || got.Calls[0].Status != "succeeded" || got.Starts < least || got.Starts > most {
					t.Errorf("got %+v, want run 1, one call that succeeded after %d to %d starts, and the answer", got, least, most)
				}
			}
		})
	}
}

// die runs the program until it dies at a place.
func die(t *testing.T, dir, at string, env ...string) {
	t.Helper()
	out, err := live(t, dir, at, env...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("killed %s: got %q (%v)", at, out, err)
	}
}

// finish runs the program to its end.
func finish(t *testing.T, dir string, env ...string) (got outcome) {
	t.Helper()
	out, err := live(t, dir, "", env...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &got)
	}
	if err != nil {
		t.Fatalf("run again: %q (%v)", out, err)
	}
	return got
}

// A tool that may not run twice is not started again: nobody knows whether it took
// effect, and the model and the caller are told so.
func TestKilledProgramDoesNotRepeatAnUnsafeCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	die(t, dir, "in the tool", unsafeVar+"=1")
	got := finish(t, dir, unsafeVar+"=1")
	if got.Run != 1 || got.Answer != "It rains." || len(got.Calls) != 1 || got.Calls[0].Status != "outcome_unknown" || got.Starts != 1 {
		t.Errorf("got %+v, want run 1, and one call of unknown outcome after one start", got)
	}
}

// Two processes on three servers ask and serve the same agent; one of them dies in the
// tool. The other finishes the run.
func TestProcessesOnServersFinishEachOthersRuns(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	provisioned(t, nodes[0], 3)
	carried(t, nodes[0])
	dir := t.TempDir()
	die(t, dir, "in the tool", killURLVar+"="+nodes[1].URL())
	got := make(chan outcome, 2)
	for _, node := range nodes[1:] {
		go func() {
			out, err := live(t, dir, "", killURLVar+"="+node.URL())
			var o outcome
			if err == nil {
				err = json.Unmarshal([]byte(out), &o)
			}
			if err != nil {
				t.Errorf("run again: %q (%v)", out, err)
			}
			got <- o
		}()
	}
	for range 2 {
		if o := <-got; o.Run != 1 || o.Answer != "It rains." || len(o.Calls) != 1 || o.Calls[0].Status != "succeeded" || o.Starts != 2 {
			t.Errorf("got %+v, want run 1, and one call that succeeded after two starts", o)
		}
	}
}
