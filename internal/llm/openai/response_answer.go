package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
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
		return executor.Answer{}, m.endpoint.Failed(err)
	}
	defer raw.Body.Close()
	var r response
	for data, err := range endpoint.Events(raw) {
		if err == nil {
			err = r.read(data, delta)
		}
		if err != nil {
			return executor.Answer{}, m.endpoint.Failed(err)
		}
		if much := m.endpoint.TooMuch(r.bytes, len(r.items)); much != nil {
			return executor.Answer{}, much
		}
		if r.end != nil {
			return m.responded(&r, delta)
		}
	}
	if r.end = r.whole(); r.end != nil {
		return m.responded(&r, delta)
	}
	return executor.Answer{}, m.endpoint.BrokeOff()
}

// response is a response as far as it has arrived.
type response struct {
	items    []*responseItem
	end      *responses.Response // nil: more is to come
	streamed bool                // some text
	bytes    int
}

// responseItem is an item. Some servers send its content in deltas only, others
// only when it is done, or only in the response's last event.
type responseItem struct {
	index                    int64
	item                     responses.ResponseOutputItemUnion
	text, refusal, arguments strings.Builder
	done                     bool
}

// read adds an event, and passes its text to delta.
func (r *response) read(data []byte, delta func(text string)) error {
	if endpoint.IsDone(data) {
		r.end = r.whole()
		return nil
	}
	var event responses.ResponseStreamEventUnion
	if err := json.Unmarshal(data, &event); err != nil {
		return err
	}
	r.bytes += len(event.Delta)
	switch event.Type {
	case "response.output_item.added":
		r.itemOf(&event, true).item = event.Item
	case "response.output_item.done":
		i := r.itemOf(&event, false)
		i.item, i.done = event.Item, true
	case "response.output_text.delta":
		r.itemOf(&event, false).text.WriteString(event.Delta)
		if event.Delta != "" {
			r.streamed = true
			delta(event.Delta)
		}
	case "response.refusal.delta":
		r.itemOf(&event, false).refusal.WriteString(event.Delta)
	case "response.function_call_arguments.delta":
		r.itemOf(&event, false).arguments.WriteString(event.Delta)
	case "response.function_call_arguments.done":
		i := r.itemOf(&event, false)
		i.arguments.Reset()
		i.arguments.WriteString(event.Arguments)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		r.end = &event.Response
	case "": // in one piece
		var whole responses.Response
		if err := json.Unmarshal(data, &whole); err != nil {
			return err
		}
		if whole.Status == "" && len(whole.Output) == 0 {
			return endpoint.ErrBroken
		}
		whole.Status = cmp.Or(whole.Status, responses.ResponseStatusCompleted)
		r.end = &whole
	}
	return nil
}

// whole returns the end of a response whose server sent no event that ends it,
// nil if it broke off: every item is done, and the last one is text or a call.
func (r *response) whole() *responses.Response {
	n := len(r.items)
	if n == 0 || slices.ContainsFunc(r.items, func(i *responseItem) bool { return !i.done || i.item.Status == "incomplete" }) {
		return nil
	}
	if last := r.items[n-1].item.Type; last != "message" && last != "function_call" {
		return nil
	}
	return &responses.Response{Status: responses.ResponseStatusCompleted}
}

// itemOf returns the item of an event: that of its index, else of its id, else
// the latest one. It adds one if there is none, or if the event begins one.
func (r *response) itemOf(event *responses.ResponseStreamEventUnion, begins bool) *responseItem {
	indexed, id := event.JSON.OutputIndex.Valid(), cmp.Or(event.ItemID, event.Item.ID)
	for n := len(r.items) - 1; n >= 0; n-- {
		switch i := r.items[n]; {
		case indexed && i.index == event.OutputIndex, !indexed && !begins && (id == "" || i.item.ID == id):
			return i
		}
	}
	i := &responseItem{index: int64(len(r.items))}
	if indexed {
		i.index = event.OutputIndex
	}
	r.items = append(r.items, i)
	slices.SortStableFunc(r.items, func(a, b *responseItem) int { return cmp.Compare(a.index, b.index) })
	return i
}

