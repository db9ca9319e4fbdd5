package chaos

// Ends without a kill: they must be right themselves, since others are compared
// with them.

import (
	"strings"
	"testing"

	"github.com/refold/refold/internal/llm"
)

func TestBaselineEndsAsRecorded(t *testing.T) {
	t.Parallel()
	cancelled := []RunEnd{{Lifecycle: "cancelled"}}
	cut := RunEnd{Lifecycle: "failed", Code: llm.CodeRecordingEnded}
	for _, c := range []struct {
		name string
		ends []RunEnd
		got  RunEnd
		want string // wrong; empty: nothing
	}{
		{"completed", completes, RunEnd{Lifecycle: "completed"}, ""},
		{"failed", completes, RunEnd{Lifecycle: "failed", Code: "script_mismatch", Detail: "no turn"}, "run 1 ended failed with script_mismatch: no turn, want completed"},
		{"cancelled", cancelled, RunEnd{Lifecycle: "cancelled"}, ""},
		{"not cancelled", cancelled, RunEnd{Lifecycle: "completed"}, "run 1 ended completed, want cancelled"},
		{"cancelled by nobody", completes, RunEnd{Lifecycle: "cancelled"}, "run 1 ended cancelled, want completed"},
		{"where the recording ends", []RunEnd{cut}, RunEnd{cut.Lifecycle, cut.Code, "after 3 messages"}, ""},
		{"where the recording goes on", completes, cut, "run 1 ended failed with recording_ended, want completed"},
		{"otherwise where it ends", []RunEnd{cut}, RunEnd{Lifecycle: "failed", Code: "model_failed"}, "run 1 ended failed with model_failed, want failed with recording_ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := whole()
			end.Runs = []RunEnd{c.got}
			conversation := Conversation{Says: []string{"do it"}, Ends: c.ends}
			got := strings.Join(conversation.faults(end), "\n")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	short := whole()
	short.Runs, short.Notices = nil, short.Notices[:2]
	if got := (&Conversation{Says: []string{"do it"}}).faults(short); len(got) != 1 || got[0] != "0 runs ended, of 1 that were requested" {
		t.Errorf("no end: got %q", got)
	}
}
