package sandbox

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// meter counts the memory that a command's processes hold. Only the thread that
// confined itself may use it: Landlock hides the processes from other threads.
//
// It counts the anonymous memory and the page tables of each process; once, and
// whoever holds it, each file in memory (a memfd, a shared anonymous mapping, a
// file below a writable directory of a tmpfs); and what is in System V IPC.
type meter struct {
	limit   int64
	device  uint64           // of memfds and shared anonymous mappings
	folders []folder         // writable directories whose files are in memory
	began   time.Time        // files that changed since are the command's
	foreign map[segment]bool // was in System V IPC before
	seen    map[int]bool     // processes of all counts
	base    int64            // bytes of the machine's files in memory, the least since the start
	sizes   map[object]int64 // of the last count
	partial map[object]bool  // of the last count
	lost    map[object]int64 // were counted, and may now be in a hiding place
	hid     bool             // by the last count, the command had a hiding place
}

// object is a file in memory.
type object struct{ device, inode uint64 }

// folder is a directory of a file system in memory.
type folder struct {
	path   string
	device uint64
}

// newMeter returns a meter of a command that is about to start.
func newMeter(limit int64, directories []string) *meter {
	m := &meter{limit: limit, began: time.Now().Add(-clockLag), foreign: map[segment]bool{}, seen: map[int]bool{}, lost: map[object]int64{}, base: filesOfMachine()}
	if fd, err := unix.MemfdCreate(childName, unix.MFD_CLOEXEC); err == nil {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			m.device = st.Dev
		}
		unix.Close(fd)
	}
	for _, path := range directories {
		var st unix.Stat_t
		if _, is := usedMemory(path); is && unix.Stat(path, &st) == nil {
			m.folders = append(m.folders, folder{path, st.Dev})
		}
	}
	for s := range segments() {
		m.foreign[s] = true
	}
	return m
}

// clockLag is how far the clock of file systems may be behind.
const clockLag = 20 * time.Millisecond

// over reports whether processes hold more than the limit. The count of every
// check is fast and may be too high; before it decides so, an exact one is made.
func (m *meter) over(pids []int) bool {
	c := m.count(pids, false)
	over := c.sum()+m.hidden(c) > m.limit
	if over {
		c = m.count(pids, true)
		over = c.sum()+m.hidden(c) > m.limit
	}
	m.lose(c)
	return over
}

// hidden returns how much of the machine's files in memory is new and not
// counted, if this and the last count found a hiding place, else 0. Without one
// it belongs to others. Others may free memory meanwhile, so what was counted
// before counts again, as far as the machine has so much.
func (m *meter) hidden(c *count) int64 {
	now := filesOfMachine()
	m.base = min(m.base, now)
	if !c.hides || !m.hid {
		return 0
	}
	var lost int64
	for o, n := range m.lost {
		if _, found := c.objects[o]; !found {
			lost += n
		}
	}
	return max(0, now-m.base-c.files(), min(lost, now-c.files()))
}

// lose keeps the objects of this count, and those that no count finds any more.
func (m *meter) lose(c *count) {
	if !c.hides {
		clear(m.lost)
	}
	for o, n := range m.sizes {
		if _, found := c.objects[o]; !found && c.hides {
			m.lost[o] = n
		}
	}
	for o := range c.objects {
		delete(m.lost, o)
	}
	m.hid, m.sizes, m.partial = c.hides, c.objects, c.partial
}

// works reports whether the meter can count, by what this process holds.
func (m *meter) works() bool {
	fd, err := unix.MemfdCreate(childName, unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, make([]byte, os.Getpagesize())); err != nil {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false
	}
	c := m.count([]int{os.Getpid()}, true)
	return c.private > 0 && c.objects[object{st.Dev, st.Ino}] >= int64(os.Getpagesize())
}
