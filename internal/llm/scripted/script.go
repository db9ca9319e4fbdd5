package scripted

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Script is a parsed script. It is immutable.
type Script struct {
	name  string // of the file
	model string
	sums  string // the answer to a request for a summary
	turns []turn // or
	rules []turn
}

// turn is an answer of the model, and the conditions for it.
type turn struct {
	line  int
	shown shown
	say   template
	calls []call
	usage executor.Usage
	finish,
	model string
	fail *executor.Error
	wait time.Duration // before the answer
}

type call struct {
	tool, id  string
	arguments template
}

// script checks and compiles the whole file.
func (s *source) script(w *wireScript) (*Script, error) {
	script := &Script{name: s.name, model: cmp.Or(w.Model, "scripted"), sums: w.Summary}
	if (len(w.Turns) == 0) == (len(w.Rules) == 0) {
		return nil, fmt.Errorf("%s:1: a script has either turns or rules", s.name)
	}
	if n := len(w.Turns) + len(w.Rules); n > turnsMax {
		return nil, fmt.Errorf("%s:1: %d turns, the most is %d", s.name, n, turnsMax)
	}
	for i := range w.Turns {
		key := fmt.Sprintf("turns[%d]", i)
		t := s.turn(key, &w.Turns[i], script.model)
		if t.fail != nil && i < len(w.Turns)-1 {
			s.fault(key+".fail", "only the last turn may fail: a failure is no message, so the turns after it would never come")
		}
		script.turns = append(script.turns, t)
	}
	for i := range w.Rules {
		script.rules = append(script.rules, s.turn(fmt.Sprintf("rules[%d]", i), &w.Rules[i], script.model))
	}
	return script, s.err
}

// turn compiles one turn or rule; key is its place in the file.
func (s *source) turn(key string, w *wireTurn, model string) turn {
	t := turn{line: s.line(key), model: model, finish: w.Finish, usage: executor.Usage(w.Usage)}
	t.shown = s.shown(key+".shown", &w.Shown)
	t.fail = s.fail(key, w)
	groups := t.shown.groups()
	var err error
	if t.say, err = parseTemplate(w.Say, groups, nil); err != nil {
		s.fault(key+".say", "%w", err)
	}
	for i := range w.Calls {
		at := fmt.Sprintf("%s.calls[%d]", key, i)
		if w.Calls[i].Tool == "" {
			s.fault(at, "a call names its tool")
		}
		c := call{tool: w.Calls[i].Tool, id: w.Calls[i].ID}
		if c.arguments, err = parseArguments(w.Calls[i].Arguments, groups); err != nil {
			s.fault(at+".arguments", "%w", err)
		}
		t.calls = append(t.calls, c)
	}
	if w.Wait != "" {
		if t.wait, err = time.ParseDuration(w.Wait); err != nil || t.wait < 0 || t.wait > waitMax {
			s.fault(key+".wait", "%q is no time of at most %v, such as 2s", w.Wait, waitMax)
		}
	}
	finishes := []string{"", llm.FinishStop, llm.FinishToolCalls, llm.FinishLength, llm.FinishContentFilter}
	if !slices.Contains(finishes, w.Finish) {
		s.fault(key+".finish", "%q is none of %q", w.Finish, finishes[1:])
	}
	if u := w.Usage; min(u.InputTokens, u.OutputTokens, u.CachedTokens, u.ReasoningTokens) < 0 {
		s.fault(key+".usage", "a count is 0 or more")
	}
	return t
}

// fail checks that the turn either answers or fails, and returns the failure.
func (s *source) fail(key string, w *wireTurn) *executor.Error {
	says := w.Say != "" || len(w.Calls) > 0
	switch {
	case w.Fail == nil && !says:
		s.fault(key, "it has none of say, calls and fail")
		return nil
	case w.Fail == nil:
		return nil
	case says || w.Finish != "" || w.Usage != (wireUsage{}):
		s.fault(key+".fail", "a turn that fails has no say, calls, finish or usage")
	case w.Fail.Code == "":
		s.fault(key+".fail", "code is missing")
	}
	failure := llm.Fail(w.Fail.Code, "%s", w.Fail.Detail)
	failure.Retryable = w.Fail.Retryable
	return failure
}

// pattern compiles a regular expression; nil if there is none.
func (s *source) pattern(key, text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		s.fault(key, "%w", err)
	}
	return re
}

func (s *source) texts(key string, value any) (list []string) {
	switch v := value.(type) {
	case nil:
	case string:
		return []string{v}
	case []any:
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				s.fault(fmt.Sprintf("%s[%d]", key, i), "is no text: put it in quotes")
			}
			list = append(list, text)
		}
	default:
		s.fault(key, "is a text or a list of texts; put a number in quotes")
	}
	return list
}
