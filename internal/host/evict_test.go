package host

import (
	"fmt"
	"testing"
)

// TestMemoryIsKeptWithinItsBytes: as many sessions stay as there is room for, by
// what they take; those that were used last; and what is said of it is right.
func TestMemoryIsKeptWithinItsBytes(t *testing.T) {
	t.Parallel()
	const room = 200 << 10
	onStage(t, Options{Memory: room}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		most := 0
		for n := range 200 {
			sid := fmt.Sprintf("s%d", n)
			s.deliver(s.run(sid), s.answer(sid, "r1t1", "a"), s.run("often"), s.answer("often", fmt.Sprintf("r%dt1", n+1), "a"))
			most = max(most, len(s.actor.sessions))
			if sum := s.weight(); sum > room {
				t.Fatalf("after %d sessions those in memory take %d bytes, want at most %d", n+1, sum, room)
			}
		}
		if most < 20 || !s.inMemory("often") || !s.inMemory("s199") || s.inMemory("s0") {
			t.Errorf("at most %d sessions were in memory; often: %v, the last: %v, the first: %v",
				most, s.inMemory("often"), s.inMemory("s199"), s.inMemory("s0"))
		}
		again := s.run("s0")
		s.deliver(again)
		s.wantStored(again)
	})
}

// TestALongSessionIsSnapshottedWhenItSleeps: one with many events since its last
// snapshot leaves one behind, however few are due for one.
func TestALongSessionIsSnapshottedWhenItSleeps(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 2}, func(t *testing.T, s *stage) {
		s.era()
		s.start()
		for n := 1; n <= lastSnapshotEvents/2; n++ {
			s.deliver(s.run("long"), s.answer("long", fmt.Sprintf("r%dt1", n), "a"))
		}
		for n := range 4 {
			s.deliver(s.run(fmt.Sprintf("s%d", n)))
		}
		if s.inMemory("long") || !s.mem.snapshotted("long") {
			t.Errorf("in memory: %v, snapshotted: %v", s.inMemory("long"), s.mem.snapshotted("long"))
		}
	})
}

// TestALaneGivesWay: what a lane may keep is less when its host runs more lanes,
// also if nothing arrives on it.
func TestALaneGivesWay(t *testing.T) {
	t.Parallel()
	const room = 200 << 10
	onStage(t, Options{Memory: room}, func(t *testing.T, s *stage) {
		s.host.places = newPlaces(4)
		s.era()
		s.start()
		for n := range 60 {
			sid := fmt.Sprintf("s%d", n)
			s.deliver(s.run(sid), s.answer(sid, "r1t1", "a"))
		}
		for lane := range 4 {
			s.host.places.runs(lane, true)
		}
		s.pass(2 * wakesEvery)
		if sum := s.weight(); sum == 0 || sum > room/4 {
			t.Errorf("its sessions take %d bytes, want at most %d", sum, room/4)
		}
	})
}

// weight returns what the sessions in memory say that they take.
func (s *stage) weight() (sum int) {
	for _, a := range s.actor.sessions {
		sum += actorWeight + len(a.sid)
		if a.state != nil {
			sum += a.state.Weight()
		}
	}
	return sum
}
