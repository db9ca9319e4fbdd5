package session

import "github.com/refold/refold/codec"

// Effects read themselves, as codec would read them: a bridge reads every one
// that it carries out.

// ReadCanonical reads the effect as codec does.
func (g *Generation) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("at")
	g.At = r.Int()
	r.Must("class")
	g.Class = className(r.Text())
	r.Must("effect")
	g.Effect = string(r.Text())
	r.Must("items")
	g.Items = readItems(&r, len(data))
	r.Must("model")
	g.Model = string(r.Text())
	if r.Has("params") {
		g.Params = r.Raw(1)
	}
	r.Must("provider")
	g.Provider = string(r.Text())
	if r.Has("response_format") {
		g.ResponseFormat = r.Raw(1)
	}
	r.Must("run_ms")
	g.RunMS = r.Int()
	r.Must("session")
	g.Session = string(r.Text())
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
	r.EndMap(outer)
	return r.End()
}

// ReadCanonical reads the effect as codec does.
func (c *ToolCall) ReadCanonical(data []byte) (n int, ok bool) {
	r := codec.Read(data)
	outer := r.Map()
	r.Must("arguments")
	c.Arguments = string(r.Text())
	r.Must("at")
	c.At = r.Int()
	r.Must("batch")
	c.Batch = string(r.Text())
	r.Must("call")
	c.Call = int(r.Int())
	r.Must("class")
	c.Class = className(r.Text())
	if r.Has("context") {
		c.Context = r.Raw(1)
	}
	r.Must("effect")
	c.Effect = string(r.Text())
	if r.Has("host_session") {
		c.HostSession = readHost(&r)
	}
	r.Must("idempotency_key")
	c.IdempotencyKey = string(r.Text())
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
	c.Session = string(r.Text())
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
