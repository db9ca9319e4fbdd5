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

// share says which member runs which lane: the owner of each lane, by number;
// empty if there are no members. It depends on nothing but the set of members
// and the number of lanes, so hosts that have heard of the same members agree
// without a word.
//
// It is rendezvous hashing with bounds. Each pair of a member and a lane has a
// score, and pairs are taken from the highest score down. A member takes at most
// its part, so that shares differ by one lane at most; without the bound, one of
// four hosts would have half of eight lanes, and another none. The bound costs
// about one more lane that moves when a member comes or goes.
func share(members []string, lanes int) (owners []string) {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	owners = make([]string, lanes)
	if len(members) == 0 {
		return owners
	}
	type pair struct {
		member string
		lane   int
		score  uint64 // how well they go together
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
	part, larger := lanes/len(members), lanes%len(members) // so many have one lane more
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

// heartbeat is what a session-actor says of itself while it lives.
type heartbeat struct {
	Lanes     []int `json:"lanes"` // that it runs now; never nil
	LaneCount int   `json:"lane_count"`
	Rules     int   `json:"rules"`
	Joining   bool  `json:"joining,omitempty"`
	Leaving   bool  `json:"leaving,omitempty"`
}

const (
	// goneBeats is how many heartbeats of its own a host has heard, and none of
	// another, when it counts the other as gone: 1.5 to 2 s after the last one,
	// about when the server gives up a pin.
	goneBeats = 4
	// beatLeast tells regular heartbeats from those that are sent in between.
	beatLeast = presence.HeartbeatEvery / 2
)

// membership is who shares the lanes, as far as this host has heard. Silence is
// counted in heartbeats of its own that came back to it: a host that was cut
// off, or suspended, has not heard itself either, so it takes nobody for gone.
type membership struct {
	self  string
	lanes int
	heard map[string]member
	beats int       // own heartbeats that were heard
	own   time.Time // when the last of them was counted
}

// member is another session-actor.
type member struct {
	at     time.Time // heard last then
	beats  int       // own heartbeats that had been heard by then
	active bool      // it takes its share, by what it says
}

func newMembership(self string, lanes int) *membership {
	return &membership{self: self, lanes: lanes, heard: make(map[string]member)}
}

// look takes in what was heard, and returns who shares the lanes, this host
// among them. met says that one was heard for the first time that takes part or
// is about to. mismatched were heard for the first time and count other lanes: they
// have no part in it.
//
// Rules don't matter here: a host that meets rules which it does not know ends, and
// says that it leaves.
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
		var beat heartbeat
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
