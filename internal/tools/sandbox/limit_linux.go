package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// start starts the command with its limits set before its first instruction: it is
// traced until its program is loaded. The supervisor itself is not limited: its
// command must not be able to keep it from watching, or from killing descendants.
func (s *supervisor) start(attr *os.ProcAttr) (pid int, err error) {
	argv := s.spec.Argv
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Ptrace: true}
	process, err := os.StartProcess(argv[0], argv, attr)
	if mayNotTrace(err) {
		if err := s.limit(0); err != nil {
			return 0, err
		}
		attr.Sys.Ptrace = false
		if process, err = os.StartProcess(argv[0], argv, attr); err == nil {
			return process.Pid, nil
		}
	}
	if err != nil {
		return 0, err
	}
	if err = s.limitStopped(process.Pid); err == nil {
		err = unix.PtraceDetach(process.Pid)
	}
	if err != nil {
		err = fmt.Errorf("%s did not begin: %w", argv[0], err)
	}
	return process.Pid, err
}

// tryLimits tests whether limits can be set, with this program as the command,
// which is killed before it runs.
func (s *supervisor) tryLimits() error {
	process, err := os.StartProcess("/proc/self/exe", []string{childName}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
	switch {
	case mayNotTrace(err):
		return s.limit(0)
	case err != nil:
		return err
	}
	err = s.limitStopped(process.Pid)
	_ = process.Kill() // fails only if it is gone
	_, _ = process.Wait()
	return err
}

// mayNotTrace reports whether a child did not start because tracing is forbidden.
// Then it inherits its limits from the supervisor, which has them too.
func mayNotTrace(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) }

// limitStopped sets the limits of a traced child once it has stopped with its
// program loaded. Earlier signals are passed on to it.
func (s *supervisor) limitStopped(pid int) error {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(pid, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case !ws.Stopped():
			return fmt.Errorf("it ended: signal %v, exit status %d", ws.Signal(), ws.ExitStatus())
		case ws.StopSignal() == syscall.SIGTRAP:
			return s.limit(pid)
		default:
			if err := unix.PtraceCont(pid, int(ws.StopSignal())); err != nil {
				return fmt.Errorf("trace: %w", err)
			}
		}
	}
}

// limit sets the rlimits of a process, or of this one if pid is 0, and puts it
// into the memory cgroup.
func (s *supervisor) limit(pid int) error {
	if s.procs != nil {
		if _, err := s.procs.WriteString(strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("enter the memory cgroup: %w", err)
		}
	}
	l := s.spec.Limits
	set := func(what int, soft, hard uint64) error {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, what, nil, &now); err != nil {
			return fmt.Errorf("rlimits: %w", err)
		}
		hard = min(hard, now.Max)
		if err := unix.Prlimit(pid, what, &unix.Rlimit{Cur: min(soft, hard), Max: hard}, nil); err != nil {
			return fmt.Errorf("rlimits: %w", err)
		}
		return nil
	}
	seconds := uint64((l.CPU + time.Second - 1) / time.Second)
	threads := uint64(l.Processes) + threadsOwn
	if os.Getpid() != 1 {
		threads += uint64(threadsOf(os.Geteuid())) // all threads of the user count
	}
	for _, err := range []error{
		set(unix.RLIMIT_CPU, seconds, seconds+1), // the soft limit sends a signal that tells the reason
		set(unix.RLIMIT_DATA, uint64(l.Memory), uint64(l.Memory)),
		set(unix.RLIMIT_FSIZE, uint64(l.FileSize), uint64(l.FileSize)),
		set(unix.RLIMIT_MEMLOCK, lockedMax, lockedMax), // secret memory is not counted
		set(unix.RLIMIT_CORE, 0, 0),
		set(unix.RLIMIT_NPROC, threads, threads),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// threadsOwn is the number of threads reserved for the supervisor.
const threadsOwn = 32

// lockedMax bounds in bytes what a process locks in memory, as the kernel does by
// default.
const lockedMax = 8 << 20
