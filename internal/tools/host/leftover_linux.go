package host

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Variables of each command, by which a host that is started after one was
// killed knows what that one had started, and what goes on.
const (
	markRoot = "REFOLD_HOST_ROOT" // the host's root
	markHost = "REFOLD_HOST"      // the process that started it: namespace, id, start time
)

// marks returns the variables by which a command is known.
func (h *Host) marks() []string {
	return []string{markRoot + "=" + h.root, markHost + "=" + processName(os.Getpid())}
}

// processName names a process like no other one that ever ran on this machine
// since its start; empty if there is none of the id.
func processName(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	space, wrong := os.Readlink("/proc/self/ns/pid")
	after := stat[bytes.LastIndexByte(stat, ')')+1:] // the name before it may hold anything
	fields := strings.Fields(string(after))
	const startTime = 22 - 3 // proc(5) counts from 1, and after begins with the third
	if err != nil || wrong != nil || len(fields) <= startTime || fields[0] == "Z" {
		return ""
	}
	return space + " " + strconv.Itoa(pid) + " " + fields[startTime]
}

// endLeftovers ends what commands of a host on this root have left that is gone:
// without a sandbox that ends all with a command, its processes outlive a host
// that is killed. What a host that runs has started is let be.
func (h *Host) endLeftovers(log *slog.Logger) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	self := processName(os.Getpid())
	space, _, _ := strings.Cut(self, " ")
	ended := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0) // before it is checked: another process may get the id later
		if err != nil {
			continue
		}
		if h.isLeftover(pid, space) && unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil {
			ended++
		}
		_ = unix.Close(handle)
	}
	if ended > 0 {
		log.Warn("leftover_processes_ended", "count", ended, "do", "they were started by commands of a bridge that was killed; --sandbox required ends all with a command")
	}
}

// isLeftover reports that a process was started by a command of a host on this
// root that is gone.
func (h *Host) isLeftover(pid int, space string) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	root, host := "", ""
	for _, v := range strings.Split(string(environ), "\x00") {
		if value, ok := strings.CutPrefix(v, markRoot+"="); ok {
			root = value
		}
		if value, ok := strings.CutPrefix(v, markHost+"="); ok {
			host = value
		}
	}
	of := strings.Fields(host)
	if root != h.root || len(of) != 3 || of[0] != space { // another namespace's ids say nothing here
		return false
	}
	by, err := strconv.Atoi(of[1])
	return err == nil && processName(by) != host
}
