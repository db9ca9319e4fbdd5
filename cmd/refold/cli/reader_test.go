package cli

// The items of a session, by the fold alone: they show the effect of each event on
// the session, not the event's own claim.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/transcript"
)

// teaching is a session whose story is told.
type teaching struct {
	t     *testing.T
	state *session.State
	tale  *transcript.Reader
	out   bytes.Buffer
	seq   uint64
}

func newTeaching(t *testing.T, record string) *teaching {
	t.Helper()
	install, err := session.ParseInstall([]byte(record))
	bustest.OK(t, err)
	w := &teaching{t: t, state: session.New(install, "s1"), seq: 1}
	w.tale = transcript.NewReader(transcript.Briefly, (&transcript.Lines{Out: &w.out}).Entry)
	return w
}

// tells folds an event and checks the lines that are told of it, without the
// times. What follows a … is not compared.
func (w *teaching) tells(door session.Door, typ, data string, want ...string) {
	w.t.Helper()
	w.seq++
	e := session.Event{Session: "s1", Door: door, Seq: w.seq, Time: 1_000_000, Payload: fmt.Appendf(nil, `{"type":%q,"data":%s}`, typ, data)}
	said, _ := w.state.Evolve(e)
	w.out.Reset()
	w.tale.Read(e, said, w.state)
	lines := strings.Split(strings.TrimSuffix(w.out.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "   0.000s  ")
	}
	for i, line := range lines {
		if i < len(want) && strings.HasSuffix(want[i], "…") && strings.HasPrefix(line, strings.TrimSuffix(want[i], "…")) {
			lines[i] = want[i]
		}
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		w.t.Errorf("%s %s: got\n%s\nwant\n%s", typ, data, got, strings.Join(want, "\n"))
	}
}

const callsOfThree = `{"effect":"r1t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"},{"tool_name":"show"},{"tool_name":"nosuch"}]}`

// TestTimelineShowsTakenEvents: requests, decisions and settlements that are
// refused, repeated or unusable are marked as such.
func TestTimelineShowsTakenEvents(t *testing.T) {
	t.Parallel()
	w := newTeaching(t, approvalRecord)
	hash := ""
	decides := func(more string) string { return `{"call":"r1t1c0","args_hash":"` + hash + `",` + more + `}` }
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"hi"},"submission":"once"}`, "run requested: hi")
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"hi"},"submission":"once"}`, "RunRequested again: no effect")
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"ha"},"submission":"once"}`,
		`RunRequested refused: duplicate_submission: submission "once" was already used with other content`)
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"more"},"when_busy":"steer"}`, "run requested: more")
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"later"}}`, "run requested: later", "  run 2 is queued: another run is active")
	w.tells("llm", session.TypeToolCallsObserved, callsOfThree, "turn r1t1 (0 ms): ",
		`  group 1 of 2  send {"to":"ann"}`, "  group 2 of 2  show ",
		`  refused nosuch r1t1c2: tool_unknown: there is no tool "nosuch"`, "  waits for approval until …")
	w.tells("llm", session.TypeToolCallsObserved, callsOfThree, "ToolCallsObserved r1t1 again: no effect")
	w.tells("llm", session.TypeGenerationSettled, `{"effect":"r1t1","status":"ok","text":{"text":"late"}}`,
		"GenerationSettled r1t1 refused: effect_settled: r1t1 was already settled with other content")
	hash = w.state.View().Batch.Calls[0].ArgsHash
	w.tells("approve", session.TypeApprovalDecided, decides(`"decision":"approve","arguments":"{\"to\":1}"`),
		`ApprovalDecided send r1t1c0 refused: invalid_data: …`)
	w.tells("approve", session.TypeApprovalDecided, strings.Replace(decides(`"decision":"approve","arguments":"{\"to\":\"eve\"}"`), hash, strings.Repeat("0", 64), 1),
		"ApprovalDecided send r1t1c0 refused: approval_stale: args_hash: must be that of the waiting call, "+hash)
	w.tells("approve", session.TypeApprovalDecided, decides(`"decision":"approve"`), "  approved send r1t1c0",
		"  r1t1 group 1 of 2, for a host loop: none yet")
	w.tells("approve", session.TypeApprovalDecided, decides(`"decision":"deny","reason":"too late"`),
		"ApprovalDecided send r1t1c0 refused: approval_stale: r1t1c0 does not wait for approval: it is open")
	w.tells("tool", session.TypeToolCallSettled, `{"effect":"r1t1c1","status":"succeeded"}`,
		"ToolCallSettled show r1t1c1 refused: illegal_transition: r1t1c1 has not begun: it waits for its group, or for a person")
	w.tells("tool", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"succeeded","output":{"text":"sent"},"odd":1}`,
		"  failed send r1t1c0: bad_settlement: …", "  r1t1 group 2 of 2, for a host loop: r1t1c1")
	w.tells("tool", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"succeeded","output":{"text":"sent"},"odd":1}`,
		"ToolCallSettled send r1t1c0 again: no effect")
	w.tells("tool", session.TypeToolBatchSettled, `{"batch":"r1t1","plan_hash":"00","results":[]}`,
		"ToolBatchSettled r1t1 refused: plan_mismatch: plan_hash: must be that of this batch, "+w.state.View().Batch.PlanHash)
	w.tells("tool", session.TypeToolCallSettled, `{"effect":"r1t1c1","status":"succeeded","output":{"text":"shown\u009b2J\u202e"}}`,
		"  succeeded show r1t1c1: shown\u009b2J\u202e")
	w.tells("tool", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"failed"}`,
		"ToolCallSettled send r1t1c0 refused: stale: r1t1c0 ended long ago")
	w.tells("llm", session.TypeGenerationSettled, `{"effect":"r1t2","status":"ok","text":{"text":"done"},"odd":1}`,
		"turn r1t2 (0 ms): without an answer", "  run 1 failed: bad_settlement: …")
	w.tells("in", session.TypeRunInterrupt, `{}`, "RunInterruptRequested {}")
	w.tells("in", session.TypeSteerRequested, `{"input":{"text":"wait"}}`, "steered: wait", "  run 3 is queued: another run is active")
	w.tells("in", session.TypeRunCancelRequested, `{"run":2}`, `RunCancelRequested {"run":2}`, "  run 2 cancelled: cancelled")
	w.tells("in", "Odd", `{"a":}`, "an event of 28 bytes through in refused: undecodable: …")
}

