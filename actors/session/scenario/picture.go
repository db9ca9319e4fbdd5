package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Picture draws the effect of one event. before and after are the views around it;
// settles is the effect or batch that the event names, if any. Equal pictures mean
// that two systems did the same.
func Picture(before, after session.View, settles string, said []Said) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s\n", after.Count, standing(after))
	gone := func(line string, settled bool) {
		if !settled {
			line += " (withdrawn)"
		}
		b.WriteString("- " + line + "\n")
	}
	for _, e := range before.Open {
		if !isOpen(after, e.Effect) {
			gone(effectLine(before, e), e.Effect == settles)
		}
	}
	for _, c := range unbridged(before) {
		if !isAmong(unbridged(after), c.Effect) {
			gone(unbridgedLine(c), c.Effect == settles || strings.HasPrefix(c.Effect, settles+"c") || c.HostLoop == "" && c.Deadline <= after.Clock)
		}
	}
	writeDecided(&b, before, after)
	for _, e := range after.Open {
		if !isOpen(before, e.Effect) {
			b.WriteString("+ " + effectLine(after, e) + deadline(after, e) + "\n")
		}
	}
	for _, c := range unbridged(after) {
		if !isAmong(unbridged(before), c.Effect) {
			b.WriteString("+ " + unbridgedLine(c) + "\n")
		}
	}
	for _, c := range awaiting(after) {
		if !isAmong(awaiting(before), c.Effect) {
			b.WriteString("? call " + c.ToolName + " " + c.Effect + "\n")
		}
	}
	for _, s := range said {
		b.WriteString("> " + noticeLine(s, after.Clock) + "\n")
	}
	writeChanges(&b, before, after)
	return b.String()
}

func isOpen(v session.View, name string) bool {
	return slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool { return e.Effect == name })
}

// effectLine formats an effect: what it is, then its name.
func effectLine(v session.View, e session.ViewEffect) string {
	switch e.Class {
	case session.ClassLLM:
		return "generate " + e.Effect
	case session.ClassTool:
		if c := callOf(v, e.Effect); c != nil {
			return "call " + c.ToolName + " " + e.Effect + routeOf(v, e)
		}
		return "call " + e.Effect
	case session.ClassStep:
		return "step " + e.Effect + " " + e.Target
	}
	return string(e.Class) + " " + e.Effect
}

// routeOf returns the worker of a call, if a host session names one.
func routeOf(v session.View, e session.ViewEffect) string {
	if v.Host == nil || e.Target != v.Host.Route {
		return ""
	}
	return " at " + e.Target
}

// unbridged returns the open calls without a bridge, which are no effects.
func unbridged(v session.View) []session.ViewCall {
	return callsOf(v, func(c session.ViewCall) bool { return c.Kind != "" && c.Status == session.CallOpen })
}

func awaiting(v session.View) []session.ViewCall {
	return callsOf(v, func(c session.ViewCall) bool { return c.Status == session.CallAwaiting })
}

// callOf returns a call of the view's batch; nil if it has none of that name.
func callOf(v session.View, name string) *session.ViewCall {
	if v.Batch == nil {
		return nil
	}
	i := slices.IndexFunc(v.Batch.Calls, func(c session.ViewCall) bool { return c.Effect == name })
	if i < 0 {
		return nil
	}
	return &v.Batch.Calls[i]
}

// callsOf returns the calls of the view's batch that match.
func callsOf(v session.View, so func(session.ViewCall) bool) (calls []session.ViewCall) {
	if v.Batch != nil {
		for _, c := range v.Batch.Calls {
			if so(c) {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

func isAmong(calls []session.ViewCall, name string) bool {
	return slices.ContainsFunc(calls, func(c session.ViewCall) bool { return c.Effect == name })
}

// unbridgedLine formats a call without a bridge: what it is, its name, and who ends it.
func unbridgedLine(c session.ViewCall) string {
	return "call " + c.ToolName + " " + c.Effect + " (" + endedBy(c) + ")"
}

// endedBy says who ends a call without a bridge: a host loop, whoever replies, or the
// time.
func endedBy(c session.ViewCall) string {
	switch {
	case c.HostLoop != "":
		return "host loop " + c.HostLoop
	case c.By != "":
		return c.Kind + " of " + c.By
	}
	return c.Kind
}

// deadline formats a wake's due; `show` prints other effects' deadlines.
func deadline(v session.View, e session.ViewEffect) string {
	if e.Class != session.ClassWake {
		return ""
	}
	if sc := scheduleOf(v, isDue(e)); sc != nil { // the part of a minute depends on the session's name
		return " of " + sc.Name + " at " + strconv.FormatInt(sc.Next, 10)
	}
	return " due " + span(e.Deadline-v.Clock)
}

// changes are the parts that a picture compares besides runs and effects.
var changes = []struct {
	name  string
	ofRun bool // compared within one run
	text  func(session.View) string
}{
	{"registry ", false, func(v session.View) string { return short(v.Registry) }},
	{"host session ", false, hostText},
	{"profile ", false, func(v session.View) string { return v.Profile }},
	{"overrides session", false, func(v session.View) string { return listsText(v.Overrides) }},
	{"overrides run ", true, func(v session.View) string { return strconv.Itoa(int(v.Run.Number)) + listsText(v.Run.Overrides) }},
	{"budget run ", true, func(v session.View) string { return strconv.Itoa(int(v.Run.Number)) + " " + budgetText(v.Run.Budget) }},
	{"spaces ", false, heldText},
	{"facts", false, factsText},
	{"schedules", false, schedulesText},
}

// writeChanges writes the changes besides runs and effects.
func writeChanges(b *strings.Builder, before, after session.View) {
	sameRun := before.Run != nil && after.Run != nil && before.Run.Number == after.Run.Number
	for _, c := range changes {
		if c.ofRun && !sameRun {
			continue
		}
		if text := c.text(after); c.text(before) != text {
			b.WriteString("= " + c.name + text + "\n")
		}
	}
}

// short returns the beginning of a hash, enough to tell two apart.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// groups formats the groups of a plan: indexes of calls, a dot between groups.
func groups(all [][]int) string {
	if len(all) == 0 {
		return "none"
	}
	var texts []string
	for _, group := range all {
		texts = append(texts, strings.Trim(fmt.Sprint(group), "[]"))
	}
	return strings.Join(texts, " · ")
}

func listsText(l *session.Overrides) string {
	if l == nil {
		return " none"
	}
	text := ""
	for _, list := range []struct {
		name  string
		tools []string
	}{{"disable", l.Disable}, {"enable", l.Enable}, {"force", l.Force}} {
		if len(list.tools) > 0 {
			text += " " + list.name + "=[" + strings.Join(list.tools, " ") + "]"
		}
	}
	return text
}

func budgetText(b *session.Budget) string {
	if b == nil {
		return "none"
	}
	text, _ := json.Marshal(b) // numbers and a word
	return string(text)
}

func hostText(v session.View) string {
	if v.Host == nil {
		return "none"
	}
	return v.Host.Status
}

func factsText(v session.View) string {
	text := ""
	for _, f := range v.Facts {
		text += " " + f.Name + "=" + strconv.Quote(f.Value)
	}
	return text
}
