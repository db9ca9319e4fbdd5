package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// The shape of a run: the model calls three tools at once, and answers with their
// results. Model and tools take no time.
const (
	provider   = "bench"
	target     = "bench"
	toolsAsked = 3
)

// install is the record that sessions of the bench start with.
const install = `{
  "v": 1, "rules": 1, "default_profile": "all",
  "profiles": [{"profile": "all", "tools": ["bench.look"]}],
  "tools": [{
    "tool_id": "bench.look", "tool_name": "look", "description": "Looks something up.",
    "args_schema": {"type": "object", "properties": {"about": {"type": "string"}}, "required": ["about"]},
    "executor": {"kind": "effect", "target": "` + target + `"}, "access": "read", "parallel_safe": true, "retry_safe": true
  }],
  "config": {"provider": "` + provider + `", "model": "instant"}
}`

// The texts of a run. Their lengths make a message about 400 bytes long.
var (
	question = strings.Repeat("What became of the order? ", 12)
	looked   = strings.Repeat("It left the harbour in time. ", 8)
	answered = strings.Repeat("The order is on its way. ", 10)
	argument = `{"about":"` + strings.Repeat("order ", 8) + `"}`
)

// instant is the model and the tools.
type instant struct{}

// talking is the model that answers with text and counts tokens.
const talking = "talking"

// Generate answers at once: calls first, and text when it has their results.
func (instant) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if r.Model == talking {
		shown := 0
		for i := range r.Messages {
			shown += len(r.Messages[i].Text)
		}
		return executor.Answer{Text: answered, Model: talking, FinishReason: "stop", Usage: executor.Usage{InputTokens: int64(shown / session.BytesPerToken)}}, nil
	}
	if r.Messages[len(r.Messages)-1].Role == "tool" {
		return executor.Answer{Text: answered, Model: "instant", FinishReason: "stop"}, nil
	}
	calls := make([]executor.AnswerCall, toolsAsked)
	for i := range calls {
		calls[i] = executor.AnswerCall{ID: fmt.Sprintf("call_%d", i), Name: "look", Arguments: argument}
	}
	return executor.Answer{Calls: calls, Model: "instant", FinishReason: "tool_calls"}, nil
}

// Execute returns at once.
func (instant) Execute(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{Output: looked}, nil
}

// idLength is the length of a request's id: that of a client's.
const idLength = 26

// request returns the request for a run, and its id, as package client makes
// them.
func request(sid string) (payload []byte, id string, err error) {
	id = sid + strings.Repeat("0", max(idLength-len(sid), 0))
	packed, err := envelope(session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: question}}, id)
	if err != nil {
		return nil, "", err
	}
	payload, err = codec.ToJSON(packed)
	return payload, id, err
}

// envelope returns the payload of an event.
func envelope(typ string, body any, id string) ([]byte, error) {
	data, err := codec.Marshal(body)
	if err != nil {
		return nil, err
	}
	return codec.Marshal(session.Envelope{By: "refold-bench", Data: data, ID: id, Type: typ, V: session.Version})
}

// sessionID returns the name of the nth session. All have the same length, like
// those in the messages that the ceiling stores.
func sessionID(n int) string { return fmt.Sprintf("bench-%010d", n) }

// drainWithin is the longest time between the ends of two runs of several in
// flight.
const drainWithin = time.Minute
