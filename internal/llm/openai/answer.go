package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

func (m *Model) ask(ctx context.Context, body openai.ChatCompletionNewParams, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	var response *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&response)}
	if !m.whole {
		options = append(options, option.WithJSONSet("stream", true))
		if !hasExtra(&body, "stream_options") {
			body.StreamOptions.IncludeUsage = param.NewOpt(true)
		}
	}
	if _, err := m.completions.New(ctx, body, options...); err != nil {
		return executor.Answer{}, m.failed(err)
	}
	defer response.Body.Close()
	if endpoint.IsStream(response, !m.whole) {
		return m.streamed(response, delta)
	}
	return m.wholly(response.Body, delta)
}

// streamed reads an answer that is sent in chunks.
func (m *Model) streamed(response *http.Response, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	stream := ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(response), nil)
	defer stream.Close()
	var b builder
	for stream.Next() {
		text := b.add(stream.Current())
		if much := m.endpoint.TooMuch(b.bytes, len(b.calls)); much != nil {
			return executor.Answer{}, much
		}
		if text != "" {
			delta(text)
		}
	}
	if b.finish != "" { // complete, even if the connection failed afterwards
		return b.answer(m.of), nil
	}
	if err := stream.Err(); err != nil {
		return executor.Answer{}, m.failed(err)
	}
	return executor.Answer{}, m.endpoint.BrokeOff()
}

// wholly reads an answer that is sent in one piece.
func (m *Model) wholly(body io.Reader, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	data, failed := m.readAll(body)
	if failed != nil {
		return executor.Answer{}, failed
	}
	var completion openai.ChatCompletion
	if err := json.Unmarshal(data, &completion); err != nil {
		return executor.Answer{}, m.failed(endpoint.ErrBroken)
	}
	if len(completion.Choices) == 0 {
		if reported := endpoint.ParseServerError(data); reported.Message != "" {
			return executor.Answer{}, m.endpoint.FailureOf(reported)
		}
		return executor.Answer{}, m.failed(endpoint.ErrBroken)
	}
	var b builder
	b.whole(&completion)
	if much := m.endpoint.TooMuch(b.bytes, len(b.calls)); much != nil {
		return executor.Answer{}, much
	}
	answer := b.answer(m.of)
	if answer.Text != "" {
		delta(answer.Text)
	}
	return answer, nil
}

// readAll reads the body of an answer that is sent in one piece.
func (m *Model) readAll(body io.Reader) ([]byte, *endpoint.Failure) {
	data, err := io.ReadAll(io.LimitReader(body, wholeBytesMax+1))
	if err != nil {
		return nil, m.failed(err)
	}
	if len(data) > wholeBytesMax {
		return nil, m.endpoint.TooMuch(len(data), 0)
	}
	return data, nil
}

// inStream returns the error that a server sent within a stream.
func inStream(err error) ([]byte, bool) {
	var streamError *ssestream.StreamError
	if !errors.As(err, &streamError) {
		return nil, false
	}
	return streamError.Event.Data, true
}

type builder struct {
	text, refusal strings.Builder
	thought       thought
	calls         []*partialCall
	model, finish string
	usage         executor.Usage
	bytes         int // of text, thoughts and arguments
}

// partialCall is a call of which some chunks have arrived.
type partialCall struct {
	index     int64
	id, name  string
	arguments strings.Builder
	extra     string
}

// add adds a chunk, and returns its text.
func (b *builder) add(chunk openai.ChatCompletionChunk) string {
	if chunk.Model != "" {
		b.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		b.usage = newUsage(&chunk.Usage)
	}
	for i := range chunk.Choices {
		c := &chunk.Choices[i]
		if c.Index != 0 { // only one answer was requested
			continue
		}
		if c.FinishReason != "" {
			b.finish = c.FinishReason
		}
		b.text.WriteString(c.Delta.Content)
		b.refusal.WriteString(c.Delta.Refusal)
		b.bytes += len(c.Delta.Content) + len(c.Delta.Refusal) + b.thought.add(c.Delta.JSON.ExtraFields, true)
		for j := range c.Delta.ToolCalls {
			b.addCall(&c.Delta.ToolCalls[j])
		}
		return c.Delta.Content
	}
	return ""
}

// addCall adds a part of a call. Parts of one call share its index; some
// servers send several whole calls with index 0, each with an id of its own.
func (b *builder) addCall(part *openai.ChatCompletionChunkChoiceDeltaToolCall) {
	var call *partialCall
	for i := len(b.calls) - 1; i >= 0 && call == nil; i-- {
		if b.calls[i].index == part.Index {
			call = b.calls[i]
		}
	}
	if call == nil || part.ID != "" && call.id != "" && part.ID != call.id && part.Function.Name != "" {
		call = &partialCall{index: part.Index}
		b.calls = append(b.calls, call)
	}
	if part.ID != "" {
		call.id = part.ID
	}
	call.name = cmp.Or(call.name, part.Function.Name)
	call.arguments.WriteString(part.Function.Arguments)
	if _, ok := part.JSON.ExtraFields[memberExtra]; ok {
		call.extra = extraOf(part.RawJSON())
	}
	b.bytes += len(part.Function.Arguments) + len(call.extra)
}

// whole adds a whole answer.
func (b *builder) whole(c *openai.ChatCompletion) {
	choice := &c.Choices[0]
	b.model, b.finish, b.usage = c.Model, choice.FinishReason, newUsage(&c.Usage)
	b.text.WriteString(choice.Message.Content)
	b.refusal.WriteString(choice.Message.Refusal)
	b.bytes = b.text.Len() + b.refusal.Len() + b.thought.add(choice.Message.JSON.ExtraFields, false)
	for i, call := range choice.Message.ToolCalls {
		p := &partialCall{index: int64(i), id: call.ID, name: call.Function.Name, extra: extraOf(call.RawJSON())}
		p.arguments.WriteString(call.Function.Arguments)
		b.bytes += p.arguments.Len() + len(p.extra)
		b.calls = append(b.calls, p)
	}
}

// answer returns the assembled answer; of is the owner of its thoughts.
func (b *builder) answer(of string) executor.Answer {
	a := executor.Answer{Text: b.text.String(), Model: b.model, FinishReason: b.finish, Usage: b.usage}
	a.Opaque = b.sealed(of, a.Text)
	if a.Text == "" && b.refusal.Len() > 0 {
		a.Text, a.FinishReason = b.refusal.String(), llm.FinishContentFilter
	}
	for _, c := range b.calls {
		a.Calls = append(a.Calls, executor.AnswerCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	switch {
	case a.FinishReason == llm.FinishLength, a.FinishReason == llm.FinishContentFilter:
	case len(a.Calls) > 0: // some servers send stop, or a word of their own
		a.FinishReason = llm.FinishToolCalls
	default:
		a.FinishReason = llm.FinishStop
	}
	return a
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
