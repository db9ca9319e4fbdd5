package bridge

// Helpers of the tests of whole bridges.

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// toolFunc and answerFunc make functions executors, readerFunc a reader.
type toolFunc func(context.Context, executor.Call) (executor.Result, error)

func (f toolFunc) Execute(ctx context.Context, c executor.Call) (executor.Result, error) {
	return f(ctx, c)
}

type answerFunc func(context.Context, executor.Request, func(string)) (executor.Answer, error)

func (f answerFunc) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	return f(ctx, r, delta)
}

type readerFunc func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error)

func (f readerFunc) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	return f(ctx, r)
}

// startLog keeps lines.
type startLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *startLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *startLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func contentOf(s string) *session.Content { return &session.Content{Text: s} }

func eventOf(t *testing.T, typ string, data any) []byte {
	t.Helper()
	raw, err := codec.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := codec.Marshal(session.Envelope{V: 1, Type: typ, Data: raw})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

const (
	askedStartBy = 5 * time.Minute // from the ask
	askedRun     = time.Minute
)

func callAsked(name string, safe bool) session.ToolCall {
	now := time.Now()
	return session.ToolCall{
		Arguments: `{"x":1}`, At: now.UnixMilli(), Batch: "r1t1", Class: session.ClassTool, Effect: name,
		IdempotencyKey: "s1." + name, PlanHash: codec.Sum([]byte("plan")), RetrySafe: safe, RunMS: askedRun.Milliseconds(),
		Session: "s1", StartBy: now.Add(askedStartBy).UnixMilli(), ToolID: "host.fs.stat", ToolName: "stat", V: 1,
	}
}

func turnAsked(name string, items ...session.Item) session.Generation {
	now := time.Now()
	return session.Generation{
		At: now.UnixMilli(), Class: session.ClassLLM, Effect: name, Items: session.ListItems(items...), Model: "m", Provider: "p",
		RunMS: askedRun.Milliseconds(), Session: "s1", StartBy: now.Add(askedStartBy).UnixMilli(), V: 1,
	}
}

func stepOf(name string) session.Step {
	now := time.Now()
	return session.Step{
		At: now.UnixMilli(), Class: session.ClassStep, Effect: name, Facts: codec.Pairs{}, Hook: "router", Model: "m", Provider: "p",
		RunMS: askedRun.Milliseconds(), Session: "s1", StartBy: now.Add(askedStartBy).UnixMilli(), Used: []string{}, V: 1,
	}
}

// settledAs returns a settlement as text: "r1t1c0 failed deadline_exceeded",
// "r1t1 calls 2".
func settledAs(t *testing.T, e session.Event) string {
	t.Helper()
	var env struct {
		Type string
		Data struct {
			Effect, Status string
			Calls          []any
			Error          session.Fault
		}
	}
	text, err := codec.ToJSON(e.Payload)
	if err == nil {
		err = json.Unmarshal(text, &env)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := env.Data
	if env.Type == session.TypeToolCallsObserved {
		said.Status = "calls " + strconv.Itoa(len(said.Calls))
	}
	return strings.TrimSpace(said.Effect + " " + said.Status + " " + said.Error.Code)
}
