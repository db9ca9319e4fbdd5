package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisor is the process between a command and the program that started it.
type supervisor struct {
	spec   spec
	status *os.File
	stderr *os.File // the command's
	sees   bool     // /proc shows the command's processes, and no others
	write  []int    // the directories that the command may write to, as they were when it began
	mounts error    // why not all files outside are read-only, in a namespace

	procs  *os.File // of the memory cgroup; nil: there is none
	events *os.File

	stop chan struct{} // closed to end everything; only without a process namespace

	meter *meter
	over  string // the exceeded limit
}

// supervise is the main function of a child.
func supervise() {
	// Rights are given up by this thread, and a command inherits the rights of
	// the thread that starts it.
	runtime.LockOSThread()
	control, status := os.NewFile(3, "control"), os.NewFile(4, "status")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	s := &supervisor{status: status, stderr: redirectRuntime(4), stop: make(chan struct{})}
	if json.NewDecoder(control).Decode(&s.spec) != nil {
		s.exit(End{Fault: "the sandbox was not told what to run"})
	}
	if s.spec.Cgroup {
		s.procs, s.events = os.NewFile(5, "procs"), os.NewFile(6, "events")
	}
	// A handled signal, unlike SIG_IGN, is not inherited by the command. Signals
	// that the command sends to all processes must not end its supervisor.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGPIPE, syscall.SIGXCPU, syscall.SIGXFSZ)
	// If the machine or the bridge's container runs out of memory, the kernel
	// kills the command first, which inherits this. An error changes nothing else.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	limits, err := s.confine()
	if err != nil {
		s.exit(End{Fault: err.Error()})
	}
	if s.spec.Probe != nil {
		s.exit(End{Found: s.try(s.spec.Probe, limits)})
	}
	go func() { // the program that started us is gone, or wants the command to end
		_, _ = io.Copy(io.Discard, control)
		if os.Getpid() == 1 {
			os.Exit(1) //nolint:forbidigo // this process is only the sandbox, and main does not run in it
		}
		close(s.stop)
	}()
	s.exit(s.run())
}

// redirectRuntime redirects the runtime's last messages to the status pipe. In the
// command's output they would be lost. It returns the original standard error.
func redirectRuntime(status int) *os.File {
	debug.SetTraceback("none") // the reason suffices, and fits the pipe
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil || unix.Dup3(status, 2, 0) != nil {
		return os.Stderr
	}
	return os.NewFile(uintptr(fd), "stderr")
}

// exit reports how the command ended, and ends everything.
func (s *supervisor) exit(end End) {
	s.endAll()
	if s.meter != nil {
		s.meter.removeSegments()
	}
	end.Over = s.over
	line, err := json.Marshal(end)
	if err == nil {
		_, err = s.status.Write(append(line, '\n'))
	}
	code := 0
	if err != nil {
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // see above
}

// run starts the command and waits for it. Orphans become our children, and are
// waited for as well.
func (s *supervisor) run() End {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	s.meter = newMeter(s.spec.Limits.Memory, s.spec.Write)
	command, err := s.start(&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, s.stderr}, Env: os.Environ()})
	if err != nil {
		return End{Fault: err.Error()}
	}
	// From here on only the command holds its output.
	os.Stdin.Close()
	os.Stdout.Close()
	s.stderr.Close()
	next := time.NewTimer(watchEvery)
	defer next.Stop()
	for {
		if end, ended := reap(command); ended {
			return end
		}
		// With Landlock, only this thread may examine the command's processes and
		// send them signals.
		select {
		case <-died:
			continue
		case <-s.stop:
			s.endAll()
		case began := <-next.C:
			if !s.check() {
				next.Reset(afterCheck(time.Since(began)))
				continue
			}
		}
		return End{Exit: -1, Signal: int(syscall.SIGKILL)}
	}
}

// reap waits for all processes that have ended, and returns how the command did
// if it is one of them.
func reap(command int) (end End, ended bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return End{Fault: "wait: " + err.Error()}, true
		case pid == 0:
			return End{}, false
		case pid == command && ws.Signaled():
			return End{Exit: -1, Signal: int(ws.Signal())}, true
		case pid == command && ws.Exited():
			return End{Exit: ws.ExitStatus()}, true
		}
	}
}

// endAll kills every descendant. In a process namespace one call does so, and
// the end of the namespace's first process does it again.
func (s *supervisor) endAll() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	for range endTries {
		children := childrenOf()[os.Getpid()]
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				_, _ = unix.Wait4(pid, nil, 0, nil) // its children then become ours
			}
		}
	}
}

// endTries bounds the depth of descendants: each round kills the uppermost ones.
const endTries = 100_000
