package sandbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where the bridge may make memory cgroups, each command has one. The kernel charges
// to it at once what the count can't see. Commands can't write to cgroup file
// systems, so only the bridge can move a command out of its cgroup.

// cgroups is the directory in which commands get memory cgroups.
type cgroups struct {
	dir string
	v2  bool
}

// cgroup is the memory cgroup of one command.
type cgroup struct {
	dir    string
	procs  *os.File // written: puts processes into it
	events *os.File // read: has the number of processes that the kernel killed
}

// cgroupPrefix begins the name of a command's cgroup, refold-PROCESS-RANDOM: the
// process that made it, and random letters.
const cgroupPrefix = "refold-"

// findCgroups returns where commands can get memory cgroups, and removes those
// of processes that are gone. The error says why there are none.
func findCgroups() (*cgroups, error) {
	own, top, v2, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	c := &cgroups{dir: own, v2: v2}
	if v2 { // children of a cgroup with processes can't have controllers
		c.dir = filepath.Dir(own)
		if own == top || !isDelegated(c.dir) {
			return nil, errors.New("not in a subgroup of a delegated cgroup")
		}
		if err := writeTo(filepath.Join(c.dir, "cgroup.subtree_control"), "+memory"); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, is := strings.CutPrefix(e.Name(), cgroupPrefix); is && madeByGone(name) {
			_ = (&cgroup{dir: filepath.Join(c.dir, e.Name())}).remove() // else at the next start
		}
	}
	return c, nil
}

// ownCgroup returns the directory of this process's memory cgroup, and the top of
// the file system it is in.
func ownCgroup() (dir, top string, v2 bool, err error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	mounts, wrong := os.ReadFile("/proc/self/mountinfo")
	if err = errors.Join(err, wrong); err != nil {
		return "", "", false, err
	}
	path, v2 := "", true
	for line := range strings.Lines(string(own)) { // 4:memory:/path, or 0::/path
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(fields) < 3:
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			path, v2 = fields[2], false
		case fields[1] == "" && v2:
			path = fields[2]
		}
	}
	for line := range strings.Lines(string(mounts)) { // id parent device root at options - type source options
		front, back, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(front), strings.Fields(back)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		is := v2 && kind[0] == "cgroup2" || !v2 && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "memory")
		if rel, err := filepath.Rel(place[3], path); is && err == nil && filepath.IsLocal(rel) {
			return filepath.Join(place[4], rel), place[4], v2, nil
		}
	}
	return "", "", false, errors.New("no memory cgroup is mounted")
}

// isDelegated reports whether the service manager has left a cgroup to this
// process. Root may also write to those that belong to the service manager.
func isDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// madeByGone reports whether the process that made a cgroup is gone.
func madeByGone(name string) bool {
	by := strings.Split(name, "-")
	space, _, _ := strings.Cut(ProcessName(os.Getpid()), " ")
	if len(by) != 4 || by[0] != space { // ids of another namespace mean nothing here
		return false
	}
	pid, err := strconv.Atoi(by[1])
	return err == nil && ProcessName(pid) != strings.Join(by[:3], " ")
}

// add makes a cgroup for a command.
func (c *cgroups) add(limit int64) (g *cgroup, err error) {
	by := strings.ReplaceAll(ProcessName(os.Getpid()), " ", "-")
	g = &cgroup{dir: filepath.Join(c.dir, cgroupPrefix+by+"-"+rand.Text())}
	if err = os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	type setting struct{ name, value string }
	most, events := strconv.FormatInt(limit, 10), "memory.events"
	settings := []setting{{"memory.max", most}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"}}
	if !c.v2 {
		settings, events = []setting{{"memory.limit_in_bytes", most}, {"memory.memsw.limit_in_bytes", most}}, "memory.oom_control"
	}
	for i, s := range settings {
		wrong := writeTo(filepath.Join(g.dir, s.name), s.value)
		if i == 0 || !errors.Is(wrong, fs.ErrNotExist) { // not every kernel counts swap, or has groups
			err = errors.Join(err, wrong)
		}
	}
	if err == nil {
		g.procs, err = os.OpenFile(filepath.Join(g.dir, "cgroup.procs"), os.O_WRONLY, 0)
	}
	if err == nil {
		g.events, err = os.Open(filepath.Join(g.dir, events))
	}
	if err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

// writeTo writes to a file of a cgroup. Creating one is another error than that
// there is none.
func writeTo(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// killedIn reports whether the kernel killed a process of a cgroup for its memory.
func killedIn(events io.ReaderAt) bool {
	text := make([]byte, 1<<10)
	n, _ := events.ReadAt(text, 0) // shorter than that
	for line := range bytes.Lines(text[:n]) {
		if count, is := bytes.CutPrefix(line, []byte("oom_kill ")); is {
			return string(bytes.TrimSpace(count)) != "0"
		}
	}
	return false
}

// remove kills what is left in a cgroup, and removes it.
func (g *cgroup) remove() error {
	for _, f := range []*os.File{g.procs, g.events} {
		if f != nil {
			f.Close()
		}
	}
	for try := 0; ; try++ {
		err := unix.Rmdir(g.dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if try == removeTries {
			return fmt.Errorf("remove the cgroup %s: %w", g.dir, err)
		}
		if writeTo(filepath.Join(g.dir, "cgroup.kill"), "1") != nil { // v1, or before Linux 5.14
			g.kill()
		}
		<-time.After(removePause)
	}
}

const (
	removeTries = 200
	removePause = 10 * time.Millisecond // the kernel reports no end of killed processes in v1
)

// kill kills the processes of a cgroup, unless they start others meanwhile.
func (g *cgroup) kill() {
	for _, pid := range g.pids() {
		handle, err := unix.PidfdOpen(pid, 0) // before the check: another process may get the id later
		if err != nil {
			continue
		}
		if slices.Contains(g.pids(), pid) {
			_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
		}
		unix.Close(handle)
	}
}

func (g *cgroup) pids() (all []int) {
	text, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
