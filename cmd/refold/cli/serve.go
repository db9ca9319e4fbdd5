package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// The other programs, as built binaries are called. Other packages install
// programs called bridge (iproute2's is in /usr/sbin), so no name without refold-
// is looked for, and no directory but this program's own.
const (
	bridgeDaemon = "refold-bridge"
	actorDaemon  = "refold-session-actor"
	fullProgram  = "refold-full"
)

// programPaths are the import paths of the programs.
var programPaths = map[string]string{
	bridgeDaemon: "github.com/refold/refold/cmd/bridge",
	actorDaemon:  "github.com/refold/refold/cmd/session-actor",
	fullProgram:  "github.com/refold/refold/cmd/refold-full",
}

// actorCommand groups what is about session-actors.
type actorCommand struct {
	Serve actorServeCommand `cmd:"" passthrough:"" help:"Run the session-actor refold-session-actor; all arguments are its own: refold actor serve --help lists them."`
}

// actorServeCommand runs the daemon session-actor in place of this process.
type actorServeCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments of refold-session-actor."`
}

// Run does not return if it succeeds.
func (c actorServeCommand) Run(ctx context.Context, s streams, conn connection) error {
	return becomeProgram(ctx, actorDaemon, c.Args, conn.environ(os.Environ()), s.err)
}

// bridgeServeCommand runs the daemon bridge in place of this process.
type bridgeServeCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments of refold-bridge."`
}

// Run does not return if it succeeds.
func (c bridgeServeCommand) Run(ctx context.Context, s streams, conn connection) error {
	return becomeProgram(ctx, bridgeDaemon, c.Args, conn.environ(os.Environ()), s.err)
}

// becomeProgram replaces this process by another program of Refold: signals, the
// exit status and the parent are that program's. Under go run, which builds one
// program alone, go run builds the other one too.
func becomeProgram(ctx context.Context, name string, args, env []string, told io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := findProgram(self, name)
	if err != nil && underGoRun(self) {
		if path, err = exec.LookPath("go"); err == nil {
			fmt.Fprintf(told, "refold: this command is part of %s, which go run builds first; that can take minutes\n", name)
			args = append([]string{"run", programPaths[name]}, args...)
		}
	}
	if err != nil {
		return err
	}
	// A signal that came before ends this program, and one that comes now kills it:
	// the other program would never hear of either.
	signal.Reset(syscall.SIGTERM, syscall.SIGINT)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := syscall.Exec(path, append([]string{path}, args...), env); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// programBeside returns the path of a program, which is in this program's directory.
func programBeside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return findProgram(self, name)
}

// findProgram returns the path of a program, which is in the directory of self.
func findProgram(self, name string) (string, error) {
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		do := fmt.Sprintf("put it there, or build it: go build -o %s %s", path, programPaths[name])
		if underGoRun(self) {
			do = "go run builds one program alone: make build, and start bin/refold"
		}
		return "", fmt.Errorf("there is no program at %s: refold looks for %s beside itself, and nowhere else; %s", path, name, do)
	}
	return path, nil
}

// underGoRun reports whether go run has built self: into its directory for
// temporary files, or into the build cache.
func underGoRun(self string) bool {
	return builtByRun.MatchString(self)
}

var builtByRun = regexp.MustCompile(`(/go-build\d+/b\d+/exe|/[0-9a-f]{2}/[0-9a-f]{64}-d)/[^/]+$`)

// environ returns an environment in which a daemon connects as c does. The
// daemon's own flags override it.
func (c connection) environ(env []string) []string {
	for _, v := range []struct{ name, value, unset string }{
		{"NATS_URL", c.NATS, ""}, {"NATS_CREDS", c.Creds, ""}, {"NATS_CONTEXT", c.Context, ""}, {"REFOLD_PREFIX", c.Prefix, "refold"},
	} {
		if v.value != v.unset {
			env = append(withoutVariable(env, v.name), v.name+"="+v.value)
		}
	}
	return env
}

func withoutVariable(env []string, name string) (rest []string) {
	for _, pair := range env {
		if !strings.HasPrefix(pair, name+"=") {
			rest = append(rest, pair)
		}
	}
	return rest
}
