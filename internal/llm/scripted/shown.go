package scripted

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// shown are a turn's conditions on the request.
type shown struct {
	last             string // role, or empty
	message          words  // the last message
	asked            *regexp.Regexp
	system           []string
	include, exclude []string // tools
	results          []result // nil: any
}

// words are conditions on a text.
type words struct {
	text, lacks []string
	matches     *regexp.Regexp
}

type result struct {
	tool  string
	error *bool
	words words
}

// shown compiles a turn's conditions; key is their place in the file.
func (s *source) shown(key string, w *wireShown) shown {
	if w.Last != "" && w.Last != "user" && w.Last != "tool" {
		s.fault(key+".last", "is user or tool, not %q", w.Last)
	}
	e := shown{
		last:    w.Last,
		message: s.words(key, w.Text, w.Lacks, w.Matches),
		asked:   s.pattern(key+".asked", w.Asked),
		system:  s.texts(key+".system", w.System),
		include: s.texts(key+".tools.include", w.Tools.Include),
		exclude: s.texts(key+".tools.exclude", w.Tools.Exclude),
	}
	if w.Results == nil {
		return e
	}
	e.results = make([]result, len(*w.Results))
	for i, r := range *w.Results {
		e.results[i] = result{r.Tool, r.Error, s.words(fmt.Sprintf("%s.results[%d]", key, i), r.Text, r.Lacks, r.Matches)}
	}
	return e
}

// words compiles conditions on a text.
func (s *source) words(key string, text, lacks any, matches string) words {
	return words{s.texts(key+".text", text), s.texts(key+".lacks", lacks), s.pattern(key+".matches", matches)}
}

// groups returns how many groups of a match the turn's texts may use.
func (e *shown) groups() int {
	switch {
	case e.message.matches != nil:
		return e.message.matches.NumSubexp()
	case e.asked != nil:
		return e.asked.NumSubexp()
	}
	return 0
}

// wrong describes the first condition that does not hold, or returns "".
func (e *shown) wrong(req *executor.Request) string {
	last := &req.Messages[len(req.Messages)-1]
	if e.last != "" && e.last != last.Role {
		return fmt.Sprintf("last: expected a message of role %s, shown %s %s", e.last, last.Role, llm.Excerpt(last.Text))
	}
	if wrong := e.wrongResults(req.Messages); wrong != "" {
		return wrong
	}
	if wrong := e.message.wrong(last.Text); wrong != "" {
		return wrong
	}
	if asked := newest(req.Messages, "user"); e.asked != nil && !e.asked.MatchString(asked) {
		return fmt.Sprintf("asked: expected what matches %s, shown %s", llm.Excerpt(e.asked.String()), llm.Excerpt(asked))
	}
	for _, part := range e.system {
		if !strings.Contains(req.System, part) {
			return fmt.Sprintf("system: expected what contains %s, shown %s", llm.Excerpt(part), llm.Excerpt(req.System))
		}
	}
	return e.wrongTools(req.Tools)
}

// wrongTools describes the first tool that is missing, or offered and excluded.
func (e *shown) wrongTools(tools []executor.Tool) string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	for _, name := range e.include {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("tools: expected %s among them, shown %s", name, llm.Excerpt(strings.Join(names, " ")))
		}
	}
	for _, name := range e.exclude {
		if slices.Contains(names, name) {
			return fmt.Sprintf("tools: expected no %s, shown %s", name, llm.Excerpt(strings.Join(names, " ")))
		}
	}
	return ""
}

// wrongResults describes what is wrong with the results after the model's
// latest message.
func (e *shown) wrongResults(messages []executor.Message) string {
	if e.results == nil {
		return ""
	}
	names, got := results(messages)
	if len(got) != len(e.results) {
		return fmt.Sprintf("results: expected %d, shown %d (%s)", len(e.results), len(got), strings.Join(names, ", "))
	}
	for i, want := range e.results {
		at := "results[" + strconv.Itoa(i) + "]"
		if want.tool != "" && want.tool != names[i] {
			return fmt.Sprintf("%s.tool: expected %s, shown %s", at, want.tool, names[i])
		}
		if want.error != nil && *want.error != got[i].Error {
			return fmt.Sprintf("%s.error: expected %t, shown %t: %s", at, *want.error, got[i].Error, llm.Excerpt(got[i].Text))
		}
		if wrong := want.words.wrong(got[i].Text); wrong != "" {
			return at + "." + wrong
		}
	}
	return ""
}

// wrong describes the first condition that text violates.
func (w *words) wrong(text string) string {
	for _, part := range w.text {
		if !strings.Contains(text, part) {
			return fmt.Sprintf("text: expected what contains %s, shown %s", llm.Excerpt(part), llm.Excerpt(text))
		}
	}
	for _, part := range w.lacks {
		if at := strings.Index(text, part); at >= 0 {
			return fmt.Sprintf("lacks: expected no %s, shown %s", llm.Excerpt(part), llm.Excerpt(text[at:]))
		}
	}
	if w.matches != nil && !w.matches.MatchString(text) {
		return fmt.Sprintf("matches: expected what matches %s, shown %s", llm.Excerpt(w.matches.String()), llm.Excerpt(text))
	}
	return ""
}

// results returns the tool messages after the model's latest message, and the
// names of their tools.
func results(messages []executor.Message) (names []string, got []*executor.Message) {
	from := len(messages)
	for from > 0 && messages[from-1].Role != "assistant" {
		from--
	}
	if from == 0 {
		return nil, nil
	}
	calls := messages[from-1].Calls
	for i := from; i < len(messages); i++ {
		if messages[i].Role != "tool" {
			continue
		}
		name := "?"
		if len(got) < len(calls) {
			name = calls[len(got)].Name
		}
		names = append(names, name)
		got = append(got, &messages[i])
	}
	return names, got
}

// newest returns the text of the last message of a role, or "".
func newest(messages []executor.Message, role string) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == role {
			return messages[i].Text
		}
	}
	return ""
}
