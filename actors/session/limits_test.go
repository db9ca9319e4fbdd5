package session

// How the limits relate, in numbers. full_test.go builds a session at them.

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// natsPayloadMax is what a NATS server takes by default, headers included.
const natsPayloadMax = 1 << 20

// headersMax is room for the headers of a message.
const headersMax = 64 << 10

// No limit allows what another one refuses.
func TestLimitsRelate(t *testing.T) {
	t.Parallel()
	turnsOfSession := 2 * int64(ItemsMax+1) // each leaves an item, or ends a run that left one
	for _, c := range []struct {
		why string
		ok  bool
	}{
		{"an event fits a message", EventBytesMax+headersMax <= natsPayloadMax},
		{"an effect fits a message", EffectBytesMax+headersMax <= natsPayloadMax},
		{"a notice fits a message", NoticeBytesMax+headersMax <= natsPayloadMax},
		{"a notice has room for an output", noticeFixedBytesMax < NoticeBytesMax/8},
		{"a text fits an event, with as much again around it", 2*TextBytesMax <= EventBytesMax},
		{"a text is as large as arguments may be", TextBytesMax == planner.ArgumentsBytesMax},
		{"a call's effect holds its arguments, its host session, its names", planner.ArgumentsBytesMax+callFixedBytesMax <= EffectBytesMax},
		{"a call's effect holds what it holds besides", callFixedBytesMax >= 2<<10+ByBytesMax+2*NameBytesMax+3*HostIDBytesMax+HostRootBytesMax+planner.StepContextBytesMax},
		{"a step's effect fits", stepBytesMax <= EffectBytesMax},
		{"a rule's texts are no longer than a config's", planner.StepSystemBytesMax <= SystemBytesMax && planner.StepParamsBytesMax <= ParamsBytesMax && planner.StepModelBytesMax <= NameBytesMax},
		{"a rule or a hook can list every tool", planner.StepToolsMax >= planner.ToolsMax},
		{"a hook's answer fits an event, with half of it left", 2*preparedBytesMax <= EventBytesMax},
		{"rules fit an event, with half of it left", 2*planner.StepsBytesMax <= EventBytesMax},
		{"a result of each call fits an event, with a text of 8 KiB", CallsMax*(10<<10) <= EventBytesMax},
		{"a hook is shown the calls of a few turns", StepCallsMax >= 4*CallsMax},
		{"a hook is shown the items of a few turns", StepItemsMax >= 4*(CallsMax+1)},
		{"a hook is shown the arguments of a whole batch", StepArgumentsBytesMax >= CallsMax*StepArgumentBytesMax},
		{"a call with a result keeps no more of its arguments than it may have had", max(StepArgumentBytesMax, planner.WhenArgumentsBytesMax) <= planner.ArgumentsBytesMax},
		{"what rules see of a batch's arguments is within those of one event", CallsMax*planner.WhenArgumentsBytesMax <= EventBytesMax},
		{"a hook's default deadline is within its limit", StepDefaultMS <= DeadlineMaxMS && StepDefaultMS >= DeadlineMinMS},
		{"a view's arguments leave room for the rest of it", 2*viewArgumentsBytesMax <= NoticeBytesMax/2},
		{"a generation without items leaves room for a transcript", effectFixedBytesMax <= EffectBytesMax/4},
		{"a transcript of plain items reaches items_max", ItemsMax*itemFixedBytesMax+effectFixedBytesMax <= EffectBytesMax},
		{"a list can name every tool of a registry", NamesMax == planner.ToolsMax},
		{"a list's names hold tool_ids and tool_names", NameBytesMax >= planner.ToolIDBytesMax && NameBytesMax >= planner.NameBytesMax},
		{"a rule can ask for every fact", FactNameBytesMax == planner.FactNameBytesMax && FactValueBytesMax == planner.FactValueBytesMax},
		{"a detail of the planner is not cut again", planner.DetailBytesMax <= DetailBytesMax},
		{"a default is within its limit", QueueDefault <= QueueMax && TurnsDefault <= TurnsMax && DeadlineDefaultMS <= DeadlineMaxMS},
		{"there is time to start what has the default deadline", 2*RunDefaultMS <= DeadlineDefaultMS},
		{"there is time to start what has the least deadline", DeadlineMinMS/2 >= 1},
		{"a tool's run time leaves time to start it", 2*toolRunMaxMS <= DeadlineMaxMS},
		{"a batch is part of what an answer may hold", CallsMax <= CallsSeenMax},
		{"a full queue of plain configs is within its bytes", QueueMax*configFixedBytesMax <= QueueBytesMax},
		{"one run with the largest config and list can queue", configFixedBytesMax+configBytesMax+NamesMax*(3+NameBytesMax) <= QueueBytesMax},
		{"usages add up", turnsOfSession*TokensMax < math.MaxInt64 && turnsOfSession < math.MaxInt64/TokensMax},
		{"a state within its limits is within StateBytesMax, of which it needs " + strconv.Itoa(stateBytesBound()), stateBytesBound() <= StateBytesMax},
		{"an input of one inline text shows no more than one of parts", EventBytesMax <= inputBytesMax},
		{"a preview is shorter than the text that it stands for", PreviewBytesMax < TextBytesMax},
		{"a snapshot of it can be encoded", StateBytesMax+1<<10 <= codec.BytesMax},
	} {
		if !c.ok {
			t.Errorf("%s: it does not hold", c.why)
		}
	}
}

