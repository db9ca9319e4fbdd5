package bench

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A message that the server refuses is an error, though few are answered.
func TestFillerReportsRefusedMessage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := onStage(ctx, Options{Dir: t.TempDir()}, func(ctx context.Context, g *stage) error {
		f, err := g.newFiller(ctx, g.bus.Names().EffectsStream())
		if err != nil {
			return err
		}
		defer f.close()
		for range fillAckEvery {
			if err := f.put(ctx, message{subject: "refold.fx.claim.llm.scripted.s1.r1t1", fenced: true}); err != nil {
				return err
			}
		}
		return f.end(ctx)
	})
	if want := "stored message 500 as 0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
