package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/refold/refold/internal/presence"
)

// share assigns lanes to members: it returns the owner of each lane, by number;
// empty strings if there are no members. The result depends only on the set of
// members and the number of lanes, so hosts that know the same members agree
// without messages.
//
// It is rendezvous hashing with bounds. Each pair of a member and a lane has a
// score, and pairs are taken in descending order of score. Bounds keep the members'
// shares within one lane of each other; without them, one of four hosts would have
// half of eight lanes, and another none. They cost about one more moved lane when a
// member comes or goes.
func share(members []string, lanes int) (owners []string) {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	owners = make([]string, lanes)
	if len(members) == 0 {
		return owners
	}
	type pair struct {
		member string
		lane   int
		score  uint64 // higher is taken first
	}
	var pairs []pair
	for _, member := range members {
		for lane := range lanes {
			sum := sha256.Sum256([]byte(member + "/" + strconv.Itoa(lane)))
			pairs = append(pairs, pair{member, lane, binary.BigEndian.Uint64(sum[:])})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.member, b.member), cmp.Compare(a.lane, b.lane))
	})
	part, larger := lanes/len(members), lanes%len(members) // larger members have one lane more
	load := make(map[string]int, len(members))
	for _, p := range pairs {
		full := load[p.member] > part || load[p.member] == part && larger == 0
		if owners[p.lane] != "" || full {
			continue
		}
		if load[p.member] == part {
			larger--
		}
		load[p.member]++
		owners[p.lane] = p.member
	}
	return owners
}

const (
	// goneBeats is how many of its own heartbeats a host receives without one from
	// another member before it counts that one as gone: 1.5 to 2 s after the last,
	// about when the server gives up a pin.
	goneBeats = 4
	// beatLeast tells regular heartbeats from additional ones.
	beatLeast = presence.HeartbeatEvery / 2
)

// membership is who shares the lanes, as far as this host knows. Silence is counted
// in the host's own heartbeats that came back to it. A host that was cut off or
// suspended has not received its own either, so it takes nobody for gone.
type membership struct {
	self  string
	lanes int
	heard map[string]member
	beats int       // own heartbeats received
	own   time.Time // when the last of them was counted
}

// member is another session-actor.
type member struct {
	at     time.Time // time of its last heartbeat
	beats  int       // own heartbeats received by then
	active bool      // it takes a share, by its last heartbeat
}

func newMembership(self string, lanes int) *membership {
	return &membership{self: self, lanes: lanes, heard: make(map[string]member)}
}

// look takes in the known heartbeats and returns the members that share the lanes,
// including this host. met reports that a member that takes part, or is about to,
// was heard for the first time. mismatched are the members first heard now that
// have another lane count: they are ignored.
//
// Rules versions don't matter here: a host that meets rules which it does not know
// ends, and announces that it leaves.
func (r *membership) look(known []presence.Member) (sharing []string, met bool, mismatched []string) {
	for _, m := range known {
		if m.Instance == r.self && m.Heard.Sub(r.own) >= beatLeast {
			r.own = m.Heard
			r.beats++
		}
	}
	remembered := map[string]bool{}
	for _, m := range known {
		remembered[m.Instance] = true
		p, before := r.heard[m.Instance]
		if m.Instance == r.self || before && !m.Heard.After(p.at) {
			continue
		}
		var beat presence.Heartbeat
		readable := json.Unmarshal(m.Body, &beat) == nil
		fits := beat.LaneCount == r.lanes
		shares := readable && fits && !beat.Leaving
		r.heard[m.Instance] = member{at: m.Heard, beats: r.beats, active: shares && !beat.Joining}
		met = met || !before && shares
		if !before && readable && !fits {
			mismatched = append(mismatched, m.Instance)
		}
	}
	sharing = append(sharing, r.self)
	for instance, p := range r.heard {
		switch gone := r.beats-p.beats >= goneBeats; {
		case !gone && p.active:
			sharing = append(sharing, instance)
		case gone && !remembered[instance]:
			delete(r.heard, instance)
		}
	}
	slices.Sort(sharing)
	return sharing, met, mismatched
}
