package bench

// What is stored of older sessions is what Refold would have stored, and a
// filler tells when it isn't.

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// The events of a session that is over fold without a rejection and leave
// nothing open. The effects of the recent sessions are all that the fold asks
// for, and its claims; those of the others are forgotten.
func TestGrowFolds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o := Options{Dir: t.TempDir()}
	base, err := calibrated(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	record, err := session.ParseInstall([]byte(install))
	if err != nil {
		t.Fatal(err)
	}
	const sessions, recent = 3, 1
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		g.stored = base.stored
		if err := g.grow(ctx, sessions, recent); err != nil {
			return err
		}
		for n := range sessions {
			state, asked := session.New(record, sessionID(n)), map[string]bool{}
			for e, err := range g.bus.ReadSession(ctx, sessionID(n), 1, 0, true) {
				if err != nil {
					return err
				}
				if _, err := state.Evolve(e); err != nil {
					t.Errorf("session %d, event %d: %v", n, state.Count, err)
				}
				for _, effect := range state.Open() {
					asked[effect.Name] = true
				}
			}
			if got, want := state.Count, uint64(eventsOfRun+1); got != want {
				t.Errorf("session %d has %d events, want %d", n, got, want)
			}
			if open := state.Open(); len(open) > 0 {
				t.Errorf("session %d waits for %d effects, want none", n, len(open))
			}
			if got, want := len(asked), 6; got != want {
				t.Errorf("session %d asked for %v, want %d effects", n, asked, want)
			}
		}
		for stream, want := range map[string]uint64{
			g.bus.Names().LogStream():     1 + sessions*(eventsOfRun+1), // and the install record
			g.bus.Names().EffectsStream(): recent * (5 + 2),             // and claims of two turns; the wake was a schedule
			g.bus.Names().NoticesStream(): sessions * 3,
		} {
			if got, err := g.lastSeq(ctx, stream); err != nil || got != want {
				t.Errorf("%s has %d messages, want %d (%v)", stream, got, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A message that the server refuses is an error, though few are answered.
func TestGrowRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := onStage(ctx, Options{Dir: t.TempDir()}, func(ctx context.Context, g *stage) error {
		_, err := g.store(ctx, g.bus.Names().EffectsStream(), fillAckEvery, func(int) []message {
			return []message{{subject: "refold.fx.claim.llm.scripted.s1.r1t1", fenced: true}}
		})
		return err
	})
	if want := "stored message 500 as 0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
