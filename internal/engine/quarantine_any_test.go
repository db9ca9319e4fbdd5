package engine

// What a quarantine holds can be anything: a panic may say megabytes, and somebody
// may put the key by hand. It stops its session all the same, and nobody else.

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

func TestAPanicThatSaysMuchStopsOneSession(t *testing.T) {
	t.Parallel()
	onStage(t, Options{}, func(t *testing.T, s *stage) {
		s.host.evolve = func(state *session.State, e session.Event) ([]session.Notice, error) {
			if e.Session == "s1" {
				panic("poison " + strings.Repeat("ä", 1<<20))
			}
			return state.Evolve(e)
		}
		var log bytes.Buffer
		s.actor.log = slog.New(slog.NewTextHandler(&log, nil))
		s.begin()
		poison, other := s.run("s1"), s.run("s2")
		s.deliver(poison, other)
		s.pass(time.Minute)
		s.wantAcked(poison, other)
		s.wantStored(other)
		stop := s.stopOf("s1")
		if stop == nil || stop.Seq != poison.Seq || !strings.Contains(stop.Reason, "poison") || !strings.Contains(stop.Reason, "bytes in all") || len(stop.Reason) > 8<<10 {
			t.Errorf("quarantine: got %.100v, want one from %d on that has the beginning of what was said", stop, poison.Seq)
		}
		if got := log.String(); !strings.Contains(got, "fold panicked") || !strings.Contains(got, "quarantine_any_test.go") || len(got) > 64<<10 {
			t.Errorf("the log has %d bytes: %.2000s; want where it panicked", len(got), got)
		}
	})
}

func TestAQuarantinePutByHandStopsOneSession(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"text": "stopped by hand, ask Kim", "nothing": "", "a number": "7", "another object": `{"seq":"all"}`} {
		onStageOf(t, name, Options{}, func(t *testing.T, s *stage) {
			s.mem.stops["s1"] = []byte(body)
			s.begin()
			stopped, other := s.run("s1"), s.run("s2")
			s.deliver(stopped, other)
			s.pass(time.Minute)
			s.wantAcked(stopped, other)
			s.wantStored(other)
			if asked := s.mem.asked("s1"); len(asked) != 0 {
				t.Errorf("the stopped session asks for %v", asked)
			}
			s.wantView("s1", strconv.Quote(body))
			s.mem.release("s1")
			s.pass(2 * recheckEvery)
			if asked := s.mem.asked("s1"); len(asked) == 0 {
				t.Error("the released session asks for nothing")
			}
		})
	}
}
