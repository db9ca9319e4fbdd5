package session

import "github.com/refold/refold/codec"

// Effects write themselves as codec would write them. A walk by reflection
// takes five times as long, and every effect is written when it is asked for
// and again in each replay.

// What an effect and a host session take at most without the texts in them, and a wake
// and any effect mostly.
const (
	generationRoom = 224
	toolCallRoom   = 256
	hostRoom       = 48
	wakeRoom       = 160
	payloadRoom    = 512
)

// payload returns the canonical bytes of an effect, in room if there is any.
func (g *Generation) payload(room []byte) []byte {
	if room == nil {
		room = make([]byte, 0, g.room())
	}
	if out, ok := g.AppendCanonical(room); ok {
		return out
	}
	return encode(*g)
}

// room is what most of them take at most.
func (g *Generation) room() int {
	texts := len(g.Effect) + len(g.Model) + len(g.Params) + len(g.Provider) + len(g.ResponseFormat) + len(g.Session) + len(g.System) + len(g.ToolChoice)
	return generationRoom + texts + len(g.Items)*itemRoom + (len(g.Defined)+len(g.Tools))*hashRoomText
}

// What an item takes mostly, and a hash always.
const (
	itemRoom     = 32
	hashRoomText = len(codec.Hash{}) + 2
)

// payload returns the canonical bytes of an effect, in room if there is any.
func (c *ToolCall) payload(room []byte) []byte {
	if room == nil {
		room = make([]byte, 0, c.room())
	}
	if out, ok := c.AppendCanonical(room); ok {
		return out
	}
	return encode(*c)
}

// room is what it takes at most.
func (c *ToolCall) room() int {
	texts := len(c.Arguments) + len(c.Batch) + len(c.Context) + len(c.Effect) + len(c.IdempotencyKey) + len(c.ProviderCallID) +
		len(c.Session) + len(c.ToolID) + len(c.ToolName)
	return toolCallRoom + texts + c.HostSession.room()
}

// payload returns the canonical bytes of an effect, in room if there is any.
func (w *Wake) payload(room []byte) []byte {
	if room == nil {
		room = make([]byte, 0, wakeRoom)
	}
	if out, ok := w.AppendCanonical(room); ok {
		return out
	}
	return encode(*w)
}

// AppendCanonical writes the effect as codec does.
func (g *Generation) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 11
	for _, given := range [...]bool{g.CacheTTL != "", len(g.Defined) > 0, g.OutputTokensMax != 0, len(g.Params) > 0, len(g.ResponseFormat) > 0, g.System != "", g.ToolChoice != "", g.Tools != nil,
		len(g.Prompt) > 0, g.PromptMark != nil, len(g.Vars) > 0} {
		if given {
			n++
		}
	}
	w := writer{out: codec.AppendMap(out, n)}
	w.int("at", g.At)
	w.someText("cache_ttl", g.CacheTTL)
	w.text("class", string(g.Class))
	if len(g.Defined) > 0 {
		w.hashes("defined", g.Defined)
	}
	w.text("effect", g.Effect)
	w.out = codec.AppendArray(codec.AppendString(w.out, "items"), len(g.Items))
	for i := range g.Items {
		if w.out, ok = g.Items[i].AppendCanonical(w.out); !ok {
			return nil, false
		}
	}
	w.text("model", g.Model)
	w.someInt("output_tokens_max", g.OutputTokensMax)
	w.someRaw("params", g.Params)
	if len(g.Prompt) > 0 {
		w.some("prompt", g.Prompt)
	}
	if g.PromptMark != nil {
		w.out = codec.AppendHash(codec.AppendString(w.out, "prompt_mark"), g.PromptMark)
	}
	w.text("provider", g.Provider)
	w.someRaw("response_format", g.ResponseFormat)
	w.int("run_ms", g.RunMS)
	w.text("session", g.Session)
	w.int("start_by", g.StartBy)
	w.someText("system", g.System)
	w.someText("tool_choice", g.ToolChoice)
	if g.Tools != nil {
		w.hashes("tools", g.Tools)
	}
	w.out = codec.AppendHash(codec.AppendString(w.out, "toolset"), &g.Toolset)
	w.int("v", int64(g.V))
	if len(g.Vars) > 0 {
		w.some("vars", g.Vars)
	}
	return w.out, !w.bad
}

