package session

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// RulesVersion is the newest version of the rules that this code folds. It folds all
// earlier ones, too: CONTRIBUTING.md says how a rule changes.
const RulesVersion = 1

// UnknownRulesError reports that a session or an install record follows rules that this
// release does not know. Nothing was folded: a session-actor leaves such a session to
// others.
type UnknownRulesError struct{ Rules int }

func (e *UnknownRulesError) Error() string {
	return fmt.Sprintf("rules %d, this release knows 1 to %d: upgrade it", e.Rules, RulesVersion)
}

// Foldable returns an UnknownRulesError if this release can't fold the session's next
// event.
func (s *State) Foldable() error {
	if int(s.Rules) > RulesVersion {
		return fmt.Errorf("session %s: %w", s.Session, &UnknownRulesError{Rules: int(s.Rules)})
	}
	return nil
}

// RulesAdopted moves a session to the next version of the rules, for all events after
// this one. It is legal while no run is active and no sync is open. All releases fold this
// event alike; one that does not know the rules folds no event after it.
//
//wire:example {"rules": 2}
type RulesAdopted struct {
	// Version of the rules: the session's own and one.
	Rules int `msgpack:"rules" lim:"2..RulesMax"`
}

// rulesAdopted leaves everything else as it is. Rules that need other fields derive them
// at the first event that they fold.
func (s *State) rulesAdopted(b *RulesAdopted) *refusal {
	switch next := int(s.Rules) + 1; {
	case b.Rules != next:
		return refuse(RejectIllegalTransition, "the session follows rules "+strconv.Itoa(int(s.Rules))+", and can adopt rules "+strconv.Itoa(next)+" alone")
	case s.Run != nil:
		return refuse(RejectIllegalTransition, "a run is active: rules are adopted between runs")
	case s.Spaces != nil && len(s.Spaces.Syncs) > 0:
		return refuse(RejectIllegalTransition, "a sync is open: wait until it is settled")
	}
	s.Rules = uint8(b.Rules)
	return nil
}

// A Shadow folds a session's history twice: under the session's own rules, and as if it
// had followed other ones from its first event. It tells what would differ.
type Shadow struct {
	own, other *State
	differ     []string // open effects of one of them alone, or with other bytes
	unlike     bool     // the states differed when they were compared last
}

// NewShadow returns the Shadow of a session without events, under its install record. It
// fails with an UnknownRulesError.
func NewShadow(install *Install, sid string, rules int) (*Shadow, error) {
	x := &Shadow{own: New(install, sid), other: New(install, sid)}
	x.other.Rules = uint8(min(rules, RulesMax))
	return x, x.other.Foldable()
}

// Departure is what an event would have left otherwise under other rules.
type Departure struct {
	Seq     uint64   `json:"seq"`
	Type    string   `json:"type"`
	Notices bool     `json:"notices,omitempty"`
	Effects []string `json:"effects,omitempty"` // that one fold alone opens, or with other bytes
	State   bool     `json:"state,omitempty"`   // it is the first state that differs, of those after runs
}

// Departs reports whether anything differs.
func (d Departure) Departs() bool { return d.Notices || len(d.Effects) > 0 || d.State }

// Own returns the state under the session's own rules.
func (x *Shadow) Own() *State { return x.own }

// Fold folds the next event, and returns what it would have left otherwise. States are
// compared when no run is active.
func (x *Shadow) Fold(e Event) (d Departure, err error) {
	if err := x.own.Foldable(); err != nil {
		return d, err
	}
	rules := x.other.Rules
	if env, err := ReadEnvelope(e.Payload); err == nil && env.Type == TypeRulesAdopted {
		x.other.Rules = x.own.Rules // accepted by both, or by neither
	}
	own, _ := x.own.Evolve(e)
	other, _ := x.other.Evolve(e)
	x.other.Rules = rules
	d.Seq, d.Type = e.Seq, x.own.LastType()
	d.Notices = !slices.EqualFunc(own, other, sameNotice)
	differ := x.differing()
	for _, name := range differ {
		if !slices.Contains(x.differ, name) {
			d.Effects = append(d.Effects, name)
		}
	}
	x.differ = differ
	if !x.unlike && x.own.Run == nil {
		x.unlike = !x.sameState()
		d.State = x.unlike
	}
	return d, nil
}

// sameNotice compares all but the version of the rules, and the summary, which follows
// from the state.
func sameNotice(a, b Notice) bool {
	for _, n := range []*Notice{&a, &b} {
		n.Summary = nil
		if opened, ok := n.Data.(SessionOpened); ok {
			opened.Rules = 0
			n.Data = opened
		}
	}
	return bytes.Equal(a.JSON(), b.JSON())
}

func (x *Shadow) sameState() bool {
	rules := x.other.Rules
	x.other.Rules = x.own.Rules
	defer func() { x.other.Rules = rules }()
	return bytes.Equal(x.own.Bytes(), x.other.Bytes())
}

// differing returns the names of open effects that one fold alone has, or with other bytes.
func (x *Shadow) differing() (names []string) {
	own, other := x.own.Open(), x.other.Open()
	for _, side := range [][2][]Effect{{own, other}, {other, own}} {
		for _, e := range side[0] {
			same := func(of Effect) bool { return of.Name == e.Name && bytes.Equal(of.Payload, e.Payload) }
			if !slices.ContainsFunc(side[1], same) && !slices.Contains(names, e.Name) {
				names = append(names, e.Name)
			}
		}
	}
	return names
}
