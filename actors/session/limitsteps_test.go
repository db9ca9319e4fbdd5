package session

// What bounds the parts of steps from above does.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// size returns how long v's encoding is.
func size(t *testing.T, v any) int {
	t.Helper()
	b, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// object returns an object of n bytes.
func object(t *testing.T, n int) codec.Raw {
	t.Helper()
	b, err := codec.Marshal(map[string]string{"o": strings.Repeat("o", n-8)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStepBytes(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	call := StepCall{
		ArgumentsCut: true, CallsSeq: math.MaxInt64, Code: text(CodeBytesMax), Edit: math.MaxInt64, Effect: text(32), Seq: math.MaxInt64,
		Status: CallUnknown, Step: TurnsMax, ToolID: text(planner.ToolIDBytesMax), ToolName: text(NameBytesMax),
	}
	shown := slices.Repeat([]StepCall{call}, StepCallsMax)
	for i := range StepArgumentsBytesMax / StepArgumentBytesMax {
		shown[i].Arguments = text(StepArgumentBytesMax)
	}
	last := planner.LastCall{
		Arguments: text(planner.WhenArgumentsBytesMax), Status: string(CallUnknown), ToolID: text(planner.ToolIDBytesMax), ToolName: text(NameBytesMax),
	}
	tools := make([]planner.ToolIndex, planner.ToolsMax)
	for i := range tools {
		tools[i] = planner.ToolIndex(i)
	}
	facts, pairs := make([]planner.Fact, FactsMax), make(codec.Pairs, FactsMax)
	for i := range facts {
		facts[i] = planner.Fact{Name: fmt.Sprintf("%02d", i) + text(FactNameBytesMax-2), Value: text(FactValueBytesMax)}
		pairs[i] = codec.Pair{Key: facts[i].Name, Value: encode(facts[i].Value)}
	}
	used := slices.Repeat([]string{text(planner.ToolIDBytesMax)}, planner.ToolsMax)
	names := slices.Repeat([]string{text(planner.ToolIDBytesMax)}, planner.StepToolsMax)
	usage := UsageTotal{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	prepared := planner.StepRule{
		ActiveTools: &names, Context: object(t, planner.StepContextBytesMax), Model: text(planner.StepModelBytesMax), Params: object(t, planner.StepParamsBytesMax),
		System: text(planner.StepSystemBytesMax), ToolChoice: text(planner.ToolIDBytesMax),
	}
	for _, c := range []struct {
		what       string
		got, limit int
	}{
		{"a call of an earlier step", size(t, call), stepCallBytesMax},
		{"what a hook says", size(t, prepared), preparedBytesMax},
		{"a step's effect", size(t, Step{
			At: math.MaxInt64, Calls: shown, Class: ClassStep, Context: prepared.Context, Effect: text(32),
			Facts: pairs, Hook: text(64), InputSeq: math.MaxInt64, Model: text(NameBytesMax), Provider: text(64), Roles: slices.Repeat([]string{text(RoleBytesMax)}, RolesMax),
			RunMS: math.MaxInt64, Session: text(64), StartBy: math.MaxInt64, Step: TurnsMax, Usage: usage, Used: used, V: Version,
			Tools: slices.Repeat([]StepTool{{ToolID: text(planner.ToolIDBytesMax), ToolName: text(planner.NameBytesMax)}}, planner.ToolsMax),
		}), stepBytesMax},
		{"a turn's step", size(t, TurnStep{
			At: math.MaxInt64, Calls: slices.Repeat([]planner.LastCall{last}, CallsMax), Tools: tools, Code: text(CodeBytesMax), Deadline: math.MaxInt64, Detail: sentence.Own(text(DetailBytesMax)), Facts: facts,
			Failed: slices.Repeat([]planner.RuleFailure{{Code: planner.WhenTooCostly, Rule: planner.StepRulesMax}}, planner.StepRulesMax),
			From:   StepFromProfile, Last: slices.Repeat([]string{text(NameBytesMax)}, CallsMax), Open: true, Prepared: &prepared, Profile: text(NameBytesMax),
			Rule: planner.StepRulesMax, RunMS: math.MaxInt64,
		}), stepRecordBytesMax},
		{"the batch that is done", size(t, DoneBatch{Results: make([]codec.Hash, CallsMax), Run: math.MaxUint32, Turn: math.MaxUint32}), 1<<8 + CallsMax*34},
		{"a call's effect without its arguments", size(t, ToolCall{
			At: math.MaxInt64, Batch: text(24), Call: CallsMax, Class: ClassTool, Context: prepared.Context, Effect: text(32),
			HostSession: &HostSession{ID: text(HostIDBytesMax), Root: "/" + text(HostRootBytesMax-1), Route: text(HostIDBytesMax), Status: "expired"}, IdempotencyKey: text(97),
			ProviderCallID: text(ByBytesMax), RetrySafe: true, RunMS: math.MaxInt64, Session: text(64), StartBy: math.MaxInt64,
			ToolID: text(planner.ToolIDBytesMax), ToolName: text(NameBytesMax), V: Version,
		}), callFixedBytesMax},
	} {
		if c.got > c.limit {
			t.Errorf("%s takes %d bytes and counts as %d", c.what, c.got, c.limit)
		}
		if 4*c.got < c.limit {
			t.Errorf("%s takes %d bytes, a quarter of the %d that it counts as: this is no test of the limit", c.what, c.got, c.limit)
		}
	}
}
