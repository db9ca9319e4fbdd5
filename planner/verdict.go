package planner

import (
	"fmt"
	"strings"
)

// Reason says what happened to a tool in a turn. The numbers are wire: they
// stand in toolsets that sessions keep.
type Reason uint8

const (
	Offered           Reason = 0
	NotListed         Reason = 1 // steps 1 and 2: no list has it
	DisabledBySession Reason = 2 // step 3
	DisabledByRun     Reason = 3 // step 3
	RuleFails         Reason = 4 // step 4: an availability rule doesn't hold
	CapabilityMissing Reason = 5 // step 4: a capability is not granted
	NotOfSkill        Reason = 6 // step 2: no list of an active skill has it
	Lacking           Reason = 7 // step 4: a need of the tool, or of its pack, is not met
	NotAsked          Reason = 8 // step 2: the list of the client's request leaves it out
	Denied            Reason = 9 // step 4: a rule of the policy denies every call
)

// Verdict is what happened to a tool in a turn. For the reasons of step 4,
// Index says which of its rules, capabilities or needs failed first, or which rule
// of the policy denies it.
// Capabilities that the Floor adds, and needs of the whole pack, are counted
// after the tool's own; an Index of 255 stands for all later ones, too.
type Verdict struct {
	Reason Reason
	Index  int
}

// Verdict returns what happened to a tool. A tool without an entry, which
// Select never leaves out, is not listed.
func (ts *Toolset) Verdict(t ToolIndex) Verdict {
	at := 2 * int(t)
	if t < 0 || at+1 >= len(ts.Verdicts) {
		return Verdict{Reason: NotListed}
	}
	return Verdict{Reason: Reason(ts.Verdicts[at]), Index: int(ts.Verdicts[at+1])}
}

func (ts *Toolset) setVerdict(t ToolIndex, v Verdict) {
	ts.Verdicts[2*t] = byte(v.Reason)
	ts.Verdicts[2*t+1] = byte(v.Index)
}

// Why describes a verdict in words: offered, or the step and rule that removed
// the tool. ts must be of reg, and floor the one that Select used.
func Why(reg *Registry, floor *Floor, ts *Toolset, t ToolIndex) string {
	spec := &reg.tools[t].spec
	switch v := ts.Verdict(t); v.Reason {
	case Offered:
		return "offered"
	case NotOfSkill:
		return WhyNotOfSkill(nil)
	case NotAsked:
		return "step 2: the client's request leaves it out"
	case DisabledBySession:
		return "step 3: disabled by the session"
	case DisabledByRun:
		return "step 3: disabled by the run"
	case RuleFails:
		if v.Index < len(spec.Availability) {
			return "step 4: " + spec.Availability[v.Index].String() + " does not hold"
		}
		return "step 4: unavailable"
	case CapabilityMissing:
		if name := floor.capability(reg, t, v.Index); name != "" {
			return fmt.Sprintf("step 4: capability %+q is not granted", name)
		}
		return "step 4: not permitted"
	case Denied:
		return fmt.Sprintf("step 4: policy.approval[%d] denies every call", v.Index)
	case Lacking:
		return "step 4: " + Missing(reg.need(t, v.Index))
	}
	switch {
	case !ts.IsFromProfile():
		return fmt.Sprintf("step 1: the %s's list leaves it out", ts.Source)
	case ts.Profile != "":
		return fmt.Sprintf("step 1: profile %+q leaves it out, and nothing enables it", ts.Profile)
	}
	return "step 1: not listed"
}

// WhyNotOfSkill says that active skills of these names leave a tool out.
func WhyNotOfSkill(skills []string) string {
	switch len(skills) {
	case 0:
		return "step 2: no active skill allows it"
	case 1:
		return "step 2: active skill " + skills[0] + " does not allow it"
	}
	return "step 2: active skills " + strings.Join(skills, ", ") + " do not allow it"
}

// Missing returns the words for a need that is not met.
func Missing(need string) string {
	kind, what, _ := strings.Cut(strings.TrimSuffix(need, "?"), ":")
	what = strings.ReplaceAll(what, "|", " or ")
	switch kind {
	case "secret":
		return "secret " + what + " is missing"
	case "env":
		return "environment variable " + what + " is missing"
	case "bin":
		return "program " + what + " is missing"
	case "os":
		return "the system is not " + what
	}
	return "something that it needs is missing"
}

// String returns the rule as people write it.
func (r Rule) String() string {
	if r.Kind == RuleFact {
		return "fact " + quoted(r.Name) + " is " + quoted(r.Equals)
	}
	return r.Kind
}
