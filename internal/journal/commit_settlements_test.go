package journal_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// Settlements of bridges are stored in groups too: one group fills while the former is
// synced.
func TestSettlementsAreStoredTogether(t *testing.T) {
	t.Parallel()
	s := newStoring(t, bustest.Server(t), natsio.DurabilityAlways)
	const settled = 400
	var publishing sync.WaitGroup
	for n := range settled {
		publishing.Go(func() {
			sid := fmt.Sprint("s", n)
			if _, err := s.b.Publish(testbus.Context(t), session.DoorTool, sid, []byte(`{"type":"ToolCallSettled"}`), sid+".r1t1c0"); err != nil {
				t.Error(err)
			}
		})
	}
	publishing.Wait()
	stored, together := s.all("REFOLD_LOG"), 0
	for _, n := range batches(stored) {
		together += n
	}
	if len(stored) != settled || together < settled/2 {
		t.Errorf("of %d settlements %d are stored, and %d of these in groups; want all, and most in groups", settled, len(stored), together)
	}
}
