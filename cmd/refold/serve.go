package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// The daemons, as built binaries are called. Other packages install programs
// called bridge (iproute2's is in /usr/sbin), so no name without refold- is
// looked for, and no directory but this program's own.
const (
	bridgeDaemon = "refold-bridge"
	actorDaemon  = "refold-session-actor"
)

// daemonFolders are the folders that the daemons are built from.
var daemonFolders = map[string]string{bridgeDaemon: "bridge", actorDaemon: "session-actor"}

// actorCommand groups what is about session-actors.
type actorCommand struct {
	Serve actorServeCommand `cmd:"" passthrough:"" help:"Run the session-actor refold-session-actor; all arguments are its own: refold actor serve --help lists them."`
}

// actorServeCommand runs the daemon session-actor in place of this process.
type actorServeCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments of refold-session-actor."`
}

// Run does not return if it succeeds.
func (c actorServeCommand) Run(ctx context.Context, conn connection) error {
	return becomeDaemon(ctx, actorDaemon, c.Args, conn)
}

// bridgeServeCommand runs the daemon bridge in place of this process.
type bridgeServeCommand struct {
	Args []string `arg:"" optional:"" help:"Arguments of refold-bridge."`
}

// Run does not return if it succeeds.
func (c bridgeServeCommand) Run(ctx context.Context, conn connection) error {
	return becomeDaemon(ctx, bridgeDaemon, c.Args, conn)
}

// becomeDaemon replaces this process by a daemon: signals, the exit status and
// the parent are the daemon's. The flags in front of the command are passed on.
func becomeDaemon(ctx context.Context, name string, args []string, conn connection) error {
	path, err := daemonBeside(name)
	if err != nil {
		return err
	}
	// A signal that came before ends this program, and one that comes now kills it:
	// the daemon would never hear of either.
	signal.Reset(syscall.SIGTERM, syscall.SIGINT)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := syscall.Exec(path, append([]string{path}, args...), conn.environ(os.Environ())); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// daemonBeside returns the path of a daemon, which is in this program's directory.
func daemonBeside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return findDaemon(self, name)
}

// findDaemon returns the path of a daemon, which is in the directory of self.
func findDaemon(self, name string) (string, error) {
	path := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		do := fmt.Sprintf("put it there, or build it: go build -o %s github.com/refold/refold/cmd/%s", path, daemonFolders[name])
		if strings.Contains(path, "/go-build") {
			do = "go run builds one program alone: make build, and start bin/refold"
		}
		return "", fmt.Errorf("there is no program at %s: refold looks for %s beside itself, and nowhere else; %s", path, name, do)
	}
	return path, nil
}

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
