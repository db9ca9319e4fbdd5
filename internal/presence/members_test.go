package presence

import (
	"testing"
	"time"
)

// Gone decides whether an unsafe tool is settled as unknown. Too early would be wrong,
// so silence counts only while this process is connected.
func TestOnlySilenceWhileConnectedCountsAsGone(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	now, since, connected := start, start, true
	m := &Members{
		now:       func() time.Time { return now },
		listening: func() (time.Time, bool) { return since, connected },
		heard:     make(map[string]Member), changed: make(chan struct{}),
	}
	expect := func(what, instance string, want bool) {
		t.Helper()
		if got := m.Gone(instance); got != want {
			t.Errorf("%s: Gone(%s): got %v, want %v", what, instance, got, want)
		}
	}
	expect("at the start", "a", false)
	now = start.Add(GoneAfter - 1)
	expect("just before", "a", false)
	now = start.Add(GoneAfter)
	expect("never heard", "a", true)
	m.record("a", []byte("1"))
	expect("just heard", "a", false)
	expect("another one", "b", true)
	now = now.Add(GoneAfter)
	expect("silent", "a", true)
	connected = false
	expect("without a connection", "a", false)
	connected, since = true, now
	expect("connected again", "a", false)
	now = now.Add(GoneAfter)
	expect("silent since", "a", true)

	m.record("b", nil)
	now = now.Add(time.Second)
	m.record("a", []byte("2"))
	if got := m.Live(time.Second); len(got) != 2 || got[0].Instance != "a" || string(got[0].Body) != "2" {
		t.Errorf("live: got %+v, want a and b", got)
	}
	now = now.Add(time.Second / 2)
	if got := m.Live(time.Second); len(got) != 1 || got[0].Instance != "a" {
		t.Errorf("live: got %+v, want a", got)
	}
	now = now.Add(2 * heartbeatsKept)
	m.record("c", nil)
	if got := len(m.heard); got != 1 {
		t.Errorf("remembered: got %d, want 1", got)
	}
}
