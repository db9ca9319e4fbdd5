package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// shows draw the parts without a name.
var shows = map[string]func(v session.View, seqs []uint64) string{
	"transcript": transcript, "tools": tools, "turn": turn, "batch": batch, "run": run, "queue": queue,
	"spaces": spacesText, "prompt": promptText, "skills": skillsText,
}

// Show draws what a step `show` names: transcript, tools, turn, batch, run, queue,
// spaces, prompt, skills, call r1t1c0 or effect r1t1. seqs are the sequences of the
// session's events in order; they are printed as event numbers. payload returns an
// open effect's payload.
func Show(what string, v session.View, seqs []uint64, payload func(session.ViewEffect) []byte) (string, error) {
	if draw := shows[what]; draw != nil {
		return draw(v, seqs), nil
	}
	kind, name := cutWord(what)
	switch {
	case kind == "effect" && name != "":
		for _, e := range v.Open {
			if e.Effect == name {
				return drawFields(payload(e), v, seqs)
			}
		}
		return "not open\n", nil
	case kind == "call" && name != "":
		return call(name, v, seqs)
	}
	return "", fmt.Errorf("scenario: show transcript, tools, turn, batch, run, queue, spaces, prompt, skills, messages, call r1t1c0 or effect r1t1, not %q", what)
}

// retryAt is a time of the session's clock in progress. It is drawn without its
// value, which differs between systems.
var retryAt = regexp.MustCompile(`"retry_at":\d+`)

// ShowProgress draws the progress of the last event, for a step `show progress`.
func ShowProgress(progress []Said) string {
	var b strings.Builder
	for _, p := range progress {
		fmt.Fprintf(&b, "%s %s\n", p.Type, retryAt.ReplaceAll(p.Data, []byte(`"retry_at":…`)))
	}
	return b.String()
}

// ShowMessages draws the events that the last event sent to other sessions, for a step
// `show messages`.
func ShowMessages(messages []session.Message) (string, error) {
	var b strings.Builder
	for _, m := range messages {
		env, err := session.ReadEnvelope(m.Payload)
		if err != nil {
			return "", err
		}
		data, err := codec.ToJSON(env.Data)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %s %s\n", m.Session, env.Type, data)
	}
	return b.String(), nil
}

func transcript(v session.View, seqs []uint64) string {
	var b strings.Builder
	for _, it := range v.Transcript {
		b.WriteString(itemText(session.Item{Call: it.Call, Code: it.Code, Edit: it.Edit, Role: it.Role, Seq: it.Seq}, seqs) + "\n")
	}
	return b.String()
}

// tools draws the tools that the latest turn offered, in order, then the others and
// why they were not offered.
func tools(v session.View, _ []uint64) string {
	offered := make([]string, len(v.Tools))
	hidden := ""
	for _, t := range v.Tools {
		line := t.ToolName + ": " + t.Why + "\n"
		if t.Place > 0 {
			offered[t.Place-1] = line
		} else {
			hidden += line
		}
	}
	return strings.Join(offered, "") + hidden
}

// turn draws the latest turn, and what decided about it.
func turn(v session.View, _ []uint64) string {
	t := v.Turn
	if t == nil {
		return "no turn\n"
	}
	var b strings.Builder
	b.WriteString("turn: " + t.Effect + "\nregistry: " + short(t.Registry) + "\n")
	if t.Base != "" {
		b.WriteString("base: " + baseText(t) + "\ntoolset: " + short(t.Toolset) + "\n")
	}
	if t.Step != nil {
		b.WriteString("step " + strconv.Itoa(t.Step.Step) + ": " + stepText(t.Step) + "\n")
		for _, f := range t.Step.Failed {
			b.WriteString("rule " + strconv.Itoa(f.Rule) + ": " + f.Code + "\n")
		}
	}
	return b.String()
}

// baseText formats the origin of a turn's tools.
func baseText(t *session.ViewTurn) string {
	switch {
	case t.Base != "profile":
		return "the " + t.Base + "'s list"
	case t.Profile == "":
		return "all tools: " + t.ProfileWhy
	}
	return "profile " + t.Profile + ": " + t.ProfileWhy
}

