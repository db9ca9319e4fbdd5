package conformance

// Answers recorded from aimock, a third-party server, give the same result
// through every API. record_peers_test.go records them.

import (
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// recordedIn is where the recordings are.
const recordedIn = "testdata/aimock/"

// recordedText is what the server says where it says something.
const recordedText = "The quick brown fox jumps over the lazy dog, and then it looks back, because nobody follows."

// outcome is what a recorded answer comes to.
type outcome struct {
	text  string
	calls int // of the tool look, at a and at b
	code  string
	later bool // it may pass
}

var recordedCases = map[string]outcome{
	"text":    {text: recordedText},
	"calls":   {text: "Let me look.", calls: 2},
	"bad":     {code: "bad_request"},
	"key":     {code: "auth"},
	"limited": {code: "rate_limited", later: true},
	"down":    {code: "overloaded", later: true},
	"full":    {code: "overloaded", later: true},
	"garbage": {code: "network", later: true},
}

func (want outcome) hold(t *testing.T, of string, answer executor.Answer, fault *executor.Error) {
	t.Helper()
	if fault != nil || want.code != "" {
		if fault == nil || fault.Code != want.code {
			t.Errorf("%s: got %+v, %v, want the code %q", of, answer, fault, want.code)
		}
		return
	}
	finish := "stop"
	if want.calls > 0 {
		finish = "tool_calls"
	}
	if answer.Text != want.text || len(answer.Calls) != want.calls || answer.FinishReason != finish {
		t.Fatalf("%s: got %+v, want %+v, and the finish reason %s", of, answer, want, finish)
	}
	for i, c := range answer.Calls {
		if arguments := []string{`{"at":"a"}`, `{"at":"b"}`}[i]; c.Name != "look" || c.Arguments != arguments {
			t.Errorf("%s: call %d is %s %s, want look %s", of, i, c.Name, c.Arguments, arguments)
		}
	}
}

func TestRecordedAnswersGiveTheSameResult(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := answersIn(t, recordedIn+a.name)
		if len(answers) != len(recordedCases) {
			t.Errorf("%s: %d answers are recorded, want %d", a.name, len(answers), len(recordedCases))
		}
		for name, want := range recordedCases {
			if !want.later {
				got := a.ask(t, hello, 0, answers[name])
				want.hold(t, a.name+", "+name, got.answer, got.fault)
				continue
			}
			// It is asked again, and what comes then counts.
			got := a.ask(t, hello, 0, answers[name], answers["text"])
			recordedCases["text"].hold(t, a.name+", "+name+" and text", got.answer, got.fault)
			if len(got.waits) != 1 || !strings.Contains(got.log, "code="+want.code) {
				t.Errorf("%s, %s: waited %v, want once, for %s:\n%s", a.name, name, got.waits, want.code, got.log)
			}
		}
	}
}
