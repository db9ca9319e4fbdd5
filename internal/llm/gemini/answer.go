package gemini

import (
	"context"
	"encoding/base64"
	"strings"

	"google.golang.org/genai"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

func (m *Model) ask(
	ctx context.Context, model string, contents []*genai.Content, config *genai.GenerateContentConfig, delta func(text string),
) (executor.Answer, *endpoint.Failure) {
	var b builder
	for chunk, err := range m.client.Models.GenerateContentStream(ctx, model, contents, config) {
		if err != nil {
			if b.finish != "" { // complete, even if the connection failed afterwards
				break
			}
			return executor.Answer{}, m.endpoint.Failed(err)
		}
		text := b.add(chunk)
		if much := m.endpoint.TooMuch(b.bytes, len(b.calls)); much != nil {
			return executor.Answer{}, much
		}
		if b.blocked != "" {
			return executor.Answer{}, endpoint.Final(llm.CodeContentFilter, "%s refused the conversation: %s", m.endpoint.Host(), m.endpoint.Clean(b.blocked))
		}
		if text != "" {
			delta(text)
		}
	}
	return b.answer(m)
}

type builder struct {
	text    strings.Builder
	pieces  []llm.Piece
	calls   []executor.AnswerCall
	model   string
	finish  genai.FinishReason
	thought bool   // the model thought
	index   *int32 // of the candidate
	blocked string // why the server refused the conversation
	usage   executor.Usage
	bytes   int
}

// add adds a chunk, and returns its text.
func (b *builder) add(chunk *genai.GenerateContentResponse) string {
	if chunk.ModelVersion != "" {
		b.model = chunk.ModelVersion
	}
	if u := chunk.UsageMetadata; u != nil {
		b.usage = executor.Usage{
			InputTokens:     llm.Count(int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount)),
			OutputTokens:    llm.Count(int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount)),
			CachedTokens:    llm.Count(int64(u.CachedContentTokenCount)),
			ReasoningTokens: llm.Count(int64(u.ThoughtsTokenCount)),
		}
	}
	if f := chunk.PromptFeedback; f != nil && f.BlockReason != "" {
		b.blocked = strings.TrimSuffix(string(f.BlockReason)+": "+f.BlockReasonMessage, ": ")
	}
	var words strings.Builder
	for _, c := range chunk.Candidates {
		if b.index == nil {
			b.index = &c.Index
		}
		if c.Index != *b.index { // only one answer was requested
			continue
		}
		if c.FinishReason != "" && c.FinishReason != genai.FinishReasonUnspecified {
			b.finish = c.FinishReason
		}
		if c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			words.WriteString(b.part(p))
		}
	}
	return words.String()
}

// part adds a part, and returns its text. A signature stays with its part: text
// without one continues the text before.
func (b *builder) part(p *genai.Part) string {
	mark := base64.StdEncoding.EncodeToString(p.ThoughtSignature)
	b.bytes += len(p.Text) + len(mark)
	switch {
	case p.FunctionCall != nil:
		arguments := "{}"
		if len(p.FunctionCall.Args) > 0 {
			arguments = string(llm.JSON(p.FunctionCall.Args))
		}
		b.bytes += len(arguments)
		b.calls = append(b.calls, executor.AnswerCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: arguments})
		b.pieces = append(b.pieces, llm.Piece{Call: len(b.calls), Mark: mark})
	case p.Thought: // a summary, for people; the API does not want it back
		b.thought = true
	case p.Text != "":
		b.text.WriteString(p.Text)
		if n := len(b.pieces); mark == "" && n > 0 && b.pieces[n-1].Text > 0 && b.pieces[n-1].Mark == "" {
			b.pieces[n-1].Text += len(p.Text)
		} else {
			b.pieces = append(b.pieces, llm.Piece{Text: len(p.Text), Mark: mark})
		}
		return p.Text
	case mark != "":
		// The signature arrived by itself, as at the end of a stream. It belongs to the
		// text before it.
		if n := len(b.pieces); n > 0 && b.pieces[n-1].Text > 0 && b.pieces[n-1].Mark == "" {
			b.pieces[n-1].Mark = mark
		}
	}
	return ""
}

// answer returns the assembled answer, if there is one.
func (b *builder) answer(m *Model) (executor.Answer, *endpoint.Failure) {
	a := executor.Answer{Text: b.text.String(), Calls: b.calls, Model: b.model, Usage: b.usage, Opaque: llm.Seal(m.of, b.pieces)}
	if b.finish == "" {
		return executor.Answer{}, m.endpoint.BrokeOff()
	}
	if code := llm.End(&a, string(b.finish), b.thought || b.usage.ReasoningTokens > 0); code != "" {
		return executor.Answer{}, m.endpoint.EndedBy(code, string(b.finish))
	}
	return a, nil
}
