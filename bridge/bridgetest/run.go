package bridgetest

import (
	"context"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// Run is how a run ended.
type Run struct {
	client.RunEnd
	Answer     string             // what the model answered; empty: nothing
	Calls      []Called           // of all runs until now, in the order of the model's
	Transcript []executor.Message // see Session.Transcript
}

// Called is a call that the model made, and what became of it.
type Called struct {
	Effect string // r1t1c0
	Tool   string // as the model called it
	Status string // succeeded, failed, cancelled, outcome_unknown; ignored: the session refused it
	Code   string // of what did not succeed
	Detail string
	Shown  string // what the model was shown of it; empty: it was not asked again
	Starts int    // how often a function was started for it
}

// Call returns the call of an effect; the zero Called if there is none.
func (r Run) Call(effect string) Called {
	for _, c := range r.Calls {
		if c.Effect == effect {
			return c
		}
	}
	return Called{}
}

// run returns what there is to say of a run that has ended.
func (s *Session) run(ctx context.Context, end client.RunEnd) Run {
	s.t.Helper()
	r := Run{RunEnd: end, Transcript: s.Transcript()}
	if end.Output != nil {
		r.Answer = end.Output.Text
		if end.Output.Blob != nil {
			content, err := s.client.Blob(ctx, *end.Output.Blob)
			if err != nil {
				s.t.Fatalf("read the answer of run %d: %v", end.Run, err)
			}
			r.Answer = string(content)
		}
	}
	calls, err := s.calls(ctx)
	if err != nil {
		s.t.Fatalf("read the calls of run %d: %v", end.Run, err)
	}
	shown := map[string]string{}
	for _, m := range r.Transcript {
		if m.Role == "tool" {
			shown[m.CallID] = m.Text
		}
	}
	starts := map[string]int{}
	for _, start := range s.Ledger() {
		starts[start.Effect]++
	}
	for _, c := range calls {
		c.Shown, c.Starts = shown[c.Effect], starts[c.Effect]
		r.Calls = append(r.Calls, c)
	}
	return r
}

// calls folds the log and returns every call with what became of it.
func (s *Session) calls(ctx context.Context) ([]Called, error) {
	c := made{places: map[string]int{}}
	_, err := s.client.Replay(ctx, sessionID, 0, c.see)
	return c.calls, err
}

// made are the calls that a model made, as far as a log is folded.
type made struct {
	calls  []Called
	places map[string]int // in calls, by effect
	batch  string         // the latest one
	items  int            // of the transcript until now
}

// see takes note of an event and the state after it. The state keeps a batch's
// calls until the next turn begins, which is with the last result at times: what
// that was is told by the event, or, if the session gave it, by the transcript.
func (m *made) see(e session.Event, _ []session.Notice, state *session.State) {
	for _, r := range results(e) {
		if place, ok := m.places[r.Effect]; ok && m.calls[place].Status == string(session.CallOpen) {
			call := &m.calls[place]
			call.Status = r.Status
			if r.Error != nil {
				call.Code, call.Detail = r.Error.Code, r.Error.Detail
			}
		}
	}
	for _, it := range state.Items[m.items:] {
		if place, ok := m.places[m.batch+"c"+strconv.Itoa(it.Call)]; ok && it.Role == session.RoleTool && it.Code != "" {
			call := &m.calls[place]
			call.Code, call.Detail = it.Code, it.Detail
			if call.Status == string(session.CallOpen) {
				call.Status = string(session.CallFailed)
			}
		}
	}
	m.items = len(state.Items)
	batch := state.View().Batch
	if batch == nil {
		return
	}
	m.batch = batch.Batch
	for _, c := range batch.Calls {
		place, ok := m.places[c.Effect]
		if !ok {
			place = len(m.calls)
			m.places[c.Effect], m.calls = place, append(m.calls, Called{})
		}
		m.calls[place] = Called{Effect: c.Effect, Tool: c.ToolName, Status: string(c.Status), Code: c.Code, Detail: c.Detail}
	}
}

// results returns the results of calls that an event holds.
func results(e session.Event) []session.ToolCallSettled {
	var env session.Envelope
	canonical, err := codec.Canonicalize(e.Payload)
	if err != nil || codec.Decode(canonical, &env) != nil {
		return nil
	}
	switch env.Type {
	case session.TypeToolCallSettled:
		var one session.ToolCallSettled
		if codec.Decode(env.Data, &one) == nil {
			return []session.ToolCallSettled{one}
		}
	case session.TypeToolBatchSettled:
		var all session.ToolBatchSettled
		if codec.Decode(env.Data, &all) == nil {
			return all.Results
		}
	}
	return nil
}

// String returns a call as one line, for messages of tests.
func (c Called) String() string {
	return strings.TrimSpace(strings.Join([]string{c.Effect, c.Tool, c.Status, c.Code}, " "))
}
