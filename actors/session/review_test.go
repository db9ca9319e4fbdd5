package session_test

// What a state holds stays within its limits, whoever decides and whatever.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// padded are arguments of n bytes.
func padded(n int) string { return `{"p":"` + strings.Repeat("x", n-len(`{"p":""}`)) + `"}` }

// The arguments of a batch come in one event. However they are edited, a state has
// no more of them than fit an event, since it could not be encoded.
func TestEditsStayWithinAnEvent(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	w.run(nil)
	w.calls("r1t1", made(session.CallsMax, "askp", `{}`))
	edit := func(i, n int) error {
		_, err := w.tell(session.DoorApprove, session.TypeApprovalDecided,
			merged(w.decision(fmt.Sprintf("r1t1c%d", i), "approve"), map[string]any{"arguments": padded(n)}))
		return err
	}
	most := session.EventBytesMax/planner.ArgumentsBytesMax - 1 // `{}` of the others needs room, too
	for i := range most {
		if err := edit(i, planner.ArgumentsBytesMax); err != nil {
			t.Fatalf("edit %d: %v", i, err)
		}
	}
	if err := edit(most, planner.ArgumentsBytesMax); !errors.Is(err, session.RejectLimitExceeded) {
		t.Fatalf("edit %d: got %v, want %v", most, err, session.RejectLimitExceeded)
	}
	room := planner.ArgumentsBytesMax - (session.CallsMax-most-1)*len(`{}`)
	if err := edit(most, room+1); !errors.Is(err, session.RejectLimitExceeded) {
		t.Errorf("a byte more than there is room for: got %v, want %v", err, session.RejectLimitExceeded)
	}
	if err := edit(most, room); err != nil {
		t.Errorf("what there is room for: %v", err)
	}
	fits(t, w)

	// What has a result leaves room, and what was refused still waits.
	w.settled("r1t1c0")
	if err := edit(most+1, planner.ArgumentsBytesMax); err != nil {
		t.Errorf("after a result: %v", err)
	}
	fits(t, w)
}

// A config that comes through `in` keeps the budget and the prices; an operator's
// is used as it is.
func TestClientsKeepTheBudget(t *testing.T) {
	t.Parallel()
	for door, kept := range map[session.Door]bool{session.DoorIn: true, session.DoorCtl: false} {
		w := newTold(t)
		w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, map[string]any{
			"provider": "p", "model": "m", "budget": map[string]any{"session_tokens": 10}, "prices": map[string]any{"input": 1},
		}))
		w.must(w.tell(door, session.TypeRunRequested, map[string]any{
			"input": text("go"), "config": map[string]any{"provider": "p", "model": "large"},
		}))
		if c := w.state.Run.Config; (c.Budget != nil) != kept || (c.Prices != nil) != kept || c.Model != "large" {
			t.Errorf("through %s: budget %v, prices %v, model %s", door, c.Budget, c.Prices, c.Model)
		}
	}
}

// A client's steers run under the roles of the run that they steer, and no longer.
func TestSteersHaveNoRoles(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{
		"input": text("go"), "roles": []string{"boss"}, "config": map[string]any{"provider": "p", "model": "m", "turns_max": 1},
	}))
	w.in(session.TypeSteerRequested, map[string]any{"input": text("more")})
	w.answered("r1t1")
	if r := w.state.Run; r == nil || r.Number != 2 || len(r.Roles) > 0 {
		t.Errorf("got %+v, want run 2 without roles", r)
	}
}