// output returns the items of the response.
func (r *response) output() []responses.ResponseOutputItemUnion {
	if len(r.end.Output) > 0 {
		return r.end.Output
	}
	all := make([]responses.ResponseOutputItemUnion, len(r.items))
	for n, i := range r.items {
		it := i.item
		said := func(c responses.ResponseOutputMessageContentUnion) bool { return c.Text != "" || c.Refusal != "" }
		switch {
		case (it.Type == "message" || it.Type == "") && i.text.Len()+i.refusal.Len() > 0 && !slices.ContainsFunc(it.Content, said):
			it.Type, it.Content = "message", []responses.ResponseOutputMessageContentUnion{{Text: i.text.String(), Refusal: i.refusal.String()}}
		case it.Type == "function_call":
			it.Arguments.OfString = cmp.Or(it.Arguments.OfString, i.arguments.String())
		}
		all[n] = it
	}
	return all
}

// responded returns the answer in a response that has ended.
func (m *Model) responded(response *response, delta func(text string)) (executor.Answer, *endpoint.Failure) {
	r := response.end
	a := executor.Answer{Model: r.Model, Usage: executor.Usage{
		InputTokens: llm.Count(r.Usage.InputTokens), OutputTokens: llm.Count(r.Usage.OutputTokens),
		CachedTokens: llm.Count(r.Usage.InputTokensDetails.CachedTokens), CacheWriteTokens: llm.Count(r.Usage.InputTokensDetails.CacheWriteTokens), ReasoningTokens: llm.Count(r.Usage.OutputTokensDetails.ReasoningTokens),
	}}
	word := string(r.Status)
	switch r.Status {
	case responses.ResponseStatusCompleted:
	case responses.ResponseStatusIncomplete:
		word = cmp.Or(r.IncompleteDetails.Reason, llm.FinishLength)
	case responses.ResponseStatusFailed:
		return a, m.endpoint.FailureOf(endpoint.ServerError{Code: string(r.Error.Code), Message: r.Error.Message})
	case responses.ResponseStatusCancelled:
	default:
		return a, m.endpoint.Failed(endpoint.ErrBroken)
	}
	refused, thought := m.fill(&a, response.output())
	if refused {
		word = llm.FinishRefusal
	}
	if much := m.endpoint.TooMuch(len(a.Text), len(a.Calls)); much != nil {
		return executor.Answer{}, much
	}
	if code := llm.End(&a, word, thought || a.Usage.ReasoningTokens > 0); code != "" {
		return executor.Answer{}, m.endpoint.EndedBy(code, word)
	}
	if a.Text != "" && !response.streamed {
		delta(a.Text)
	}
	return a, nil
}

// fill adds the items to an answer. It reports whether the model refused, in
// words that are the answer's text then, and whether it thought.
func (m *Model) fill(a *executor.Answer, items []responses.ResponseOutputItemUnion) (refused, thought bool) {
	var text strings.Builder
	var pieces []llm.Piece
	for i := range items {
		it := &items[i]
		switch it.Type {
		case "message":
			before := text.Len()
			for _, c := range it.Content {
				text.WriteString(c.Text)
				text.WriteString(c.Refusal)
				refused = refused || c.Refusal != ""
			}
			if n := text.Len() - before; n > 0 {
				pieces = append(pieces, llm.Piece{Text: n, Mark: it.ID})
			}
		case "function_call":
			a.Calls = append(a.Calls, executor.AnswerCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments.OfString})
			pieces = append(pieces, llm.Piece{Call: len(a.Calls), Mark: it.ID})
		case "reasoning":
			thought = true
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
	if a.Text = text.String(); !refused { // a refusal is sent back as plain text
		a.Opaque = llm.Seal(m.of, pieces)
	}
	return refused, thought
}
