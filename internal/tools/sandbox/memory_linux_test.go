package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// memoryLimit is that of the commands here, in MiB. Under the race detector a
// program does not start with much less.
const memoryLimit = 512

// Attacks hold twice the limit, in pieces of pieceMiB, until they are killed.
const (
	pieceMiB     = 64
	segmentBytes = pieceMiB<<20 + 4096 // no other program has segments of this size
	heldUntil    = 20 * time.Second    // for longer than a check takes on a busy machine
)

// TestAttackSharedMemory: memory that no process has for itself, and memory that
// no process has mapped.
func TestAttackSharedMemory(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: memoryLimit << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		for _, how := range []string{"shared", "zapped", "memfd", "in flight", "in a backlog", "received", "of a thread", "unreadable", "mapped only", "mapped at once", "segment", "without a leader"} {
			if out, end := escape(t, b, t.TempDir(), "hold", how, strconv.Itoa(2*memoryLimit)); end.Over != "memory" {
				t.Errorf("%d of %d MiB, %s: %.300q, %+v; want it ended for its memory", 2*memoryLimit, memoryLimit, how, out, end)
			}
		}
		if b.Command(nil, "/", nil).KillsDescendants() {
			return // they ended with the IPC namespace
		}
		// Other tests may hold segments at the moment, until they are ended.
		end := time.Now().Add(time.Minute)
		for {
			left, err := os.ReadFile("/proc/sysvipc/shm")
			switch {
			case err != nil:
				t.Fatal(err)
			case !strings.Contains(string(left), fmt.Sprintf(" %d ", segmentBytes)):
				return
			case time.Now().After(end):
				t.Fatalf("segments that the command left: %s; want none of %d bytes", left, segmentBytes)
			}
			<-time.After(100 * time.Millisecond)
		}
	})
}

// TestAttackMemoryOfFiles: a working directory may be in memory.
func TestAttackMemoryOfFiles(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: memoryLimit << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		for _, how := range []string{"files", "unlinked"} {
			dir := inMemory(t)
			if out, end := escape(t, b, dir, "hold", how, strconv.Itoa(2*memoryLimit)); end.Over != "memory" {
				t.Errorf("%d of %d MiB, %s: %.300q, %+v; want it ended for its memory", 2*memoryLimit, memoryLimit, how, out, end)
			}
		}
	})
}

// inMemory returns a directory of a file system in memory.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "refold-sandbox-") //nolint:usetesting // t.TempDir is on a disk
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Fatalf("/dev/shm: type %#x, %v; want a tmpfs", fs.Type, err)
	}
	return dir
}

// TestSharedMemoryCountsOnce: processes that share memory are not killed for
// using it several times, and files of others in the same file system are not
// theirs.
func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	dir := inMemory(t)
	must(t, os.WriteFile(dir+"/of others", make([]byte, 2*memoryLimit<<20), 0o600))
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: memoryLimit << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		own := dir + "/" + strings.ReplaceAll(b.Means(), " ", "-")
		must(t, os.Mkdir(own, 0o700))
		for _, how := range []string{"memfd", "shared", "segment"} {
			if out, end := escape(t, b, own, "share", how, strconv.Itoa(memoryLimit/2), "6"); end.Exit != 0 || end.Over != "" {
				t.Errorf("%d of %d MiB, %s, by 6 processes: %.300q, %+v; want success", memoryLimit/2, memoryLimit, how, out, end)
			}
		}
	})
}

// TestPagesAfterForkCountOnce: a shell with much memory that forks copies nothing.
func TestPagesAfterForkCountOnce(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: memoryLimit << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		line := fmt.Sprintf(`x=$(head -c %d /dev/zero | tr '\0' x); for i in 1 2 3 4 5 6; do (sleep 1; : "$x") & done; wait`, 64<<20)
		if out, end := run(t, b, t.TempDir(), []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c", line); end.Exit != 0 || end.Over != "" {
			t.Errorf("64 of %d MiB, seven times the same: %.300q, %+v; want success", memoryLimit, out, end)
		}
	})
}

// TestCommandIsFirstToBeKilled: if the machine runs out of memory, the kernel
// kills the command before the bridge.
func TestCommandIsFirstToBeKilled(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		if out, end := run(t, b, t.TempDir(), nil, "/bin/cat", "/proc/self/oom_score_adj"); out != "1000\n" || end.Exit != 0 {
			t.Errorf("oom_score_adj of a command: %q, %+v; want 1000", out, end)
		}
	})
	if own, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(own) == "1000\n" {
		t.Errorf("oom_score_adj of this process: %q, %v; want it unchanged", own, err)
	}
}

// hold holds memory in one of several ways until it is killed.
func hold(args []string) error {
	mib, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := holdBy(args[0], mib); err != nil {
		return err
	}
	fmt.Println("held")
	<-time.After(heldUntil)
	return nil
}

