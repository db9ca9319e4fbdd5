package web

import (
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// getBatch says how the calls of a turn were planned, and what asked for a person.
func (c *call) getBatch() (any, error) {
	seq, err := c.sequence("at")
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	place, err := h.find(seq)
	if err != nil {
		return nil, err
	}
	state, err := c.at(h, place)
	if err != nil {
		return nil, err
	}
	view := state.View().Batch
	if view == nil {
		return BatchShown{Seq: h.heads[place].Seq, Calls: []BatchCall{}}, nil
	}
	if place, err = h.exact(view.Seq); err != nil {
		return nil, err
	}
	observed, err := c.at(h, place) // facts and lists may have changed since
	if err != nil {
		return nil, err
	}
	shown := &BatchShown{Batch: view.Batch, Seq: view.Seq, PlanHash: view.PlanHash, Excess: view.Excess, Calls: []BatchCall{}}
	plan := &state.Turn.Batch.Plan
	for i := range plan.Calls {
		p := &plan.Calls[i]
		one := BatchCall{
			Call: view.Calls[i].Effect, Tool: view.Calls[i].ToolName, Status: string(view.Calls[i].Status), Code: view.Calls[i].Code, Detail: view.Calls[i].Detail,
			Key: p.Key.String(), Access: string(p.Access), ParallelSafe: p.ParallelSafe, Conflicts: plan.Conflicts(i), AskedBy: askedBy(observed, i),
		}
		for g, calls := range view.Groups {
			for _, of := range calls {
				if of == i {
					one.Group = g + 1
				}
			}
		}
		shown.Calls = append(shown.Calls, one)
	}
	shown.Text, err = c.saidBefore(view.Seq)
	return shown, err
}

// askedBy returns what asked that a person decides over a call; empty: nothing.
func askedBy(s *session.State, i int) (words string) {
	rule, when, ok := s.ApprovalFor(i)
	switch {
	case !ok:
		return ""
	case rule >= 0:
		words = fmt.Sprintf("rule %d of the install policy", rule+1)
	default:
		words = "the tool itself"
	}
	if when != "" {
		return words + ": " + when
	}
	return words + ": always"
}

// saidBefore returns the beginning of what the model said beside the calls of the event
// at seq.
func (c *call) saidBefore(seq uint64) (string, error) {
	e, err := c.client.Event(c.ctx(), seq)
	if err != nil {
		return "", err
	}
	var observed session.ToolCallsObserved
	if env, err := session.ReadEnvelope(e.Payload); err != nil || codec.Decode(env.Data, &observed) != nil {
		return "", nil //nolint:nilerr // the fold read it: it is not an event of this type
	}
	text, err := c.client.Text(c.ctx(), observed.Text)
	return cutText(text, valueBytesMax), err
}