// configBytesMax is a config's lists and texts at their limits.
const configBytesMax = SystemBytesMax + ParamsBytesMax + FormatBytesMax + 4*NamesMax*(3+NameBytesMax) + planner.StepsBytesMax + RetryCodesMax*(2+CodeBytesMax) +
	space.PartsMax*refBytesMax + 3*(16+space.TokenBytesMax) + ModelPricesMax*(modelPriceBytesMax+NameBytesMax)

// stepCallBytesMax is a StepCall at its limits without its arguments: keys,
// headers, an effect, three sequences, a status.
const stepCallBytesMax = 224 + CodeBytesMax + planner.ToolIDBytesMax + NameBytesMax

// stepCallsBytesMax is all calls of earlier steps at their limits.
const stepCallsBytesMax = StepCallsMax*stepCallBytesMax + StepArgumentsBytesMax

// lastCallsBytesMax is the calls of the last step at their limits, as rules see
// them.
const lastCallsBytesMax = CallsMax * (64 + planner.WhenArgumentsBytesMax + planner.ToolIDBytesMax + NameBytesMax)

// stepToolsBytesMax is every tool of a registry as a hook is shown it.
const stepToolsBytesMax = planner.ToolsMax * (32 + planner.ToolIDBytesMax + planner.NameBytesMax)

// factsBytesMax is all facts at their limits.
const factsBytesMax = FactsMax * (32 + FactNameBytesMax + FactValueBytesMax)

// usedBytesMax is a list of every tool of a registry.
const usedBytesMax = planner.ToolsMax * (2 + planner.ToolIDBytesMax)

// stepBytesMax is a step's effect at its limits.
const stepBytesMax = 1<<10 + StepItemsMax*(itemFixedBytesMax+CodeBytesMax+DetailBytesMax) + stepCallsBytesMax + stepToolsBytesMax + planner.StepContextBytesMax + factsBytesMax + RolesMax*(2+RoleBytesMax) + usedBytesMax + 2*NameBytesMax

// preparedBytesMax is what a hook says at its limits: tools are listed by name
// or by descriptor, and names are longer.
const preparedBytesMax = 1<<8 + planner.StepToolsMax*(3+planner.ToolIDBytesMax) + planner.StepContextBytesMax + planner.StepModelBytesMax +
	planner.StepParamsBytesMax + planner.StepSystemBytesMax + planner.ToolIDBytesMax

// stepRecordBytesMax is what a state holds of a turn's step.
const stepRecordBytesMax = 1<<9 + CodeBytesMax + DetailBytesMax + factsBytesMax + CallsMax*(3+NameBytesMax) + planner.StepRulesMax*64 + preparedBytesMax + NameBytesMax +
	lastCallsBytesMax + 3*planner.ToolsMax

// stepKeptBytesMax is what is left of it when a batch is there: nothing of the
// question, and of the answer the tools.
const stepKeptBytesMax = 1<<9 + CodeBytesMax + DetailBytesMax + planner.StepRulesMax*64 + planner.StepToolsMax*(3+planner.ToolIDBytesMax) + NameBytesMax

