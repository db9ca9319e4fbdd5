package bridge

// Bridges whose consumer is reset, or deleted and created again: the server then
// delivers everything again, to any bridge that pulls.

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// A call that may not run twice and a model's turn are in progress on one bridge,
// and a second bridge runs, when both consumers are reset, and then deleted. Each
// effect starts once and is settled once.
func TestConsumerIsLostInTheMiddle(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	bridges, starts, release := holdingBridges(t, a)
	nc, js := testbus.JS(t, a.server)
	fx := a.Names().EffectsStream()
	a.ask(t, session.ClassTool, "host", "r1t1c0", callAsked("r1t1c0", false))
	seq, err := a.Publish(t.Context(), session.DoorIn, "s1", eventOf(t, session.TypeRunRequested, session.RunRequested{Input: *contentOf("hi")}), "")
	if err != nil {
		t.Fatal(err)
	}
	a.ask(t, session.ClassLLM, "p", "r2t1", turnAsked("r2t1", session.Item{Role: session.RoleUser, Seq: seq}))
	bustest.Until(t, "both are in progress", func() bool { return len(starts.all()) == 2 })
	consumers := []string{"tool-host", "llm-p"}
	resetUntilOffered(t, nc, fx, consumers, bridges)
	deleteUntilOffered(t, js, fx, consumers)
	close(release)
	a.settled(t, 2)
	for _, name := range consumers {
		a.allAcked(t, name)
	}
	if got := starts.all(); len(got) != 2 {
		t.Errorf("started %q, want each once", got)
	}
	settled := a.settled(t, 2)
	slices.Sort(settled)
	if len(settled) != 2 || !strings.HasPrefix(settled[0], "r1t1c0 succeeded") || !strings.HasPrefix(settled[1], "r2t1") {
		t.Errorf("settled %q, want each once", settled)
	}
}

// holdingBridges are two that serve the tool host and the model p, and that keep
// what they start until release is closed.
func holdingBridges(t *testing.T, a *actor) (bridges []*Bridge, starts *startLog, release chan struct{}) {
	t.Helper()
	starts, release = &startLog{}, make(chan struct{})
	wait := func(ctx context.Context, effect string) {
		starts.add(effect)
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	for _, name := range []string{"one", "two"} {
		b := a.bridge(t, name)
		bridges = append(bridges, b)
		if err := b.Tool("host", toolFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			wait(ctx, c.Effect)
			return executor.Result{}, nil
		})); err != nil {
			t.Fatal(err)
		}
		if err := b.Model("p", answerFunc(func(ctx context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
			wait(ctx, r.Effect)
			return executor.Answer{Text: "said"}, nil
		})); err != nil {
			t.Fatal(err)
		}
		run(t, b)
	}
	return bridges, starts, release
}

// resetUntilOffered resets consumers until a bridge was offered, of each, what
// another has begun.
func resetUntilOffered(t *testing.T, nc *nats.Conn, fx string, consumers []string, bridges []*Bridge) {
	t.Helper()
	bustest.Until(t, "after resets, the other bridge was offered both", func() bool {
		for _, name := range consumers {
			answer, err := nc.Request("$JS.API.CONSUMER.RESET."+fx+"."+name, nil, testPatience)
			if err != nil || strings.Contains(string(answer.Data), `"error"`) {
				t.Fatalf("reset %s: %v %s", name, err, answer.Data)
			}
		}
		conflicts := uint64(0)
		for _, b := range bridges {
			conflicts += b.Stats().Conflicts
		}
		return conflicts >= 2
	})
}

// deleteUntilOffered deletes consumers, and waits for the bridges to have made
// them again and taken all that they offer.
func deleteUntilOffered(t *testing.T, js jetstream.JetStream, fx string, consumers []string) {
	t.Helper()
	made := map[string]string{}
	for _, name := range consumers {
		c, err := js.Consumer(t.Context(), fx, name)
		if err != nil {
			t.Fatal(err)
		}
		made[name] = c.CachedInfo().Created.String()
		if err := js.DeleteConsumer(t.Context(), fx, name); err != nil {
			t.Fatal(err)
		}
	}
	bustest.Until(t, "made again, they have offered all", func() bool {
		for _, name := range consumers {
			c, err := js.Consumer(t.Context(), fx, name)
			if err != nil || c.CachedInfo().Created.String() == made[name] || c.CachedInfo().NumPending > 0 {
				return false
			}
		}
		return true
	})
}
