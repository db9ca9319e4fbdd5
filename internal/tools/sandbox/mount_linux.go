package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Landlock has no rules for modes, owners, times and attributes, and a filter
// can't decide about paths. So in a mount namespace, everything except the
// directories that the command may write to is read-only.

// setUpMounts gives this process a /proc of its own and makes all files
// read-only, except those that the command may change. Nothing is mounted if err
// is not nil, except /proc; s.sees reports that one.
func (s *supervisor) setUpMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	s.sees = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") == nil
	if self, err := os.Readlink("/proc/self"); err != nil || self != "1" {
		s.sees = false
	}
	return s.makeReadOnly()
}

// makeReadOnly copies the mounts of the directories that stay writable, makes
// all mounts read-only, and puts the copies in their place. A copy keeps what is
// read-only in it. Nothing in them is nosuid outside of the namespace: the filter
// refuses set-id modes.
func (s *supervisor) makeReadOnly() error {
	copies := []mountCopy{{of: unix.AT_FDCWD, path: "/dev", at: "/dev", set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}} // its devices stay usable
	for i, dir := range outermost(s.spec.Write) {
		copies = append(copies, mountCopy{of: s.write[i], at: dir, set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
	}
	defer func() {
		for i := range copies {
			if copies[i].tree > 0 {
				unix.Close(copies[i].tree)
			}
		}
	}()
	for i := range copies {
		if err := copies[i].take(); err != nil {
			return err
		}
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return fmt.Errorf("make mounts read-only: %w", err)
	}
	for _, c := range copies {
		if err := c.put(); err != nil {
			return err
		}
	}
	if err := ownDevices(0, 1, int(s.stderr.Fd())); err != nil {
		return err
	}
	// The present directory belongs to a mount that is now read-only.
	if err := unix.Chdir(s.spec.Dir); err != nil {
		return fmt.Errorf("enter %s: %w", s.spec.Dir, err)
	}
	return nil
}

// mountCopy is a directory with all that is mounted below it.
type mountCopy struct {
	of   int    // the directory
	path string // relative to it; may be empty
	at   string // where it belongs
	set  uint64 // attributes
	tree int
}

func (c *mountCopy) take() (err error) {
	c.tree, err = unix.OpenTree(c.of, c.path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("copy the mounts of %s: %w", c.at, err)
	}
	return nil
}

func (c *mountCopy) put() error {
	if err := unix.MountSetattr(c.tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: c.set}); err != nil {
		return fmt.Errorf("set the attributes of %s: %w", c.at, err)
	}
	if err := unix.MoveMount(c.tree, "", unix.AT_FDCWD, c.at, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
		return fmt.Errorf("mount %s: %w", c.at, err)
	}
	return nil
}

// outermost returns the directories that lie in no other one, so that a file can
// be renamed between two of them that are nested.
func outermost(dirs []string) (all []string) {
	dirs = slices.Clone(dirs)
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, dir := range dirs {
		inside := func(outer string) bool {
			return filepath.Clean(dir) == filepath.Clean(outer) || strings.HasPrefix(dir, strings.TrimSuffix(filepath.Clean(outer), "/")+"/")
		}
		if !slices.ContainsFunc(all, inside) {
			all = append(all, dir)
		}
	}
	return all
}

// ownDevices opens standard files that are devices anew. What is open belongs to
// a mount that is not read-only, so its mode could be changed: that of /dev/null,
// for the whole machine.
func ownDevices(fds ...int) error {
	for _, fd := range fds {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue // closed, or a pipe
		}
		null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Dup3(null, fd, unix.O_CLOEXEC), unix.Close(null))
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
	}
	return nil
}
