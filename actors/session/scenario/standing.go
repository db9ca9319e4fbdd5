package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

func standing(v session.View) string {
	text := runStanding(v)
	if n := len(v.Queue); n > 0 {
		text += ", " + strconv.Itoa(n) + " queued"
	}
	if v.Status != "open" {
		text += ", " + v.Status
	}
	return text
}

// runStanding formats the status of the active run, or else the end of the last
// one.
func runStanding(v session.View) string {
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
	parts := lifecycle(v)
	switch v.WaitsFor {
	case "model":
		parts = append(parts, "the model's turn")
	case "step":
		parts = append(parts, "the hook's step")
	case "input":
		parts = append(parts, "waiting for input")
	}
	if v.Run.RetryAt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d due %s", v.Run.Attempt+1, span(v.Run.RetryAt-v.Clock)))
	}
	parts = append(parts, callsStanding(v)...)
	if n := len(v.Run.Steers); n == 1 {
		parts = append(parts, "1 steer waits")
	} else if n > 1 {
		parts = append(parts, strconv.Itoa(n)+" steers wait")
	}
	return fmt.Sprintf("run %d turn %d: %s", v.Run.Number, v.Run.Turns, strings.Join(parts, ", "))
}

// lifecycle formats the lifecycles that open no new effects.
func lifecycle(v session.View) []string {
	switch {
	case v.Lifecycle == session.Paused && v.Run.Spent:
		return []string{"paused by its budget"}
	case v.Lifecycle == session.Paused, v.Lifecycle == session.Interrupting:
		return []string{string(v.Lifecycle)}
	}
	return nil
}

// callsStanding formats the progress of the active run's batch.
func callsStanding(v session.View) []string {
	if v.Batch == nil || v.Batch.Batch != fmt.Sprintf("r%dt%d", v.Run.Number, v.Run.Turns) || v.Batch.Group >= len(v.Batch.Groups) {
		return nil
	}
	open := len(callsOf(v, func(c session.ViewCall) bool { return c.Status == session.CallOpen }))
	var parts []string
	waits := len(awaiting(v))
	switch {
	case waits == 0:
		parts = []string{count(open, "call") + " open"}
	case open == 0:
		parts = []string{waiting(count(waits, "call"), waits)}
	default:
		parts = []string{count(open, "call") + " open", waiting(strconv.Itoa(waits), waits)}
	}
	if left := len(v.Batch.Groups) - v.Batch.Group - 1; left > 0 {
		parts = append(parts, count(left, "group")+" left")
	}
	if what := map[string]string{"host_loop": "host loop", "reply": "a reply", "clock": "the time"}[v.WaitsFor]; what != "" {
		parts[len(parts)-1] += " (waiting for " + what + ")"
	}
	return parts
}

func waiting(calls string, n int) string {
	if n == 1 {
		return calls + " awaits approval"
	}
	return calls + " await approval"
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// writeDecided writes the outcome of calls that no longer wait for a person:
// approved, or the code of their result.
func writeDecided(b *strings.Builder, before, after session.View) {
	for _, c := range awaiting(before) {
		if isAmong(awaiting(after), c.Effect) {
			continue
		}
		b.WriteString("! call " + c.ToolName + " " + c.Effect + " " + decided(after, c.Effect) + "\n")
	}
}

// decided formats the outcome of one such call. If the batch was complete and the
// next turn has begun, its results are in the transcript.
func decided(v session.View, name string) string {
	if c := callOf(v, name); c != nil {
		return orApproved(c.Code)
	}
	_, position, _ := strings.Cut(name, "c")
	for i := len(v.Transcript) - 1; i >= 0; i-- {
		if it := v.Transcript[i]; it.Role == session.RoleTool && strconv.Itoa(int(it.Call)) == position {
			return orApproved(it.Code)
		}
	}
	return "decided"
}

func orApproved(code string) string { return cmp.Or(code, "approved") }
