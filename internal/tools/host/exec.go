package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/refold/refold/internal/tools/sandbox"
)

type execArguments struct {
	Command   string  `json:"command"`
	TimeoutMS *whole  `json:"timeout_ms,omitempty"`
	WorkDir   *string `json:"workdir,omitempty"`
}

// exec runs a shell command line in a process group of its own. It returns how
// the command ended, and its standard output and error in the order in which
// they were written. A non-zero exit status is not a failure of the tool.
//
// All processes of the command end with it, even those in the background: when
// the shell ends, and on timeout and cancel, the whole group is killed. Only a
// sandbox finds a process that left the group (setsid).
func (h *Host) exec(ctx context.Context, p *workdir, args execArguments) (string, error) {
	if h.opts.NoShell != "" {
		return "", refuse(CodeToolUnbound, "%s", h.opts.NoShell)
	}
	timeout, err := h.timeout(args.TimeoutMS)
	if err != nil {
		return "", err
	}
	switch {
	case strings.TrimSpace(args.Command) == "":
		return "", refuse(CodeInvalidArguments, "the command is empty")
	case strings.ContainsRune(args.Command, 0):
		return "", refuse(CodeInvalidArguments, "the command holds a zero byte")
	}
	dir := "."
	if args.WorkDir != nil {
		dir = *args.WorkDir
	}
	if dir, err = p.directory(dir); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return h.shell(ctx, p, p.abs(dir), args.Command, timeout)
}

// timeout is the call's timeout, up to the host's maximum.
func (h *Host) timeout(ms *whole) (time.Duration, error) {
	if ms == nil {
		return h.opts.ExecTimeout, nil
	}
	given, err := positive("timeout_ms", ms, 0)
	return time.Duration(min(given, h.opts.ExecTimeoutMax.Milliseconds())) * time.Millisecond, err
}

// shell runs a command line in dir, in the sandbox if there is one. In the
// sandbox, the working directory is its home, and it has a temporary directory
// that is removed when it ends.
func (h *Host) shell(ctx context.Context, p *workdir, dir, line string, timeout time.Duration) (string, error) {
	env, argv := append(h.opts.environ(dir), h.marks()...), []string{"/bin/sh", "-c", line}
	if h.opts.Sandbox == nil {
		return h.run(ctx, &started{cmd: &exec.Cmd{Path: argv[0], Args: argv, Dir: dir, Env: env, SysProcAttr: groupAttr()}}, timeout)
	}
	temp, err := p.makeTemp()
	if err != nil {
		return "", err
	}
	defer p.removeTemp(temp)
	boxed := h.opts.Sandbox.Command(argv, p.dir, append(env, "HOME="+p.dir, "TMPDIR="+p.abs(temp)))
	boxed.Dir = dir
	return h.run(ctx, &started{cmd: boxed.Cmd, boxed: boxed}, timeout)
}

// started is a command with or without a sandbox.
type started struct {
	cmd   *exec.Cmd
	boxed *sandbox.Confined // nil: none
}

func (c *started) start() error {
	if c.boxed != nil {
		return c.boxed.Start()
	}
	return c.cmd.Start()
}

// group returns the command's process group, once it has started.
func (c *started) group() *group {
	g := &group{pid: c.cmd.Process.Pid}
	if c.boxed != nil && !c.boxed.KillsDescendants() {
		g.gently = c.boxed.Stop
	}
	return g
}

type ending struct {
	exited bool   // by itself
	text   string // such as: exit status 1
	over   string // the limit that it exceeded; empty: none
}

// end returns how a command ended that has been waited for.
func (c *started) end(waitErr error) (ending, error) {
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return ending{}, fmt.Errorf("wait for the command: %w", errors.Join(waitErr, errStopped))
	}
	if c.boxed == nil {
		return ending{exited: c.cmd.ProcessState.Exited(), text: c.cmd.ProcessState.String()}, nil
	}
	end, err := c.boxed.End()
	switch {
	case err != nil: // killed together with its supervisor
		return ending{text: "signal: killed"}, nil //nolint:nilerr // End has no other error
	case end.Fault != "":
		return ending{}, refuse(CodeIO, "the command did not start: %s", end.Fault)
	}
	return ending{exited: end.Signal == 0, text: end.Text(), over: end.Over}, nil
}

// run starts a command and waits for it, its timeout or the end of ctx.
func (h *Host) run(ctx context.Context, c *started, timeout time.Duration) (string, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	c.cmd.Stdout, c.cmd.Stderr = in, in

	// The kernel kills the shell when the thread that started it ends. The
	// goroutine keeps its thread, so that the shell is killed with the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = c.start()
	in.Close()
	if err != nil {
		return "", err
	}
	g := c.group()
	kept := &capture{max: h.opts.OutputBytes, most: h.opts.OutputMax, flood: func() { g.kill(errFlood) }}
	drained := make(chan error, 1)
	go func() {
		_, err := kept.ReadFrom(out)
		drained <- err
	}()

	stopCancel := context.AfterFunc(ctx, func() { g.kill(errStopped) })
	stopTimeout := time.AfterFunc(timeout, func() { g.kill(context.DeadlineExceeded) })
	waitErr := g.wait(c.cmd)
	stopCancel()
	stopTimeout.Stop()

	// The group is dead, so the pipe ends, unless a process outside of it holds
	// the pipe.
	_ = out.SetReadDeadline(time.Now().Add(drainMax))
	drainErr := <-drained
	text := kept.text()
	if drainErr != nil {
		text += "\n[a process outside of the command's process group still holds its output; what it writes is not shown]"
	}
	how, err := c.end(waitErr)
	if err != nil {
		return text, err
	}
	return h.ended(how, g.reason(), timeout, text)
}

// errFlood means that a command was stopped because it wrote too much.
var errFlood = errors.New("too much output")

// ended returns the result of a command that ended.
func (h *Host) ended(how ending, reason error, timeout time.Duration, text string) (string, error) {
	if how.exited {
		reason = nil // it ended before it could be stopped
	}
	switch {
	case errors.Is(reason, errStopped):
		return "stopped: the call was cancelled while the command ran\n" + text, errStopped
	case errors.Is(reason, errFlood):
		return "stopped: too much output\n" + text, refuse(CodeResourceLimit,
			"the command wrote more than %d bytes and was stopped, with all that it started; what it had done stays done. Write to a file, or less", h.opts.OutputMax)
	case reason != nil:
		return fmt.Sprintf("stopped after %v\n%s", timeout, text), refuse(CodeTimeout,
			"the command ran for more than %d ms and was stopped, with all that it started; what it had done stays done. Give a longer timeout_ms (up to %d), or do less at a time",
			timeout.Milliseconds(), h.opts.ExecTimeoutMax.Milliseconds())
	case how.over != "":
		return "stopped: too much " + how.over + "\n" + text, refuse(CodeResourceLimit,
			"the command and what it started exceeded the limit of %s and were stopped; what they had done stays done. Do less at a time", how.over)
	}
	return how.text + "\n" + text, nil
}
