package session_test

// What idle sessions weigh: a host keeps as many in memory as it has room for.

import (
	"runtime"
	"testing"

	"github.com/refold/refold/actors/session"
)

const (
	idleSessions = 10_000
	idleBytesMax = 20_100_000 // of heap, for all of them
)

// idle returns n sessions that each ran the demo's run, and the heap that they
// hold together.
func idle(tb testing.TB, n int) (sessions []*session.State, heap int64) {
	tb.Helper()
	install, history := builtin(tb), demoHistory(tb)
	checkDemo(tb, install, history)
	heapNow := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what the first one freed is swept
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	sessions = make([]*session.State, n)
	before := heapNow()
	for i := range sessions {
		sessions[i] = session.New(install, "demo")
		for _, e := range history {
			_, _ = sessions[i].Evolve(e)
		}
		_ = sessions[i].Progress() // as a session-actor takes it
	}
	return sessions, heapNow() - before
}

// Ten thousand idle sessions fit 20.1 megabytes.
func TestIdleSessions(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	sessions, heap := idle(t, idleSessions)
	if heap > idleBytesMax {
		t.Errorf("%d idle sessions hold %d bytes, %d each; want at most %d: a larger State takes 64 bytes more of each, so put a field into a value that most sessions lack", len(sessions), heap, heap/idleSessions, idleBytesMax)
	}
	if heap < idleSessions*100 {
		t.Errorf("%d idle sessions hold %d bytes: this measures something else", len(sessions), heap)
	}
	runtime.KeepAlive(sessions)
}

// BenchmarkIdleSessions reports how much memory one idle session takes.
func BenchmarkIdleSessions(b *testing.B) {
	for b.Loop() {
		sessions, heap := idle(b, idleSessions)
		b.ReportMetric(float64(heap)/float64(len(sessions)), "bytes/session")
		runtime.KeepAlive(sessions)
	}
}
