package retain_test

// What retention takes over many sessions, and what it leaves to runs beside it.
//
// How: closed sessions of two events are made on a server in this process. refold retain runs as
// a process of its own, so that its memory is its own.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

const (
	benchSessions = 100_000
	benchDeleted  = 10_000 // of them, with nothing beside
	benchBeside   = 100    // of them, beside runs
	text          = "hello, what is in your working directory?"
	benchLoad     = 8 // sessions at once that get runs
)

// BenchmarkRetain (LL-10) looks at 10⁵ sessions, and then deletes some of them: 10⁴ with
// nothing beside, and others beside runs, without and with archives.
func BenchmarkRetain(b *testing.B) {
	w := newWorld(b, context.Background(), 256)
	program := filepath.Join(b.TempDir(), "refold")
	if out, err := exec.CommandContext(w.ctx, "go", "build", "-o", program, "../../cmd/refold").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	w.fill("s", benchSessions-benchDeleted-2*benchBeside)
	w.fill("alone-", benchDeleted)
	w.fill("deleted-", benchBeside)
	w.fill("archived-", benchBeside)
	alone := w.load(benchLoad, func() { <-time.After(10 * time.Second) })
	b.Logf("runs beside nothing: %.0f a second", alone)
	for _, c := range []struct {
		name, rule string
		args       []string
		sessions   int
		load       int // sessions at once that get runs beside it
	}{
		{"a pass over all, of which none is due", "{idle_after: 90d, delete_after: 0s}", nil, benchSessions, 0},
		{"the same beside runs", "{idle_after: 90d, delete_after: 0s}", nil, benchSessions, benchLoad},
		{"dry run over some that are due", "{prefix: alone-, closed_after: 0s, delete_after: 0s}", []string{"--dry-run"}, benchDeleted, 0},
		{"delete them", "{prefix: alone-, closed_after: 0s, delete_after: 0s}", nil, benchDeleted, 0},
		{"delete others beside runs", "{prefix: deleted-, closed_after: 0s, delete_after: 0s}", nil, benchBeside, benchLoad},
		{"archive and delete others beside runs", "{prefix: archived-, closed_after: 0s, delete_after: 0s, archive_to: " + w.dir + "}", nil, benchBeside, benchLoad},
	} {
		policy := filepath.Join(w.dir, "policy.yaml")
		bustest.OK(b, os.WriteFile(policy, []byte("rules: ["+c.rule+"]"), 0o600))
		cmd := exec.CommandContext(w.ctx, program, append([]string{"retain", "--nats", w.url, "--policy", policy, "--json"}, c.args...)...)
		var took time.Duration
		var most int
		rate := w.load(c.load, func() {
			var out bytes.Buffer
			cmd.Stdout = &out
			begun := time.Now()
			bustest.OK(b, cmd.Start())
			most = resident(cmd)
			bustest.OK(b, cmd.Wait())
			took = time.Since(begun)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			b.Logf("%s: %s", c.name, lines[len(lines)-1])
		})
		b.Logf("%s: %v, %.2f ms a session, %d MiB; runs beside it: %.0f a second, %.2f of those beside nothing",
			c.name, took.Round(time.Millisecond), took.Seconds()*1000/float64(c.sessions), most>>10, rate, rate/alone)
	}
}

// resident returns the most memory that a process had, in KiB, shortly before it ends.
// Rusage would count that of this process, from which it was forked.
func resident(cmd *exec.Cmd) (most int) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		_, after, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found {
			return most
		}
		_, _ = fmt.Sscan(after, &most)
		<-time.After(50 * time.Millisecond)
	}
}

// fill makes closed sessions.
func (w *world) fill(prefix string, n int) {
	w.t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				sid := fmt.Sprint(prefix, i)
				if _, err := w.Run(w.ctx, sid, text, client.RunOptions{}); err != nil {
					w.t.Error(err)
				}
				if _, err := w.CloseSession(w.ctx, sid, ""); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.settled(fmt.Sprint(prefix, n))
}

// once gives a session a run and ends it.
func (w *world) once(sid string) {
	_, err := w.Run(w.ctx, sid, text, client.RunOptions{})
	if err == nil {
		_, err = w.Cancel(w.ctx, sid, client.ControlOptions{})
	}
	if err != nil {
		w.t.Error(err)
	}
}

// load gives that many sessions at once runs while f runs, and returns how many runs a second were folded.
func (w *world) load(sessions int, f func()) float64 {
	ctx, end := context.WithCancel(w.ctx)
	defer end()
	var runs atomic.Int64
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				sid := fmt.Sprintf("keep-%d-%d-%d", time.Now().UnixNano(), i, n)
				w.once(sid)
				if _, err := w.View(w.ctx, sid); err != nil {
					w.t.Error(err)
				}
				runs.Add(1)
			}
		})
	}
	begun := time.Now()
	f()
	took := time.Since(begun)
	done := runs.Load()
	end()
	all.Wait()
	return float64(done) / took.Seconds()
}
