package host

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// TestWhoWaitsSleeps: a session that waits a week for a person leaves memory
// although there is room; one whose call is open stays. The decision loads it.
func TestWhoWaitsSleeps(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		last := s.approval("s1")
		s.pass(sleepAfter - 2*time.Second)
		if !s.inMemory("s1") {
			t.Error("it left memory before it had waited long enough")
		}
		busy := s.run("s2")
		s.deliver(busy)
		s.pass(4 * time.Second)
		if s.inMemory("s1") {
			t.Error("the session that waits for a person is in memory")
		}
		s.pass(2 * sleepAfter)
		if !s.inMemory("s2") {
			t.Error("the session that waits for its model left memory")
		}
		decided := s.approve("s1", last.Seq)
		s.deliver(decided)
		s.wantAcked(decided)
		if got := s.mem.asked("s1"); !slices.Contains(got, "r1t1c0") {
			t.Errorf("approved: asked are %v, want the call", got)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestMaySleep: only who has nothing open but wakes, and a far one of them in
// the snapshot.
func TestMaySleep(t *testing.T) {
	t.Parallel()
	const now = 1_000_000
	far := session.OpenWake{At: now, Due: now + 2*longWaitMS, Number: 2}
	near := session.OpenWake{At: now, Due: now + 1000, Number: 1}
	for name, c := range map[string]struct {
		wakes []session.OpenWake
		kept  []uint32 // in the snapshot
		want  bool
	}{
		"no wake":                {nil, nil, false},
		"a near one":             {[]session.OpenWake{near}, []uint32{1}, false},
		"a far one":              {[]session.OpenWake{far}, []uint32{2}, true},
		"both":                   {[]session.OpenWake{near, far}, []uint32{1, 2}, true},
		"not in the snapshot":    {[]session.OpenWake{far}, nil, false},
		"near, and none is kept": {[]session.OpenWake{near, far}, []uint32{2}, true},
	} {
		a := &actor{state: &session.State{Record: session.Record{Session: "s1", Wakes: c.wakes}}, wakes: c.kept}
		if got := a.maySleep(now); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
