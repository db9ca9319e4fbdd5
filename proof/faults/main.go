// Command faults builds known faults into Refold, one at a time, and checks that
// the tests find them. A fault is an edit of source text. The build uses the
// edited file by -overlay, so shipped code contains no fault.
//
//	go run ./proof/faults                    # all of them, which takes 20 minutes or more
//	go run ./proof/faults -seeds 100 no-claim gap-ignored
//	go run ./proof/faults -list
//	go run ./proof/faults -write /tmp/f no-claim && go test -overlay /tmp/f/overlay.json ./proof/sim
//
// A fault must be found by the simulation (docs/simulator.md), or by the test
// that it names. The command prints the seed and rule, or the test. It fails if a
// fault is not found, or can't be applied any more.
//
// # The files of faults
//
// bridge.txt, engine.txt and lane.txt hold the faults:
//
//	fault wake-acked-unsaid: acks a wake whose settlement is not stored
//	found by TestName in ./package
//	edit internal/engine/due.go
//	-	return dueTrouble
//	+	return 0
//
// Without a line "found by" the simulation must find it. An edit is a piece of a
// diff. Its lines with a minus or a space must be in the file, in sequence and in
// one place only. Those with a plus or a space replace them. Indentation and
// comments after code are ignored. A fault may have several edits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// seedsWhole is the most seeds that the simulation plays to find a fault.
const seedsWhole = 3000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// run runs the command. It tries every named fault, even after one was not found.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	seeds := flags.Uint("seeds", seedsWhole, "the most seeds that the simulation plays")
	list := flags.Bool("list", false, "list the faults, and try none")
	write := flags.String("write", "", "write overlay.json for the one named fault into this folder, and do not try it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := readFaults()
	if err != nil {
		return err
	}
	chosen, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	root := strings.TrimSpace(string(said))
	if *write != "" {
		if len(chosen) != 1 {
			return errors.New("-write needs the name of one fault")
		}
		if err := os.MkdirAll(*write, 0o700); err != nil {
			return err
		}
		return chosen[0].overlay(root, *write)
	}
	missed := 0
	for _, f := range chosen {
		if *list {
			fmt.Fprintf(out, "%-22s %s; %s in %s\n", f.name, f.does, f.test, f.pkg)
			continue
		}
		by, err := f.find(ctx, root, *seeds)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			missed++
			by = "NOT TRIED: " + err.Error()
		case by == "":
			missed++
			by = fmt.Sprintf("NOT FOUND by %s in %s", f.test, f.pkg)
		}
		fmt.Fprintf(out, "%-22s %s\n", f.name, by)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d faults are not found", missed, len(chosen))
	}
	return nil
}

// verdict matches a seed and the first broken rule, or the name of a failed test.
var verdict = regexp.MustCompile(`seed \d+: [^;\n]+|--- FAIL: \S+`)

// find builds the fault in, and returns what found it; "": the test passes.
func (f *fault) find(ctx context.Context, root string, seeds uint) (by string, err error) {
	dir, err := os.MkdirTemp("", "refold-fault-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := f.overlay(root, dir); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, overlayFile), "-o", binary, f.pkg)
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, said)
	}
	test := exec.CommandContext(ctx, binary, "-test.run", "^"+f.test+"$", "-test.timeout", "30m")
	test.Dir = filepath.Join(root, f.pkg)
	test.Env = append(os.Environ(), "REFOLD_SIM_FROM=0", "REFOLD_SIM_SEEDS="+strconv.FormatUint(uint64(seeds), 10), "REFOLD_SIM_SHRINK=0")
	said, err := test.CombinedOutput()
	if err == nil {
		return "", nil
	}
	found := verdict.FindAll(said, -1)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: %w\n%s", f.test, err, said[max(0, len(said)-4096):])
	}
	return "found by " + strings.TrimPrefix(string(found[len(found)-1]), "--- FAIL: "), nil
}
