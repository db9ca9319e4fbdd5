package engine_test

// Hosts that share the lanes of one server: who joins, who leaves, and one that
// takes its share and does nothing.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// sharing is a host, and its heart to look into.
type sharing struct {
	*running
	host *engine.Host
}

func (w *world) sharing() *sharing {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	r := &running{bus: w.connect(), cancel: cancel, done: make(chan error, 1)}
	s := &sharing{running: r, host: engine.New(r.bus, slog.New(slog.DiscardHandler), engine.Options{})}
	s.host.OrphanedEvery(20 * time.Millisecond)
	go func() { r.done <- s.host.Run(ctx) }()
	w.t.Cleanup(func() { r.stop(w) })
	return s
}

// shared waits until hosts run all lanes, each once and each host as many as
// any other, give or take one.
func (w *world) shared(hosts ...*sharing) {
	w.t.Helper()
	bustest.Until(w.t, fmt.Sprintf("%d hosts share the lanes", len(hosts)), func() bool {
		var all []int
		for _, h := range hosts {
			lanes := h.host.Runs()
			if n := len(lanes); n < 8/len(hosts) || n > (8+len(hosts)-1)/len(hosts) {
				return false
			}
			all = append(all, lanes...)
		}
		slices.Sort(all)
		return slices.Equal(all, []int{0, 1, 2, 3, 4, 5, 6, 7})
	})
}

func TestHostsShareTheLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asks := func(round int) {
		t.Helper()
		for i := range 16 {
			w.run(fmt.Sprintf("s%d-%d", round, i), "hi")
		}
		for i := range 16 {
			w.asked(session.ClassLLM, "openai", fmt.Sprintf("s%d-%d", round, i), "r1t1")
		}
	}
	a := w.sharing()
	w.shared(a)
	asks(1)
	b := w.sharing()
	w.shared(a, b)
	asks(2)
	c := w.sharing()
	w.shared(a, b, c)
	asks(3)
	a.stop(w)
	w.shared(b, c)
	asks(4)
	c.bus.Close() // without a word
	w.shared(b)
	asks(5)
}

// A leaving host announces that while it still has its lanes, so that others stand
// by when it gives them up.
func TestHeartbeatSaysThatTheHostLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	members, err := w.bus.TrackMembers(w.ctx, subjects.KindSessionActor)
	if err != nil {
		t.Fatal(err)
	}
	says := func(instance string) (beat struct {
		Lanes   []int `json:"lanes"`
		Leaving bool  `json:"leaving"`
	}) {
		for _, m := range members.Known() {
			if m.Instance == instance && json.Unmarshal(m.Body, &beat) != nil {
				t.Errorf("heartbeat %s", m.Body)
			}
		}
		return beat
	}
	a := w.sharing()
	bustest.Until(t, "it says that it runs all lanes", func() bool { return len(says(a.host.Instance()).Lanes) == 8 })
	a.stop(w)
	bustest.Until(t, "it has said that it leaves", func() bool { return says(a.host.Instance()).Leaving })
}

// A live member pulls none of its lanes, perhaps because it may not. Any host that
// sees waiting events without an owner takes the lane.
func TestLaneOfAnIdleHostIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := []byte(`{"lanes":[0],"lane_count":8,"rules":1}`)
	idle := w.connect()
	go func() {
		_ = idle.Heartbeat(w.ctx, subjects.KindSessionActor, strings.Repeat("Z", 26), func() []byte { return body })
	}()
	members, err := w.bus.TrackMembers(w.ctx, subjects.KindSessionActor)
	if err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "the idle host is heard", func() bool { return len(members.Live(presence.GoneAfter)) == 1 })
	a := w.sharing()
	// What it runs may be more by the time that anybody looks: the install record
	// waits in the idle one's lanes.
	bustest.Until(t, "half is the other's share", func() bool { return len(a.host.Wanted()) == 4 })
	for i := range 32 {
		w.run(fmt.Sprintf("s%d", i), "hi")
	}
	for i := range 32 {
		w.asked(session.ClassLLM, "openai", fmt.Sprintf("s%d", i), "r1t1")
	}
}
