package session

import "github.com/refold/refold/codec"

// Most events of a log are settlements. They are read here in one pass, with the
// same result as codec, which takes about three times as long. Rare or invalid
// bodies, such as parts and blobs, are left to codec.

// read reads the body of an event of the given size. Its values are nested in
// `inside` containers.
func (b *ToolCallsObserved) read(r *codec.Reader, bytes, inside int) {
	outer := r.Map()
	r.Must("calls")
	b.Calls = readCalls(r, bytes)
	r.Must("effect")
	b.Effect = r.Str()
	b.FinishReason = r.SomeText("finish_reason")
	b.Model = r.SomeText("model")
	if r.Has("opaque") {
		b.Opaque = r.Raw(inside)
	}
	if r.Has("text") {
		b.Text = readText(r)
	}
	if r.Has("usage") {
		b.Usage = readUsage(r)
	}
	r.EndMap(outer)
}

// callBytesMin is the minimal size of a call. It bounds the number of calls.
const callBytesMin = len("\x81\xa9tool_name\xa0")

// readCalls reads the calls of an event of the given size.
func readCalls(r *codec.Reader, bytes int) []ObservedCall {
	n := r.Array()
	if n > bytes/callBytesMin {
		r.Fail()
		return nil
	}
	calls := make([]ObservedCall, n)
	for i := range calls {
		outer, c := r.Map(), &calls[i]
		c.Arguments = r.SomeText("arguments")
		c.ProviderCallID = r.SomeText("provider_call_id")
		r.Must("tool_name")
		c.ToolName = r.Str()
		r.EndMap(outer)
	}
	return calls
}

// answerTexts are the texts of a GenerationSettled that the fold does not keep.
// They share the event's memory.
type answerTexts struct {
	effect, finishReason, model, text []byte
	hasText                           bool
}

// read reads the body except for these texts, which it returns. Its values are
// nested in `inside` containers.
func (b *GenerationSettled) read(r *codec.Reader, inside int) (texts answerTexts) {
	outer := r.Map()
	r.Must("effect")
	texts.effect = r.Text()
	if r.Has("error") {
		b.Error = readFault(r)
	}
	texts.finishReason = r.SomeBytes("finish_reason")
	texts.model = r.SomeBytes("model")
	if r.Has("opaque") {
		b.Opaque = r.Raw(inside)
	}
	r.Must("status")
	b.Status = statusName(r.Text())
	if texts.hasText = r.Has("text"); texts.hasText {
		texts.text = readTextBytes(r)
	}
	if r.Has("usage") {
		b.Usage = readUsage(r)
	}
	r.EndMap(outer)
	return texts
}

// callTexts are the texts of a ToolCallSettled that the fold does not keep. They
// share the event's memory.
type callTexts struct {
	effect, output, planHash []byte
	outputEnd                int // position after the output, if that is not empty
}

// read reads the body except for these texts, which it returns.
func (b *ToolCallSettled) read(r *codec.Reader) (texts callTexts) {
	outer := r.Map()
	b.DurationMS = r.Some("duration_ms")
	r.Must("effect")
	texts.effect = r.Text()
	if r.Has("error") {
		b.Error = readFault(r)
	}
	if r.Has("host_session") {
		b.HostSession = readHost(r)
	}
	if r.Has("output") {
		content := r.Map()
		if texts.output = r.SomeBytes("text"); len(texts.output) > 0 {
			texts.outputEnd = r.Pos()
		}
		r.EndMap(content)
	}
	texts.planHash = r.SomeBytes("plan_hash")
	r.Must("status")
	b.Status = statusName(r.Text())
	r.EndMap(outer)
	return texts
}

func number(r *codec.Reader, least int64) uint64 {
	n := r.Int()
	if n < least {
		r.Fail()
	}
	return uint64(n)
}

// readTextBytes is readText without a copy.
func readTextBytes(r *codec.Reader) (text []byte) {
	outer := r.Map()
	text = r.SomeBytes("text")
	r.EndMap(outer)
	return text
}

// readText reads a content that is text, or empty.
func readText(r *codec.Reader) *Content {
	outer, c := r.Map(), &Content{}
	c.Text = r.SomeText("text")
	r.EndMap(outer)
	return c
}

func readUsage(r *codec.Reader) *Usage {
	outer, u := r.Map(), &Usage{}
	u.CacheWriteTokens = r.Some("cache_write_tokens")
	u.CachedTokens = r.Some("cached_tokens")
	u.InputTokens = r.Some("input_tokens")
	u.OutputTokens = r.Some("output_tokens")
	u.ReasoningTokens = r.Some("reasoning_tokens")
	r.EndMap(outer)
	return u
}

func readFault(r *codec.Reader) *Fault {
	outer, f := r.Map(), &Fault{}
	r.Must("code")
	f.Code = r.Str()
	f.Detail = r.SomeText("detail")
	f.Retryable = r.True("retryable")
	r.EndMap(outer)
	return f
}

func readHost(r *codec.Reader) *HostSession {
	outer, h := r.Map(), &HostSession{}
	h.ID = r.SomeText("id")
	h.Root = r.SomeText("root")
	h.Route = r.SomeText("route")
	r.Must("status")
	h.Status = r.Str()
	r.EndMap(outer)
	return h
}

// statusName returns a status; usual ones are not allocated.
func statusName(b []byte) string {
	switch string(b) {
	case "ok":
		return "ok"
	case "failed":
		return "failed"
	case string(CallSucceeded):
		return string(CallSucceeded)
	}
	return string(b)
}
