package engine

import (
	"fmt"
	"testing"

	"github.com/refold/refold/codec"
)

// A lane keeps as many sessions as fit, the most recently used ones, and its gauges
// are right.
func TestMemoryIsKeptWithinItsBytes(t *testing.T) {
	t.Parallel()
	const room = 200 << 10
	onStage(t, Options{Memory: room}, func(t *testing.T, s *stage) {
		s.begin()
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

// A session with many events since its last snapshot leaves a new one when it is
// evicted, even if none is due.
func TestALongSessionIsSnapshottedWhenItSleeps(t *testing.T) {
	t.Parallel()
	onStage(t, Options{SessionsMax: 2}, func(t *testing.T, s *stage) {
		s.begin()
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

// A lane's limit shrinks when its host runs more lanes, even if no event arrives on
// it.
func TestLaneEvictsWhenItsHostRunsMoreLanes(t *testing.T) {
	t.Parallel()
	const room = 200 << 10
	onStage(t, Options{Memory: room}, func(t *testing.T, s *stage) {
		s.host.assignment = newAssignment(4)
		s.begin()
		for n := range 60 {
			sid := fmt.Sprintf("s%d", n)
			s.deliver(s.run(sid), s.answer(sid, "r1t1", "a"))
		}
		for lane := range 4 {
			s.host.assignment.setRunning(lane, true)
		}
		s.pass(2 * tickEvery)
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

// A registry counts for the session that alone has it, so that it is evicted; a
// registry that many share counts once.
func TestRegistriesCountIntoMemory(t *testing.T) {
	t.Parallel()
	// wide returns a registry of 50 tools with a pattern each.
	wide := func(name string) map[string]any {
		var tools []any
		for i := range 50 {
			tools = append(tools, map[string]any{
				"tool_id": fmt.Sprintf("x.%s%d", name, i), "tool_name": fmt.Sprintf("%s%d", name, i),
				"args_schema": map[string]any{"properties": map[string]any{"a": map[string]any{"pattern": "^[a-z]{200}$"}}},
				"executor":    map[string]any{"kind": "effect", "target": "x"},
			})
		}
		return map[string]any{"tools": tools}
	}
	const room = 12 << 20
	onStage(t, Options{Memory: room}, func(t *testing.T, s *stage) {
		s.begin()
		most := 0
		for n := range 20 {
			s.deliver(s.set(fmt.Sprintf("own%d", n), wide(fmt.Sprintf("t%d_", n))))
			most = max(most, len(s.actor.sessions))
			if bytes, _ := s.actor.memory(); bytes > room {
				t.Fatalf("after %d registries all takes %d bytes, want at most %d", n+1, bytes, room)
			}
		}
		if most < 2 || most > 8 {
			t.Errorf("at most %d sessions with a registry of megabytes were in memory, want a few", most)
		}
		for n := range 60 {
			s.deliver(s.set(fmt.Sprintf("shared%d", n), wide("same")))
		}
		if n := len(s.actor.sessions); n < 60 {
			t.Errorf("%d sessions are in memory, want all 60 that share a registry", n)
		}
		for n := range 60 {
			s.deliver(s.set(fmt.Sprintf("shared%d", n), registry("a")))
		}
		for n := range 3 {
			s.deliver(s.set(fmt.Sprintf("last%d", n), wide(fmt.Sprintf("l%d_", n))))
		}
		sum := s.weight()
		for hash, held := range s.host.registries.byHash {
			n := s.holders(hash)
			if held.holders != n {
				t.Errorf("registry %s is counted for %d places in sessions, and stands in %d", hash, held.holders, n)
			}
			if n > 0 {
				sum += held.registry.Weight()
			}
		}
		if got, _ := s.actor.memory(); got != sum {
			t.Errorf("all takes %d bytes, and its parts take %d", got, sum)
		}
	})
}

// holders returns how many places in sessions hold the registry of a hash.
func (s *stage) holders(hash codec.Hash) (n int) {
	for _, a := range s.actor.sessions {
		for _, r := range a.registries {
			if r != nil && r.Hash() == hash {
				n++
			}
		}
	}
	return n
}
