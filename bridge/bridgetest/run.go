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

// Run is the result of a run.
type Run struct {
	client.RunEnd
	Answer     string             // the model's last answer; may be empty
	Calls      []Called           // of all runs so far, in the model's order
	Transcript []executor.Message // see Session.Transcript
}

// Called is a call that the model made, and its result.
type Called struct {
	Effect string // r1t1c0
	Tool   string // as the model called it
	Status string // succeeded, failed, cancelled, outcome_unknown; ignored: the session refused it
	Code   string // unless it succeeded
	Detail string
	Shown  string // the result as the model was shown it; empty: it had no further turn
	Starts int    // how often its function was started
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

// calls folds the log and returns every call with its result.
func (s *Session) calls(ctx context.Context) ([]Called, error) {
	c := callCollector{index: map[string]int{}}
	_, err := s.client.Replay(ctx, sessionID, 0, c.observe)
	return c.calls, err
}

// callCollector collects the model's calls during a fold.
type callCollector struct {
	calls []Called
	index map[string]int // in calls, by effect
	batch string         // the latest one
	items int            // of the transcript so far
}

// observe records an event and the state after it. The state keeps a batch's
// calls until the next turn begins, which the last result may cause: that result
// is in the event, or, if the session gave it, in the transcript.
func (m *callCollector) observe(e session.Event, _ []session.Notice, state *session.State) {
	for _, r := range results(e) {
		if at, ok := m.index[r.Effect]; ok && m.calls[at].Status == string(session.CallOpen) {
			call := &m.calls[at]
			call.Status = r.Status
			if r.Error != nil {
				call.Code, call.Detail = r.Error.Code, r.Error.Detail
			}
		}
	}
	for _, it := range state.ItemsSince(m.items) {
		if at, ok := m.index[m.batch+"c"+strconv.Itoa(int(it.Call))]; ok && it.Role == session.RoleTool && it.Code != "" {
			call := &m.calls[at]
			call.Code, call.Detail = it.Code, it.Detail.String()
			if call.Status == string(session.CallOpen) {
				call.Status = string(session.CallFailed)
			}
		}
	}
	m.items = state.ItemCount()
	batch := state.View().Batch
	if batch == nil {
		return
	}
	m.batch = batch.Batch
	for _, c := range batch.Calls {
		at, ok := m.index[c.Effect]
		if !ok {
			at = len(m.calls)
			m.index[c.Effect], m.calls = at, append(m.calls, Called{})
		}
		m.calls[at] = Called{Effect: c.Effect, Tool: c.ToolName, Status: string(c.Status), Code: c.Code, Detail: c.Detail}
	}
}

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

// String returns a call in one line, for messages of tests.
func (c Called) String() string {
	return strings.TrimSpace(strings.Join([]string{c.Effect, c.Tool, c.Status, c.Code}, " "))
}
