package devserver_test

// One server uses a directory at a time, and an error names it.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/devserver"
)

// lockedDirVar makes this program, when a test starts it again, a server in a
// directory.
const lockedDirVar = "REFOLD_TEST_DEVSERVER_DIR"

// serveForTest runs a server until its standard input ends. It prints its URL, or
// the error, on a line.
func serveForTest(dir string) {
	server, err := devserver.Start(context.Background(), devserver.Options{Dir: dir, Install: []byte(record)})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(server.URL())
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end is the end
	server.Stop()
}

// child is a process that serves a directory.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  string // its line
}

func serveIn(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), lockedDirVar+"="+dir)
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	t.Cleanup(c.kill)
	if c.said, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c
}

// kill ends it at once, and waits.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // its error says that it was killed
}

// wantHolder checks that an error names the holder of the directory, and says
// what to do.
func wantHolder(t *testing.T, err, dir string, pid int, url string) {
	t.Helper()
	for _, want := range []string{dir + " is in use by process " + strconv.Itoa(pid), os.Args[0], "since " + time.Now().Format("2006-01-"), url, "choose another --dir"} {
		if !strings.Contains(err, want) {
			t.Errorf("the second server says %q, want %q in it", err, want)
		}
	}
}

func TestASecondServerInTheProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, c, stop := start(t, dir)
	began := time.Now()
	server, err := devserver.Start(ctx, devserver.Options{Dir: dir, Install: []byte(record)})
	if err == nil {
		server.Stop()
		t.Fatal("a second server on the directory: got no error")
	}
	wantHolder(t, err.Error(), dir, os.Getpid(), "nats://127.0.0.1:")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it was refused after %v, want at once", took)
	}
	if got := run(ctx, t, c, "still here"); !strings.Contains(got, "still here") {
		t.Errorf("the first server answers %q", got)
	}
	stop()
	start(t, dir)
}

// A process that is killed leaves nothing locked.
func TestASecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serveIn(t, dir)
	if !strings.HasPrefix(first.said, "nats://") {
		t.Fatalf("the first says %q", first.said)
	}
	second := serveIn(t, dir)
	wantHolder(t, second.said, dir, first.cmd.Process.Pid, strings.TrimSpace(first.said))
	first.kill()
	third := serveIn(t, dir)
	if !strings.HasPrefix(third.said, "nats://") {
		t.Fatalf("after the first was killed, the next says %q", third.said)
	}
	wantHolder(t, serveIn(t, dir).said, dir, third.cmd.Process.Pid, strings.TrimSpace(third.said))
	third.stdin.Close()
	if err := third.cmd.Wait(); err != nil {
		t.Errorf("the third: %v", err)
	}
}

// Until a server is ready, the error names it without its URL. A caller that
// locks the directory before it starts the server keeps it.
func TestDirectoryIsLockedBeforeServerStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := devserver.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = devserver.Lock(dir)
	if err == nil {
		t.Fatal("a second lock: got no error")
	}
	wantHolder(t, err.Error(), dir, os.Getpid(), "use that server when it is ready")
	server, err := devserver.Start(t.Context(), devserver.Options{Dir: dir, Lock: lock, Install: []byte(record)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := devserver.Lock(dir); err == nil || !strings.Contains(err.Error(), server.URL()) {
		t.Errorf("a third lock: got %v, want the URL %s", err, server.URL())
	}
	server.Stop()
	lock.Release() // again
	if lock, err = devserver.Lock(dir); err != nil {
		t.Fatal(err)
	}
	lock.Release()
}
