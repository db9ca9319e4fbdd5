package chaos

import (
	"cmp"
	"fmt"

	"github.com/refold/refold/actors/session"
)

// faults returns the faults of a trial without kills: rules for any end, and how
// each run ended. If it fails by itself, no harm of a kill could be seen.
func (c *Conversation) faults(end *End) []string {
	faults := Check(false, end, end)
	if len(end.Runs) != len(c.Says) {
		faults = append(faults, fmt.Sprintf("%d runs ended, of %d that were requested", len(end.Runs), len(c.Says)))
	}
	if len(end.Spaces) != c.Marks && c.Marks > 0 || len(end.Prompts) != c.Prompt {
		faults = append(faults, fmt.Sprintf("the spaces are %q, shown to turns %q", end.Spaces, end.Prompts))
	}
	if len(end.Children) != c.Children || end.Tokens != c.Tokens {
		faults = append(faults, fmt.Sprintf("%d children used, with their parents, %d tokens; want %d and %d", len(end.Children), end.Tokens, c.Children, c.Tokens))
	}
	compactions := 0
	for _, n := range end.Notices {
		if n.Type == session.NoticeContextCompacted {
			compactions++
		}
	}
	if compactions != c.Compactions {
		faults = append(faults, fmt.Sprintf("%d summaries were written, want %d", compactions, c.Compactions))
	}
	for i, want := range c.Ends[:min(len(c.Ends), len(end.Runs))] {
		got := end.Runs[i]
		if got.Lifecycle == want.Lifecycle && (want.Code == "" || got.Code == want.Code) {
			continue
		}
		faults = append(faults, fmt.Sprintf("run %d ended %s, want %s", i+1, got, want))
	}
	return faults
}

// Notes lists, for people, the runs that do not complete even without a kill, and
// need not: the recording has no answer to them.
func (x *Explorer) Notes() (notes []string) {
	for i, end := range x.want.Runs {
		if end.Lifecycle != string(session.Completed) && !x.conversation.Cancelled {
			end.Detail = ""
			notes = append(notes, fmt.Sprintf("%s: run %d ends %s, killed or not: its recording goes no further", x.conversation.ID, i+1, end))
		}
	}
	return notes
}

// String returns lifecycle, code and detail.
func (e RunEnd) String() string {
	text := cmp.Or(e.Lifecycle, "without a lifecycle")
	if e.Code != "" {
		text += " with " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}
