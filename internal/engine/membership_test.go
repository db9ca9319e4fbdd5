package engine

// Who runs which lane, and who counts: no clock, no network.

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/presence"
)

// hosts returns names as process starts have them, the same ones each time.
func hosts(seed uint64, n int) []string {
	r, names := rand.New(rand.NewPCG(seed, 1)), make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("01K%023X", r.Uint64())
	}
	return names
}

func TestShareIsFair(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 12; n++ {
		for _, lanes := range []int{1, 8, 16} {
			for seed := range uint64(20) {
				members := hosts(seed, n)
				owners := share(members, lanes)
				load := map[string]int{}
				for lane, owner := range owners {
					if !slices.Contains(members, owner) {
						t.Fatalf("%d lanes, %d hosts, seed %d: lane %d is %q's", lanes, n, seed, lane, owner)
					}
					load[owner]++
				}
				least, most := lanes, 0
				for _, m := range members {
					least, most = min(least, load[m]), max(most, load[m])
				}
				if most-least > 1 {
					t.Errorf("%d lanes, %d hosts, seed %d: from %d to %d lanes each, want them to differ by one at most", lanes, n, seed, least, most)
				}
			}
		}
	}
	if got := share(nil, 2); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("nobody: got %q", got)
	}
}

func TestShareKnowsNoOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(50) {
		members := hosts(seed, 5)
		want := share(members, 8)
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		kept := slices.Clone(members)
		if got := share(append(members, members[0]), 8); !slices.Equal(got, want) {
			t.Errorf("seed %d: got %q, want %q", seed, got, want)
		}
		if !slices.Equal(members, kept) {
			t.Errorf("seed %d: the members were sorted in place", seed)
		}
	}
	// All releases must agree; to change this is to change the wire.
	if got, want := strings.Join(share([]string{"a", "b", "c"}, 8), ""), "cccbbbaa"; got != want {
		t.Errorf("a, b and c share 8 lanes as %s, want %s", got, want)
	}
}

// Lanes that move when a host joins move back when it leaves. At least the joining
// host's lanes move; the bound may move one more, on average.
func TestShareMovesLittle(t *testing.T) {
	t.Parallel()
	const seeds, lanes = 100, 8
	for n := 1; n <= 8; n++ {
		moved, taken := 0, 0
		for seed := range uint64(seeds) {
			members := hosts(seed, n+1)
			before, after := share(members[:n], lanes), share(members, lanes)
			for lane := range before {
				if before[lane] != after[lane] {
					moved++
				}
				if after[lane] == members[n] {
					taken++
				}
			}
		}
		t.Logf("%d to %d hosts: %.2f lanes move, %.2f are the new one's", n, n+1, float64(moved)/seeds, float64(taken)/seeds)
		if moved > taken+seeds*3/2 {
			t.Errorf("%d to %d hosts: %d lanes move in %d cases, and the new one takes %d", n, n+1, moved, seeds, taken)
		}
		if n == 1 && moved != taken {
			t.Errorf("a second host joins: %d lanes move, and it takes %d", moved, taken)
		}
	}
}

// hearing is what a host hears: heartbeats at times that the test says.
type hearing struct {
	t          *testing.T
	membership *membership
	now        time.Time
	known      map[string]presence.Member
}

func newHearing(t *testing.T) *hearing {
	return &hearing{t: t, membership: newMembership("self", 8), now: time.Unix(1000, 0), known: map[string]presence.Member{}}
}

// hear notes heartbeats now, of hosts of 8 lanes unless a body follows a name.
func (h *hearing) hear(names ...string) {
	for _, name := range names {
		name, body, given := strings.Cut(name, " ")
		if !given {
			body = `{"lanes":[],"lane_count":8,"rules":1}`
		}
		h.known[name] = presence.Member{Instance: name, Heard: h.now, Body: []byte(body)}
	}
}

// beats lets half seconds pass, with these heartbeats in each.
func (h *hearing) beats(n int, names ...string) {
	for range n {
		h.now = h.now.Add(presence.HeartbeatEvery)
		h.hear(names...)
		h.membership.look(h.list())
	}
}

func (h *hearing) list() (list []presence.Member) {
	for _, m := range h.known {
		list = append(list, m)
	}
	return list
}

