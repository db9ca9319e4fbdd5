package e2e_test

// A failing model: when its turn is tried again.

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
)

// delta is what a model says while it says it.
type delta struct {
	Effect string `json:"effect"`
	Text   string `json:"text"`
}

// overhear collects the deltas of a session, by effect.
func overhear(t *testing.T, nc *nats.Conn, sid string) (said func() map[string]string) {
	t.Helper()
	var mu sync.Mutex
	texts := map[string]string{}
	_, err := nc.Subscribe("refold.live."+sid, func(m *nats.Msg) {
		var d delta
		if err := json.Unmarshal(m.Data, &d); err != nil {
			t.Errorf("delta %s: %v", m.Data, err)
		}
		mu.Lock()
		defer mu.Unlock()
		texts[d.Effect] += d.Text
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		copied := map[string]string{}
		for effect, text := range texts {
			copied[effect] = text
		}
		return copied
	}
}

// failing starts a bridge whose model fails.
func (s *system) failing(code string, retryable bool) *daemon {
	s.t.Helper()
	script := fmt.Sprintf("rules: [{fail: {code: %s, detail: so it is, retryable: %t}}]\n", code, retryable)
	return startDaemon(s.t, "bridge", "--nats", s.url, "--model", "scripted=scripted:"+writeFile(s.t, "failing.yaml", script))
}

// TestRetryWaitsForItsWake: a provider is overloaded for as long as its bridge
// may try; when the wake of the next attempt is due, one answers. The
// session-actor is killed meanwhile.
func TestRetryWaitsForItsWake(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	said := overhear(t, s.nc, "s1")
	first := s.failing("overloaded", true)
	s.idle(s.names.EffectsStream(), "llm-scripted") // it serves: its time to try begins with the run
	s.run(session.DoorCtl, "s1", "hello?", object{
		"provider": "scripted", "model": "m", "retry": object{"attempts": 2, "backoff_ms": 5000}, "deadlines_ms": object{"turn": 10_000},
	})
	v := s.view("s1", "a generation that failed", func(v session.View) bool { return v.WaitsFor == "retry" })
	if v.Run.RetryAt == 0 || v.Run.Attempt != 1 || v.Lifecycle != session.Running {
		t.Errorf("the run is %s, and waits for %d after attempt %d", v.Lifecycle, v.Run.RetryAt, v.Run.Attempt)
	}
	if got := s.attempts("s1"); got != "r1t1" {
		t.Errorf("asked: %s, before the second attempt is due", got)
	}
	if err := first.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.actor.kill()
	s.actor.start()
	s.models("rules: [{shown: {last: user}, say: 'Hello, hello.'}]\n", "scripted")
	s.wantEnd("s1", 1, session.Completed, "")
	if got := s.attempts("s1"); got != "r1t1 r1t1a2" {
		t.Errorf("asked: %s, want two attempts", got)
	}
	all := s.generations("s1")
	if len(all) == 2 && (all[1].At < v.Run.RetryAt || !slices.Equal(shownItems(t, all[0]), shownItems(t, all[1])) || all[0].Toolset != all[1].Toolset) {
		t.Errorf("attempt 2 is %+v, want attempt 1 again, at %d or later: %+v", all[1], v.Run.RetryAt, all[0])
	}
	if len(logOf(t, s.nc, session.DoorWake, "s1")) == 0 {
		t.Error("no wake was settled")
	}
	until(t, time.Minute, "the answer's deltas", func() bool { return said()["r1t1a2"] == "Hello, hello." })
	if got := said(); len(got) != 1 {
		t.Errorf("deltas: %q, want those of the second attempt alone", got)
	}
	verifyAll(t, s.url)
}
