package session

import "github.com/refold/refold/codec"

// The bodies that most of a log is made of read themselves as codec would read
// them: a walk takes five times as long. What they leave to codec is what is
// rare, or wrong: parts and blobs.

// ReadCanonical reads the body as codec does.
func (b *ToolCallsObserved) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("calls")
	b.Calls = readCalls(&r, len(data))
	r.Must("effect")
	b.Effect = string(r.Text())
	if r.Has("model") {
		b.Model = r.SomeText()
	}
	if r.Has("opaque") {
		b.Opaque = r.Raw(1)
	}
	if r.Has("text") {
		b.Text = readText(&r)
	}
	if r.Has("usage") {
		b.Usage = readUsage(&r)
	}
	r.EndMap(outer)
	return r.End()
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
		c.ToolName = string(r.Text())
		r.EndMap(outer)
	}
	return calls
}

// ReadCanonical reads the body as codec does.
func (b *GenerationSettled) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("effect")
	b.Effect = string(r.Text())
	if r.Has("error") {
		b.Error = readFault(&r)
	}
	if r.Has("finish_reason") {
		b.FinishReason = r.SomeText()
	}
	if r.Has("model") {
		b.Model = r.SomeText()
	}
	if r.Has("opaque") {
		b.Opaque = r.Raw(1)
	}
	r.Must("status")
	b.Status = statusName(r.Text())
	if r.Has("text") {
		b.Text = readText(&r)
	}
	if r.Has("usage") {
		b.Usage = readUsage(&r)
	}
	r.EndMap(outer)
	return r.End()
}

// ReadCanonical reads the body as codec does.
func (b *ToolCallSettled) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	if r.Has("duration_ms") {
		b.DurationMS = r.Some()
	}
	r.Must("effect")
	b.Effect = string(r.Text())
	if r.Has("error") {
		b.Error = readFault(&r)
	}
	if r.Has("host_session") {
		b.HostSession = readHost(&r)
	}
	if r.Has("output") {
		b.Output = readText(&r)
	}
	if r.Has("plan_hash") {
		b.PlanHash = r.SomeText()
	}
	r.Must("status")
	b.Status = statusName(r.Text())
	r.EndMap(outer)
	return r.End()
}

// ReadCanonical reads the body as codec does.
func (b *RunRequested) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	if r.Has("config") {
		b.Config = &RunConfig{}
		if codec.Unmarshal(r.Raw(1), b.Config) != nil {
			r.Fail()
		}
	}
	r.Must("input")
	if text := readText(&r); text != nil {
		b.Input = *text
	}
	if r.Has("submission") {
		b.Submission = r.SomeText()
	}
	if r.Has("when_busy") {
		b.WhenBusy = r.SomeText()
	}
	r.EndMap(outer)
	return r.End()
}

// ReadCanonical reads the body as codec does.
func (b *WakeSettled) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("effect")
	b.Effect = string(r.Text())
	r.EndMap(outer)
	return r.End()
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
	f.Code = string(r.Text())
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
	if r.Has("route") {
		h.Route = r.SomeText()
	}
	r.Must("status")
	h.Status = string(r.Text())
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
