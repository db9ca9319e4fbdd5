package engine

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/meter"
)

// Events that name no session are all counted, and logged once a minute.
func TestSkippedEventsAreCounted(t *testing.T) {
	t.Parallel()
	registry := meter.New()
	onStage(t, Options{Meters: Register(registry, 0)}, func(t *testing.T, s *stage) {
		var log bytes.Buffer
		s.host.log = slog.New(slog.NewTextHandler(&log, nil))
		s.begin()
		for seq := range uint64(100) {
			s.actor.Skipped(seq+1, "refold.3.in.b!d")
		}
		s.pass(time.Minute)
		s.actor.Skipped(101, "refold.3.in.b!d")
		want := []string{`seq=1 subject=refold.3.in.b!d events=1`, `seq=101 subject=refold.3.in.b!d events=100`}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(want) || !strings.Contains(lines[0], want[0]) || !strings.Contains(lines[1], want[1]) {
			t.Errorf("log: got %q, want %q", lines, want)
		}
		if got := counted(registry, "refold.events.skipped")["refold.events.skipped{}"]; got != 101 {
			t.Errorf("counted: got %d, want 101", got)
		}
	})
}

// Messages of other systems are counted where the connection ignores them.
func TestForeignMessagesAreCounted(t *testing.T) {
	t.Parallel()
	registry := meter.New()
	heard := func() (heartbeats, others uint64) { return 3, 4 }
	Register(registry, 0).foreign.Store(&heard)
	got := counted(registry, "refold.log.foreign")
	want := census{"refold.log.foreign{heartbeat}": 3, "refold.log.foreign{other}": 4}
	if !maps.Equal(got, want) {
		t.Errorf("counted: got %v, want %v", got, want)
	}
}
