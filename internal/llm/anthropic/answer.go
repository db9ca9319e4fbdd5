package anthropic

import (
	"cmp"
	"context"
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
		return executor.Answer{}, m.failed(err)
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
		if event.Type == "message_stop" {
			break
		}
	}
	if b.stop != "" { // complete, even if the connection failed afterwards
		return b.answer(m.of), nil
	}
	if err := stream.Err(); err != nil {
		return executor.Answer{}, m.failed(err)
	}
	return executor.Answer{}, m.endpoint.BrokeOff()
}

type builder struct {
	blocks []*block
	model  string
	stop   anthropic.StopReason
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
		b.model = event.Message.Model
		u := &event.Message.Usage
		b.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
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
		return b.begin(event)
	case "content_block_delta":
		return b.grow(event)
	}
	return ""
}

// count sets the usage. Input read from a cache or written to it is input too.
func (b *builder) count(input, read, written, output, thought int64) {
	read, written = llm.Count(read), llm.Count(written)
	b.usage = executor.Usage{
		InputTokens: llm.Count(llm.Count(input) + read + written), CachedTokens: read, CacheWriteTokens: written,
		OutputTokens: llm.Count(output), ReasoningTokens: llm.Count(thought),
	}
}

func (b *builder) begin(event *anthropic.MessageStreamEventUnion) string {
	c := &event.ContentBlock
	n := &block{index: event.Index, kind: c.Type, id: c.ID, name: c.Name, raw: c.RawJSON()}
	b.blocks = append(b.blocks, n)
	b.bytes += len(n.raw)
	switch n.kind {
	case "text":
		n.text.WriteString(c.Text)
		return c.Text
	case "thinking":
		n.text.WriteString(c.Thinking)
		n.signature.WriteString(c.Signature)
	case "tool_use":
		if input := c.JSON.Input.Raw(); input != "" && input != "{}" && input != "null" {
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
	return ""
}

// answer returns the assembled answer; of is the owner of its thoughts.
func (b *builder) answer(of string) executor.Answer {
	a := executor.Answer{Model: b.model, Usage: b.usage, FinishReason: llm.FinishStop}
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
			pieces = append(pieces, llm.Piece{Item: thought(n)})
		case "redacted_thinking":
			pieces = append(pieces, llm.Piece{Item: n.raw})
		}
	}
	a.Text, a.Opaque = text.String(), llm.Seal(of, pieces)
	switch b.stop {
	case "refusal":
		a.FinishReason = llm.FinishContentFilter
	case "max_tokens", "model_context_window_exceeded":
		a.FinishReason = llm.FinishLength
	default:
		if len(a.Calls) > 0 {
			a.FinishReason = llm.FinishToolCalls
		}
	}
	return a
}

// thought returns a thought as the API accepts it back: with its signature,
// unchanged.
func thought(n *block) string {
	return string(llm.JSON(map[string]string{"type": "thinking", "thinking": n.text.String(), "signature": n.signature.String()}))
}
