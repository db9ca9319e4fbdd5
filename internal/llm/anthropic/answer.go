package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

func (m *Model) ask(ctx context.Context, body anthropic.MessageNewParams, thoughts llm.Thoughts, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	var options []option.RequestOption
	if thoughts == llm.ThoughtsDropped {
		options = append(options, option.WithHeaderAdd("anthropic-beta", anthropic.AnthropicBetaThinkingBindingControls2026_08_01))
	}
	stream := m.messages.NewStreaming(ctx, body, options...)
	if err := stream.Err(); err != nil {
		return executor.Answer{}, m.endpoint.Failed(err)
	}
	defer stream.Close()
	var b builder
	for stream.Next() {
		event := stream.Current()
		text := b.add(&event)
		if much := m.endpoint.TooMuch(b.bytes, len(b.blocks)); much != nil {
			return executor.Answer{}, much
		}
		if text != "" {
			delta(text)
		}
		if b.done {
			break
		}
	}
	if b.stop != "" || b.done { // complete, even if the connection failed afterwards
		return b.answer(m)
	}
	if err := stream.Err(); err != nil {
		return executor.Answer{}, m.endpoint.Failed(err)
	}
	return executor.Answer{}, m.endpoint.BrokeOff()
}

type builder struct {
	blocks []*block
	model  string
	stop   anthropic.StopReason
	done   bool // the event that ends the message was sent, or the message came in one piece
	usage  executor.Usage
	bytes  int
}

// block is a block of the answer, as far as it has arrived.
type block struct {
	index               int64
	kind, id, name, raw string
	text, signature     strings.Builder // text: of the answer, a thought, or arguments
	input               string          // arguments that arrived at once
}

// add adds an event, and returns its text.
func (b *builder) add(event *anthropic.MessageStreamEventUnion) string {
	switch event.Type {
	case "message_start":
		return b.message(&event.Message)
	case "message": // in one piece
		var whole anthropic.Message
		if json.Unmarshal([]byte(event.RawJSON()), &whole) == nil {
			b.done = true
			return b.message(&whole)
		}
	case "message_stop":
		b.done = true
	case "message_delta":
		if event.Delta.StopReason != "" {
			b.stop = event.Delta.StopReason
		}
		// Counts are of the whole answer so far; those not sent again stay.
		u := &event.Usage
		if u.JSON.InputTokens.Valid() {
			b.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
		} else {
			b.usage.OutputTokens, b.usage.ReasoningTokens = llm.Count(u.OutputTokens), llm.Count(u.OutputTokensDetails.ThinkingTokens)
		}
	case "content_block_start":
		c := &event.ContentBlock
		n := &block{index: event.Index, kind: c.Type, id: c.ID, name: c.Name, raw: c.RawJSON()}
		return b.begin(n, c.Text, c.Thinking, c.Signature, c.JSON.Input.Raw())
	case "content_block_delta":
		return b.grow(event)
	}
	return ""
}

// message adds a message as far as it is there, and returns its text.
func (b *builder) message(m *anthropic.Message) string {
	u := &m.Usage
	b.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
	b.model, b.stop = m.Model, m.StopReason
	var said strings.Builder
	for i := range m.Content {
		c := &m.Content[i]
		n := &block{index: int64(i), kind: c.Type, id: c.ID, name: c.Name, raw: c.RawJSON()}
		said.WriteString(b.begin(n, c.Text, c.Thinking, c.Signature, string(c.Input)))
	}
	return said.String()
}

// count sets the usage. Input read from a cache or written to it is input too.
func (b *builder) count(input, read, written, output, thought int64) {
	read, written = llm.Count(read), llm.Count(written)
	b.usage = executor.Usage{
		InputTokens: llm.Count(llm.Count(input) + read + written), CachedTokens: read, CacheWriteTokens: written,
		OutputTokens: llm.Count(output), ReasoningTokens: llm.Count(thought),
	}
}

// begin adds a block with the content that it begins with, and returns its text.
func (b *builder) begin(n *block, text, thinking, signature, input string) string {
	b.blocks = append(b.blocks, n)
	b.bytes += len(n.raw)
	switch n.kind {
	case "text":
		n.text.WriteString(text)
		return text
	case "thinking":
		n.text.WriteString(thinking)
		n.signature.WriteString(signature)
	case "tool_use":
		if input != "{}" && input != "null" {
			n.input = input
		}
	}
	return ""
}

func (b *builder) grow(event *anthropic.MessageStreamEventUnion) string {
	d := &event.Delta
	b.bytes += len(d.Text) + len(d.PartialJSON) + len(d.Thinking) + len(d.Signature)
	for i := len(b.blocks) - 1; i >= 0; i-- {
		n := b.blocks[i]
		if n.index != event.Index {
			continue
		}
		n.text.WriteString(d.Text)
		n.text.WriteString(d.PartialJSON)
		n.text.WriteString(d.Thinking)
		n.signature.WriteString(d.Signature)
		if n.kind == "text" {
			return d.Text
		}
		return ""
	}
	if d.Text == "" {
		return ""
	}
	return b.begin(&block{index: event.Index, kind: "text"}, d.Text, "", "", "") // its beginning was not sent
}

// answer returns the assembled answer, if there is one.
func (b *builder) answer(m *Model) (executor.Answer, *endpoint.Failure) {
	a := executor.Answer{Model: b.model, Usage: b.usage}
	thought := false
	var text strings.Builder
	var pieces []llm.Piece
	for _, n := range b.blocks {
		switch n.kind {
		case "text":
			text.WriteString(n.text.String())
			if n.text.Len() > 0 {
				pieces = append(pieces, llm.Piece{Text: n.text.Len()})
			}
		case "tool_use":
			arguments := cmp.Or(n.text.String(), n.input)
			a.Calls = append(a.Calls, executor.AnswerCall{ID: n.id, Name: n.name, Arguments: arguments})
			pieces = append(pieces, llm.Piece{Call: len(a.Calls)})
		case "thinking":
			thought = true
			pieces = append(pieces, llm.Piece{Item: thoughtOf(n)})
		case "redacted_thinking":
			thought = true
			pieces = append(pieces, llm.Piece{Item: n.raw})
		}
	}
	a.Text, a.Opaque = text.String(), llm.Seal(m.of, pieces)
	if code := llm.End(&a, string(b.stop), thought); code != "" {
		return executor.Answer{}, m.endpoint.EndedBy(code, string(b.stop))
	}
	return a, nil
}

// thoughtOf returns a thought as the API accepts it back: with its signature,
// unchanged.
func thoughtOf(n *block) string {
	return string(llm.JSON(map[string]string{"type": "thinking", "thinking": n.text.String(), "signature": n.signature.String()}))
}
