package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// State is all that a session remembers: the fold of its own events under the
// install record that it pinned, and nothing else. It has no maps and no clock.
// Only Evolve changes it; the exported fields are for reading. A State is not safe
// for concurrent use.
type State struct {
	Record
	install      *Install          // pinned content, shared between sessions
	registry     *planner.Registry // the session's own, else the install record's
	turnRegistry *planner.Registry // the registry of the latest turn
	*scratch                       // nil while the session is idle, unless it is quiet
}

// scratch is the part of a state that an idle session does not need and that can be
// rebuilt. An idle session should take little memory.
type scratch struct {
	rules      runRules          // the active run's step rules, compiled
	notices    []Notice          // of the event being folded
	text       *Content          // of the event being folded: an input or a model's answer
	ended      *Run              // the last run that the event being folded ended
	progress   []Notice          // of the last folded event, until Progress is called
	messages   []Message         // that the last folded event sends, until Messages is called
	withdrawn  []Withdrawal      // by the last folded event
	toolsMoved bool              // inputs of the tool selection may have changed since the latest turn
	quiet      bool              // notices are numbered, and not built
	head       *SessionTombstone // before the event being folded, if that may be a tombstone
	original   *Original         // of the event being folded, if its text was removed

	itemsBefore int // length of the transcript's window before the event being folded
}

// Check returns the first invariant that the state breaks. It is for tests, for
// snapshots from outside and for the inspector. A state that only Evolve changed
// breaks none. If none is broken, no event panics, nor do Open and View.
func (s *State) Check() error {
	if s.install == nil || !s.IsErased() && (s.install.Hash != s.Install || s.install.Rules > int(s.Rules)) {
		return fmt.Errorf("the state pinned install record %s, rules %d, and was given another", s.Install, s.Rules)
	}
	if s.Session == "" || s.Count == 0 && (s.Seq > 0 || s.Runs > 0) {
		return fmt.Errorf("session %q is at %d after %d events", s.Session, s.Seq, s.Count)
	}
	for _, check := range []func() error{s.childrenInvariant, s.spacesInvariant, s.memoryInvariant, s.itemsInvariant, s.runsInvariant, s.wakesInvariant, s.schedulesInvariant, s.turnInvariant} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// New returns the state of a session without events, under install.
func New(install *Install, sid string) *State {
	s := &State{
		Record:  Record{Shown: Shown{Session: sid}, Install: install.Hash, Rules: uint8(install.Rules)},
		install: install, registry: install.Registry, turnRegistry: install.Registry,
	}
	if s.Spaces = install.spaces.NewState(); s.Spaces != nil {
		s.registry = install.Composed()
	}
	return s
}

// Withdrawals returns the effects that the last folded event withdrew. They are
// outputs of that event, like its notices: the caller must store the withdrawals
// before the event counts as stored. The slice is valid until the next Evolve.
func (s *State) Withdrawals() []Withdrawal {
	if s.scratch == nil {
		return nil
	}
	return s.withdrawn
}

// InstallRecord returns the pinned install record.
func (s *State) InstallRecord() *Install { return s.install }

// Place is a parsed effect name, and equivalent to it. Comparing Places costs less
// than comparing names.
type Place struct {
	kind      kind
	compacts  bool // a compaction before the generation of the turn
	run, turn uint32
	n         uint32 // of a wake, a sync or a compaction: its number; of a generation: attempts before it; of a call: its index
}

// String returns the name.
func (p Place) String() string {
	var room [nameRoom]byte
	return string(p.Append(room[:0]))
}

// Append appends the name to b.
func (p Place) Append(b []byte) []byte {
	if prefix := classes[p.kind].prefix; prefix != 0 {
		return strconv.AppendUint(append(b, prefix), uint64(p.n), 10)
	}
	b = appendTurn(b, p.run, p.turn)
	switch {
	case p.compacts:
		b = strconv.AppendUint(append(b, 'k'), uint64(p.n), 10)
	case p.kind == kindTool:
		b = strconv.AppendUint(append(b, 'c'), uint64(p.n), 10)
	case p.kind == kindStep:
		b = append(b, 's')
	case p.n > 0:
		b = strconv.AppendUint(append(b, 'a'), uint64(p.n)+1, 10)
	}
	return b
}

// Class returns the class of the effect.
func (p Place) Class() Class { return classes[p.kind].Class }

// parseName parses an effect's name: r1t2, r1t2a2, r1t2k1, r1t2c0, r1t2s, w1, y1.
func parseName(name string) (Place, bool) {
	rest, ok := strings.CutPrefix(name, "r")
	if !ok {
		return parseNumbered(name)
	}
	runText, rest, ok := strings.Cut(rest, "t")
	if !ok {
		return Place{}, false
	}
	turnText, callText, hasCall := strings.Cut(rest, "c")
	var p Place
	turnText, compactText, compacts := strings.Cut(turnText, "k")
	if compacts {
		n, ok := parseNumber(compactText)
		if !ok || n == 0 || hasCall {
			return Place{}, false
		}
		p.compacts, p.n = true, n
	}
	if hasCall {
		p.kind = kindTool
	} else if cut, isStep := strings.CutSuffix(turnText, "s"); isStep {
		turnText, p.kind = cut, kindStep
	}
	if base, attemptText, again := strings.Cut(turnText, "a"); again && p.kind == kindLLM && !compacts {
		n, ok := parseNumber(attemptText)
		if !ok || n < 2 || n > AttemptsMax {
			return Place{}, false
		}
		turnText, p.n = base, n-1
	}
	var okRun, okTurn bool
	p.run, okRun = parseNumber(runText)
	p.turn, okTurn = parseNumber(turnText)
	if !okRun || !okTurn || p.run == 0 || p.turn == 0 {
		return Place{}, false
	}
	if hasCall {
		if p.n, ok = parseNumber(callText); !ok || p.n >= CallsMax {
			return Place{}, false
		}
	}
	return p, true
}

// parseNumbered parses a name that is a prefix and a number.
func parseNumbered(name string) (Place, bool) {
	for k := range classes {
		if prefix := classes[k].prefix; prefix != 0 && name != "" && name[0] == prefix {
			n, ok := parseNumber(name[1:])
			return Place{kind: kind(k), n: n}, ok && n > 0
		}
	}
	return Place{}, false
}

// parseNumber parses a decimal number in its only valid form.
func parseNumber(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, false
	}
	return uint32(n), true
}

