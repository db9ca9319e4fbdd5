package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// Environment variables of each command. By them a host recognises the
// processes of a host that was killed before.
const (
	markRoot = "REFOLD_HOST_ROOT" // the host's root
	markHost = "REFOLD_HOST"      // the process that started it: pid namespace, id, start time
)

// marks returns the variables that identify a command's host.
func (h *Host) marks() []string {
	return []string{markRoot + "=" + h.root, markHost + "=" + sandbox.ProcessName(os.Getpid())}
}

// endLeftovers kills processes started by commands of a host on this root that
// is gone. Without a sandbox, processes outlive a host that is killed. Those of
// a running host are left alone.
func (h *Host) endLeftovers(log *slog.Logger) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	self := sandbox.ProcessName(os.Getpid())
	space, _, _ := strings.Cut(self, " ")
	ended := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0) // before the check: another process may get the id later
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

// isLeftover reports whether a command of a host on this root that is gone
// started a process.
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
	if root != h.root || len(of) != 3 || of[0] != space { // ids of another namespace mean nothing here
		return false
	}
	by, err := strconv.Atoi(of[1])
	return err == nil && sandbox.ProcessName(by) != host
}
