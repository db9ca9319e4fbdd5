package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childName is the zeroth argument of a child, which no shell and no caller
// sets by accident.
const childName = "refold-sandbox"

// armed means that this program calls Child. Otherwise a child would run the
// program itself.
var armed bool

// Child must be called first in main, and in TestMain. In a child of a Box it
// confines the process, runs the command and never returns. Anywhere else it
// makes sure that programs started by this process do not inherit its open
// files, and returns.
func Child() {
	armed = true
	keepFiles()
	if len(os.Args) > 0 && os.Args[0] == childName {
		supervise()
	}
}

// keepFiles marks all open files except the standard ones close-on-exec. Go
// opens files that way, but passes on those that were open before.
func keepFiles() {
	if unix.CloseRange(firstFile, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstFile {
			syscall.CloseOnExec(fd)
		}
	}
}

// forbidTracing protects this process's memory and files from other processes of
// its user, such as commands without a sandbox. Root can read them all the same.
func forbidTracing() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// firstFile is the first descriptor after the standard files.
const firstFile = 3

// way is one way to start children.
type way struct {
	works bool
	means string // for people
	flags uintptr
	user  bool // in a user namespace
}

// unable returns why children can't be started at all, or "".
func unable() string {
	if !armed {
		return "this program does not call sandbox.Child first in main"
	}
	return ""
}

// ways returns the ways to start children, best first.
func ways() []way {
	if !armed {
		return nil
	}
	const all = unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWNS
	return []way{
		{flags: all, means: "namespaces, Landlock, rlimits"},
		{flags: all | unix.CLONE_NEWUSER, user: true, means: "user namespaces, Landlock, rlimits"},
		{means: "Landlock, rlimits"},
	}
}

// attr returns the attributes with which the kernel starts a child.
func (w way) attr(network bool) *syscall.SysProcAttr {
	// A session of its own has no terminal to which a command could write
	// escape sequences.
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: w.flags}
	if network {
		attr.Cloneflags &^= unix.CLONE_NEWNET
	}
	if w.user {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN} // in the namespace, until the command starts
	}
	return attr
}

// Confined is a confined command. Its Cmd is the supervisor, whose standard
// files are the command's: set them before Start.
type Confined struct {
	*exec.Cmd
	spec             spec
	control          *os.File // our end of the control pipe to the child; closing it ends the command
	status           *os.File // our end of the pipe that reports how the command ended
	killsDescendants bool     // the kernel kills the descendants when the supervisor is killed
	cgroups          *cgroups // nil: it gets none
	cgroup           *cgroup
}

// Command returns a command that runs argv in dir with the environment env. It
// may change files below dir and below write, whose paths must have no symbolic
// links: a command does not start if one has. argv[0] is a path.
func (b *Box) Command(argv []string, dir string, env []string, write ...string) *Confined {
	c := &Confined{
		Cmd:              &exec.Cmd{Path: "/proc/self/exe", Args: []string{childName}, Dir: dir, Env: env, SysProcAttr: b.way.attr(b.config.Network)},
		spec:             spec{Argv: argv, Write: append([]string{dir}, write...), Read: b.config.Read, Network: b.config.Network, Limits: b.config.Limits, Promised: b.report.Enforced},
		killsDescendants: b.way.flags != 0,
		cgroups:          b.cgroups,
	}
	if env == nil {
		c.Env = []string{} // nil would be this process's
	}
	return c
}

// Start starts the command. Afterwards Wait and End must be called.
func (c *Confined) Start() (err error) {
	if c.cgroups != nil {
		if c.cgroup, err = c.cgroups.add(c.spec.Limits.Memory); err != nil {
			return fmt.Errorf("make a memory cgroup: %w", err)
		}
		c.spec.Cgroup = true
		defer func() {
			if err != nil {
				_ = c.cgroup.remove() // else at the next start
			}
		}()
	}
	controlRead, control, err := os.Pipe()
	if err != nil {
		return err
	}
	status, statusWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, controlRead.Close(), control.Close())
	}
	c.control, c.status, c.spec.Dir = control, status, c.Dir
	c.ExtraFiles = []*os.File{controlRead, statusWrite}
	if c.cgroup != nil {
		c.ExtraFiles = append(c.ExtraFiles, c.cgroup.procs, c.cgroup.events)
	}
	err = c.Cmd.Start()
	controlRead.Close()
	statusWrite.Close()
	if err == nil {
		var line []byte
		if line, err = json.Marshal(c.spec); err == nil {
			// If the child died before reading it, Wait reports that.
			_, _ = control.Write(append(line, '\n'))
			return nil
		}
		_ = c.Process.Kill()
		err = errors.Join(err, c.Wait())
	}
	control.Close()
	status.Close()
	return err
}

// Stop ends the command and its descendants soon.
func (c *Confined) Stop() { c.control.Close() }

// KillsDescendants reports whether the kernel kills the command's descendants
// when the supervisor is killed. If not, call Stop first.
func (c *Confined) KillsDescendants() bool { return c.killsDescendants }

// End returns how the command ended, once the supervisor has been waited for.
// If the supervisor was killed or failed before it could report, the error says
// so, with its last output.
func (c *Confined) End() (End, error) {
	defer c.control.Close()
	defer c.status.Close()
	end, err := c.reported()
	if c.cgroup == nil {
		return end, err
	}
	if killedIn(c.cgroup.events) { // the supervisor may not have seen it, or was killed too
		end.Over = overMemory
	}
	if end.Over != "" && err != nil {
		end.Exit, end.Signal, err = -1, int(syscall.SIGKILL), nil
	}
	_ = c.cgroup.remove() // else at the next start
	return end, err
}

// reported returns what the supervisor reported.
func (c *Confined) reported() (End, error) {
	_ = c.status.SetReadDeadline(time.Now().Add(time.Second)) // no other process holds the pipe
	lines := bufio.NewReader(io.LimitReader(c.status, outputMax))
	var output []byte
	for {
		line, err := lines.ReadBytes('\n')
		var end End
		if err == nil && json.Unmarshal(line, &end) == nil {
			return end, nil
		}
		output = append(output, line...)
		switch {
		case err == nil:
		case len(output) > 0:
			return End{}, fmt.Errorf("the supervisor of the command failed: %s", bytes.TrimSpace(output))
		default:
			return End{}, errKilled
		}
	}
}

// outputMax bounds in bytes how much is read from a supervisor.
const outputMax = 64 << 10

// errKilled means that the supervisor did not report how its command ended.
var errKilled = errors.New("the supervisor of the command was killed")

func (b *Box) try(w way, t trial) (End, error) {
	c := (&Box{config: b.config, way: w, cgroups: b.cgroups}).Command(nil, t.Inside, nil)
	c.spec.Probe = &t
	if err := c.Start(); err != nil {
		return End{}, fmt.Errorf("%s: %w", w.means, err)
	}
	giveUp := time.AfterFunc(trialMax, func() { _ = c.Process.Kill() })
	defer giveUp.Stop()
	waited := c.Wait()
	end, err := c.End()
	if err != nil {
		return end, fmt.Errorf("%s: %w", w.means, errors.Join(err, waited))
	}
	return end, nil
}

const trialMax = 20 * time.Second

// Text describes how a command ended, as the os package does.
func (e End) Text() string {
	if e.Signal != 0 {
		return "signal: " + syscall.Signal(e.Signal).String()
	}
	return fmt.Sprintf("exit status %d", e.Exit)
}
