package transcript

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/internal/llm"
)

// Moment formats a time of the session's clock.
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }

// Prefixed returns before and text, or "" if text is empty.
func Prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// OrDash returns a text, or a dash in the place of an empty one.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Ended describes how a run ended. The end of a recording is not a failure.
func Ended(run uint32, lifecycle session.Lifecycle, code, detail string) string {
	text := fmt.Sprintf("run %d %s", run, lifecycle)
	if code == llm.CodeRecordingEnded {
		text, code = fmt.Sprintf("run %d ends where the recording ends", run), ""
	}
	for _, part := range []string{code, detail} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// AnswerEnded describes an answer that ended otherwise than by session.FinishStop.
func AnswerEnded(reason string) string {
	switch reason {
	case session.FinishLength:
		return "the output limit cut the answer off (length)"
	case session.FinishContentFilter:
		return "the provider's filter ended the answer (content_filter)"
	case session.FinishRefusal:
		return "the model refused (refusal)"
	case session.FinishEmpty:
		return "the model's answer is empty (empty)"
	case session.FinishThoughts:
		return "the model only thought: there is no answer (thoughts_only)"
	case session.FinishToolCalls:
		return "the model announced calls, but made none (tool_calls)"
	}
	return "the provider ended the answer with " + strconv.Quote(reason)
}

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Named returns the name of a space with its version, if it has one.
func Named(name, version string) string { return strings.TrimSpace(name + " " + version) }

// AboutSpace describes a notice about a space, on one line.
func AboutSpace(notice any) string {
	switch d := notice.(type) {
	case spaces.WorkspaceStaged:
		return fmt.Sprintf("%s %s: %s %s", d.Effect, Named(d.Workspace, d.Version), d.Outcome, Brief(d.Hash))
	case spaces.WorkspaceApplied:
		text := fmt.Sprintf("%s is applied: %s, %s", Named(d.Workspace, d.Version), Brief(d.Hash), cmp.Or(d.Mode, "on another registry"))
		for _, w := range d.Warnings {
			text += "; " + w.String()
		}
		return text
	case spaces.WorkspaceDisplaced:
		return fmt.Sprintf("%s is not applied: %s; %s %s took its place", d.Workspace, Brief(d.Hash), d.By, Brief(d.ByHash))
	case spaces.WorkspaceGone:
		return fmt.Sprintf("%s is no longer applied: %s", d.Workspace, Brief(d.Hash))
	case spaces.WorkspaceFailed:
		text := fmt.Sprintf("%s %s failed: %s: %s", d.Effect, d.Workspace, d.Code, d.Detail)
		if len(d.Problems) > 0 {
			text += fmt.Sprintf(" (%s; the first: %s)", Count(len(d.Problems), "problem"), d.Problems[0])
		}
		return strings.TrimSpace(text)
	}
	return ""
}

// Brief returns the beginning of a hash, for people.
func Brief(hash string) string { return hash[:min(len(hash), 12)] }