// stateBytesBound adds up all that a state can hold, each at its limit.
func stateBytesBound() int {
	config := configFixedBytesMax + configBytesMax
	run := 1<<10 + config + NamesMax*(3+NameBytesMax) + stepCallsBytesMax + usedBytesMax + planner.StepContextBytesMax + RolesMax*(2+RoleBytesMax)
	call := 1<<10 + NameBytesMax*2 + ByBytesMax + CodeBytesMax + DetailBytesMax + 3*HostIDBytesMax + HostRootBytesMax
	planned := 1<<8 + planner.KeyBytesMax + planner.ToolIDBytesMax + planner.NameBytesMax
	item := itemFixedBytesMax + CodeBytesMax + DetailBytesMax
	return 4<<10 + // the head, names, numbers
		config + // the session's
		run + // the active one
		QueueMax*(1<<8+RolesMax*(2+RoleBytesMax)) + QueueBytesMax +
		2*3*NamesMax*(3+NameBytesMax) + // the session's overrides, and the active run's lists as they were requested
		SteersMax*24 + CallsMax*(64+itemEditBytesMax) + // steers that wait; calls that await approval, or were edited
		factsBytesMax +
		1<<8 + CallsMax*34 + // the batch that is done
		IDsMax*(2+IDBytesMax) +
		max(SubmissionsMax*(59+IDBytesMax), submissionsHeldMax*(58+submissionNameBytes)) +
		EffectBytesMax + CallsMax*item + CallsSeenMax*(itemFixedBytesMax+128) + // items: full, and one batch over it
		planner.ToolsMax*(5+2) + // the toolset
		max(stepRecordBytesMax, stepKeptBytesMax+
			CallsMax*(call+planned+5)+EventBytesMax) + // a turn's step, and then a batch, its arguments those of one event
		SchedulesMax*(scheduleFixedBytes+CronBytesMax+ZoneBytesMax+NameBytesMax+RolesMax*(2+RoleBytesMax)) + SchedulesBytesMax +
		(WakesMax+1)*64 + spacesBytesBound()
}

// configBytes is an upper bound of a config's size.
func TestConfigBytes(t *testing.T) {
	t.Parallel()
	name, tools := strings.Repeat("n", NameBytesMax), slices.Repeat([]string{strings.Repeat("t", NameBytesMax)}, NamesMax)
	params, err := codec.Marshal(map[string]string{"p": strings.Repeat("p", ParamsBytesMax-8)})
	if err != nil {
		t.Fatal(err)
	}
	few := []string{"a"}
	refs, rules := slices.Repeat([]codec.Ref{{Hash: codec.Sum([]byte("a"))}}, NamesMax), []planner.StepRule{{When: strings.Repeat("w", planner.WhenBytesMax), Context: params}}
	hook := &StepHook{DeadlineMS: DeadlineMaxMS, Fallback: FallbackRules, Hook: name[:64]}
	for _, c := range []RunConfig{
		{},
		{Provider: "p", Model: "m"},
		{ActiveTools: &few, Disable: few, Enable: few, Force: few},
		{
			DeadlinesMS: &DeadlinesMS{Call: DeadlineMaxMS, Turn: DeadlineMaxMS}, Model: name, Profile: name, ToolChoice: name,
			Provider: name[:64], TurnsMax: TurnsMax, StepHook: hook,
		},
		{Steps: []planner.StepRule{}, ToolRefs: &[]codec.Ref{}},
		{
			Budget:     &Budget{Cost: CostMax, OnBreach: BreachPause, SessionCost: CostMax, SessionTokens: TokensMax, Tokens: TokensMax},
			Completion: CompletionExplicit, Prices: &Prices{CacheRead: PriceMax, CacheWrite: PriceMax, Input: PriceMax, Output: PriceMax},
			DeadlinesMS: &DeadlinesMS{Approval: LongMaxMS, Call: DeadlineMaxMS, Run: LongMaxMS, Turn: DeadlineMaxMS},
			Retry:       &Retry{Attempts: AttemptsMax, BackoffMS: DeadlineMaxMS, BackoffMaxMS: DeadlineMaxMS, Codes: slices.Repeat([]string{name[:CodeBytesMax]}, RetryCodesMax)},
		},
		{Steps: rules, ToolRefs: &refs, StepHook: hook},
		{
			ActiveTools: &tools, DeadlinesMS: &DeadlinesMS{Call: DeadlineMaxMS, Turn: DeadlineMaxMS}, Disable: tools, Enable: tools, Force: tools,
			Model: name, Params: params, Profile: name, Provider: name[:64], StepHook: hook, Steps: rules,
			System: strings.Repeat("s", SystemBytesMax), ToolChoice: name, TurnsMax: TurnsMax,
		},
	} {
		run, err := codec.Marshal(Run{Config: c, ShownRun: ShownRun{Number: math.MaxUint32, Seq: math.MaxUint64, Submission: name[:IDBytesMax], Turns: math.MaxUint32,
			Usage: UsageTotal{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, limit := len(run), configBytes(&c)+1<<8; got > limit {
			t.Errorf("a run takes %d bytes, its config counts as %d", got, configBytes(&c))
		}
		alone, err := codec.Marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(alone); got > configBytes(&c) {
			t.Errorf("a config takes %d bytes and counts as %d", got, configBytes(&c))
		}
		if got := configBytes(&c); got > configFixedBytesMax+configBytesMax {
			t.Errorf("a config counts as %d bytes, want at most %d", got, configFixedBytesMax+configBytesMax)
		}
	}
}

// encodedBytesMax is an upper bound of an item's size.
func TestItemBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		it := Item{
			Call: int16(rapid.IntRange(0, CallsSeenMax).Draw(rt, "call")),
			Code: strings.Repeat("c", rapid.IntRange(0, CodeBytesMax).Draw(rt, "code")),
			Detail: rapid.SampledFrom([]sentence.Text{
				sentence.Own(strings.Repeat("d", rapid.IntRange(0, DetailBytesMax).Draw(rt, "detail"))), sentence.Say(sentence.RunDeadline), sentence.Say(sentence.DeniedBecause, strings.Repeat("r", DetailBytesMax)),
			}).Draw(rt, "text"),
			Role: rapid.SampledFrom([]Role{RoleUser, RoleAssistant, RoleTool}).Draw(rt, "role"),
			Seq:  rapid.Uint64().Draw(rt, "seq"),
		}
		b, err := codec.Marshal(it)
		if err != nil {
			rt.Fatal(err)
		}
		if len(b) > it.encodedBytesMax() {
			rt.Fatalf("%+v takes %d bytes and counts as %d", it, len(b), it.encodedBytesMax())
		}
	})
}

// contents draws Contents whose parts are at most depth deep.
func contents(depth int) *rapid.Generator[Content] {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("\x00\x1f\b\f\n\r\t\"\\<>&\u2028\u2029\u20ac\u007f\U0001f600"))))
	return rapid.Custom(func(rt *rapid.T) Content {
		switch n := rapid.IntRange(0, 2).Draw(rt, "kind"); {
		case n == 0 && depth > 0:
			return Content{Parts: rapid.SliceOfN(contents(depth-1), 0, 6).Draw(rt, "parts")}
		case n == 1:
			return Content{Blob: &codec.Ref{}, MediaType: text.Draw(rt, "media"), Size: rapid.Int64().Draw(rt, "size")}
		}
		return Content{Text: text.Draw(rt, "text")}
	})
}

