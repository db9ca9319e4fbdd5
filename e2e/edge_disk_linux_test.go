package e2e_test

// The disk of a NATS server is full. A limit on the size of its files simulates
// that, since it needs no rights: writes fail in the server's process. A full
// file system makes the server turn JetStream off, which is the same for
// publishers.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/refold/refold/actors/session"
)

// A write past the limit of a file's size is an error for the server's process,
// and not its end.
func init() {
	if os.Getenv(serverEnv) != "" {
		signal.Ignore(syscall.SIGXFSZ)
	}
}

// limitFiles makes every write of a process fail that would let a file grow
// beyond this.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: bytes, Max: 1<<64 - 1}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatalf("limit the files of process %d: %v", pid, errno)
	}
}

// TestEdgeDiskFull: a server with a full disk refuses events, and the daemons
// stay up and lose nothing. With room, and the server started again, everything
// acknowledged is done.
func TestEdgeDiskFull(t *testing.T) {
	t.Parallel()
	srv := startNATSProcess(t)
	record := object{"v": 1, "rules": 1, "tools": list{}, "config": scripted}
	startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", jsonText(t, record)))
	startDaemon(t, "bridge", "--nats", srv.url, "--model", "scripted=scripted:echo")
	nc := connect(t, srv.url)
	view := func(sid string) (v session.View, ok bool) {
		answer, err := nc.Request("refold.view."+sid, nil, 500*time.Millisecond)
		return v, err == nil && json.Unmarshal(answer.Data, &v) == nil
	}
	request := envelope(t, session.TypeRunRequested, object{"input": object{"text": strings.Repeat("x", 10_000)}})
	publish(t, nc, "refold.in.s0", request)
	until(t, endWithin, "the first run", func() bool { v, ok := view("s0"); return ok && v.Last != nil })

	// From here on no file of the server's may grow beyond this.
	limitFiles(t, srv.cmd.Process.Pid, 256<<10)
	taken, refused := 1, ""
	for ; refused == ""; taken++ {
		if taken == 1000 {
			t.Fatalf("%d events of %d bytes are taken, by a server whose files end at 256 KiB", taken, len(request))
		}
		answer, err := nc.Request(fmt.Sprintf("refold.in.s%d", taken), request, 5*time.Second)
		if err != nil {
			refused = err.Error()
		} else if strings.Contains(string(answer.Data), `"error"`) {
			refused = string(answer.Data)
		}
	}
	taken-- // the last one was not
	t.Logf("%d events taken, then: %s", taken, refused)
	if err := nc.FlushTimeout(endWithin); err != nil {
		t.Errorf("the server does not even answer: %v", err)
	}

	// Somebody makes room, and starts the server again, which goes by what it has
	// on disk. Nobody starts a daemon again: that all runs end says that they live.
	srv.kill()
	srv.start()
	for i := range taken {
		sid := fmt.Sprintf("s%d", i)
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
	verifyAll(t, srv.url)
}
