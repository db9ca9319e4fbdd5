package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

func (m *Model) respond(ctx context.Context, body responses.ResponseNewParams, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	var raw *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&raw)}
	if !m.whole {
		options = append(options, option.WithJSONSet("stream", true))
	}
	if _, err := m.responses.New(ctx, body, options...); err != nil {
		return executor.Answer{}, m.failed(err)
	}
	defer raw.Body.Close()
	if endpoint.IsStream(raw, !m.whole) {
		return m.events(raw, delta)
	}
	data, failed := m.readAll(raw.Body)
	if failed != nil {
		return executor.Answer{}, failed
	}
	var response responses.Response
	if err := json.Unmarshal(data, &response); err != nil {
		return executor.Answer{}, m.failed(endpoint.ErrBroken)
	}
	if response.Status == "" {
		if reported := endpoint.ParseServerError(data); reported.Message != "" {
			return executor.Answer{}, m.endpoint.FailureOf(reported)
		}
	}
	answer, failed := m.responded(&response, response.Output)
	if failed == nil && answer.Text != "" {
		delta(answer.Text)
	}
	return answer, failed
}

// events reads a response that is sent in events.
func (m *Model) events(raw *http.Response, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	stream := ssestream.NewStream[responses.ResponseStreamEventUnion](ssestream.NewDecoder(raw), nil)
	defer stream.Close()
	var items []responses.ResponseOutputItemUnion
	bytes := 0
	for stream.Next() {
		event := stream.Current()
		bytes += len(event.Delta)
		if much := m.endpoint.TooMuch(bytes, len(items)); much != nil {
			return executor.Answer{}, much
		}
		switch event.Type {
		case "response.output_text.delta":
			if event.Delta != "" {
				delta(event.Delta)
			}
		case "response.output_item.done":
			items = append(items, event.Item)
		case "response.completed", "response.incomplete", "response.failed":
			if len(event.Response.Output) > 0 {
				items = event.Response.Output
			}
			return m.responded(&event.Response, items)
		case "error":
			reported := endpoint.ParseServerError([]byte(event.RawJSON()))
			if reported.Kind == "error" { // that is the event's own type
				reported.Kind = ""
			}
			return executor.Answer{}, m.endpoint.FailureOf(reported)
		}
	}
	if err := stream.Err(); err != nil {
		return executor.Answer{}, m.failed(err)
	}
	return executor.Answer{}, m.endpoint.BrokeOff()
}

// responded returns the answer in a response and its items.
func (m *Model) responded(r *responses.Response, items []responses.ResponseOutputItemUnion) (executor.Answer, *endpoint.Failure) {
	a := executor.Answer{Model: r.Model, FinishReason: llm.FinishStop, Usage: executor.Usage{
		InputTokens: llm.Count(r.Usage.InputTokens), OutputTokens: llm.Count(r.Usage.OutputTokens),
		CachedTokens: llm.Count(r.Usage.InputTokensDetails.CachedTokens), CacheWriteTokens: llm.Count(r.Usage.InputTokensDetails.CacheWriteTokens), ReasoningTokens: llm.Count(r.Usage.OutputTokensDetails.ReasoningTokens),
	}}
	switch r.Status {
	case responses.ResponseStatusCompleted, responses.ResponseStatusIncomplete:
	case responses.ResponseStatusFailed:
		return a, m.endpoint.FailureOf(endpoint.ServerError{Code: string(r.Error.Code), Message: r.Error.Message})
	default:
		return a, m.failed(endpoint.ErrBroken)
	}
	refusal := m.fill(&a, items)
	if much := m.endpoint.TooMuch(len(a.Text), len(a.Calls)); much != nil {
		return executor.Answer{}, much
	}
	switch {
	case a.Text == "" && refusal != "":
		a.Text, a.FinishReason = refusal, llm.FinishContentFilter
	case r.Status == responses.ResponseStatusIncomplete && r.IncompleteDetails.Reason == "content_filter":
		a.FinishReason = llm.FinishContentFilter
	case r.Status == responses.ResponseStatusIncomplete:
		a.FinishReason = llm.FinishLength
	case len(a.Calls) > 0:
		a.FinishReason = llm.FinishToolCalls
	}
	return a, nil
}

// fill adds the items to an answer, and returns the text with which the model
// refused, if it did.
func (m *Model) fill(a *executor.Answer, items []responses.ResponseOutputItemUnion) (refusal string) {
	var text, refused strings.Builder
	var pieces []llm.Piece
	for i := range items {
		it := &items[i]
		switch it.Type {
		case "message":
			before := text.Len()
			for _, c := range it.Content {
				text.WriteString(c.Text)
				refused.WriteString(c.Refusal)
			}
			if n := text.Len() - before; n > 0 {
				pieces = append(pieces, llm.Piece{Text: n, Mark: it.ID})
			}
		case "function_call":
			a.Calls = append(a.Calls, executor.AnswerCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments.OfString})
			pieces = append(pieces, llm.Piece{Call: len(a.Calls), Mark: it.ID})
		case "reasoning":
			// The server does not keep it, and accepts it back only encrypted.
			if it.EncryptedContent != "" {
				pieces = append(pieces, llm.Piece{Item: it.RawJSON()})
			}
		}
	}
	// The server pairs reasoning with its output by ids of its own. Without reasoning
	// they are useless.
	if !slices.ContainsFunc(pieces, func(p llm.Piece) bool { return p.Item != "" }) {
		pieces = nil
	}
	a.Text = text.String()
	if a.Text != "" || refused.Len() == 0 {
		a.Opaque = llm.Seal(m.of, pieces)
	}
	return refused.String()
}