func (h *hearing) want(what, sharing string, met bool, odd string) {
	h.t.Helper()
	gotSharing, gotMet, gotOdd := h.membership.look(h.list())
	if got := strings.Join(gotSharing, " "); got != sharing || gotMet != met || strings.Join(gotOdd, " ") != odd {
		h.t.Errorf("%s: got %q, met %v, odd %q, want %q, %v, %q", what, got, gotMet, gotOdd, sharing, met, odd)
	}
}

func TestMembersThatShareTheLanes(t *testing.T) {
	t.Parallel()
	h := newHearing(t)
	h.want("nobody is heard", "self", false, "")
	h.hear("self", "a", "c {", `d {"lanes":[],"lane_count":16,"rules":1}`)
	h.want("all are heard", "a self", true, "d")
	h.hear("self", "a")
	h.want("nobody new is heard", "a self", false, "")
	h.hear(`e {"lanes":[],"lane_count":8,"rules":2,"of":"a later release"}`)
	h.want("a newer one is heard", "a e self", true, "")
	h.hear(`f {"lanes":[],"lane_count":8,"rules":1,"joining":true}`)
	h.want("one that starts is heard", "a e self", true, "")
	h.hear("f")
	h.beats(1, "self", "a", "e", "f")
	h.want("it has its share", "a e f self", false, "")
	h.hear(`f {"lanes":[],"lane_count":8,"rules":1,"leaving":true}`)
	h.beats(1, "self", `f {"lanes":[],"lane_count":8,"rules":1,"leaving":true}`)
	h.beats(1, "self", "e", `a {"lanes":[1],"lane_count":8,"rules":1,"leaving":true}`)
	h.want("a leaves", "e self", false, "")
	h.beats(1, "self", "e")
	h.want("a says nothing more", "e self", false, "")
}

func TestMemberIsGoneAfterFourOwnHeartbeats(t *testing.T) {
	t.Parallel()
	h := newHearing(t)
	h.hear("self", "a")
	h.want("a is heard", "a self", true, "")
	h.beats(goneBeats-1, "self")
	h.want("a is silent, not for long", "a self", false, "")
	h.hear("self") // in between, which counts for nothing
	h.want("a heartbeat in between", "a self", false, "")
	h.beats(1, "self")
	h.want("a is silent", "self", false, "")
	h.beats(1, "self", "a")
	h.want("a is back", "a self", false, "")
}

// A host that does not receive its own heartbeats can't tell whether others are
// gone: it was cut off, was suspended, or may not publish.
func TestHostThatDoesNotHearItselfKeepsMembers(t *testing.T) {
	t.Parallel()
	h := newHearing(t)
	h.hear("self", "a")
	h.want("a is heard", "a self", true, "")
	h.now = h.now.Add(time.Hour)
	h.want("an hour later, before anything else is heard", "a self", false, "")
	h.beats(1, "self")
	h.want("heard itself, not a yet", "a self", false, "")
	h.beats(goneBeats, "a")
	h.want("hears a, and not itself", "a self", false, "")
	h.now = h.now.Add(time.Hour)
	clear(h.known) // as members who were silent for long are forgotten
	h.hear("self")
	h.want("an hour later, a is remembered here alone", "a self", false, "")
	h.beats(goneBeats, "self")
	h.want("a is gone", "self", false, "")
	if got := len(h.membership.heard); got != 0 {
		t.Errorf("remembered: got %d, want none", got)
	}
}

func TestHeartbeatSaysWhatRuns(t *testing.T) {
	t.Parallel()
	h := newHost(nil, slog.New(slog.DiscardHandler), Options{})
	said := func() string { return string(h.Heartbeat()) }
	if got, want := said(), `{"lanes":[],"lane_count":8,"rules":1,"joining":true}`; got != want {
		t.Errorf("at the start: got %s, want %s", got, want)
	}
	h.assignment.change(func() { h.assignment.begun = true })
	if got, want := said(), `{"lanes":[],"lane_count":8,"rules":1}`; got != want {
		t.Errorf("with a share: got %s, want %s", got, want)
	}
	h.assignment.setRunning(3, true)
	h.assignment.setRunning(5, true)
	h.Leave()
	var beat presence.Heartbeat
	if err := json.Unmarshal(h.Heartbeat(), &beat); err != nil || !beat.Leaving || !slices.Equal(beat.Lanes, []int{3, 5}) {
		t.Errorf("on leaving: got %s (%v), want that it leaves, and lanes 3 and 5", said(), err)
	}
}
