package e2e_test

// No space left on device. The NATS server's files are on a small file system,
// which is mounted for the test and runs full; then it grows. Root mounts it,
// other users in a user and mount namespace, where the system allows that.
// Elsewhere the size of files is limited instead, as in
// edge_disk_linux_test.go, and the test logs it; with REFOLD_E2E_MOUNT=1 it
// fails then: make check-root.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// mountEnv is 1 to fail where no file system can be mounted.
const mountEnv = "REFOLD_E2E_MOUNT"

// Sizes of the file system, before and after somebody makes room.
const smallSize, largeSize = "size=6m", "size=256m"

// smallDisk is where a NATS server has its files, and has little room.
type smallDisk struct {
	srv     *natsProcess
	mounted bool
	enlarge func() error
}

func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	d := &smallDisk{srv: &natsProcess{t: t, dir: dir}}
	rootErr := d.mount(t, dir)
	if rootErr != nil {
		if err := d.mountApart(t, dir); err != nil {
			why := fmt.Sprintf("no file system can be mounted (%v), nor in a namespace of its own (%v): run this as root, in a container with CAP_SYS_ADMIN, or where users may have namespaces (sysctl user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0)", rootErr, err)
			if os.Getenv(mountEnv) == "1" {
				t.Fatal(why)
			}
			t.Logf("NOT SHOWN: no space left on device. The size of files is limited instead; %s", why)
		}
	}
	d.srv.start()
	t.Cleanup(d.srv.kill)
	return d
}

// mount mounts the file system, which is root's to do.
func (d *smallDisk) mount(t *testing.T, dir string) error {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, smallSize); err != nil {
		return err
	}
	d.mounted = true
	d.enlarge = func() error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, largeSize) }
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return nil
}

// mountApart has a process mount it that is root in a namespace of its own, and
// lives as long as the test. The server has its files there by way of /proc.
func (d *smallDisk) mountApart(t *testing.T, dir string) error {
	t.Helper()
	script := fmt.Sprintf(`mount -t tmpfs -o %s tmpfs "$1" && echo ok && read -r more && mount -o remount,%s "$1" && echo ok && read -r more`, smallSize, largeSize)
	holder := exec.Command("sh", "-c", script, "sh", dir)
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	var told strings.Builder
	holder.Stderr = &told
	in, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	end := func() {
		_ = in.Close()
		_ = holder.Wait()
	}
	says := bufio.NewReader(out)
	if line, err := says.ReadString('\n'); err != nil {
		end()
		return fmt.Errorf("%q: %s", line, strings.TrimSpace(told.String()))
	}
	t.Cleanup(end)
	d.mounted, d.srv.dir = true, fmt.Sprintf("/proc/%d/root%s", holder.Process.Pid, dir)
	d.enlarge = func() error {
		if _, err := fmt.Fprintln(in); err != nil {
			return err
		}
		_, err := says.ReadString('\n')
		return err
	}
	return nil
}

// small begins to be in want of room; a mounted disk is from the start.
func (d *smallDisk) small(t *testing.T) {
	t.Helper()
	if !d.mounted {
		limitFiles(t, d.srv.cmd.Process.Pid, 256<<10)
	}
}

// grow makes room. A limit goes with the process that has it.
func (d *smallDisk) grow(t *testing.T) {
	t.Helper()
	if !d.mounted {
		return
	}
	if err := d.enlarge(); err != nil {
		t.Fatalf("make room: %v", err)
	}
}

// askedBefore is how many runs the bridge is asked for before room runs out.
const askedBefore = 4

// turnsAsked is how many turns of a model REFOLD_FX has been asked for.
func turnsAsked(t *testing.T, js jetstream.JetStream) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), endWithin)
	defer cancel()
	stream, err := js.Stream(ctx, "REFOLD_FX")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("refold.fx.llm.>"))
	if err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects)
}

