package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
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

	stop chan struct{} // closed to end everything; only without a process namespace

	mu   sync.Mutex
	over string
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
	line := bufio.NewReader(control)
	text, err := line.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &s.spec)
	}
	if err != nil {
		s.exit(End{Fault: "the sandbox was not told what to run"})
	}
	// A handled signal, unlike SIG_IGN, is not inherited by the command. Signals
	// that the command sends to all processes must not end its supervisor.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGPIPE, syscall.SIGXCPU, syscall.SIGXFSZ)
	limits, err := s.confine()
	if err != nil {
		s.exit(End{Fault: err.Error()})
	}
	if s.spec.Probe != nil {
		s.exit(End{Found: s.try(s.spec.Probe, limits)})
	}
	go func() { // the program that started us is gone, or wants the command to end
		_, _ = line.ReadByte()
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
	s.mu.Lock()
	end.Over = s.over
	s.mu.Unlock()
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
	command, err := s.start(&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, s.stderr}, Env: os.Environ()})
	if err != nil {
		return End{Fault: err.Error()}
	}
	// From here on only the command holds its output.
	os.Stdin.Close()
	os.Stdout.Close()
	s.stderr.Close()
	go s.watch()
	options := 0
	if os.Getpid() != 1 {
		options = syscall.WNOHANG // this thread must not block
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && pid == 0:
			// With Landlock, only this thread may send signals to its children.
			select {
			case <-s.stop:
				s.endAll()
				return End{Exit: -1, Signal: int(syscall.SIGKILL)}
			case <-time.After(pollEvery):
			}
		case err != nil:
			return End{Fault: "wait: " + err.Error()}
		case pid == command && ws.Signaled():
			return End{Exit: -1, Signal: int(ws.Signal())}
		case pid == command && ws.Exited():
			return End{Exit: ws.ExitStatus()}
		}
	}
}

// pollEvery is how late the end of a command is noticed without a process
// namespace.
const pollEvery = 5 * time.Millisecond

// endAll kills every descendant. In a process namespace one call does so, and
// the end of the namespace's first process does it again.
func (s *supervisor) endAll() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	for range endTries {
		children := children()
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
