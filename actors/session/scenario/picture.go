package scenario

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// Said is a notice as an observer reads it.
type Said struct {
	N    uint64          `json:"n"`
	Type string          `json:"type"`
	Seq  uint64          `json:"seq"`
	Data json.RawMessage `json:"data"`
}

// Picture draws what one event left: before and after are the views around it,
// settles is the effect that the event names, if any. Equal pictures mean that
// the two systems did the same.
func Picture(before, after session.View, settles string, said []Said) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s\n", after.Events, standing(after))
	for _, e := range before.Open {
		if isOpen(after, e.Effect) {
			continue
		}
		b.WriteString("- " + effectLine(before, e))
		if e.Effect != settles {
			b.WriteString(" (withdrawn)")
		}
		b.WriteByte('\n')
	}
	for _, e := range after.Open {
		if !isOpen(before, e.Effect) {
			b.WriteString("+ " + effectLine(after, e) + deadline(after, e) + "\n")
		}
	}
	for _, s := range said {
		b.WriteString("> " + noticeLine(s) + "\n")
	}
	writeChanges(&b, before, after)
	return b.String()
}

// standing tells where a session stands.
func standing(v session.View) string {
	queued := ""
	if n := len(v.Queue); n > 0 {
		queued = ", " + strconv.Itoa(n) + " queued"
	}
	switch {
	case v.Run == nil && v.Last == nil:
		return "no run"
	case v.Run == nil:
		text := fmt.Sprintf("run %d %s", v.Last.Number, v.Last.Lifecycle)
		if v.Last.Code != "" {
			text += " " + v.Last.Code
		}
		return text
	}
	text := fmt.Sprintf("run %d turn %d: ", v.Run.Number, v.Run.Turns)
	if v.WaitsFor == "model" {
		return text + "the model's turn" + queued
	}
	open := 0
	for _, c := range v.Batch.Calls {
		if c.Status == session.CallOpen {
			open++
		}
	}
	text += count(open, "call") + " open"
	if left := len(v.Batch.Groups) - v.Batch.Group - 1; left > 0 {
		text += ", " + count(left, "group") + " left"
	}
	return text + queued
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// isOpen reports whether an effect is open in a view.
func isOpen(v session.View, name string) bool {
	for _, e := range v.Open {
		if e.Effect == name {
			return true
		}
	}
	return false
}

// effectLine names an effect: what it is, then its name.
func effectLine(v session.View, e session.ViewEffect) string {
	switch e.Class {
	case session.ClassLLM:
		return "generate " + e.Effect
	case session.ClassTool:
		if v.Batch != nil {
			for _, c := range v.Batch.Calls {
				if c.Effect == e.Effect {
					return "call " + c.ToolName + " " + e.Effect
				}
			}
		}
		return "call " + e.Effect
	}
	return string(e.Class) + " " + e.Effect
}

// deadline writes when a wake is due; other effects have theirs in `show`.
func deadline(v session.View, e session.ViewEffect) string {
	if e.Class != session.ClassWake {
		return ""
	}
	return " due " + span(e.Deadline-v.Clock)
}

// noticeLine writes a notice.
func noticeLine(s Said) string {
	var d struct {
		Run       int              `json:"run"`
		Lifecycle string           `json:"lifecycle"`
		Code      string           `json:"code"`
		Detail    string           `json:"detail"`
		Effect    string           `json:"effect"`
		ToolName  string           `json:"tool_name"`
		Type      string           `json:"type"`
		Output    *session.Content `json:"output"`
	}
	if err := json.Unmarshal(s.Data, &d); err != nil {
		return s.Type + " " + err.Error()
	}
	line := s.Type
	for _, part := range []string{runPart(d.Run), d.Type, d.Effect, d.ToolName, d.Lifecycle, d.Code} {
		if part != "" {
			line += " " + part
		}
	}
	if strings.Contains(d.Detail, "\n") { // a step's lines end at the next blank one
		d.Detail = strconv.Quote(d.Detail)
	}
	if d.Detail != "" {
		line += ": " + d.Detail
	}
	if d.Output != nil && d.Output.Text != "" {
		line += " " + strconv.Quote(d.Output.Text)
	}
	return line
}

// runPart names a run.
func runPart(run int) string {
	if run == 0 {
		return ""
	}
	return "run " + strconv.Itoa(run)
}

// writeChanges writes what changed beside runs and effects.
func writeChanges(b *strings.Builder, before, after session.View) {
	if hostText(before) != hostText(after) {
		b.WriteString("= host session " + hostText(after) + "\n")
	}
	if before.Profile != after.Profile {
		b.WriteString("= profile " + after.Profile + "\n")
	}
	if factsText(before) != factsText(after) {
		b.WriteString("= facts" + factsText(after) + "\n")
	}
}

func hostText(v session.View) string {
	if v.HostSession == nil {
		return "none"
	}
	return v.HostSession.Status
}

func factsText(v session.View) string {
	text := ""
	for _, f := range v.Facts {
		text += " " + f.Name + "=" + strconv.Quote(f.Value)
	}
	return text
}

// Transcript draws the transcript of a view. seqs are the sequences of the
// session's events in order: they are printed as their number.
func Transcript(v session.View, seqs []uint64) string {
	var b strings.Builder
	for _, it := range v.Transcript {
		b.WriteString(itemText(it, seqs) + "\n")
	}
	return b.String()
}

// Tools draws which tools the latest turn was offered, and why not.
func Tools(v session.View) string {
	var b strings.Builder
	for _, t := range v.Tools {
		fmt.Fprintf(&b, "%s: %s\n", t.ToolName, t.Why)
	}
	return b.String()
}
