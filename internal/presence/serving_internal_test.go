package presence

// Heartbeats show which targets are served. That a target is not served follows only
// after GoneAfter with a connection.

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

func TestServingCountsRecentHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		since, connected := time.Now(), true
		m := &Members{now: time.Now, heard: make(map[string]Member), changed: make(chan struct{})}
		m.listening = func() (time.Time, bool) { return since, connected }
		say := func(instance, body string) { m.record(instance, []byte(body)) }
		look := func(what string, want Served, wantSure bool) {
			t.Helper()
			if got, sure := m.Serving(); !maps.Equal(got, want) || sure != wantSure {
				t.Errorf("%s: got %v, sure %v; want %v, %v", what, got, sure, want, wantSure)
			}
		}
		look("at the start", Served{}, false)
		say("a", `{"targets":["tool/host","llm/openai"],"rules":1}`)
		say("b", `{"targets":["tool/host"],"rules":1}`)
		say("x", `no JSON`)
		look("two bridges", Served{"tool/host": 2, "llm/openai": 1}, false)
		time.Sleep(GoneAfter) //nolint:forbidigo // virtual time
		say("b", `{"targets":["tool/host"],"rules":1}`)
		time.Sleep(time.Millisecond) //nolint:forbidigo // virtual time
		look("one is silent", Served{"tool/host": 1}, true)
		since = time.Now()
		look("connected again just now", Served{"tool/host": 1}, false)
		time.Sleep(GoneAfter + time.Millisecond) //nolint:forbidigo // virtual time
		look("all are silent", Served{}, true)
		connected = false
		look("not connected", Served{}, false)
	})
}
