package sim

// Streams that are deleted while processes work, and made again: those whose content
// can be derived from the log.

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/proof/jetmodel"
)

// derivedLost deletes the stream of notices, that of timers, or the bucket of
// snapshots. The owner of lane 0 makes it again some seconds later, empty. Before it
// asks the open wakes again, all go on for a while.
func (s *sim) derivedLost() {
	switch s.draw(3) {
	case 0:
		s.did("notices lost")
		s.say("the stream of notices is deleted")
		s.goneNotices = append(s.goneNotices, s.out.All(">", 1, 0)...)
		s.out = s.stream(jetmodel.Config{Window: 2 * time.Minute})
	case 1:
		if len(s.stops) > 0 {
			return // whoever deletes quarantines loses what they keep back
		}
		s.did("snapshots lost")
		s.say("the bucket of snapshots is deleted")
		s.former, s.notes = map[string][][]byte{}, map[string]laneNote{}
	default:
		s.did("timers lost")
		s.say("the stream of timers is deleted")
		s.timers = map[string]schedule{}
		s.newDue()
		s.goesOn(s.draw(3))
		s.restoreWakes()
	}
}

// stream makes a stream.
func (j *jetServer) stream(cfg jetmodel.Config) *jetmodel.Stream {
	cfg.Wall = j.now
	return jetmodel.NewStream(cfg, time.Now)
}

// newDue makes the stream of due wakes and its consumer. Deliveries of an earlier one
// are settled by their processes, and acknowledged to nobody.
func (j *jetServer) newDue() {
	delete(j.saved, j.dues)
	j.due = j.stream(jetmodel.Config{})
	j.dues = j.due.Consumer(jetmodel.ConsumerConfig{AckWait: 5 * time.Second})
}

// restoreWakes asks all open wakes of the log again, as session-actors do.
func (s *sim) restoreWakes() {
	s.say("all open wakes are asked again")
	pinned := func(context.Context, uint64) (*session.Install, error) { return s.judge.install, nil }
	if _, _, err := audit.RestoreWakes(context.Background(), archive{s}, pinned); err != nil {
		s.breaks("the open wakes can't be asked again: %v", err)
	}
}

// archive is the log for a pass over all of it.
type archive struct{ sim *sim }

func (a archive) ReadAll(_ context.Context, from uint64, fn func(session.Event) error) (scanned journal.Scanned, err error) {
	for _, m := range a.sim.log.All(">", from, 0) {
		if err := fn(a.sim.event(m)); err != nil {
			return scanned, err
		}
	}
	return scanned, nil
}

// ScanEffects, ScanSnapshots and GetSnapshot have nothing to compare with.
func (archive) ScanEffects(context.Context, func(journal.StoredEffect) error) error { return nil }
func (archive) ScanSnapshots(context.Context, func(journal.Kept) error) error       { return nil }
func (archive) GetSnapshot(context.Context, string) ([]byte, bool, error)           { return nil, false, nil }

func (a archive) Store(_ context.Context, outputs []journal.Output) []error {
	for i := range outputs {
		a.sim.schedule(&outputs[i])
	}
	return make([]error, len(outputs))
}