// stepText formats what decided about a turn, and why a hook did not.
func stepText(s *session.ViewStep) string {
	text := "no rule applies"
	switch {
	case s.Open:
		text = "the hook is asked"
	case s.From == session.StepFromHook:
		text = "the hook's answer"
	case s.From == session.StepFromProfile && s.Rule != nil:
		text = "rule " + strconv.Itoa(*s.Rule) + " of profile " + s.Profile
	case s.Rule != nil:
		text = "rule " + strconv.Itoa(*s.Rule) + " of the run"
	}
	if s.Code != "" {
		text += ", after " + s.Code
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

// batch draws the batch of the latest turn: its plan, then one call a line.
func batch(v session.View, _ []uint64) string {
	if v.Batch == nil {
		return "no batch\n"
	}
	var b strings.Builder
	at := "complete"
	if v.Batch.Group < len(v.Batch.Groups) {
		at = "in group " + strconv.Itoa(v.Batch.Group)
	}
	fmt.Fprintf(&b, "%s plan %s, groups %s, %s\n", v.Batch.Batch, short(v.Batch.PlanHash), groups(v.Batch.Groups), at)
	for _, c := range v.Batch.Calls {
		line := c.Effect + " " + c.ToolName + " " + string(c.Status)
		if c.Code != "" {
			line += " " + c.Code
		}
		if c.Kind != "" {
			line += " (" + endedBy(c) + ")"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// call draws one call of the batch from the view, as a host loop needs it.
func call(name string, v session.View, seqs []uint64) (string, error) {
	if c := callOf(v, name); c != nil {
		text, err := json.Marshal(c)
		if err != nil {
			return "", fmt.Errorf("scenario: call: %w", err)
		}
		packed, err := codec.FromJSON(text)
		if err != nil {
			return "", fmt.Errorf("scenario: call: %w", err)
		}
		return drawFields(packed, v, seqs)
	}
	return "no call " + name + "\n", nil
}

// run draws the active run's usage, and what it waits for.
func run(v session.View, seqs []uint64) string {
	var b strings.Builder
	b.WriteString("session: " + usageText(v.Usage, v.Cost) + "\n")
	r := v.Run
	if r == nil {
		return b.String() + "no run\n"
	}
	fmt.Fprintf(&b, "run %d: %s, waits for %s\nturns: %d of %d\nused: %s\n",
		r.Number, v.Lifecycle, v.WaitsFor, r.Turns, r.TurnsMax, usageText(r.Usage, r.Cost))
	for _, of := range []struct {
		is   bool
		text string
	}{
		{r.Fallback > 0, fmt.Sprintf("fallback: %d", r.Fallback)}, {r.Budget != nil, "budget: " + budgetText(r.Budget)}, {r.Deadline > 0, "deadline: " + span(r.Deadline-v.Clock)},
		{len(r.Context) > 0, "context: " + string(r.Context)}, {len(r.Used) > 0, "tools used: " + strings.Join(r.Used, " ")},
		{len(r.Steers) > 0, "steers:" + numbers(r.Steers, seqs)}, {r.FinishReason != "", "its answer ended by " + r.FinishReason},
	} {
		if of.is {
			b.WriteString(of.text + "\n")
		}
	}
	return b.String()
}

func usageText(u session.UsageTotal, cost int64) string {
	text := fmt.Sprintf("%d/%d tokens", u.InputTokens, u.OutputTokens)
	for _, of := range []struct {
		format string
		n      int64
	}{{", %d cached", u.CachedTokens}, {", %d written to the cache", u.CacheWriteTokens}, {", cost %d", cost}} {
		if of.n > 0 {
			text += fmt.Sprintf(of.format, of.n)
		}
	}
	return text
}

// queue draws the waiting runs, with the events of their input.
func queue(v session.View, seqs []uint64) string {
	if len(v.Queue) == 0 {
		return "empty\n"
	}
	var b strings.Builder
	for _, r := range v.Queue {
		fmt.Fprintf(&b, "run %d:%s model %s\n", r.Number, numbers(append([]uint64{r.Seq}, r.Steers...), seqs), r.Model)
	}
	return b.String()
}

// numbers formats sequences as the numbers of the session's events.
func numbers(of, seqs []uint64) string {
	text := ""
	for _, seq := range of {
		text += " #" + strconv.Itoa(slices.Index(seqs, seq)+1)
	}
	return text
}
