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

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
)

// The environment of the program.
const (
	killDirVar = "REFOLD_TEST_KILL_DIR"
	killAtVar  = "REFOLD_TEST_KILL_AT" // empty: nowhere
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
	rt, err := refold.Open(ctx, embedded.Dir(filepath.Join(dir, "data")))
	if err != nil {
		return err
	}
	defer rt.Close()
	die("opened")
	starts := filepath.Join(dir, "starts")
	agent, err := rt.Agent("helper", refold.System("Be brief."), refold.Tools(refold.Func("weather.get",
		func(context.Context, struct{}) (string, error) {
			f, err := os.OpenFile(starts, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			_, err = f.WriteString("x")
			die("in the tool")
			return "rain", errors.Join(err, f.Close())
		}, refold.RetrySafe())),
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

// live runs the program once. killedAt is where it is to die; empty: nowhere.
func live(t *testing.T, dir, killedAt string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killDirVar+"="+dir, killAtVar+"="+killedAt)
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
			out, err := live(t, dir, at)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("killed %s: got %q (%v)", at, out, err)
			}
			least, most := 1, 1
			switch at {
			case "in the tool":
				least, most = 2, 2 // it runs twice, and is settled once
			case "asked":
				most = 2 // the tool may have begun
			}
			for range 2 { // the second time there is nothing left to do
				out, err = live(t, dir, "")
				if err != nil {
					t.Fatalf("run again: %v", err)
				}
				var got outcome
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatalf("%q: %v", out, err)
				}
				if got.Run != 1 || got.Answer != "It rains." || len(got.Calls) != 1 || got.Calls[0].Status != "succeeded" || got.Starts < least || got.Starts > most {
					t.Errorf("got %+v, want run 1, one call that succeeded after %d to %d starts, and the answer", got, least, most)
				}
			}
		})
	}
}
