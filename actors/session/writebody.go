package session

import "github.com/refold/refold/codec"

// The settlements that bridges write write themselves as codec would write
// them: a walk takes some five times as long. What they leave to codec is what
// is rare, or wrong: parts and blobs.

// eventRoom is what most settlements take at most.
const eventRoom = 320

// quickBody is a body that writes itself.
type quickBody interface {
	AppendCanonical(out []byte) ([]byte, bool)
}

// quickWith is With for a body that writes itself.
func (e *Envelope) quickWith(out []byte, body any) ([]byte, bool) {
	quick, ok := body.(quickBody)
	if !ok {
		return nil, false
	}
	n := 2 // data, type
	for _, given := range [...]bool{e.At != 0, e.By != "", e.ID != "", e.V != 0} {
		if given {
			n++
		}
	}
	before := len(out)
	w := writer{out: codec.AppendMap(out, n)}
	w.someInt("at", e.At)
	w.someText("by", e.By)
	if w.out, ok = quick.AppendCanonical(codec.AppendString(w.out, "data")); !ok {
		return nil, false
	}
	w.someText("id", e.ID)
	w.text("type", e.Type)
	w.someInt("v", int64(e.V))
	return w.out, !w.bad && len(w.out)-before <= codec.BytesMax
}

// AppendCanonical writes the body as codec does.
func (b *ToolCallsObserved) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 2
	for _, given := range [...]bool{b.Model != "", len(b.Opaque) > 0, b.Text != nil, b.Usage != nil} {
		if given {
			n++
		}
	}
	w := writer{out: codec.AppendMap(out, n)}
	w.out = codec.AppendArray(codec.AppendString(w.out, "calls"), len(b.Calls))
	for i := range b.Calls {
		w.call(&b.Calls[i])
	}
	w.text("effect", b.Effect)
	w.someText("model", b.Model)
	w.opaque(b.Opaque)
	w.content("text", b.Text)
	w.usage(b.Usage)
	return w.out, !w.bad
}

// AppendCanonical writes the body as codec does.
func (b *GenerationSettled) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 2
	for _, given := range [...]bool{b.Error != nil, b.FinishReason != "", b.Model != "", len(b.Opaque) > 0, b.Text != nil, b.Usage != nil} {
		if given {
			n++
		}
	}
	w := writer{out: codec.AppendMap(out, n)}
	w.text("effect", b.Effect)
	w.fault(b.Error)
	w.someText("finish_reason", b.FinishReason)
	w.someText("model", b.Model)
	w.opaque(b.Opaque)
	w.text("status", b.Status)
	w.content("text", b.Text)
	w.usage(b.Usage)
	return w.out, !w.bad
}

// AppendCanonical writes the body as codec does.
func (b *ToolCallSettled) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 2
	for _, given := range [...]bool{b.DurationMS != 0, b.Error != nil, b.HostSession != nil, b.Output != nil, b.PlanHash != ""} {
		if given {
			n++
		}
	}
	w := writer{out: codec.AppendMap(out, n)}
	w.someInt("duration_ms", b.DurationMS)
	w.text("effect", b.Effect)
	w.fault(b.Error)
	if h := b.HostSession; h != nil {
		w.host("host_session", h)
	}
	w.content("output", b.Output)
	w.someText("plan_hash", b.PlanHash)
	w.text("status", b.Status)
	return w.out, !w.bad
}

func (w *writer) someInt(key string, i int64) {
	if i != 0 {
		w.int(key, i)
	}
}

// opaque writes what stands inside a body, and that inside an envelope.
func (w *writer) opaque(raw codec.Raw) {
	if len(raw) > 0 {
		out, ok := codec.AppendRaw(codec.AppendString(w.out, "opaque"), raw, 2)
		w.out, w.bad = out, w.bad || !ok
	}
}

// call writes a call whose arguments are in the event.
func (w *writer) call(c *ObservedCall) {
	if c.ArgumentsBlob != nil || c.Size != 0 {
		w.bad = true
		return
	}
	n := 1
	if c.Arguments != "" {
		n++
	}
	if c.ProviderCallID != "" {
		n++
	}
	w.out = codec.AppendMap(w.out, n)
	w.someText("arguments", c.Arguments)
	w.someText("provider_call_id", c.ProviderCallID)
	w.text("tool_name", c.ToolName)
}

// content writes a content that is text, or empty.
func (w *writer) content(key string, c *Content) {
	switch {
	case c == nil:
		return
	case c.Blob != nil || c.Parts != nil || c.MediaType != "" || c.Size != 0:
		w.bad = true
		return
	}
	n := 0
	if c.Text != "" {
		n++
	}
	w.out = codec.AppendMap(codec.AppendString(w.out, key), n)
	w.someText("text", c.Text)
}

func (w *writer) usage(u *Usage) {
	if u == nil {
		return
	}
	n := 0
	for _, tokens := range [...]int64{u.CacheWriteTokens, u.CachedTokens, u.InputTokens, u.OutputTokens, u.ReasoningTokens} {
		if tokens != 0 {
			n++
		}
	}
	w.out = codec.AppendMap(codec.AppendString(w.out, "usage"), n)
	w.someInt("cache_write_tokens", u.CacheWriteTokens)
	w.someInt("cached_tokens", u.CachedTokens)
	w.someInt("input_tokens", u.InputTokens)
	w.someInt("output_tokens", u.OutputTokens)
	w.someInt("reasoning_tokens", u.ReasoningTokens)
}

func (w *writer) fault(f *Fault) {
	if f == nil {
		return
	}
	n := 1
	if f.Detail != "" {
		n++
	}
	if f.Retryable {
		n++
	}
	w.out = codec.AppendMap(codec.AppendString(w.out, "error"), n)
	w.text("code", f.Code)
	w.someText("detail", f.Detail)
	if f.Retryable {
		w.out = codec.AppendBool(codec.AppendString(w.out, "retryable"), true)
	}
}