// nameRoom exceeds the longest name: three numbers of ten digits.
const nameRoom = 40

func appendTurn(b []byte, run, turn uint32) []byte {
	b = strconv.AppendUint(append(b, 'r'), uint64(run), 10)
	return strconv.AppendUint(append(b, 't'), uint64(turn), 10)
}

// turnName, callName and wakeName return names, each with one allocation: every
// effect has one.
func turnName(run, turn uint32) string {
	var room [nameRoom]byte
	return string(appendTurn(room[:0], run, turn))
}

func callName(run, turn uint32, call int) string {
	return Place{kind: kindTool, run: run, turn: turn, n: uint32(call)}.String()
}

func wakeName(n uint32) string { return Place{kind: kindWake, n: n}.String() }

// generation returns the Place of the latest attempt at the latest turn's generation, or
// of the compaction before it.
func (s *State) generation() Place {
	t := s.Turn
	if s.isCompacting() {
		return Place{compacts: true, run: t.Run, turn: t.Number, n: s.Window.Compaction.Number}
	}
	return Place{run: t.Run, turn: t.Number, n: uint32(t.Attempt)}
}

// step and call return Places of the turn: of its step, and of a call.
func (t *Turn) step() Place { return Place{kind: kindStep, run: t.Run, turn: t.Number} }

func (t *Turn) call(i int) Place {
	return Place{kind: kindTool, run: t.Run, turn: t.Number, n: uint32(i)}
}

// generationName returns the name of generation.
func (s *State) generationName() string { return s.generation().String() }

// The memory of a state's parts without what they point to, in bytes on a
// 64-bit machine, rounded up to the heap's size classes.
const (
	stateWeight      = 512
	turnWeight       = 256
	stepWeight       = 272
	batchWeight      = 128
	callWeight       = 240
	planCallWeight   = 96
	itemWeight       = 72
	offerWeight      = 4
	definedWeight    = 24
	configWeight     = 320
	runWeight        = 288 + configWeight
	modelPriceWeight = 48 + 16
	ruleWeight       = 128
	liveWeight       = 192
	submissionWeight = 56
	wakeWeight       = 24
	steerWeight      = 16
	factWeight       = 32
	hostWeight       = 64
	endedWeight      = 64
	overWeight       = 32
	windowWeight     = 72
	compactionWeight = 80
	doneWeight       = 32
	stepCallWeight   = 144
	lastCallWeight   = 64
	stringWeight     = 16
)

