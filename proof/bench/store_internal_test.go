package bench

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A message that the server refuses is an error.
func TestRefusedMessageFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := onStage(ctx, Options{Dir: t.TempDir()}, func(ctx context.Context, g *stage) error {
		return g.storeAll(ctx, func(put func(message) error) error {
			for range 2 {
				if err := put(message{subject: "refold.fx.claim.llm.scripted.s1.r1t1", fenced: true}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if want := "a publish was refused"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
