package sandbox

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// count is one count, in bytes.
type count struct {
	private int64            // what processes have for themselves
	sysv    int64            // in System V IPC
	objects map[object]int64 // files in memory that are open or mapped
	mapped  map[object]int64 // files in memory that are mapped, with the size of the mappings
	memfds  map[object]bool  // of these, those that are memfds
	partial map[object]bool  // memfds that are mapped, not open, and may be larger than the mappings
	hides   bool             // the command may hold memory where it can't be counted
	vms     map[int64]int    // a process for each number of bytes
	sockets map[uint64]bool  // that were examined
}

func (c *count) sum() int64 { return c.private + c.files() }

func (c *count) files() int64 {
	sum := c.sysv
	for _, n := range c.objects {
		sum += n
	}
	return sum
}

// looseMax is how many files in memory may be mapped and not open before a command
// counts as hiding memory: a part of a file that was unmapped stays in memory.
const looseMax = 64

// count counts what processes hold. The exact count examines page tables.
func (m *meter) count(pids []int, exact bool) *count {
	c := &count{objects: map[object]int64{}, mapped: map[object]int64{}, memfds: map[object]bool{}, partial: map[object]bool{}, vms: map[int64]int{}, sockets: map[uint64]bool{}}
	for _, pid := range pids {
		m.seen[pid] = true
		m.process(c, pid, exact)
	}
	loose := 0
	for o, n := range c.mapped {
		if _, open := c.objects[o]; open {
			continue
		}
		size, known := m.sizes[o]
		if c.memfds[o] && (!known || size > n || m.partial[o]) {
			c.partial[o] = true
		}
		c.objects[o] = max(n, size)
		loose++
	}
	c.hides = c.hides || loose > looseMax || len(c.partial) > 0
	for s, held := range segments() {
		if !m.foreign[s] && (slices.Contains(pids, held.by) || isGone(held.by)) {
			c.sysv += held.bytes
		}
	}
	for _, f := range m.folders {
		if used, _ := usedMemory(f.path); c.sum()+used > m.limit {
			m.walk(c, f)
		}
	}
	return c
}

// process counts what one process holds. The first thread may have ended before
// the others, and each may have its own open files.
func (m *meter) process(c *count, pid int, exact bool) {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return // it is gone
	}
	first := 0
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		dir := "/proc/" + strconv.Itoa(pid) + "/task/" + task.Name()
		if first != 0 && same(first, tid, kcmpFiles) {
			continue
		}
		if first == 0 {
			private, alive := privateMemory(dir, exact)
			if !alive {
				continue
			}
			first = tid
			if other, known := c.vms[private]; known && same(other, tid, kcmpVM) {
				continue // after a vfork
			}
			c.vms[private] = tid
			c.private += private
			c.missed(m.mappings(c, dir))
		}
		c.missed(m.openFiles(c, dir))
	}
}

// missed notes that a process forbids others to examine it.
func (c *count) missed(err error) {
	c.hides = c.hides || errors.Is(err, fs.ErrPermission)
}

// The resources that kcmp compares.
const (
	kcmpVM    = 1
	kcmpFiles = 2
)

// same reports whether two threads are known to share a resource.
func same(a, b, what int) bool {
	differ, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), uintptr(what), 0, 0, 0)
	return errno == 0 && differ == 0
}

// privateMemory returns the anonymous memory and page tables of a thread's process,
// of which an exact count takes the thread's part of what several share. alive is
// false if it has ended.
func privateMemory(dir string, exact bool) (n int64, alive bool) {
	status := numbers(dir + "/status")
	anonymous, alive := status["RssAnon"]
	if !alive {
		return 0, false
	}
	n = anonymous + status["VmSwap"]
	if exact {
		rollup := numbers(dir + "/smaps_rollup")
		if part, ok := rollup["Pss_Anon"]; ok {
			n = min(n, part+rollup["SwapPss"])
		}
	}
	return n + status["VmPTE"], true
}

// numbers returns the sizes in a file of /proc, in bytes.
func numbers(path string) map[string]int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if value, is := strings.CutSuffix(strings.TrimSpace(rest), " kB"); is {
			n, _ := strconv.ParseInt(value, 10, 64)
			all[name] = n << 10
		}
	}
	return all
}

// filesOfMachine returns the size of all files in memory.
func filesOfMachine() int64 { return numbers("/proc/meminfo")["Shmem"] }

