package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
)

// End is the state of a conversation when it has ended and everything is at rest.
type End struct {
	Runs       []RunEnd
	Calls      []Call   // in the order in which the session opened them
	Unasked    []string // idempotency keys of executions without an effect
	Transcript []Item   // the summary and the items of the window
	Open       []string // open effects, except for wakes
	Notices    []Notice // in the stream's order
	Replay     []string // differences when sessions are folded again
	Spaces     []string // notices about spaces, and which are applied, pending and staged
	Spans      []string // differences between the exported spans and those that the log gives
	Traced     []string // places of the spans that the log gives
	Prompts    []string // turns with a prompt before the transcript, and its fingerprint
	Children   []string // how the sessions of the tree below it ended, sorted
	Tokens     int64    // that the runs used, with those of the children
}

// RunEnd is how a run ended.
type RunEnd struct{ Lifecycle, Code, Detail string }

// Call is one tool call, and how often it was carried out.
type Call struct {
	Effect    string
	RetrySafe bool
	Status    string // of its first settlement; "": the session ended it itself
	Executed  int
}

// Item is one item of the transcript.
type Item struct {
	Role    session.Role
	Text    string
	Unknown bool // a result: the outcome is unknown
}

// Notice is one notice of the session.
type Notice struct {
	N    uint64
	Type string
	Text string // its data
}

// Check compares the end after a kill with the end without one, and returns the
// faults. A call's outcome may be unknown only if a bridge was killed.
func Check(bridgeKilled bool, want, got *End) []string {
	var faults []string
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, call := range got.Calls {
		if fault := call.fault(); fault != "" {
			say("%s", fault)
		}
	}
	for _, key := range got.Unasked {
		say("%s was carried out without an effect", key)
	}
	unknown, fault := sameTranscript(want.Transcript, got.Transcript)
	if fault != "" {
		say("%s", fault)
	}
	if unknown && !bridgeKilled {
		say("a call's outcome is unknown, although no bridge was killed")
	}
	if !unknown {
		if !slices.Equal(want.Runs, got.Runs) {
			say("the runs ended %v, without a kill %v", got.Runs, want.Runs)
		}
		for _, call := range want.Calls {
			if !slices.ContainsFunc(got.Calls, func(c Call) bool { return c.Effect == call.Effect }) {
				say("%s was not published", call.Effect)
			}
		}
	}
	if len(got.Runs) != len(want.Runs) {
		say("%d runs ended, want %d", len(got.Runs), len(want.Runs))
	}
	faults = append(faults, sameSpaces(want, got, unknown)...)
	for _, effect := range got.Open {
		say("%s is open", effect)
	}
	if !slices.Equal(want.Children, got.Children) {
		say("the children ended %q, without a kill %q", got.Children, want.Children)
	}
	if got.Tokens != want.Tokens {
		say("%d tokens were used, without a kill %d", got.Tokens, want.Tokens)
	}
	faults = append(faults, noticeFaults(got.Notices, len(want.Runs))...)
	for _, difference := range got.Replay {
		say("replay: %s", difference)
	}
	if !unknown {
		for _, place := range want.Traced {
			if !slices.Contains(got.Traced, place) {
				say("the span %s of the trial without a kill is missing", place)
			}
		}
		for _, place := range got.Traced {
			if !slices.Contains(want.Traced, place) {
				say("the span %s is not in the trial without a kill", place)
			}
		}
	}
	for _, difference := range got.Spans {
		say("%s", difference)
	}
	return faults
}

// fault describes a wrong number of executions of a call; "": it is right.
func (c Call) fault() string {
	var wrong bool
	switch {
	case c.RetrySafe:
		wrong = c.Status == string(session.CallSucceeded) && c.Executed == 0
	case c.Status == string(session.CallSucceeded):
		wrong = c.Executed != 1
	default:
		wrong = c.Executed > 1
	}
	if !wrong {
		return ""
	}
	kind, status := "not retry-safe", c.Status
	if c.RetrySafe {
		kind = "retry-safe"
	}
	status = cmp.Or(status, "by the session")
	return fmt.Sprintf("%s, %s, was settled %s and carried out %d times", c.Effect, kind, status, c.Executed)
}

// sameTranscript compares transcripts. The result of a call may be unknown
// instead; what the model says after that is not compared.
func sameTranscript(want, got []Item) (unknown bool, fault string) {
	for i, item := range got {
		if unknown && item.Role != session.RoleTool {
			return true, ""
		}
		switch {
		case i >= len(want):
			return unknown, fmt.Sprintf("the transcript goes on after item %d: %s", i, item)
		case item.Unknown && want[i].Role == session.RoleTool:
			unknown = true
		case item != want[i]:
			return unknown, fmt.Sprintf("item %d of the transcript is %s, without a kill %s", i+1, item, want[i])
		}
	}
	if !unknown && len(got) < len(want) {
		return false, fmt.Sprintf("the transcript ends before item %d: %s", len(got)+1, want[len(got)])
	}
	return unknown, ""
}

// String returns role and text on one line.
func (it Item) String() string {
	text := strings.Join(strings.Fields(it.Text), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200]) + "…"
	}
	return fmt.Sprintf("%s %q", it.Role, text)
}

// noticeFaults returns gaps and contradictions in the notices.
func noticeFaults(notices []Notice, runs int) []string {
	var faults []string
	texts := map[uint64]string{}
	last, finished := uint64(0), 0
	for _, n := range notices {
		before, again := texts[n.N]
		switch {
		case n.Type == session.NoticeSessionChanged: // it has no number
			continue
		case again && before != n.Text:
			faults = append(faults, fmt.Sprintf("notice %d has two contents: %s and %s", n.N, before, n.Text))
		case again:
			continue
		case n.N != last+1:
			faults = append(faults, fmt.Sprintf("notice %d comes after notice %d", n.N, last))
		}
		texts[n.N], last = n.Text, max(last, n.N)
		switch n.Type {
		case session.NoticeRunFinished:
			finished++
		case session.NoticeSessionQuarantined:
			faults = append(faults, "the session is quarantined: "+n.Text)
		}
	}
	if finished != runs {
		faults = append(faults, fmt.Sprintf("%d runs have a RunFinished, want %d", finished, runs))
	}
	return faults
}