func (w *writer) hashes(key string, hashes []codec.Hash) {
	w.out = codec.AppendArray(codec.AppendString(w.out, key), len(hashes))
	for i := range hashes {
		w.out = codec.AppendHash(w.out, &hashes[i])
	}
}

// AppendCanonical writes the effect as codec does.
func (c *ToolCall) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 14
	for _, given := range [...]bool{len(c.Context) > 0, len(c.Grants) > 0, c.HostSession != nil, c.ProviderCallID != "", c.RetrySafe, len(c.Spaces) > 0} {
		if given {
			n++
		}
	}
	w := writer{out: codec.AppendMap(out, n)}
	w.text("arguments", c.Arguments)
	w.int("at", c.At)
	w.text("batch", c.Batch)
	w.int("call", int64(c.Call))
	w.text("class", string(c.Class))
	w.someRaw("context", c.Context)
	w.text("effect", c.Effect)
	if len(c.Grants) > 0 {
		w.some("grants", c.Grants)
	}
	if h := c.HostSession; h != nil {
		w.host("host_session", h)
	}
	w.text("idempotency_key", c.IdempotencyKey)
	w.out = codec.AppendHash(codec.AppendString(w.out, "plan_hash"), &c.PlanHash)
	w.someText("provider_call_id", c.ProviderCallID)
	if c.RetrySafe {
		w.out = codec.AppendBool(codec.AppendString(w.out, "retry_safe"), true)
	}
	w.int("run_ms", c.RunMS)
	w.text("session", c.Session)
	if len(c.Spaces) > 0 {
		w.some("spaces", c.Spaces)
	}
	w.int("start_by", c.StartBy)
	w.text("tool_id", c.ToolID)
	w.text("tool_name", c.ToolName)
	w.int("v", int64(c.V))
	return w.out, !w.bad
}

// AppendCanonical writes the effect as codec does.
func (w *Wake) AppendCanonical(out []byte) (_ []byte, ok bool) {
	to := writer{out: codec.AppendMap(out, 7)}
	to.int("at", w.At)
	to.text("class", string(w.Class))
	to.int("due", w.Due)
	to.text("effect", w.Effect)
	to.text("session", w.Session)
	to.int("start_by", w.StartBy)
	to.int("v", int64(w.V))
	return to.out, !to.bad
}

// writer writes the entries of a map one after the other.
type writer struct {
	out []byte
	bad bool // a text is none, or bytes are not canonical
}

func (w *writer) int(key string, i int64) { w.out = codec.AppendInt(codec.AppendString(w.out, key), i) }

func (w *writer) text(key, text string) {
	out, ok := codec.AppendText(codec.AppendString(w.out, key), text)
	w.out, w.bad = out, w.bad || !ok
}

func (w *writer) someText(key, text string) {
	if text != "" {
		w.text(key, text)
	}
}

// someRaw writes what stands inside the effect's map.
func (w *writer) someRaw(key string, raw codec.Raw) {
	if len(raw) > 0 {
		out, ok := codec.AppendRaw(codec.AppendString(w.out, key), raw, 1)
		w.out, w.bad = out, w.bad || !ok
	}
}

// some writes what is rare as codec does.
func (w *writer) some(key string, v any) {
	raw, err := codec.Marshal(v)
	w.someRaw(key, raw)
	w.bad = w.bad || err != nil
}

// room is what a host session takes at most; nil takes nothing.
func (h *HostSession) room() int {
	if h == nil {
		return 0
	}
	return hostRoom + len(h.ID) + len(h.Root) + len(h.Route) + len(h.Status)
}

func (w *writer) host(key string, h *HostSession) {
	n := 1
	if h.ID != "" {
		n++
	}
	if h.Root != "" {
		n++
	}
	if h.Route != "" {
		n++
	}
	w.out = codec.AppendMap(codec.AppendString(w.out, key), n)
	w.someText("id", h.ID)
	w.someText("root", h.Root)
	w.someText("route", h.Route)
	w.text("status", h.Status)
}