// mappings counts the files in memory that a process has mapped, by the size of
// the mappings: their pages stay when page tables lose them. Segments of System V
// IPC have numbers of their own.
func (m *meter) mappings(c *count, dir string) error {
	text, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return err
	}
	own := map[object]int64{}
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(" 00:00 0 ")) || bytes.Contains(line, []byte(" /SYSV")) {
			continue
		}
		fields := bytes.Fields(line) // 7f00-7f80 rw-s 00000000 00:01 4 /dev/zero (deleted)
		if len(fields) < 5 {
			continue
		}
		major, minor, _ := strings.Cut(string(fields[3]), ":")
		device := unix.Mkdev(uint32(hex(major)), uint32(hex(minor)))
		inode, err := strconv.ParseUint(string(fields[4]), 10, 64)
		if err != nil || !m.inMemory(device) {
			continue
		}
		from, to, _ := strings.Cut(string(fields[0]), "-")
		o := object{device, inode}
		own[o] += int64(hex(to) - hex(from))
		if len(fields) > 5 && bytes.HasPrefix(fields[5], []byte("/memfd:")) {
			c.memfds[o] = true
		}
	}
	for o, n := range own {
		c.mapped[o] = max(c.mapped[o], n)
	}
	return nil
}

func hex(text string) uint64 {
	n, _ := strconv.ParseUint(text, 16, 64)
	return n
}

func (m *meter) inMemory(device uint64) bool {
	return device == m.device || slices.ContainsFunc(m.folders, func(f folder) bool { return f.device == device })
}

// openFiles counts the files in memory that a thread has open. Descriptors that
// are in a socket's queue hold files of which nothing else is known.
func (m *meter) openFiles(c *count, dir string) error {
	fds, err := os.Open(dir + "/fd")
	if err != nil {
		return err
	}
	defer fds.Close()
	names, err := fds.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(int(fds.Fd()), name, &st, 0) != nil {
			continue // it was closed
		}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFREG && m.inMemory(st.Dev):
			c.objects[object{st.Dev, st.Ino}] = st.Blocks * blockBytes
		case st.Mode&unix.S_IFMT == unix.S_IFSOCK && !c.sockets[st.Ino]:
			c.sockets[st.Ino] = true
			info, _ := os.ReadFile(dir + "/fdinfo/" + name) // fails if it was closed
			_, queued, found := strings.Cut(string(info), "scm_fds:")
			c.hides = c.hides || found && strings.TrimSpace(queued) != "0"
		}
	}
	return err
}

// blockBytes is the unit of a file's blocks.
const blockBytes = 512

// usedMemory returns the used bytes of the file system of a path, if its files
// are in memory.
func usedMemory(path string) (used int64, is bool) {
	var f unix.Statfs_t
	if unix.Statfs(path, &f) != nil || f.Type != unix.TMPFS_MAGIC && f.Type != unix.RAMFS_MAGIC {
		return 0, false
	}
	return int64(f.Blocks-f.Bfree)*int64(f.Bsize) + int64(f.Files-f.Ffree)*inodeBytes, true //nolint:unconvert // of 32 bits on some machines
}

// inodeBytes is about what a file takes besides its content.
const inodeBytes = 1 << 10

// walk counts the files of a folder that the command changed.
func (m *meter) walk(c *count, f folder) {
	_ = filepath.WalkDir(f.path, func(_ string, d fs.DirEntry, err error) error {
		c.missed(err)
		if err != nil {
			return nil //nolint:nilerr // what can be read counts
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Dev == f.device && st.Ctim.Nano() >= m.began.UnixNano() {
			c.objects[object{st.Dev, st.Ino}] = st.Blocks*blockBytes + inodeBytes
		}
		return nil
	})
}

// segment is a segment of shared memory, or a queue of messages, of System V IPC.
type segment struct {
	queue bool
	id    int
}

// held is the memory of a segment, and the process that created it, or sent last.
type held struct {
	bytes int64
	by    int
}

// segments returns all segments and queues of this IPC namespace.
func segments() map[segment]held {
	all := map[segment]held{}
	for i, name := range []string{"/proc/sysvipc/shm", "/proc/sysvipc/msg"} {
		text, _ := os.ReadFile(name)                   // a kernel without System V IPC has none
		_, lines, _ := strings.Cut(string(text), "\n") // the first has the names
		for line := range strings.Lines(lines) {
			var n []int64
			for _, field := range strings.Fields(line) {
				value, _ := strconv.ParseInt(field, 10, 64)
				n = append(n, value)
			}
			switch {
			case len(n) < 14:
			case i == 0 && len(n) >= 16: // key shmid perms size cpid … rss swap
				all[segment{false, int(n[1])}] = held{n[14] + n[15], int(n[4])}
			case i == 1: // key msqid perms cbytes qnum lspid …
				all[segment{true, int(n[1])}] = held{n[3] + n[4]*messageBytes, int(n[5])}
			}
		}
	}
	return all
}

// messageBytes is about what a message takes besides its text.
const messageBytes = 64

// removeSegments removes segments that the command left. Only the end of an IPC
// namespace does so by itself.
func (m *meter) removeSegments() {
	for s, held := range segments() {
		if !s.queue && !m.foreign[s] && m.seen[held.by] {
			_, _ = unix.SysvShmCtl(s.id, unix.IPC_RMID, nil) // it may be gone
		}
	}
}

func isGone(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err != nil
}
