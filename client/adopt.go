package client

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
)

// departuresMax is how many departures a comparison lists.
const departuresMax = 100

// RulesCompared is what a session's history would have left otherwise under other rules.
type RulesCompared struct {
	Session string `json:"session"`
	Rules   int    `json:"rules"` // that the session follows
	With    int    `json:"with"`  // that they are compared with
	Events  uint64 `json:"events"`
	Seq     uint64 `json:"seq"` // of the last event

	Departing  int                 `json:"departing"`            // events that would have left something else
	Departures []session.Departure `json:"departures,omitempty"` // the first 100 of them
}

// CompareRules folds a session's history under its own rules, and as if it had followed
// other ones from its first event. It changes nothing. It fails with a
// *session.UnknownRulesError for rules that this release does not know, and with
// ErrNoSession if the session has no event.
func (c *Client) CompareRules(ctx context.Context, sid string, rules int) (r RulesCompared, err error) {
	r = RulesCompared{Session: sid, With: rules}
	var shadow *session.Shadow
	for e, err := range c.Read(ctx, sid, 0, 0) {
		if err != nil {
			return r, err
		}
		if shadow == nil {
			install, err := c.installs.Pinned(ctx, e.Seq)
			if err != nil {
				return r, fmt.Errorf("session %s: %w", sid, err)
			}
			if shadow, err = session.NewShadow(install, sid, rules); err != nil {
				return r, err
			}
		}
		d, err := shadow.Fold(e)
		if err != nil {
			return r, err
		}
		if !d.Departs() {
			continue
		}
		r.Departing++
		if len(r.Departures) < departuresMax {
			r.Departures = append(r.Departures, d)
		}
	}
	if shadow == nil {
		return r, ErrNoSession
	}
	own := shadow.Own()
	r.Rules, r.Events, r.Seq = int(own.Rules), own.Count, own.Seq
	return r, nil
}

// AdoptRules moves a session to the next version of the rules, through the door ctl: all
// events after this one are folded under it. Every session-actor must know the rules: one
// that does not ends. id is the event's; empty: a new ULID.
func (c *Client) AdoptRules(ctx context.Context, sid string, rules int, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeRulesAdopted, session.RulesAdopted{Rules: rules}, id)
}