// TestTimelineShowsDecisions: an approved call that is refused at its turn, and
// an unusable answer of a step hook.
func TestTimelineShowsDecisions(t *testing.T) {
	t.Parallel()
	w := newTeaching(t, strings.Replace(approvalRecord, `"model":"m"}`, `"model":"m","step_hook":{"hook":"h"}}`, 1))
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"hi"}}`, "run requested: hi")
	w.tells("step", session.TypeStepPrepared, `{"effect":"r1t1s","active_tools":["nosuch"]}`, "step r1t1s (0 ms) does not count: bad_settlement: …")
	w.tells("step", session.TypeStepPrepared, `{"effect":"r1t1s","active_tools":["nosuch"]}`, "StepPrepared r1t1s again: no effect")
	w.tells("llm", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"}]}`,
		"turn r1t1 (0 ms): ", `  group 1 of 1  send {"to":"ann"}`, "  waits for approval until …")
	w.tells("ctl", session.TypeToolOverridesSet, `{"scope":"session","disable":["send"]}`, `ToolOverridesSet {"disable":["send"],"scope":"session"}`)
	w.tells("ctl", session.TypeToolOverridesSet, `{"scope":"session","disable":["nosuch"]}`, `ToolOverridesSet refused: unknown_tool: …`)
	w.tells("ctl", session.TypeToolRegistrySet, `{"tools":[]}`, `ToolRegistrySet refused: invalid_registry: …`)
	hash := w.state.View().Batch.Calls[0].ArgsHash
	w.tells("approve", session.TypeApprovalDecided, `{"call":"r1t1c0","args_hash":"`+hash+`","decision":"approve"}`,
		"  approved send r1t1c0", "  refused send r1t1c0: tool_disabled: …")
}

// TestTimelineShowsRefusedEvents: an event of any type that the session refuses
// is marked as refused, with the code.
func TestTimelineShowsRefusedEvents(t *testing.T) {
	t.Parallel()
	doors := map[string]session.Door{
		session.TypeRunRequested: "in", session.TypeSteerRequested: "in", session.TypeRunCancelRequested: "in", session.TypeRunInterrupt: "in",
		session.TypeRunPauseRequested: "in", session.TypeRunResumeRequested: "in", session.TypeRunEdited: "in", session.TypeRunCompleted: "in",
		session.TypeRunFailed: "in", session.TypeSessionConfigured: "ctl", session.TypeSessionClosed: "ctl", session.TypeToolRegistrySet: "ctl",
		session.TypeToolProfileSelected: "ctl", session.TypeToolOverridesSet: "ctl", session.TypeHostSessionUpdated: "ctl",
		session.TypeFactsSet: "ctl", session.TypeApprovalDecided: "approve", session.TypeToolCallsObserved: "llm", session.TypeGenerationSettled: "llm",
		session.TypeToolCallSettled: "tool", session.TypeToolBatchSettled: "tool", session.TypeStepPrepared: "step", session.TypeWakeSettled: "wake",
	}
	for typ, door := range doors {
		w := newTeaching(t, approvalRecord)
		w.tells(door, typ, `{"strange":1}`, typ+` refused: invalid_data: …`)
		w.tells("space", typ, `{}`, typ+` refused: wrong_door: …`)
		w.tells(door, session.TypeRunRequested+"\u202e", `{}`, session.TypeRunRequested+"\u202e refused: unknown_type: …")
	}
}

// TestTimelineShowsCallsThatTheSessionEnded: of a cancelled run.
func TestTimelineShowsCallsThatTheSessionEnded(t *testing.T) {
	t.Parallel()
	w := newTeaching(t, approvalRecord)
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"hi"}}`, "run requested: hi")
	w.tells("llm", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"show"}]}`,
		"turn r1t1 (0 ms): ", "  group 1 of 1  show ", "  r1t1 group 1 of 1, for a host loop: r1t1c0")
	w.tells("in", session.TypeRunCancelRequested, `{}`, "RunCancelRequested {}", "  cancelled show r1t1c0: cancelled: the run was stopped …", "  run 1 cancelled: cancelled")
}

// TestUntakenSteerIsShownOnce: in the conversation it is the input of the run that
// it becomes.
func TestUntakenSteerIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newTeaching(t, approvalRecord)
	var got []string
	w.tale.Each = func(it *client.TranscriptEntry) {
		if it.Kind != "" {
			got = append(got, fmt.Sprint(it.Kind, it.Run, it.Text))
		}
	}
	w.tells("in", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.tells("in", session.TypeSteerRequested, `{"input":{"text":"more"}}`)
	w.tells("llm", session.TypeGenerationSettled, `{"effect":"r1t1","status":"failed","error":{"code":"broken","detail":"no"}}`)
	if want := []string{"run1", "input1hi", "failed1", "end1", "run2", "input2more"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
