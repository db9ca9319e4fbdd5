package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// Groups on three servers, where conflicts have other codes, and a stream has no leader
// for a while.

func TestCommitInACluster(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	s := &storing{t: t, mode: natsio.DurabilityAlways, node: nodes[0]}
	s.b = connectAs(t, nodes[0].URL()+","+nodes[1].URL(), s.mode)
	ctx := testbus.Context(t)
	bustest.OK(t, s.b.Provision(ctx, testbus.Conf(t, ""), 3))
	nc, js := testbus.JS(t, nodes[1])
	s.js = js
	firstFences(t, testbus.Env{Ctx: ctx, B: s.b})

	// Some names are taken; the rest is one batch again.
	all := effects(40)
	bustest.OK(t, ask(ctx, s.b, "s1", all[:3]...))
	all[1].Payload = []byte("other")
	for i, err := range s.b.Store(ctx, asked("s1", all)) {
		var violation *journal.ViolationError
		if errors.As(err, &violation) != (i == 1) || i != 1 && err != nil {
			t.Errorf("effect %d: got %v, want a ViolationError for the second only", i, err)
		}
	}
	stored := s.all("REFOLD_FX")
	if got := batches(stored); len(stored) != 41 || len(got) != 1 {
		t.Errorf("got %d messages and the batches %v, want 41, 37 of them in one", len(stored), got)
	}

	// Many at once, and then each stream has another leader. It is quiet while
	// it changes: nats-server 2.15.2 makes maps then without a lock, which the
	// race detector sees (see firstFences).
	for round := range 2 {
		if round > 0 {
			for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT"} {
				answer, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
				if err != nil || strings.Contains(string(answer.Data), `"error"`) {
					t.Fatalf("step down of %s: %v %v", stream, answer, err)
				}
			}
			bustest.OK(t, errors.Join(ask(ctx, s.b, "s1", effect("r2t1c0", "alone")), s.b.Notify(ctx, "alone", 1, []byte("x"))))
		}
		done := make(chan error)
		const sessions, each = 6, 30
		for i := range sessions {
			go func() {
				sid := fmt.Sprint("round", round, "of", i)
				done <- errors.Join(s.b.Store(ctx, append(asked(sid, effects(each)), told(sid, 1, each)...))...)
			}()
		}
		for range sessions {
			if err := testbus.Within(t, done); err != nil {
				t.Error(err)
			}
		}
	}
	if got, want := len(s.once("REFOLD_FX")), 41+1+2*6*30; got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
	var notices []kept
	for _, k := range s.all("REFOLD_OUT") {
		if k.text != "x" {
			notices = append(notices, k)
		}
	}
	inTurn(t, notices, 2*6, 30)
}
