package bench

// The wait for runs, in virtual time.

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitGoesOnWhileRunsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		every time.Duration // a run ends; 0: none does
		ok    bool
	}{
		{"one in fifty seconds", 50 * time.Second, true},
		{"none", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &load{begun: map[string]time.Time{"a": {}, "b": {}, "c": {}, "d": {}}, next: 4, drained: make(chan struct{})}
				if c.every > 0 {
					go func() {
						for _, sid := range []string{"a", "b", "c", "d"} {
							<-time.After(c.every)
							l.mu.Lock()
							delete(l.begun, sid)
							l.ended++
							l.mu.Unlock()
						}
						l.finish()
					}()
				}
				err := l.wait(t.Context())
				if got := err == nil; got != c.ok {
					t.Errorf("waiting came to %v, want no error: %v", err, c.ok)
				}
			})
		})
	}
}
