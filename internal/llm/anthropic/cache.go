package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

type blockIndex struct{ message, block int }

// marks decides where a request asks the API to cache: at the end of the system
// text, or of the tools if there is none, at the end of the previous request,
// and at the end. The API searches only 20 blocks back from a mark for a cache
// entry, and a batch may have more, so the end of the previous request keeps
// its mark. The API allows four marks.
type marks struct {
	control anthropic.CacheControlEphemeralParam
	off     bool
	least   int  // bytes below which the model caches nothing
	system  bool // there is a system text, whose mark covers the tools
	head    int  // bytes of tools and system text
	req     *executor.Request
}

// newMarks returns the marks of a request. Settings in params win.
func newMarks(req *executor.Request, members map[string]json.RawMessage) *marks {
	m := &marks{
		control: anthropic.NewCacheControlEphemeralParam(), least: cacheTokensMin(req.Model) * session.BytesPerToken,
		system: req.System != "", head: len(req.System), req: req,
	}
	_, own := members["cache_control"]
	m.off = own || req.CacheTTL == session.CacheTTLOff
	if req.CacheTTL == session.CacheTTLLong {
		m.control.TTL = anthropic.CacheControlEphemeralTTLTTL1h
	}
	return m
}

// ttl identifies the marks in the format of rendered tools.
func (m *marks) ttl() anthropic.CacheControlEphemeralTTL {
	if m.control.TTL == "" {
		return anthropic.CacheControlEphemeralTTLTTL5m
	}
	return m.control.TTL
}

// tools records the size of the tools, and reports whether the last one is marked.
func (m *marks) tools(bytes int) bool {
	m.head += bytes
	return !m.off && !m.system && m.head >= m.least
}

// renderTools is renderTools with a mark on the last tool.
func (m *marks) renderTools(tools []executor.Tool) ([]byte, error) {
	return renderMarked(tools, &m.control)
}

// set marks the system text and the conversation. before is the end of the
// previous request, nil if there was none.
func (m *marks) set(body *anthropic.MessageNewParams, before *blockIndex) {
	if m.off {
		return
	}
	if m.system && m.head >= m.least {
		body.System[0].CacheControl = m.control
	}
	latest, bytes := latestTurn(m.req.Messages), m.head
	for i := range m.req.Messages {
		if i == latest && before != nil && bytes >= m.least {
			m.mark(body, *before)
		}
		bytes += bytesOf(&m.req.Messages[i])
	}
	if n := len(body.Messages); n > 0 && bytes >= m.least {
		m.mark(body, blockIndex{n - 1, len(body.Messages[n-1].Content) - 1})
	}
}

// mark marks a user's block: text, an image or a result.
func (m *marks) mark(body *anthropic.MessageNewParams, at blockIndex) {
	if control := body.Messages[at.message].Content[at.block].GetCacheControl(); control != nil {
		*control = m.control
	}
}

// latestTurn returns the index of the model's latest turn, -1 if there is none.
func latestTurn(messages []executor.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == string(session.RoleAssistant) {
			return i
		}
	}
	return -1
}

// bytesOf returns about how many bytes of a message the model is shown.
func bytesOf(m *executor.Message) int {
	n := len(m.Text)
	for i := range m.Calls {
		n += len(m.Calls[i].Name) + len(m.Calls[i].Arguments)
	}
	for i := range m.Parts {
		if len(m.Parts[i].Data) > 0 {
			n += session.ImageBytes
		}
	}
	return n
}

// cacheMinimums are the least numbers of tokens that models cache, by the beginning
// of their names, from Anthropic's page on prompt caching. The first match counts.
var cacheMinimums = []struct {
	model  string
	tokens int
}{
	{"claude-fable-5", 512}, {"claude-mythos-5", 512}, {"claude-opus-5", 512},
	{"claude-opus-4-8", 1024}, {"claude-opus-4-7", 2048}, {"claude-opus-4-6", 4096}, {"claude-opus-4-5", 4096}, {"claude-opus-4", 1024},
	{"claude-sonnet-", 1024}, {"claude-3-7-sonnet", 1024}, {"claude-3-5-sonnet", 1024},
	{"claude-3-5-haiku", 2048}, {"claude-3-haiku", 2048},
}

// cacheTokensMin returns the least number of tokens that a model caches. For an
// unknown model it is the largest one of all models.
func cacheTokensMin(model string) int {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, m := range cacheMinimums {
		if strings.HasPrefix(name, m.model) {
			return m.tokens
		}
	}
	return cacheTokensMinDefault
}
