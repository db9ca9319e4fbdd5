package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

func (m *Model) ask(ctx context.Context, body openai.ChatCompletionNewParams, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	var response *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&response)}
	if !m.whole {
		options = append(options, option.WithJSONSet("stream", true))
	}
	if _, err := m.completions.New(ctx, body, options...); err != nil {
		return executor.Answer{}, m.endpoint.Failed(err)
	}
	defer response.Body.Close()
	var b builder
	for data, err := range endpoint.Events(response) {
		var chunk openai.ChatCompletionChunk
		switch {
		case err == nil && endpoint.IsDone(data):
			b.done = true
		case err == nil:
			err = json.Unmarshal(data, &chunk)
		}
		if b.done || err != nil && b.finish != "" { // complete, even if the connection failed afterwards
			break
		}
		if err != nil {
			return executor.Answer{}, m.endpoint.Failed(err)
		}
		text := b.add(&chunk)
		if much := m.endpoint.TooMuch(b.bytes, len(b.calls)); much != nil {
			return executor.Answer{}, much
		}
		if text != "" {
			delta(text)
		}
	}
	return b.answer(m)
}

type builder struct {
	text, refusal strings.Builder
	thought       thought
	calls         []*partialCall
	model, finish string
	done          bool                 // the mark at the end was sent, or the answer came in one piece
	fault         endpoint.ServerError // with which the server ended the answer
	index         *int64               // of the choice: only one was requested
	chunks        int
	usage         executor.Usage
	bytes         int // of text, thoughts and arguments
}

// add adds a chunk, or an answer in one piece, and returns its text.
func (b *builder) add(chunk *openai.ChatCompletionChunk) string {
	b.chunks++
	if chunk.Model != "" {
		b.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		b.usage = newUsage(&chunk.Usage)
	}
	for i := range chunk.Choices {
		c := &chunk.Choices[i]
		if b.index == nil {
			b.index = &c.Index
		}
		if c.Index != *b.index {
			continue
		}
		if c.FinishReason != "" {
			b.finish = c.FinishReason
		}
		if fault, ok := c.JSON.ExtraFields["error"]; ok && !empty(json.RawMessage(fault.Raw())) { // OpenRouter
			b.fault = endpoint.ParseServerError([]byte(fault.Raw()))
		}
		said := b.message(&c.Delta, true)
		if text, ok := c.JSON.ExtraFields["text"]; ok { // of the older API for completions
			said += b.content(json.RawMessage(text.Raw()))
		}
		if whole, ok := c.JSON.ExtraFields["message"]; ok && !empty(json.RawMessage(whole.Raw())) {
			said += b.whole([]byte(whole.Raw()))
		}
		return said
	}
	return ""
}

// whole adds a message in one piece. Some servers send one after the chunks.
func (b *builder) whole(data []byte) string {
	b.done = true
	var message openai.ChatCompletionChunkChoiceDelta
	if b.text.Len() > 0 || len(b.calls) > 0 || json.Unmarshal(data, &message) != nil {
		return ""
	}
	return b.message(&message, false)
}

// message adds a message, or a part of one, and returns its text.
func (b *builder) message(d *openai.ChatCompletionChunkChoiceDelta, part bool) string {
	said := b.content(json.RawMessage(d.JSON.Content.Raw()))
	b.refusal.WriteString(d.Refusal)
	b.bytes += len(d.Refusal) + b.thought.add(d.JSON.ExtraFields, part)
	for i := range d.ToolCalls {
		p := newCallPart(&d.ToolCalls[i])
		if !part { // each is a call
			p.index, p.indexed = int64(i), true
		}
		b.addCall(p)
	}
	if f := &d.FunctionCall; f.Name != "" || f.Arguments != "" { //nolint:staticcheck // older servers send it
		b.addCall(&callPart{name: f.Name, arguments: f.Arguments})
	}
	return said
}

// content adds content, text or a list of parts, and returns its text.
func (b *builder) content(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && json.Unmarshal(raw, &text) != nil {
		var parts []struct {
			Type    string          `json:"type"`
			Text    json.RawMessage `json:"text"`
			Refusal string          `json:"refusal"`
		}
		if raw[0] == '{' {
			raw = slices.Concat([]byte("["), raw, []byte("]"))
		}
		_ = json.Unmarshal(raw, &parts) // what can be read of it
		for _, p := range parts {
			var words string
			switch _ = json.Unmarshal(p.Text, &words); p.Type {
			case "text", "output_text", "":
				text += words
			case "thinking", "reasoning":
				b.thought.some = true
			}
			b.refusal.WriteString(p.Refusal)
		}
	}
	b.text.WriteString(text)
	b.bytes += len(text)
	return text
}

// answer returns the assembled answer, if there is one.
func (b *builder) answer(m *Model) (executor.Answer, *endpoint.Failure) {
	if b.finish == "" && (!b.done || b.index == nil) {
		return executor.Answer{}, m.endpoint.BrokeOff()
	}
	if b.fault.Message != "" {
		return executor.Answer{}, m.endpoint.FailureOf(b.fault)
	}
	word := b.finish
	if b.refusal.Len() > 0 {
		b.text.WriteString(b.refusal.String())
		word = llm.FinishRefusal
	}
	a := executor.Answer{Text: b.text.String(), Model: b.model, Usage: b.usage}
	a.Opaque = b.sealed(m.of, a.Text)
	for _, c := range b.calls {
		a.Calls = append(a.Calls, executor.AnswerCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	if code := llm.End(&a, word, b.thought.some || b.usage.ReasoningTokens > 0); code != "" {
		return executor.Answer{}, m.endpoint.EndedBy(code, word)
	}
	return a, nil
}

// sealed returns what the server wants back with the text and calls.
func (b *builder) sealed(of, text string) json.RawMessage {
	var pieces []llm.Piece
	if item := b.thought.item(); item != "" {
		pieces = append(pieces, llm.Piece{Item: item})
	}
	if text != "" {
		pieces = append(pieces, llm.Piece{Text: len(text)})
	}
	for i, c := range b.calls {
		pieces = append(pieces, llm.Piece{Call: i + 1, Mark: c.extra})
	}
	return llm.Seal(of, pieces)
}

// newUsage returns the counts. Some servers don't count reasoning as output:
// then only the total includes it, or it is the larger number.
func newUsage(u *openai.CompletionUsage) executor.Usage {
	thought, out := llm.Count(u.CompletionTokensDetails.ReasoningTokens), llm.Count(u.CompletionTokens)
	if thought > out || thought > 0 && llm.Count(u.TotalTokens) == llm.Count(u.PromptTokens)+out+thought {
		out = llm.Count(out + thought)
	}
	return executor.Usage{
		InputTokens: llm.Count(u.PromptTokens), OutputTokens: out,
		CachedTokens: llm.Count(u.PromptTokensDetails.CachedTokens), CacheWriteTokens: llm.Count(u.PromptTokensDetails.CacheWriteTokens),
		ReasoningTokens: thought,
	}
}
