package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/refold/bridgecheck"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/natsio"
	streamconf "github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// bridgeCheckCommand tests a bridge in any language.
type bridgeCheckCommand struct {
	Target    string        `arg:"" help:"Target of class tool that the bridge serves, as in weather."`
	Command   []string      `arg:"" optional:"" help:"Command that starts the bridge, after --. It runs with NATS_URL on a server of its own; --nats is ignored then."`
	Tool      string        `placeholder:"ID" help:"tool_id of the calls. Default: the target."`
	Arguments string        `default:"{}" placeholder:"JSON" help:"Arguments of a call that succeeds soon."`
	Slow      string        `placeholder:"JSON" help:"Arguments of a call that takes longer than the lease of 10 s, about 15 s. Without them the checks that need one are skipped."`
	Large     string        `placeholder:"JSON" help:"Arguments of a call whose result is above 256 KiB. Without them that check is skipped."`
	Within    time.Duration `default:"20s" help:"How long to wait for the bridge to start, and for a call that is not slow."`
	asJSON
}

// Help returns the help text above the flags.
func (bridgeCheckCommand) Help() string {
	return `It plays a session, another bridge and a forgetful server, and checks what the
bridge does. The rules are in docs/bridges.md. Exit status 1 if one is broken.

    refold bridge check weather --tool weather.get --arguments '{"city":"Bergen"}' \
        --slow '{"city":"Bergen","ms":15000}' -- node bridge.js

starts the bridge on a server of its own. Without a command the bridge must run
already, on the server of --nats. Name a server for tests there: the session
check-… and its settlements stay in its log.`
}

// bridgeStopsWithin is how long a bridge may take to end after SIGTERM, its grace
// time of 20 s included. After that it is killed.
const bridgeStopsWithin = 40 * time.Second

// Run runs the checks and prints a line for each.
func (c bridgeCheckCommand) Run(ctx context.Context, s streams, conn connection) (err error) {
	if err := subjects.ValidTarget(c.Target); err != nil {
		return &statusError{statusUsage, "bridge check: " + err.Error()}
	}
	for flag, text := range map[string]string{"--arguments": c.Arguments, "--slow": c.Slow, "--large": c.Large} {
		if text != "" && !isObject(text) {
			return &statusError{statusUsage, fmt.Sprintf("bridge check: %s %s: want a JSON object", flag, text)}
		}
	}
	o := bridgecheck.Options{
		Target: c.Target, Tool: c.Tool, Arguments: c.Arguments, Slow: c.Slow, Large: c.Large,
		Instance: ulid.Make().String(), Within: c.Within, Quiet: 3 * time.Second,
	}
	o.Tool = cmp.Or(o.Tool, c.Target)
	if len(c.Command) > 0 {
		var tried *triedBridge
		if tried, err = c.start(ctx, s, &conn); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tried.end()) }()
		ctx, o.Stop, o.Own = tried.ctx, tried.stop, true
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	count := map[bridgecheck.Verdict]int{}
	err = bridgecheck.Run(ctx, b, o, func(r bridgecheck.Result) {
		count[r.Verdict]++
		c.print(s.out, r)
	})
	if err != nil {
		return err
	}
	if !c.JSON {
		fmt.Fprintf(s.out, "%d ok, %d failed, %d skipped\n", count[bridgecheck.OK], count[bridgecheck.Failed], count[bridgecheck.Skipped])
	}
	if count[bridgecheck.Failed] > 0 {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var of map[string]any
	return json.Unmarshal([]byte(text), &of) == nil && of != nil
}

// print prints the result of one check.
func (c bridgeCheckCommand) print(out io.Writer, r bridgecheck.Result) {
	switch {
	case c.JSON:
		printJSON(out, r)
	case r.Verdict == bridgecheck.Failed:
		fmt.Fprintf(out, "%-7s  %s\n         seen: %s\n         rule: %s\n         docs/bridges.md, %s\n", r.Verdict, r.Check, r.Seen, r.Rule, r.Section)
	case r.Verdict == bridgecheck.Skipped:
		fmt.Fprintf(out, "%-7s  %s: %s\n", r.Verdict, r.Check, r.Seen)
	default:
		fmt.Fprintf(out, "%-7s  %s\n", r.Verdict, r.Check)
	}
}

// triedBridge is a bridge that this process started, and its server.
type triedBridge struct {
	ctx    context.Context // ends when the bridge does
	cmd    *exec.Cmd
	term   context.CancelFunc // sends it SIGTERM
	ended  chan struct{}
	server *devserver.Server
	dir    string
}

// start starts a server and the bridge on it, and points conn to the server.
func (c bridgeCheckCommand) start(ctx context.Context, s streams, conn *connection) (_ *triedBridge, err error) {
	t := &triedBridge{ended: make(chan struct{})}
	if t.dir, err = os.MkdirTemp("", "refold-bridge-check-"); err != nil {
		return nil, err
	}
	t.server, err = devserver.Start(ctx, devserver.Options{
		Dir: t.dir, Prefix: conn.Prefix, Install: []byte(`{"v":1,"rules":1,"tools":[]}`), Durability: natsio.DurabilityInterval,
		Prepare: func(ctx context.Context, b *bus.Bus) error {
			conf, err := streamconf.ParseConf(streamconf.File, b.Names())
			if err != nil {
				return err
			}
			_, err = b.EnsureBridge(ctx, conf, session.ClassTool, c.Target)
			return err
		},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(t.dir))
	}
	*conn = connection{NATS: t.server.URL(), Prefix: conn.Prefix}
	var running context.Context
	running, t.term = context.WithCancel(context.WithoutCancel(ctx))
	t.cmd = exec.CommandContext(running, c.Command[0], c.Command[1:]...)
	t.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NATS_") || strings.HasPrefix(v, "REFOLD_") })
	t.cmd.Env = append(t.cmd.Env, "NATS_URL="+conn.NATS, "REFOLD_PREFIX="+conn.Prefix)
	t.cmd.Stdout, t.cmd.Stderr, t.cmd.WaitDelay = s.err, s.err, bridgeStopsWithin
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(syscall.SIGTERM) }
	if err := t.cmd.Start(); err != nil {
		t.term()
		t.server.Stop()
		return nil, errors.Join(err, os.RemoveAll(t.dir))
	}
	var end context.CancelCauseFunc
	t.ctx, end = context.WithCancelCause(ctx)
	go func() {
		err := t.cmd.Wait()
		if running.Err() == nil {
			end(errors.Join(errors.New("the bridge ended by itself"), err))
		}
		close(t.ended)
	}()
	return t, nil
}

// stop sends the bridge SIGTERM and waits until it has ended.
func (t *triedBridge) stop(context.Context) error {
	t.term()
	<-t.ended
	if state := t.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("it ended with %s, within %v", state, bridgeStopsWithin)
	}
	return nil
}

// end ends the bridge, if it still runs, and the server.
func (t *triedBridge) end() error {
	t.term()
	<-t.ended
	t.server.Stop()
	return os.RemoveAll(t.dir)
}