// fill asks for more runs than there is room for, all at once. It returns the
// sessions whose run was taken, and what one of the others was told: a server
// that cannot write does not answer all of them.
func fill(t *testing.T, js jetstream.JetStream, request []byte) (taken []string, refused string) {
	t.Helper()
	const runs = 2000
	var futures []jetstream.PubAckFuture
	for i := range runs {
		f, err := js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprintf("refold.in.f%d", i), Data: request})
		if err != nil {
			t.Fatal(err)
		}
		futures = append(futures, f)
	}
	for i, f := range futures {
		select {
		case <-f.Ok():
			taken = append(taken, fmt.Sprintf("f%d", i))
		case err := <-f.Err():
			if silent := errors.Is(err, jetstream.ErrAsyncPublishTimeout); refused == "" || !silent {
				refused = err.Error()
			}
		}
	}
	if refused == "" {
		t.Fatalf("%d events of %d bytes are taken, by a server with 6 MiB for all", runs, len(request))
	}
	return taken, refused
}

// TestDiskSpace: a server without space on its device refuses events with an
// error that tells what to do, and daemons log the same and stay up. After the
// device has grown and the server has started again, everything acknowledged is
// done.
func TestDiskSpace(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	srv := disk.srv
	record := object{"v": 1, "rules": 1, "tools": list{}, "config": scripted}
	actor := startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", jsonText(t, record)))
	bridge := startDaemon(t, "bridge", "--nats", srv.url, "--model", "scripted=scripted:echo")
	nc := connect(t, srv.url)
	view := func(sid string) (v session.View, ok bool) {
		answer, err := nc.Request("refold.view."+sid, nil, 500*time.Millisecond)
		return v, err == nil && json.Unmarshal(answer.Data, &v) == nil
	}
	request := envelope(t, session.TypeRunRequested, object{"input": object{"text": strings.Repeat("x", 40_000)}})
	publish(t, nc, "refold.in.s0", request)
	until(t, endWithin, "the first run", func() bool { v, ok := view("s0"); return ok && v.Last != nil })

	// The bridge stands still while room runs out: it then has what it was asked
	// before to settle, and is refused. All runs are asked for at once: that is
	// more than the session-actor gets done meanwhile, so it is refused, too.
	if err := bridge.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for i := range askedBefore {
		publish(t, nc, fmt.Sprintf("refold.in.s%d", 1+i), request)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	until(t, endWithin, "the bridge is asked for the turns of these runs", func() bool { return turnsAsked(t, js) == 1+askedBefore })
	disk.small(t)
	taken, refused := fill(t, js, request)
	if err := bridge.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs taken, then: %s", len(taken), refused)
	if disk.mounted {
		if !strings.Contains(refused, "err_code=10023") {
			t.Errorf("a publisher is told %s, want 10023", refused)
		}
		_, stderr, status := run(t, endWithin, nil, "refold", "run", "other", "--nats", srv.url, "hello")
		if status != 1 || !strings.Contains(stderr, "make room on its disk") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("a client: status %d, %q; want a line that says what to do", status, stderr)
		}
		for _, d := range []*daemon{actor, bridge} {
			until(t, endWithin, d.name+" says what to do", func() bool { return strings.Contains(d.out.String(), "make room on its disk") })
		}
	}

	// Somebody makes room. The server goes on refusing: what it could not write
	// stands until it reads its files again.
	disk.grow(t)
	if answer, err := nc.Request("refold.in.room", request, 5*time.Second); err == nil {
		t.Logf("with room, and the server not started again: %s", answer.Data)
	}
	srv.kill()
	srv.start()
	for i := range 1 + askedBefore {
		taken = append(taken, fmt.Sprintf("s%d", i))
	}
	for _, sid := range taken {
		var v session.View
		until(t, endWithin, "the run of "+sid, func() bool {
			var ok bool
			v, ok = view(sid)
			return ok && v.Last != nil
		})
		if v.Last.Lifecycle != session.Completed {
			t.Errorf("%s: the run ended %s %s", sid, v.Last.Lifecycle, v.Last.Code)
		}
	}
	publish(t, nc, "refold.in.after", request)
	until(t, endWithin, "a run that is asked for then", func() bool { v, ok := view("after"); return ok && v.Last != nil })
	verifyAll(t, srv.url)
}
