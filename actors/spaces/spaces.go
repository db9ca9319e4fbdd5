package spaces

import (
	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Spaces is the spaces of one session while an event is folded.
type Spaces struct {
	*State  // nil until the session has a grant or prompt refs
	Record  *Record
	Session Session
}

// Session is what spaces need of the session that has them.
type Session interface {
	// Now returns the sequence of the event that is folded, and the session's clock.
	Now() (seq uint64, clock int64)
	// Base returns the session's registry without layers. Pin names it, nil if it is the
	// install record's.
	Base() (registry *planner.Registry, pin *RegistryPin)
	// Composed returns the registry of the next turn's offers.
	Composed() *planner.Registry
	// Idle reports whether no run is active.
	Idle() bool
	// Missing returns what the session's profile, overrides or configs name and the stack
	// lacks; "" if it has all of it.
	Missing(*Stack) string
	// NamedBy returns which operator's config names a workspace that matches; "" if none
	// does.
	NamedBy(matches func(*Pin) bool) string
	// EachPin calls fn with the pins of configs, runs and calls.
	EachPin(fn func(*Pin))
	// Withdraw withdraws the effect of an open sync.
	Withdraw(sync uint32)
	// SetComposed sets the registry of the next turn's offers.
	SetComposed(*planner.Registry)
	// ToolsChanged says that the next turn must select its tools anew.
	ToolsChanged()
	// Notify publishes a notice of a type.
	Notify(typ string, notice any)
}

// Refusal is why an event has no effect.
type Refusal struct {
	Code   Code
	Detail string
}

// Code is the code of a Refusal: one of the session's rejections.
type Code string

// The codes of refusals.
const (
	InvalidData      Code = "invalid_data"
	LimitExceeded    Code = "limit_exceeded"
	NotPermitted     Code = "not_permitted"
	NothingStaged    Code = "nothing_staged"
	Stale            Code = "stale"
	UnknownSpace     Code = "unknown_space"
	WorkspaceInvalid Code = "workspace_invalid"
)

func refuse(code Code, detail string) *Refusal {
	return &Refusal{code, sentence.Clip(detail, sentence.BytesMax)}
}

// enter makes State non-nil.
func (x *Spaces) enter() {
	if x.State == nil {
		base, _ := x.Session.Base()
		x.State = NewState(base)
	}
}

// PinOf returns the pin of a manifest of a kind with a hash: an applied, pending or
// staged one, or one of the install record. It returns nil if there is none.
func (x *Spaces) PinOf(hash string, kind space.Kind) *Pin {
	var found *Pin
	look := func(p *Pin) {
		if found == nil && p.Kind == kind && p.Hash.Is(hash) {
			pin := *p
			pin.Lacks = nil // a need that is met later must be noticed
			found = &pin
		}
	}
	if x.State != nil {
		x.eachHeld(look)
	}
	for i := range x.Record.pins {
		look(&x.Record.pins[i])
	}
	return found
}
