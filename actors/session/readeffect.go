package session

import "github.com/refold/refold/codec"

// Effects read themselves, as codec would read them: a bridge reads every one
// that it carries out.

// ReadCanonical reads the effect as codec does. The effect's name, its session and
// its provider may be set to what they will be: they are read all the same, and not
// copied if so.
func (g *Generation) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("at")
	g.At = r.Int()
	if r.Has("cache_ttl") {
		g.CacheTTL = r.SomeText()
	}
	r.Must("class")
	g.Class = className(r.Text())
	if r.Has("defined") {
		g.Defined = readHashes(&r, len(data))
		if len(g.Defined) == 0 { // codec would have left it out
			r.Fail()
		}
	}
	r.Must("effect")
	g.Effect = same(g.Effect, r.Text())
	r.Must("items")
	g.Items = readItems(&r, len(data))
	r.Must("model")
	g.Model = string(r.Text())
	if r.Has("output_tokens_max") {
		g.OutputTokensMax = r.Some()
	}
	if r.Has("params") {
		g.Params = r.Raw(1)
	}
	if r.Has("prompt") {
		readSome(&r, &g.Prompt)
	}
	if r.Has("prompt_mark") {
		mark := r.Hash()
		g.PromptMark = &mark
	}
	r.Must("provider")
	g.Provider = same(g.Provider, r.Text())
	if r.Has("response_format") {
		g.ResponseFormat = r.Raw(1)
	}
	r.Must("run_ms")
	g.RunMS = r.Int()
	r.Must("session")
	g.Session = same(g.Session, r.Text())
	r.Must("start_by")
	g.StartBy = r.Int()
	if r.Has("system") {
		g.System = r.SomeText()
	}
	if r.Has("tool_choice") {
		g.ToolChoice = r.SomeText()
	}
	if r.Has("tools") {
		g.Tools = readHashes(&r, len(data))
	}
	r.Must("toolset")
	g.Toolset = r.Hash()
	r.Must("v")
	g.V = int(r.Int())
	if r.Has("vars") {
		readSome(&r, &g.Vars)
	}
	r.EndMap(outer)
	return r.End()
}

// ReadCanonical reads the effect as codec does. The effect's name, its session, its
// batch and its idempotency key may be set to what they will be: they are read all
// the same, and not copied if so.
func (c *ToolCall) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("arguments")
	c.Arguments = string(r.Text())
	r.Must("at")
	c.At = r.Int()
	r.Must("batch")
	c.Batch = same(c.Batch, r.Text())
	r.Must("call")
	c.Call = int(r.Int())
	r.Must("class")
	c.Class = className(r.Text())
	if r.Has("context") {
		c.Context = r.Raw(1)
	}
	r.Must("effect")
	c.Effect = same(c.Effect, r.Text())
	if r.Has("grants") {
		readSome(&r, &c.Grants)
	}
	if r.Has("host_session") {
		c.HostSession = readHost(&r)
	}
	r.Must("idempotency_key")
	c.IdempotencyKey = same(c.IdempotencyKey, r.Text())
	r.Must("plan_hash")
	c.PlanHash = r.Hash()
	if r.Has("provider_call_id") {
		c.ProviderCallID = r.SomeText()
	}
	if r.Has("retry_safe") {
		c.RetrySafe = r.True()
	}
	r.Must("run_ms")
	c.RunMS = r.Int()
	r.Must("session")
	c.Session = same(c.Session, r.Text())
	if r.Has("spaces") {
		readSome(&r, &c.Spaces)
	}
	r.Must("start_by")
	c.StartBy = r.Int()
	r.Must("tool_id")
	c.ToolID = string(r.Text())
	r.Must("tool_name")
	c.ToolName = string(r.Text())
	r.Must("v")
	c.V = int(r.Int())
	r.EndMap(outer)
	return r.End()
}

// What an item takes at least, and a hash always: what bounds how many there
// are.
const itemBytesMin = len("\x82\xa4role\xa0\xa3seq\x00")

// readItems reads the items of an effect of so many bytes.
func readItems(r *codec.Reader, bytes int) []Item {
	n := r.Array()
	if n > bytes/itemBytesMin {
		r.Fail()
		return nil
	}
	items := make([]Item, n)
	for i := range items {
		r.Quick(&items[i])
	}
	return items
}

// readSome reads what is rare as codec does. An empty one is none of ours.
func readSome(r *codec.Reader, to any) {
	if raw := r.Raw(1); len(raw) < 2 || codec.Unmarshal(raw, to) != nil {
		r.Fail()
	}
}

func readHashes(r *codec.Reader, bytes int) []codec.Hash {
	n := r.Array()
	if n > bytes/hashRoomText {
		r.Fail()
		return nil
	}
	hashes := make([]codec.Hash, n)
	for i := range hashes {
		hashes[i] = r.Hash()
	}
	return hashes
}

// same returns a text as a string: was, if that says the same.
func same(was string, text []byte) string {
	if was == string(text) {
		return was
	}
	return string(text)
}

// className returns a class; those that are known are not allocated.
func className(b []byte) Class {
	switch string(b) {
	case string(ClassLLM):
		return ClassLLM
	case string(ClassTool):
		return ClassTool
	}
	return Class(b)
}
