package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// watchEvery is how often the command's processes are checked.
const watchEvery = 50 * time.Millisecond

// The values of End.Over.
const (
	overMemory    = "memory"
	overProcesses = "processes"
)

// watch kills the command if its processes are too many or use too much memory.
func (s *supervisor) watch() {
	if !s.sees {
		return
	}
	page := int64(os.Getpagesize())
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for range tick.C {
		count, bytes := 0, int64(0)
		for _, pid := range pids() {
			if pid == os.Getpid() {
				continue
			}
			count++
			bytes += heldPages(pid) * page
		}
		var over string
		switch {
		case count > s.spec.Limits.Processes:
			over = overProcesses
		case bytes > s.spec.Limits.Memory:
			over = overMemory
		default:
			continue
		}
		s.mu.Lock()
		s.over = over
		s.mu.Unlock()
		s.endAll()
	}
}

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

// heldPages returns how many pages a process does not share; 0 if it is gone.
func heldPages(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return resident - shared
}

func children() (all []int) {
	self := strconv.Itoa(os.Getpid())
	for _, pid := range pids() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The name of a process may contain anything; the state and the parent
		// follow the last bracket.
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == self {
			all = append(all, pid)
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
