package e2e_test

import (
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// readmeCommands returns the commands of refold that "Try it by hand" of the README
// has for the second terminal, in order.
func readmeCommands(t *testing.T) (all [][]string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "## Try it by hand")
	_, rest, _ = strings.Cut(rest, "export NATS_CONTEXT")
	rest, _, _ = strings.Cut(rest, "\n\n")
	words := regexp.MustCompile(`"[^"]*"|\S+`)
	for line := range strings.Lines(rest) {
		if command, ok := strings.CutPrefix(line, "    refold "); ok {
			command, _, _ = strings.Cut(command, " #")
			var args []string
			for _, word := range words.FindAllString(command, -1) {
				args = append(args, strings.Trim(word, `"`))
			}
			all = append(all, args)
		}
	}
	return all
}

// TestReadmeInOrder types the README's commands in order, each on a terminal,
// and checks what the README says of each.
func TestReadmeInOrder(t *testing.T) {
	t.Parallel()
	_, admin := startDev(t)
	shows := map[string]string{ // by the beginning of a command
		"run hello What is here?": `^You said: What is here\?\nrun 1: 1 turn, 0 calls, `,
		"run hello run ls":        `run 2: 3 turns, 2 calls, `,
		"run hello wait":          `^session hello: run 4 \(event \d+ of the log\)\n$`,
		"run hello write":         `^session hello: run 5 \(event \d+ of the log\)\n$`,
		"steer hello":             `^session hello: run 4 is running, waits for model, 1 steer for its next turn\n$`,
		"pause hello":             `run 4 is paused`,
		"resume hello":            `run 4 is running`,
		"cancel hello":            `run 4 cancelled, no run is active`,
		"approvals":               `call r5t1c0  write_file `,
		"approve hello r5t1c0":    `(?s)Approve it\? \[y/N\] .*approved\nsession hello: run 5 `,
		"replay hello --verify":   `^replay: identical`,
		"bridge doctor":           `all open effects are served\n$`,
		"tools check":             `covered: 15 of 15 tools`,
		"why hello shell":         `shell \(host\.exec\)`,
		"queue hello":             `run 4 is running`,
	}
	left := len(shows)
	for _, args := range readmeCommands(t) {
		if slices.Contains([]string{"tail", "chaos"}, args[0]) || slices.Contains(args, "DIR") {
			continue // they don't end, or take a folder
		}
		out := onTerminalAs(t, admin, args...)
		for command, pattern := range shows {
			if strings.HasPrefix(strings.Join(args, " "), command) {
				left--
				if !regexp.MustCompile(pattern).MatchString(out) {
					t.Errorf("refold %s shows %q, want %s", strings.Join(args, " "), out, pattern)
				}
			}
		}
	}
	if left != 0 {
		t.Errorf("%d commands of this test don't stand in the README", left)
	}
}

// onTerminalAs runs refold as a user on a terminal, answers y where it asks, and
// returns what it shows. What waits for a person may take a moment to do so.
func onTerminalAs(t *testing.T, nats string, args ...string) (shows string) {
	t.Helper()
	until(t, time.Minute, "refold "+strings.Join(args, " "), func() bool {
		tty := openTerminal(t)
		if _, err := io.WriteString(tty.ours, "y\n"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), endWithin)
		defer cancel()
		err := tty.start(ctx, t, append([]string{"--context", nats}, args...)...).Wait()
		tty.theirs.Close()
		<-tty.over
		shows = strings.ReplaceAll(strings.ReplaceAll(tty.String(), "\r\n", "\n"), clearStatus, "")
		shows = strings.TrimPrefix(shows, "y\n") // the echo of what was typed
		return err == nil && shows != "no call waits for approval\n"
	})
	return shows
}
