package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// Rehearsed is the result of one rehearsed call: its settlement, and what a model
// is shown.
type Rehearsed struct {
	Status      string // succeeded, failed, cancelled, outcome_unknown; empty: given back, for another bridge to run
	Code        string // unless it succeeded
	Detail      string
	Retryable   bool
	Shown       string          // what the model is shown
	Output      string          // the whole output; of a file, its line
	Files       []executor.File // as they were returned
	HostSession *executor.HostSession
}

// Rehearsal holds the options of a rehearsed call.
type Rehearsal struct {
	// RunTime limits the call; 0: five minutes, a session's default.
	RunTime time.Duration
	// Stopped, if given, ends when the bridge stops and its grace time is over.
	Stopped context.Context
	// Secrets are the call's secrets, by name.
	Secrets map[string]string
}

// rehearsalRunTime is a session's default.
const rehearsalRunTime = 5 * time.Minute

// Rehearse executes one call without a session and without NATS.
func Rehearse(ctx context.Context, e executor.Executor, call executor.Call, o Rehearsal) Rehearsed {
	kept := &keptBlobs{blobs: map[codec.Ref][]byte{}}
	now := time.Now()
	w := New(kept, NewULID(now), "rehearsal", time.Now, slog.New(slog.DiscardHandler))
	f := &execution{effect: &effect{
		name: subjects.EffectName{Class: session.ClassTool, Target: "rehearsal", Session: call.Session, Effect: call.Effect},
		call: &session.ToolCall{
			Arguments: string(call.Arguments), Effect: call.Effect, IdempotencyKey: call.IdempotencyKey, ProviderCallID: call.ProviderCallID,
			RetrySafe: call.RetrySafe, Session: call.Session, ToolID: call.ToolID, ToolName: call.ToolName,
		},
		runTime: cmp.Or(o.RunTime, rehearsalRunTime), startBy: now.Add(rehearsalRunTime),
	}}
	if h := call.HostSession; h != nil {
		f.call.HostSession = &session.HostSession{ID: h.ID, Status: h.Status, Root: h.Root, Route: h.Route}
	}
	if call.Context != nil {
		carried, err := codec.FromJSON(call.Context)
		if err != nil {
			return Rehearsed{Status: string(session.CallFailed), Code: codeExecutorError, Detail: "context: " + err.Error()}
		}
		f.call.Context = carried
	}
	base := context.WithoutCancel(ctx)
	grace, stop := context.WithCancelCause(base)
	defer stop(nil)
	if o.Stopped != nil {
		defer context.AfterFunc(o.Stopped, func() { stop(errDraining) })()
	}
	f.secrets = newCallSecrets(o.Secrets, nil)
	f.digest = nameDigest(call.Session, call.Effect)
	w.executions.byName[f.digest] = f
	if ctx.Err() != nil { // AfterFunc alone may run too late
		w.executions.withdraw(call.Session, call.Effect)
	}
	defer context.AfterFunc(ctx, func() { w.executions.withdraw(call.Session, call.Effect) })()
	f.life, f.served = &Lifetimes{Drain: base, grace: grace, Last: base}, &Target{Executor: e}
	defer w.stopAfterGrace(*f.life)()
	ended := make(chan decision, 1)
	f.resume = func(r decision) { ended <- r }
	go func() {
		if r := (calls{}).start(w, f); r.next != nextHandedOff {
			ended <- r
		}
	}()
	r := <-ended
	if r.next != nextSettle {
		return Rehearsed{}
	}
	return w.rehearsed(base, kept, f, r.outcome)
}

// rehearsed returns an outcome as its settlement holds it, and as the next turn
// of a model shows it.
func (w *Worker) rehearsed(ctx context.Context, kept *keptBlobs, f *execution, o outcome) Rehearsed {
	out := Rehearsed{Status: string(o.status), Output: o.output, Files: o.files}
	if o.fault != nil {
		fault := wireFault(o.fault, codeExecutorError)
		out.Code, out.Detail, out.Retryable = fault.Code, fault.Detail, fault.Retryable
	}
	if o.host != nil {
		out.HostSession = o.host
	}
	settled, err := w.callBody(ctx, f.effect, o, inlineBytesMax)
	if err == nil {
		out.Shown, err = prompt.New(kept).Result(ctx, settled)
	}
	if err != nil { // the store is in memory, so the result is too large
		out.Shown = err.Error()
	}
	return out
}

// keptBlobs is the Transport of a rehearsal: it keeps blobs, and no other method is
// called.
type keptBlobs struct {
	Transport
	blobs map[codec.Ref][]byte
}

// PutBlob implements Transport.
func (k *keptBlobs) PutBlob(_ context.Context, content []byte) (codec.Ref, error) {
	ref := codec.RefOf(content)
	k.blobs[ref] = content
	return ref, nil
}

// Blob implements Transport.
func (k *keptBlobs) Blob(_ context.Context, ref codec.Ref) ([]byte, error) {
	content, ok := k.blobs[ref]
	if !ok {
		return nil, natsio.ErrNotFound
	}
	return content, nil
}