func holdBy(how string, mib int) error {
	pieces := func(one func() error) error {
		for range mib / pieceMiB {
			if err := one(); err != nil {
				return err
			}
		}
		return nil
	}
	switch how {
	case "shared":
		return pieces(func() error { _, err := shared(pieceMiB << 20); return err })
	case "zapped": // the memory stays, and no page table has it
		return pieces(func() error {
			m, err := shared(pieceMiB << 20)
			if err != nil {
				return err
			}
			return unix.Madvise(m, unix.MADV_DONTNEED)
		})
	case "mapped only":
		fd, err := memfd(mib << 20)
		if err != nil {
			return err
		}
		if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		return unix.Close(fd)
	case "mapped at once": // and closed, mostly before a check sees it open
		fd, err := unix.MemfdCreate("hold", 0)
		if err != nil {
			return err
		}
		if err := unix.Fallocate(fd, 0, 0, int64(mib)<<20); err != nil {
			return err
		}
		if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		return unix.Close(fd)
	case "memfd":
		return pieces(func() error { _, err := memfd(pieceMiB << 20); return err })
	case "unreadable":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		return holdBy("memfd", mib)
	case "in flight", "received":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return pieces(func() error { return pass(pair, how == "received") })
	case "in a backlog":
		return pieces(inBacklog)
	case "of a thread": // with descriptors of its own
		failed := make(chan error)
		go func() {
			runtime.LockOSThread()
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				failed <- err
				return
			}
			failed <- holdBy("memfd", mib)
			select {}
		}()
		return <-failed
	case "segment":
		return pieces(func() error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, segmentBytes, unix.IPC_CREAT|0o600)
			if err != nil {
				return err
			}
			m, err := unix.SysvShmAttach(id, 0, 0)
			if err == nil {
				touch(m)
				err = unix.SysvShmDetach(m)
			}
			return err
		})
	case "without a leader": // its status shows no memory
		go func() {
			if err := holdBy("shared", mib); err != nil {
				fmt.Println("failed:", err)
			}
			<-time.After(heldUntil)
			os.Exit(0)
		}()
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		return nil
	case "files", "unlinked":
		n := 0
		return pieces(func() error {
			n++
			f, err := os.Create("file" + strconv.Itoa(n))
			if err != nil {
				return err
			}
			if err = fill(int(f.Fd()), pieceMiB<<20); err != nil || how == "files" {
				return err
			}
			kept = append(kept, f)
			return os.Remove(f.Name())
		})
	}
	return fmt.Errorf("no way to hold memory: %s", how)
}

var kept []*os.File

func shared(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	touch(m)
	return m, err
}

func touch(m []byte) {
	for at := 0; at < len(m); at += 4096 {
		m[at] = 1
	}
}

func memfd(n int) (int, error) {
	fd, err := unix.MemfdCreate("held", 0)
	if err == nil {
		err = fill(fd, n)
	}
	return fd, err
}

func fill(fd, n int) error {
	for piece := make([]byte, 1<<20); n > 0; n -= len(piece) {
		if _, err := unix.Write(fd, piece); err != nil {
			return err
		}
	}
	return nil
}

// pass sends a memfd to the other end, and closes its own.
func pass(pair [2]int, receive bool) error {
	fd, err := memfd(pieceMiB << 20)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	if receive {
		if _, _, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), make([]byte, 64), 0); err != nil {
			return err
		}
	}
	return unix.Close(fd)
}

// inBacklog sends a memfd over a connection that nobody accepts, and closes both.
func inBacklog() error {
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(listener, &unix.SockaddrUnix{Name: fmt.Sprint("socket", listener)}); err != nil {
		return err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprint("socket", listener)}); err != nil {
		return err
	}
	if err := pass([2]int{fd}, false); err != nil {
		return err
	}
	return unix.Close(fd)
}

// share has several processes use the same memory for a second, and ends.
func share(args []string) error {
	how := args[0]
	mib, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	others, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var fd, id int
	switch how {
	case "memfd":
		fd, err = memfd(mib << 20)
	case "shared": // a file of the directory, which is in memory
		fd, err = unix.Open("shared", unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o600)
		if err == nil {
			err = fill(fd, mib<<20)
		}
	case "segment":
		id, err = unix.SysvShmGet(unix.IPC_PRIVATE, mib<<20, unix.IPC_CREAT|0o600)
	}
	if err != nil {
		return err
	}
	var all []*exec.Cmd
	for range others {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{escapeName, "attach", how, strconv.Itoa(id), args[1]}
		if how != "segment" {
			cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), how)}
		}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		if err := cmd.Start(); err != nil {
			return err
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// attach maps and reads memory of its parent for a second.
func attach(args []string) error {
	mib, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var m []byte
	if args[0] == "segment" {
		id, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		if m, err = unix.SysvShmAttach(id, 0, 0); err != nil {
			return err
		}
		defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	} else if m, err = unix.Mmap(3, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		touch(m)
	}
	return nil
}
