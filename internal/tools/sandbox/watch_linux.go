package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The time between two checks of the command's processes.
const (
	watchEvery  = 50 * time.Millisecond
	watchLatest = time.Second // if a check takes long
)

// The values of End.Over.
const (
	overMemory    = "memory"
	overProcesses = "processes"
)

// check ends the command if its processes are too many or hold too much memory, and
// reports whether it did.
func (s *supervisor) check() bool {
	pids := s.descendants()
	switch {
	case len(pids) > s.spec.Limits.Processes:
		s.over = overProcesses
	case s.meter.over(pids), s.events != nil && killedIn(s.events):
		s.over = overMemory
	default:
		return false
	}
	s.endAll()
	return true
}

// afterCheck returns how long to wait after a check that took so long: checks
// take at most about a tenth of a processor.
func afterCheck(took time.Duration) time.Duration {
	return min(max(watchEvery, 9*took), watchLatest)
}

// descendants returns the processes of the command.
func (s *supervisor) descendants() (all []int) {
	self := os.Getpid()
	if self == 1 {
		if s.sees {
			all = slices.DeleteFunc(pids(), func(pid int) bool { return pid == self })
		}
		return all
	}
	of := childrenOf()
	for next := of[self]; len(next) > 0 && len(all) < pidsMax; {
		all = append(all, next[0])
		next = append(next[1:], of[next[0]]...)
	}
	return all
}

// pidsMax bounds a walk through processes while they start and end.
const pidsMax = 1 << 16

// pids returns the processes in /proc.
func pids() (all []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// childrenOf returns the children of each process in /proc.
func childrenOf() map[int][]int {
	all := map[int][]int{}
	for _, pid := range pids() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The name of a process may contain anything; the state and the parent
		// follow the last bracket.
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if fields := strings.Fields(rest); len(fields) > 1 {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				all[parent] = append(all[parent], pid)
			}
		}
	}
	return all
}

// threadsOf returns how many threads of a user /proc shows.
func threadsOf(uid int) (n int) {
	for _, pid := range pids() {
		dir := fmt.Sprintf("/proc/%d", pid)
		if owner, ok := ownerOf(dir); !ok || owner != uid {
			continue
		}
		if threads, err := os.ReadDir(dir + "/task"); err == nil {
			n += len(threads)
		}
	}
	return n
}
