package cli

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
)

// The transcript says how an answer ended, beside its text and at the run's end.
func TestTranscriptSaysHowAnswersEnded(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		session.FinishLength:        "the output limit cut the answer off (length)",
		session.FinishContentFilter: "the provider's filter ended the answer (content_filter)",
		session.FinishRefusal:       "the model refused (refusal)",
		session.FinishEmpty:         "the model's answer is empty (empty)",
		session.FinishThoughts:      "the model only thought: there is no answer (thoughts_only)",
		session.FinishToolCalls:     "the model announced calls, but made none (tool_calls)",
		"pause_turn":                `the provider ended the answer with "pause_turn"`,
	} {
		var out strings.Builder
		m := markdownOn(settings.ScreenOf(&out), "")
		m.Entry(&client.TranscriptEntry{Kind: client.EntryText, Text: "Half", FinishReason: reason})
		m.Entry(&client.TranscriptEntry{Kind: client.EntryEnd, Run: 2, Status: "completed", FinishReason: reason})
		if got := out.String(); !strings.Contains(got, "> Half\n\n*"+want+".*\n") || !strings.Contains(got, "*Run 2 completed: "+want+".*\n") {
			t.Errorf("%s: got %q, want %q twice", reason, got, want)
		}
	}
}