// Counting parts in the bytes and in memory gives the same.
func TestCountParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := Content{Parts: rapid.SliceOfN(contents(4), 0, 70).Draw(rt, "content")}
		data, err := codec.Marshal(c)
		if err != nil {
			rt.Fatal(err)
		}
		n := 0
		if few := countParts(&token{rest: data}, &n); few != (c.partsCount() <= PartsMax) || few && n != c.partsCount() {
			rt.Fatalf("counted %d, few %v, there are %d", n, few, c.partsCount())
		}
	})
}

// jsonBytesMax is an upper bound of a content's size in JSON.
func TestJSONBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := contents(3).Draw(rt, "content")
		if got := jsonSize(rt, c); got > c.jsonBytesMax() {
			rt.Fatalf("%+v takes %d bytes and counts as %d", c, got, c.jsonBytesMax())
		}
		if got := jsonSize(rt, c.Text) - len(`""`); got > jsonTextBytesMax(c.Text) {
			rt.Fatalf("%q takes %d bytes and counts as %d", c.Text, got, jsonTextBytesMax(c.Text))
		}
	})
}

// jsonSize returns how long v is in a notice.
func jsonSize(rt *rapid.T, v any) int {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		rt.Fatal(err)
	}
	return b.Len() - len("\n")
}

// Cut text ends at a character's end, and keeps no memory of the rest.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want string
		n          int
	}{
		{"", "", 0}, {"abc", "abc", 3}, {"abc", "ab", 2}, {"abc", "", 0},
		{"aé", "a", 2}, {"aé", "aé", 3}, {"€", "", 2}, {"\U0001f600", "", 3}, {"\U0001f600x", "\U0001f600", 4},
	} {
		if got := sentence.Clip(c.text, c.n); got != c.want {
			t.Errorf("sentence.Clip(%q, %d) is %q, want %q", c.text, c.n, got, c.want)
		}
	}
	large := strings.Repeat("x", 1<<20)
	if cut := sentence.Clip(large, 16); unsafe.StringData(cut) == unsafe.StringData(large) {
		t.Error("16 bytes keep a megabyte alive")
	}
}
