package scripted

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Model answers as a script says. It keeps nothing between two generations and
// is safe for concurrent use.
type Model struct{ script *Script }

// NewModel returns the model of a script.
func NewModel(s *Script) *Model { return &Model{script: s} }

var _ executor.Model = (*Model)(nil)

// Generate returns the answer of the turn that req leads to. It fails with
// script_mismatch if the script expects something else, or has ended; the
// detail quotes both.
func (m *Model) Generate(ctx context.Context, req executor.Request, delta func(text string)) (executor.Answer, error) {
	if req.Compact {
		answer := m.script.summary(&req)
		return answer, llm.Stream(ctx, answer.Text, delta)
	}
	number := 1
	for i := range req.Messages {
		if req.Messages[i].Role == "assistant" {
			number++
		}
	}
	t, err := m.script.find(&req, number)
	if err != nil {
		return executor.Answer{}, err
	}
	if t.wait > 0 {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		}
	}
	if t.fail != nil {
		failure := *t.fail
		return executor.Answer{}, &failure
	}
	answer := t.answer(req.Messages, number)
	if err := llm.Stream(ctx, answer.Text, delta); err != nil {
		return executor.Answer{}, err
	}
	return answer, nil
}

// summary is the answer to a request for a summary.
func (s *Script) summary(req *executor.Request) executor.Answer {
	text := cmp.Or(s.sums, fmt.Sprintf("The conversation had %d messages.", len(req.Messages)-1))
	return executor.Answer{Text: text, Model: s.model, FinishReason: llm.FinishStop}
}

// find returns the turn for a request.
func (s *Script) find(req *executor.Request, number int) (*turn, error) {
	if len(s.rules) > 0 {
		for i := range s.rules {
			if s.rules[i].shown.wrong(req) == "" {
				return &s.rules[i], nil
			}
		}
		last := &req.Messages[len(req.Messages)-1]
		return nil, llm.Fail(llm.CodeScriptMismatch, "%s: none of %d rules expects what is shown: %s %s",
			s.name, len(s.rules), last.Role, llm.Excerpt(last.Text))
	}
	if err := s.compare(req.Messages); err != nil {
		return nil, err
	}
	if number > len(s.turns) {
		last := &req.Messages[len(req.Messages)-1]
		return nil, llm.Fail(llm.CodeScriptMismatch, "%s: expected no more than %d turns, shown %s %s for another",
			s.name, len(s.turns), last.Role, llm.Excerpt(last.Text))
	}
	t := &s.turns[number-1]
	if wrong := t.shown.wrong(req); wrong != "" {
		return nil, llm.Fail(llm.CodeScriptMismatch, "%s:%d: turn %d: %s", s.name, t.line, number, wrong)
	}
	return t, nil
}

// compare checks that the model's messages so far are the script's.
func (s *Script) compare(messages []executor.Message) error {
	number := 0
	for i := range messages {
		m := &messages[i]
		if m.Role != "assistant" {
			continue
		}
		if number++; number > len(s.turns) {
			return llm.Fail(llm.CodeScriptMismatch, "%s: expected %d messages of the model at most, shown another: %s",
				s.name, len(s.turns), llm.Excerpt(m.Text))
		}
		answer := s.turns[number-1].answer(messages[:i], number)
		want := executor.Message{Role: m.Role, Text: answer.Text}
		for _, c := range answer.Calls {
			want.Calls = append(want.Calls, executor.MessageCall{Name: c.Name, Arguments: c.Arguments})
		}
		if what, w, g := llm.Differ(&want, m); what != "" {
			return llm.Fail(llm.CodeScriptMismatch, "%s:%d: the model's message %d, %s: expected %s, shown %s",
				s.name, s.turns[number-1].line, number, what, w, g)
		}
	}
	return nil
}

// answer fills in the turn from the messages before it.
func (t *turn) answer(before []executor.Message, number int) executor.Answer {
	f := values{user: newest(before, "user"), result: newest(before, "tool")}
	if len(before) > 0 {
		f.text = before[len(before)-1].Text
	}
	switch {
	case t.shown.message.matches != nil:
		f.groups = t.shown.message.matches.FindStringSubmatch(f.text)
	case t.shown.asked != nil:
		f.groups = t.shown.asked.FindStringSubmatch(f.user)
	}
	a := executor.Answer{Text: t.say.render(&f), Model: t.model, FinishReason: llm.FinishStop, Usage: t.usage}
	for i := range t.calls {
		a.FinishReason = llm.FinishToolCalls
		id := cmp.Or(t.calls[i].id, fmt.Sprintf("call_%d_%d", number, i))
		a.Calls = append(a.Calls, executor.AnswerCall{ID: id, Name: t.calls[i].tool, Arguments: t.calls[i].arguments.render(&f)})
	}
	a.FinishReason = cmp.Or(t.finish, a.FinishReason)
	return a
}
