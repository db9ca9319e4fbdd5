package e2e_test

// A server that syncs at intervals loses power, once and twice in a row:
// everything since its last sync is gone, and sequences and names are used
// again, while a session-actor and bridges continue their work.

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestPowerLossWithCallsInProgress: calls that are not retry-safe run when the
// server loses them, with their runs. Other sessions get their sequences, and
// some publish under the same names. Every run that the server knows ends,
// every call runs once, nothing is left unacknowledged, and the lost runs
// publish nothing.
func TestPowerLossWithCallsInProgress(t *testing.T) {
	t.Parallel()
	for losses := 1; losses <= 2; losses++ {
		t.Run(fmt.Sprint(losses), func(t *testing.T) {
			t.Parallel()
			url, restart := serveInterval(t)
			s := startSystemOn(t, url, []string{"--nats", url}, object{
				"v": 1, "rules": 1, "tools": list{tool("write", object{"retry_safe": false, "parallel_safe": false})},
			})
			s.models("rules:\n  - shown: {last: user}\n    calls: [{tool: write, arguments: {}}]\n  - say: done\n", "scripted")
			hold := make(chan struct{})
			l := &lab{hold: map[string]chan struct{}{"write": hold}}
			s.tools(l)
			s.idle(s.names.EffectsStream(), "llm-scripted", "tool-lab")
			until(t, time.Minute, "the install record is stored", func() bool {
				stream, err := s.js.Stream(t.Context(), s.names.LogStream())
				if err == nil {
					_, err = stream.GetLastMsgForSubject(t.Context(), s.names.Install())
				}
				return err == nil
			})
			synced := t.TempDir()
			restart(func(dir string) { copyDir(t, dir, synced) })
			running := func(n int) {
				t.Helper()
				until(t, time.Minute, fmt.Sprint(n, " calls are in progress"), func() bool { return len(l.did()) == n })
			}
			const each = 4
			for i := range each {
				s.publishes(fmt.Sprint("lost", i))
			}
			running(each)
			for range losses {
				restart(func(dir string) { copyDir(t, synced, dir) })
			}
			// Half of them are asked for again, in another order and behind others.
			sids := []string{"new0", "lost3", "new1", "lost2", "new2", "new3"}
			for _, sid := range sids {
				s.publishes(sid)
			}
			running(each + len(sids)) // what replaces a lost call stops it
			close(hold)
			for _, sid := range sids {
				s.wantEnd(sid, 1, session.Completed, "")
			}
			for _, sid := range []string{"lost0", "lost1"} {
				if n := len(logOf(t, s.nc, session.DoorTool, sid)); n > 1 {
					t.Errorf("%s, which is lost, is settled %d times", sid, n)
				}
			}
			calls := map[string]int{}
			for _, c := range l.did() {
				calls[c.Session]++
			}
			for _, sid := range sids {
				want := 1
				if slices.Contains([]string{"lost2", "lost3"}, sid) {
					want = 2 // the lost one, and its own
				}
				if calls[sid] != want {
					t.Errorf("%s ran %d calls, want %d", sid, calls[sid], want)
				}
				if n := len(logOf(t, s.nc, session.DoorTool, sid)); n != 1 {
					t.Errorf("the call of %s is settled %d times", sid, n)
				}
			}
			s.folded()
			s.idle(s.names.EffectsStream(), "llm-scripted", "tool-lab")
			verifyAll(t, s.url)
		})
	}
}

// serveInterval starts a server that syncs now and then. restart stops it for
// what is done to its files, and starts it again.
func serveInterval(t *testing.T) (url string, restart func(stopped func(dir string))) {
	t.Helper()
	options := natsOptions(t.TempDir(), freePorts(t, 1)[0])
	options.SyncAlways, options.SyncInterval = false, time.Minute
	srv := serve(t, options.Clone(), nil)
	return srv.ClientURL(), func(stopped func(dir string)) {
		t.Helper()
		srv.Shutdown()
		srv.WaitForShutdown()
		stopped(options.StoreDir)
		srv = serve(t, options.Clone(), nil)
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	err := os.RemoveAll(to)
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// publishes asks for a run on a server that may just have started.
func (s *system) publishes(sid string) {
	s.t.Helper()
	payload := envelope(s.t, session.TypeRunRequested, object{"input": object{"text": "write"}, "config": scripted})
	until(s.t, time.Minute, "a run of "+sid+" is asked for", func() bool {
		_, err := s.js.Publish(s.t.Context(), "refold.in."+sid, payload)
		return err == nil
	})
}