// Weight returns about how many bytes of memory the state takes, without what
// sessions share: the install record, its manifests, and all registries. Its cost
// does not grow with a session's length nor with a manifest's, so it may be called
// after every event. It is accurate within a half; text that a config or a pin
// shares with another counts in each, and patterns of a pack count up to twice.
func (s *State) Weight() int {
	n := stateWeight + space.TextWeight(s.Session) + space.TextWeight(s.profile())
	n += cap(s.Items)*itemWeight + max(0, int(s.ItemBytes)-len(s.Items)*itemFixedBytesMax)
	n += space.ListWeight(s.IDs) + cap(s.Wakes)*wakeWeight + cap(s.Facts)*factWeight
	for i := range s.Facts {
		n += space.TextWeight(s.Facts[i].Name) + space.TextWeight(s.Facts[i].Value)
	}
	if n += cap(s.Submissions) * submissionWeight; len(s.Submissions) > 0 {
		n += len(s.Submissions) * space.TextWeight(s.Submissions[0].Name) // they are mostly alike
	}
	n += s.Host.weight() + s.Overrides.weight() + s.Turn.weight() + s.Window.weight()
	if x := s.spaces(); x.State != nil {
		n += x.Weight()
	}
	if s.Config != nil {
		n += s.Config.Run.weight(s.install)
	}
	for i := range s.schedules() {
		n += s.schedules()[i].weight(s.install)
	}
	if s.Done != nil {
		n += doneWeight + cap(s.Done.Results)*len(codec.Hash{})
	}
	if s.Last != nil {
		n += endedWeight + space.TextWeight(s.Last.Detail) + space.TextWeight(s.Last.FinishReason)
		if s.Last.OverBudget != nil {
			n += overWeight
		}
	}
	if s.Run != nil {
		n += runWeight + s.Run.weight(s.install)
	}
	n += cap(s.Queue) * runWeight
	for i := range s.Queue {
		n += s.Queue[i].weight(s.install)
	}
	if s.scratch != nil {
		n += liveWeight + s.rules.steps.Weight()
	}
	return n
}

func (h *HostSession) weight() int {
	if h == nil {
		return 0
	}
	return hostWeight + space.TextWeight(h.ID) + space.TextWeight(h.Root) + space.TextWeight(h.Route)
}

func (o *OperatorsSet) weight() int {
	if o == nil {
		return 0
	}
	return 4*stringWeight + o.Overrides.weight()
}

func (o *Overrides) weight() int {
	if o == nil {
		return 0
	}
	return 3*stringWeight + space.ListWeight(o.Disable) + space.ListWeight(o.Enable) + space.ListWeight(o.Force)
}

// weight returns the memory of a run without the Run itself.
func (r *Run) weight(install *Install) int {
	n := r.Config.weight(install) - configWeight + space.ListWeight(listOf(r.Only))
	n += r.Asked.weight() + space.TextWeight(r.Context) + space.ListWeight(r.Joined) + space.ListWeight(r.Roles) + space.TextWeight(r.Submission) + space.TextWeight(r.FinishReason) + space.ListWeight(r.Used)
	for _, active := range r.Skills {
		n += 2*stringWeight + space.TextWeight(active.Name) + space.TextWeight(active.Space)
	}
	n += cap(r.Steers)*steerWeight + cap(r.Calls)*stepCallWeight
	if r.Scheduled != nil {
		n += scheduledWeight + space.TextWeight(r.Scheduled.Name)
	}
	for i := range r.Calls {
		n += space.TextWeight(r.Calls[i].ToolName) + space.TextWeight(r.Calls[i].Effect) + space.TextWeight(r.Calls[i].Arguments)
	}
	return n
}

func (c *RunConfig) weight(install *Install) int {
	n := configWeight + space.TextWeight(c.Model) + space.TextWeight(c.Params) + space.TextWeight(c.Provider) + space.TextWeight(c.ResponseFormat)
	if shared := install.Record.Config; shared == nil || c.System != shared.System {
		n += space.TextWeight(c.System)
	}
	n += space.ListWeight(c.Disable) + space.ListWeight(c.Enable) + space.ListWeight(c.Force) + space.ListWeight(c.Skills)
	n += space.ListWeight(listOf(c.ActiveTools)) + (cap(listOf(c.PromptRefs))+cap(listOf(c.ToolRefs)))*len(codec.Hash{})
	for i := range c.Steps {
		n += weightOfRule(&c.Steps[i])
	}
	if c.Prices != nil {
		n += cap(c.Prices.Models) * modelPriceWeight
	}
	return n
}

func weightOfRule(r *planner.StepRule) int {
	return ruleWeight + space.TextWeight(r.Context) + space.TextWeight(r.Params) + space.TextWeight(r.System) + space.TextWeight(r.When) + space.ListWeight(listOf(r.ActiveTools))
}

func (t *Turn) weight() int {
	if t == nil {
		return 0
	}
	n := turnWeight + cap(t.Toolset.Offers)*offerWeight + cap(t.Toolset.Verdicts)
	if t.Defined != nil {
		n += definedWeight + cap(*t.Defined)*offerWeight
	}
	if t.Step != nil {
		n += stepWeight + cap(t.Step.Tools)*8 + cap(t.Step.Calls)*lastCallWeight
		for i := range t.Step.Calls {
			n += space.TextWeight(t.Step.Calls[i].Arguments)
		}
		if t.Step.Prepared != nil {
			n += weightOfRule(t.Step.Prepared)
		}
	}
	if b := t.Batch; b != nil {
		n += batchWeight + cap(b.Calls)*callWeight + cap(b.Plan.Calls)*planCallWeight
		for i := range b.Calls {
			c := &b.Calls[i]
			n += space.TextWeight(c.Arguments) + space.TextWeight(c.Detail) + space.TextWeight(c.ProviderCallID) + c.Host.weight()
		}
		n += len(b.Plan.Groups)*stringWeight + len(b.Calls)*8
	}
	return n
}
