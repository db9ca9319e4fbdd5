package worker

// The cost of an effect in a bridge, without NATS.

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// nowhere takes what a bridge says, and has one event to tell. Nothing else is asked
// of it.
type nowhere struct {
	Transport
	asked []byte
}

func (nowhere) BeginClaim(_ context.Context, _ subjects.ClaimName, c Claim) func() (Claim, bool, error) {
	return func() (Claim, bool, error) { return c, true, nil }
}
func (nowhere) Publish(context.Context, session.Door, string, string, []byte) (uint64, error) {
	return 1, nil
}
func (n nowhere) Events(_ context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	return []session.Event{{Session: sid, Door: session.DoorIn, Seq: seqs[0], Payload: n.asked}}, nil
}
func (nowhere) Incarnation() uint64                               { return 0 }
func (nowhere) KeepBlob(context.Context, codec.Ref) (bool, error) { return false, nil }
func (nowhere) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}
func (nowhere) Heard(string) (time.Time, bool) { return time.Now(), true }

// note is a delivery that nobody waits for.
type note struct {
	Delivery
	name    subjects.EffectName
	subject string
	payload []byte
}

func (note) Traceparent() string                  { return "" }
func (note) Again() bool                          { return false }
func (n note) Subject() string                    { return n.subject }
func (n note) Payload() []byte                    { return n.payload }
func (n note) Name() (subjects.EffectName, error) { return n.name, nil }
func (note) Ack()                                 {}
func (note) Done()                                {}

func BenchmarkToolCall(b *testing.B) {
	at := time.Now().UnixMilli()
	benchmarkEffect(b, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Output: "ok"}, nil
	})}, func(sid string) any {
		return session.ToolCall{
			Arguments: `{"path":"/tmp/a","text":"hello"}`, At: at, Batch: "r1t1", Class: session.ClassTool, Effect: "r1t1c0",
			IdempotencyKey: sid + ".r1t1c0", RetrySafe: true, RunMS: 300_000, Session: sid, StartBy: at + 600_000,
			ToolID: "host.fs.write_file", ToolName: "write_file", V: session.Version,
		}
	})
}

func BenchmarkGeneration(b *testing.B) {
	at := time.Now().UnixMilli()
	benchmarkEffect(b, Target{Class: session.ClassLLM, Name: "openai", Model: modelFunc(func(context.Context, executor.Request, func(string)) (executor.Answer, error) {
		return executor.Answer{Text: "done", Model: "m", FinishReason: "stop", Usage: executor.Usage{InputTokens: 100, OutputTokens: 10}}, nil
	})}, func(sid string) any {
		return session.Generation{
			At: at, Class: session.ClassLLM, Effect: "r1t1", Items: session.ListItems(session.Item{Role: session.RoleUser, Seq: 1}), Model: "m",
			Provider: "openai", RunMS: 300_000, Session: sid, StartBy: at + 600_000, V: session.Version,
		}
	})
}

func benchmarkEffect(b *testing.B, s Target, of func(sid string) any) {
	names, err := subjects.New("")
	if err != nil {
		b.Fatal(err)
	}
	asked, err := session.Envelope{Type: session.TypeRunRequested, V: session.Version}.With(session.RunRequested{Input: session.Content{Text: "hello"}})
	if err != nil {
		b.Fatal(err)
	}
	w := New(nowhere{asked: asked}, "one", "one", time.Now, slog.New(slog.DiscardHandler))
	life, end := NewLifetimes(b.Context(), time.Second)
	defer end()
	const sessions = 1024
	var notes [sessions]Delivery
	for i := range notes {
		sid := fmt.Sprintf("session-%04d", i)
		e := of(sid)
		name := subjects.EffectName{Class: s.Class, Target: s.Name, Session: sid, Effect: "r1t1c0"}
		if s.Class == session.ClassLLM {
			name.Effect = "r1t1"
		}
		subject, err := names.Effect(name)
		if err != nil {
			b.Fatal(err)
		}
		payload, err := codec.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		notes[i] = note{name: name, subject: subject, payload: payload}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%sessions == 0 {
			w.executions = newExecutions() // what is settled is not carried out again
		}
		w.deliver(&life, &s, notes[i%sessions])
	}
	if got := w.stats.Settled.Load(); got != uint64(b.N) {
		b.Fatalf("%d effects settled, want %d", got, b.N)
	}
}
