package session

import "github.com/refold/refold/codec"

// The settlements that most of a log is made of are read here while they are
// scanned, as codec would read them: a walk takes some three times as long.
// What is left to codec is what is rare, or wrong: parts and blobs.

// read reads the body out of so many bytes; what it holds stands inside so many
// containers.
func (b *ToolCallsObserved) read(r *codec.Reader, bytes, inside int) {
	outer := r.Map()
	r.Must("calls")
	b.Calls = readCalls(r, bytes)
	r.Must("effect")
	b.Effect = r.Str()
	if r.Has("model") {
		b.Model = r.SomeText()
	}
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

// callBytesMin is what a call takes at least: what bounds how many there are.
const callBytesMin = len("\x81\xa9tool_name\xa0")

// readCalls reads the calls of an event of so many bytes.
func readCalls(r *codec.Reader, bytes int) []ObservedCall {
	n := r.Array()
	if n > bytes/callBytesMin {
		r.Fail()
		return nil
	}
	calls := make([]ObservedCall, n)
	for i := range calls {
		outer, c := r.Map(), &calls[i]
		if r.Has("arguments") {
			c.Arguments = r.SomeText()
		}
		if r.Has("provider_call_id") {
			c.ProviderCallID = r.SomeText()
		}
		r.Must("tool_name")
		c.ToolName = r.Str()
		r.EndMap(outer)
	}
	return calls
}

// answerTexts are the texts of a GenerationSettled of which the fold keeps
// nothing, in the memory of the event.
type answerTexts struct {
	effect, finishReason, model, text []byte
	hasText                           bool
}

// read reads the body but for these texts, which it returns; what it holds stands
// inside so many containers.
func (b *GenerationSettled) read(r *codec.Reader, inside int) (texts answerTexts) {
	outer := r.Map()
	r.Must("effect")
	texts.effect = r.Text()
	if r.Has("error") {
		b.Error = readFault(r)
	}
	if r.Has("finish_reason") {
		texts.finishReason = r.SomeBytes()
	}
	if r.Has("model") {
		texts.model = r.SomeBytes()
	}
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

// callTexts are the texts of a ToolCallSettled of which the fold keeps nothing,
// in the memory of the event.
type callTexts struct {
	effect, output, planHash []byte
	hasOutput                bool
	outputEnd                int // where the output ends, if it is not empty
}

// read reads the body but for these texts, which it returns.
func (b *ToolCallSettled) read(r *codec.Reader) (texts callTexts) {
	outer := r.Map()
	if r.Has("duration_ms") {
		b.DurationMS = r.Some()
	}
	r.Must("effect")
	texts.effect = r.Text()
	if r.Has("error") {
		b.Error = readFault(r)
	}
	if r.Has("host_session") {
		b.HostSession = readHost(r)
	}
	if texts.hasOutput = r.Has("output"); texts.hasOutput {
		content := r.Map()
		if r.Has("text") {
			texts.output = r.SomeBytes()
			texts.outputEnd = r.Pos()
		}
		r.EndMap(content)
	}
	if r.Has("plan_hash") {
		texts.planHash = r.SomeBytes()
	}
	r.Must("status")
	b.Status = statusName(r.Text())
	r.EndMap(outer)
	return texts
}

// number reads an integer of at least so much.
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
	if r.Has("text") {
		text = r.SomeBytes()
	}
	r.EndMap(outer)
	return text
}

// readText reads a content that is text, or empty.
func readText(r *codec.Reader) *Content {
	outer, c := r.Map(), &Content{}
	if r.Has("text") {
		c.Text = r.SomeText()
	}
	r.EndMap(outer)
	return c
}

func readUsage(r *codec.Reader) *Usage {
	outer, u := r.Map(), &Usage{}
	if r.Has("cache_write_tokens") {
		u.CacheWriteTokens = r.Some()
	}
	if r.Has("cached_tokens") {
		u.CachedTokens = r.Some()
	}
	if r.Has("input_tokens") {
		u.InputTokens = r.Some()
	}
	if r.Has("output_tokens") {
		u.OutputTokens = r.Some()
	}
	if r.Has("reasoning_tokens") {
		u.ReasoningTokens = r.Some()
	}
	r.EndMap(outer)
	return u
}

func readFault(r *codec.Reader) *Fault {
	outer, f := r.Map(), &Fault{}
	r.Must("code")
	f.Code = r.Str()
	if r.Has("detail") {
		f.Detail = r.SomeText()
	}
	if r.Has("retryable") {
		f.Retryable = r.True()
	}
	r.EndMap(outer)
	return f
}

func readHost(r *codec.Reader) *HostSession {
	outer, h := r.Map(), &HostSession{}
	if r.Has("id") {
		h.ID = r.SomeText()
	}
	if r.Has("root") {
		h.Root = r.SomeText()
	}
	if r.Has("route") {
		h.Route = r.SomeText()
	}
	r.Must("status")
	h.Status = r.Str()
	r.EndMap(outer)
	return h
}

// statusName returns the text of a status; those that are usual are not
// allocated.
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
