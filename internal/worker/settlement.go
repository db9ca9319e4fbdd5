package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

// settlement is an event that ends an effect, ready to be stored.
type settlement struct {
	door    session.Door
	id      string // unique among all settlements, also of this effect
	payload []byte
	body    any // a pointer to the body in payload
}

// errTooLarge says that no event can hold the outcome.
var errTooLarge = errors.New("larger than an event may be")

// encode makes the settlement of an outcome. It first stores text above inlineMax
// bytes, and arguments above the session's limit, as blobs; an error of that is
// temporary. If an event can't hold the rest, all text goes to blobs, then a
// provider's items are left out, then arguments go to blobs, the largest first:
// the session refuses these calls, and the run goes on. An outcome that is still
// too large becomes a failure with that reason.
func (w *Worker) encode(ctx context.Context, e *effect, o outcome, inlineMax int) (settlement, error) {
	s, err := w.encodeAs(ctx, e, o, inlineMax)
	if errors.Is(err, errTooLarge) && inlineMax > inlineBytesSlim {
		s, err = w.encodeAs(ctx, e, o, inlineBytesSlim)
	}
	if errors.Is(err, errTooLarge) && o.answer != nil && o.answer.Opaque != nil {
		bare := *o.answer
		bare.Opaque = nil
		o.answer = &bare
		s, err = w.encodeAs(ctx, e, o, inlineBytesSlim)
	}
	if errors.Is(err, errTooLarge) && o.answer != nil && len(o.answer.Calls) > 0 {
		if o.offloaded, err = w.offload(ctx, e, o); err == nil {
			s, err = w.encodeAs(ctx, e, o, inlineBytesSlim)
		}
	}
	if errors.Is(err, errTooLarge) {
		detail := fmt.Sprintf("the answer is more than an event holds, %d calls and %d KiB with its texts in blobs: ask for less at a time",
			session.CallsSeenMax, session.EventBytesMax>>10)
		at := o.at
		o = failed(codeAnswerTooLarge, detail)
		o.at = at
		s, err = w.encodeAs(ctx, e, o, inlineBytesSlim)
	}
	return s, err
}

func (w *Worker) encodeAs(ctx context.Context, e *effect, o outcome, inlineMax int) (settlement, error) {
	typ, body, err := classOps[e.name.Class].body(ctx, w, e, o, inlineMax)
	if err != nil {
		return settlement{}, err
	}
	payload, err := session.Envelope{V: session.Version, Type: typ, At: o.at.UnixMilli(), By: w.by}.With(body)
	if err != nil || len(payload) > session.EventBytesMax {
		return settlement{}, errors.Join(errTooLarge, err)
	}
	// The id holds a digest of the payload: the same event published again counts
	// once, and another settlement of the effect never counts as it.
	return settlement{
		door:    subjects.DoorOf(e.name.Class),
		id:      settlementID(&e.name, payload),
		payload: payload,
		body:    body,
	}, nil
}

// settlementID returns the id of a settlement of an effect. Its digest is valid
// in this process only: the payload of another one has another bridge's name, so
// its id may differ. The stream's reply tells apart two payloads with one digest.
func settlementID(name *subjects.EffectName, payload []byte) string {
	digest := digestOf(payload)
	return name.Effect + "." + strconv.FormatUint(digest[0], 36) + "." + strconv.FormatUint(digest[1], 36)
}

func (w *Worker) callBody(ctx context.Context, e *effect, o outcome, inlineMax int) (*session.ToolCallSettled, error) {
	b := &session.ToolCallSettled{
		DurationMS: o.duration.Milliseconds(), Effect: e.name.Effect, Error: wireFault(o.fault, codeExecutorError),
		PlanHash: e.call.PlanHash.String(), Status: string(o.status),
	}
	if o.host != nil {
		b.HostSession = &session.HostSession{ID: prompt.Valid(o.host.ID), Root: prompt.Valid(o.host.Root), Route: prompt.Valid(o.host.Route), Status: prompt.Valid(o.host.Status)}
	}
	var err error
	b.Output, err = w.outputContent(ctx, o, inlineMax)
	return b, err
}

