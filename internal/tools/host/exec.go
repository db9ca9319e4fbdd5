package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

type execArguments struct {
	Command   string  `json:"command"`
	TimeoutMS *whole  `json:"timeout_ms,omitempty"`
	WorkDir   *string `json:"workdir,omitempty"`
}

// exec runs a shell command line in a process group of its own, and shows how
// it ended and what it wrote to standard output and error, in the order in
// which it wrote. An exit status other than 0 is not a failure of the tool.
//
// What the command started ends with it, in the background or not: when the
// shell is done, and on timeout and cancel, the whole group is killed. A
// process that left the group (setsid) is not found.
func (h *Host) exec(ctx context.Context, p *place, raw json.RawMessage) (string, error) {
	var args execArguments
	if err := decode(raw, &args); err != nil {
		return "", err
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
	shell := exec.Command("/bin/sh", "-c", args.Command)
	shell.Dir = p.abs(dir)
	shell.Env = h.opts.environ(shell.Dir)
	return h.run(ctx, shell, timeout)
}

// timeout is what the call names, up to the most that the host allows.
func (h *Host) timeout(ms *whole) (time.Duration, error) {
	if ms == nil {
		return h.opts.ExecTimeout, nil
	}
	given, err := positive("timeout_ms", ms, 0)
	return time.Duration(min(given, h.opts.ExecTimeoutMax.Milliseconds())) * time.Millisecond, err
}

// run starts the shell and waits for it, its timeout or the end of ctx.
func (h *Host) run(ctx context.Context, shell *exec.Cmd, timeout time.Duration) (string, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	shell.Stdout, shell.Stderr = in, in
	shell.SysProcAttr = groupAttr()

	// The kernel ends the shell when the thread that started it ends: the
	// goroutine keeps its thread, so that this means the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = shell.Start()
	in.Close()
	if err != nil {
		return "", err
	}
	kept := &capture{max: h.opts.OutputBytes}
	drained := make(chan error, 1)
	go func() {
		_, err := kept.ReadFrom(out)
		drained <- err
	}()

	g := &group{pid: shell.Process.Pid}
	stopCancel := context.AfterFunc(ctx, func() { g.kill(errStopped) })
	stopTimeout := time.AfterFunc(timeout, func() { g.kill(context.DeadlineExceeded) })
	waitErr := g.wait(shell)
	stopCancel()
	stopTimeout.Stop()

	// The group is gone, so the pipe ends, unless a process outside holds it.
	_ = out.SetReadDeadline(time.Now().Add(drainMax))
	drainErr := <-drained
	text := kept.text()
	if drainErr != nil {
		text += "\n[a process outside of the command's process group still holds its output; what it writes is not shown]"
	}
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return text, fmt.Errorf("wait for the command: %w", errors.Join(waitErr, errStopped))
	}
	return h.ended(shell.ProcessState, g.reason(), timeout, text)
}

// ended says how a command ended that was waited for.
func (h *Host) ended(state *os.ProcessState, reason error, timeout time.Duration, text string) (string, error) {
	if state.Exited() {
		reason = nil // it was done before it could be stopped
	}
	switch {
	case errors.Is(reason, errStopped):
		return "stopped: the call was cancelled while the command ran\n" + text, errStopped
	case reason != nil:
		return fmt.Sprintf("stopped after %v\n%s", timeout, text), refuse(CodeTimeout,
			"the command ran for more than %d ms and was stopped, with all that it started; what it had done stays done. Give a longer timeout_ms (up to %d), or do less at a time",
			timeout.Milliseconds(), h.opts.ExecTimeoutMax.Milliseconds())
	}
	return state.String() + "\n" + text, nil
}
