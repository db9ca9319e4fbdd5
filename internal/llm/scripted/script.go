package scripted

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// Script is a script that was read. It is immutable.
type Script struct {
	name  string // of the file
	model string
	turns []turn // or
	rules []turn
}

// turn is what the model says, and what it has to be shown to say it.
type turn struct {
	line  int
	shown shown
	say   template
	calls []call
	usage executor.Usage
	finish,
	model string
	fail *executor.Error
	wait time.Duration // before it says something
}

type call struct {
	tool, id  string
	arguments template
}

// script checks the whole file and makes it ready to be said.
func (s *source) script(w *wireScript) (*Script, error) {
	script := &Script{name: s.name, model: w.Model}
	if script.model == "" {
		script.model = "scripted"
	}
	if (len(w.Turns) == 0) == (len(w.Rules) == 0) {
		return nil, fmt.Errorf("%s:1: a script has either turns or rules", s.name)
	}
	if n := len(w.Turns) + len(w.Rules); n > turnsMax {
		return nil, fmt.Errorf("%s:1: %d turns, the most is %d", s.name, n, turnsMax)
	}
	for i := range w.Turns {
		key := fmt.Sprintf("turns[%d]", i)
		t, err := s.turn(key, &w.Turns[i], script.model)
		if err != nil {
			return nil, err
		}
		if t.fail != nil && i < len(w.Turns)-1 {
			return nil, s.fault(key+".fail", "only the last turn may fail: a failure is no message, so the turns after it would never come")
		}
		script.turns = append(script.turns, t)
	}
	for i := range w.Rules {
		t, err := s.turn(fmt.Sprintf("rules[%d]", i), &w.Rules[i], script.model)
		if err != nil {
			return nil, err
		}
		script.rules = append(script.rules, t)
	}
	return script, nil
}

// turn makes one turn or rule ready; key is where it stands.
func (s *source) turn(key string, w *wireTurn, model string) (turn, error) {
	t := turn{line: s.line(key), model: model}
	shown, err := s.shown(key+".shown", &w.Shown)
	if err != nil {
		return t, err
	}
	t.shown = shown
	if err := s.fail(key, w, &t); err != nil {
		return t, err
	}
	groups := t.shown.groups()
	if t.say, err = parseTemplate(w.Say, groups, nil); err != nil {
		return t, s.fault(key+".say", "%w", err)
	}
	for i := range w.Calls {
		at := fmt.Sprintf("%s.calls[%d]", key, i)
		if w.Calls[i].Tool == "" {
			return t, s.fault(at, "a call names its tool")
		}
		c := call{tool: w.Calls[i].Tool, id: w.Calls[i].ID}
		if c.arguments, err = parseArguments(w.Calls[i].Arguments, groups); err != nil {
			return t, s.fault(at+".arguments", "%w", err)
		}
		t.calls = append(t.calls, c)
	}
	if w.Wait != "" {
		if t.wait, err = time.ParseDuration(w.Wait); err != nil || t.wait < 0 || t.wait > waitMax {
			return t, s.fault(key+".wait", "%q is no time of at most %v, such as 2s", w.Wait, waitMax)
		}
	}
	t.finish = w.Finish
	finishes := []string{"", llm.FinishStop, llm.FinishToolCalls, llm.FinishLength, llm.FinishContentFilter}
	if !slices.Contains(finishes, w.Finish) {
		return t, s.fault(key+".finish", "%q is none of %q", w.Finish, finishes[1:])
	}
	u := w.Usage
	if min(u.InputTokens, u.OutputTokens, u.CachedTokens, u.ReasoningTokens) < 0 {
		return t, s.fault(key+".usage", "a count is 0 or more")
	}
	t.usage = executor.Usage(u)
	return t, nil
}

// fail checks that the turn says something or fails, and makes the failure.
func (s *source) fail(key string, w *wireTurn, t *turn) error {
	says := w.Say != "" || len(w.Calls) > 0
	switch {
	case w.Fail == nil && !says:
		return s.fault(key, "it has none of say, calls and fail")
	case w.Fail == nil:
		return nil
	case says || w.Finish != "" || w.Usage != (wireUsage{}):
		return s.fault(key+".fail", "a turn that fails has no say, calls, finish or usage")
	case w.Fail.Code == "":
		return s.fault(key+".fail", "code is missing")
	}
	t.fail = llm.Fail(w.Fail.Code, "%s", w.Fail.Detail)
	t.fail.Retryable = w.Fail.Retryable
	return nil
}

// pattern makes a regular expression ready; nil if there is none.
func (s *source) pattern(key, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, s.fault(key, "%w", err)
	}
	return re, nil
}

// texts reads a text or a list of texts.
func (s *source) texts(key string, value any) ([]string, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, s.fault(fmt.Sprintf("%s[%d]", key, i), "is no text: put it in quotes")
			}
			list[i] = text
		}
		return list, nil
	}
	return nil, s.fault(key, "is a text or a list of texts; put a number in quotes")
}