// callsBody stores arguments as blobs if they are too large for the session, or if
// their index is in offloaded.
func (w *Worker) callsBody(ctx context.Context, e *effect, a *executor.Answer, offloaded map[int]bool, inlineMax int) (*session.ToolCallsObserved, error) {
	if len(a.Calls) > session.CallsSeenMax {
		return nil, errTooLarge
	}
	b := &session.ToolCallsObserved{
		Calls: make([]session.ObservedCall, len(a.Calls)), Effect: e.name.Effect, Model: prompt.Clip(a.Model, session.NameBytesMax),
		Opaque: w.opaque(e, a.Opaque), Usage: wireUsage(a.Usage),
	}
	if a.FinishReason != session.FinishToolCalls {
		b.FinishReason = prompt.Clip(a.FinishReason, session.NameBytesMax)
	}
	for i, c := range a.Calls {
		call := session.ObservedCall{
			Arguments: prompt.Valid(c.Arguments), ProviderCallID: prompt.Clip(c.ID, session.ByBytesMax), ToolName: prompt.Valid(c.Name),
		}
		if len(call.Arguments) > planner.ArgumentsBytesMax || offloaded[i] {
			ref, err := w.wire.PutBlob(ctx, []byte(call.Arguments))
			if err != nil {
				return nil, fmt.Errorf("store %d bytes of arguments: %w", len(call.Arguments), err)
			}
			call.Arguments, call.ArgumentsBlob, call.Size = "", &ref, int64(len(call.Arguments))
		}
		b.Calls[i] = call
	}
	var err error
	b.Text, err = w.content(ctx, a.Text, inlineMax)
	return b, err
}

// offload returns the calls whose arguments to store as blobs so that the event can
// hold the rest: the largest first, and no more than necessary.
func (w *Worker) offload(ctx context.Context, e *effect, o outcome) (map[int]bool, error) {
	bare := *o.answer
	bare.Calls = slices.Clone(bare.Calls)
	bytes, order := make([]int, len(bare.Calls)), make([]int, len(bare.Calls))
	total := 0
	for i := range bare.Calls {
		bytes[i], order[i] = len(prompt.Valid(bare.Calls[i].Arguments)), i
		bare.Calls[i].Arguments = ""
		if bytes[i] > planner.ArgumentsBytesMax {
			bytes[i] = 0 // a blob already
			total += argumentsRefBytes
		} else {
			total += bytes[i] + argumentsFixedBytes
		}
	}
	o.answer = &bare
	s, err := w.encodeAs(ctx, e, o, inlineBytesSlim)
	if err != nil {
		return nil, err
	}
	total += len(s.payload)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(bytes[j], bytes[i]) })
	offloaded := make(map[int]bool)
	for _, i := range order {
		if total <= session.EventBytesMax || bytes[i] <= argumentsRefBytes {
			break
		}
		offloaded[i] = true
		total -= bytes[i] + argumentsFixedBytes - argumentsRefBytes
	}
	return offloaded, nil
}

func (w *Worker) generationBody(ctx context.Context, e *effect, o outcome, inlineMax int) (*session.GenerationSettled, error) {
	if o.answer == nil {
		return &session.GenerationSettled{Effect: e.name.Effect, Error: wireFault(o.fault, codeModelError), Status: "failed"}, nil
	}
	a := o.answer
	b := &session.GenerationSettled{
		Effect: e.name.Effect, FinishReason: prompt.Clip(a.FinishReason, session.NameBytesMax), Model: prompt.Clip(a.Model, session.NameBytesMax),
		Opaque: w.opaque(e, a.Opaque), Status: "ok", Usage: wireUsage(a.Usage),
	}
	var err error
	b.Text, err = w.content(ctx, a.Text, inlineMax)
	return b, err
}

// opaque returns a provider's items as an event holds them. They only help the next
// turn, so items that can't be stored are left out.
func (w *Worker) opaque(e *effect, items json.RawMessage) codec.Raw {
	if len(items) == 0 {
		return nil
	}
	raw, err := codec.FromJSON(items)
	if err == nil && len(raw) <= inlineBytesMax {
		return raw
	}
	w.log.Warn("provider_items_left_out", "session", e.name.Session, "effect", e.name.Effect, "bytes", len(items))
	return nil
}

// wireFault returns a fault as the session accepts it. code replaces a missing
// code.
func wireFault(e *executor.Error, code string) *session.Fault {
	if e == nil {
		return nil
	}
	f := &session.Fault{Code: prompt.Clip(e.Code, session.CodeBytesMax), Detail: prompt.Clip(e.Detail, session.DetailBytesMax), Retryable: e.Retryable}
	if f.Code == "" {
		f.Code = code
	}
	return f
}

// wireUsage returns a usage as the session accepts it, nil for none.
func wireUsage(u executor.Usage) *session.Usage {
	if u == (executor.Usage{}) {
		return nil
	}
	bound := func(n int64) int64 { return min(max(n, 0), session.TokensMax) }
	return &session.Usage{
		CacheWriteTokens: bound(u.CacheWriteTokens), CachedTokens: bound(u.CachedTokens), InputTokens: bound(u.InputTokens),
		OutputTokens: bound(u.OutputTokens), ReasoningTokens: bound(u.ReasoningTokens),
	}
}
