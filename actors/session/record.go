package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Record is the part of a state that a snapshot stores. Fields are in the byte
// order of their wire names, except small ones, which are adjacent. In an active
// state, hashes of settlements and results may be missing until Bytes computes
// them.
type Record struct {
	Shown
	Chain       codec.Hash          `msgpack:"chain"` // BLAKE2b-256 chain over all events
	Config      *SessionConfig      `msgpack:"config,omitempty"`
	Done        *DoneBatch          `msgpack:"done,omitempty"`      // the last completed batch
	IDs         []string            `msgpack:"ids,omitempty"`       // ids of the latest accepted events, oldest first
	Install     codec.Hash          `msgpack:"install"`             // of the pinned install record
	Items       []Item              `msgpack:"items,omitempty"`     // the transcript
	Last        *Ended              `msgpack:"last,omitempty"`      // the last ended run
	LastPlan    codec.Hash          `msgpack:"last_plan_hash"`      // zero: none yet
	Leaf        codec.Hash          `msgpack:"leaf"`                // BLAKE2b-256 of the latest event alone
	Overrides   *OperatorsSet       `msgpack:"overrides,omitempty"` // of the session
	Profile     *string             `msgpack:"profile,omitempty"`   // the one selected for the session; never empty
	Queue       []Run               `msgpack:"queue,omitempty"`     // first in, first out
	Registry    *spaces.RegistryPin `msgpack:"registry,omitempty"`  // absent: the install record's
	Run         *Run                `msgpack:"run,omitempty"`       // the active one
	ItemBytes   int32               `msgpack:"item_bytes"`          // encoded size of Items
	NoticeN     uint32              `msgpack:"notice_n"`            // notices so far
	Runs        uint32              `msgpack:"runs"`                // runs numbered so far
	Rules       uint8               `msgpack:"rules"`
	Closed      bool                `msgpack:"closed,omitempty"`
	Erasure     Erasure             `msgpack:"erasure,omitempty"`
	lastType    uint8               // index in eventTypes of the latest event's type, plus 1; not in snapshots
	Tree        *Tree               `msgpack:"tree,omitempty"`        // absent: it is no child, and remembers none
	Spaces      *spaces.State       `msgpack:"spaces,omitempty"`      // absent: the session never had a grant or prompt refs
	Submissions []Submission        `msgpack:"submissions,omitempty"` // one list by name, or two: see rememberSubmission
	Turn        *Turn               `msgpack:"turn,omitempty"`        // the latest turn, of the active run or of the last one
	Wakes       []OpenWake          `msgpack:"wakes,omitempty"`
	WakesAsked  uint32              `msgpack:"wakes_asked"`            // wakes numbered so far
	WindowBytes uint32              `msgpack:"window_bytes,omitempty"` // what a model is shown of the transcript and of the open batch's results; at most MaxUint32
}

// profile returns the profile selected for the session, "" if none is.
func (r *Record) profile() string {
	if r.Profile == nil {
		return ""
	}
	return *r.Profile
}

// Shown is the part of a record that a view shows as it is stored. A field added here
// needs no line in view.go.
type Shown struct {
	// Unix milliseconds: the greatest timestamp of an event, or due time of a wake, so far.
	Clock int64 `json:"clock" msgpack:"clock"`
	// Cost of all runs, in micro-units by their prices; 0 if absent.
	Cost int64 `json:"cost,omitempty" msgpack:"cost,omitempty" lim:"0.."`
	// Number of folded events, including rejected ones.
	Count uint64 `json:"events" msgpack:"count" lim:"1.."`
	// The session's facts, by name.
	Facts []planner.Fact `json:"facts,omitempty" msgpack:"facts,omitempty" lim:"..FactsMax"`
	Host  *HostSession   `json:"host_session,omitempty" msgpack:"host,omitempty"`
	// How the transcript was shortened. Absent: it is shown whole.
	Window *Window `json:"window,omitempty" msgpack:"window,omitempty"`
	// Sequence of the latest folded event.
	Seq     uint64 `json:"seq" msgpack:"seq" lim:"1.."`
	Session string `json:"session" msgpack:"session" lim:"@session"`
	// Usage of all runs.
	Usage UsageTotal `json:"usage" msgpack:"usage"`
}

// memoryInvariant checks what the session remembers besides its runs.
func (s *State) memoryInvariant() error {
	if len(s.IDs) > IDsMax || len(s.Facts) > FactsMax || len(s.Submissions) > submissionsHeldMax {
		return fmt.Errorf("%d ids, %d facts, %d submissions are remembered", len(s.IDs), len(s.Facts), len(s.Submissions))
	}
	for _, id := range s.IDs {
		if id == "" || len(id) > IDBytesMax {
			return fmt.Errorf("an id of %d bytes is remembered", len(id))
		}
	}
	if err := s.submissionsInvariant(); err != nil {
		return err
	}
	for i, f := range s.Facts {
		switch {
		case f.Name == "" || len(f.Name) > FactNameBytesMax || len(f.Value) > FactValueBytesMax:
			return fmt.Errorf("fact %d has a name of %d and a value of %d bytes", i, len(f.Name), len(f.Value))
		case i > 0 && s.Facts[i-1].Name >= f.Name:
			return fmt.Errorf("the facts %q and %q are out of order", s.Facts[i-1].Name, f.Name)
		}
	}
	if s.Host != nil {
		if bad := cmp.Or(s.Host.limits(), hostFault(s.Host)); bad != nil || s.Host.Status == "none" {
			return fmt.Errorf("the host session is %+v", *s.Host)
		}
	}
	if err := s.Usage.invariant(); err != nil || s.Cost < 0 {
		return fmt.Errorf("all runs used %+v, for %d: %w", s.Usage, s.Cost, err)
	}
	if s.Window != nil {
		if err := s.Window.invariant(s); err != nil {
			return err
		}
	}
	if err := s.erasureInvariant(); err != nil {
		return err
	}
	if s.Closed && (s.Run != nil || len(s.Queue) > 0) {
		return errors.New("the session is closed and has a run")
	}
	if own := s.profile(); s.Profile != nil && !s.registry.HasProfile(own) {
		return fmt.Errorf("the registry has no profile %q", own)
	}
	if o := s.Overrides; o != nil {
		if bad := listsFault(s.registry, "", o.lists()); bad != nil {
			return fmt.Errorf("the session's overrides: %s", bad.detail)
		}
	}
	if s.Done != nil {
		if err := s.Done.invariant(s); err != nil {
			return err
		}
	}
	return s.registriesInvariant()
}

// submissionsInvariant checks what is remembered of requests.
func (s *State) submissionsInvariant() error {
	isShort := len(s.Submissions) > SubmissionsMax
	for _, list := range s.submissionLists() {
		for i := range list {
			if of := &list[i]; of.Name == "" || len(of.Name) > IDBytesMax || isShort && len(of.Name) != submissionNameBytes || of.Run == 0 || of.Run > s.Runs {
				return fmt.Errorf("a submission of %d bytes is remembered, of run %d of %d", len(of.Name), of.Run, s.Runs)
			}
			if i > 0 && (list[i-1].Name > list[i].Name || list[i-1].Name == list[i].Name && !isShort) {
				return fmt.Errorf("the submissions %q and %q are out of order", list[i-1].Name, list[i].Name)
			}
		}
	}
	return nil
}

// registriesInvariant checks that the registries in use are those that the state names.
func (s *State) registriesInvariant() error {
	bases := []struct {
		pin *spaces.RegistryPin
		has *planner.Registry
	}{{s.Registry, s.baseRegistry()}}
	if s.turnSpace() == nil && (s.Turn == nil || !s.Turn.Results) { // else its toolset names the composed registry
		bases = append(bases, bases[0])
		bases[1].pin, bases[1].has = nil, s.turnRegistry
		if s.Turn != nil {
			bases[1].pin = s.Turn.Registry
		}
	}
	for _, r := range bases {
		want := s.install.Registry.Hash()
		if r.pin != nil {
			want = r.pin.Hash
			if r.pin.Seq == 0 || r.pin.Seq > s.Seq {
				return fmt.Errorf("registry %s is of event %d, the latest is %d", want, r.pin.Seq, s.Seq)
			}
		}
		if r.has.Hash() != want {
			return fmt.Errorf("registry %s is at hand, the state names %s", r.has.Hash(), want)
		}
	}
	return nil
}

// OperatorsSet is what operators set of few sessions. It is behind one pointer, since a state
// without it is as large as a size class of the heap.
type OperatorsSet struct {
	Overrides
	Schedules []Schedule `msgpack:"schedules,omitempty"`
}

// Overrides are the session's lists that ToolOverridesSet set, by tool_id or
// tool_name. A run's lists are in its config.
type Overrides struct {
	// Tools that are not offered.
	Disable []string `json:"disable,omitempty" msgpack:"disable,omitempty" lim:"..NamesMax,item=any"`
	// Tools added to the profile.
	Enable []string `json:"enable,omitempty" msgpack:"enable,omitempty" lim:"..NamesMax,item=any"`
	// Tools added to any list.
	Force []string `json:"force,omitempty" msgpack:"force,omitempty" lim:"..NamesMax,item=any"`
}

// Submission is a remembered submission and the SHA-256 of its content.
type Submission struct {
	Content codec.Hash `msgpack:"content"`
	Name    string     `msgpack:"name"` // shortened if there are over SubmissionsMax
	Run     uint32     `msgpack:"run"`  // the run that it started, or steered
}

// UsageTotal is the sum of several usages, in tokens.
type UsageTotal struct {
	// Input tokens written to the provider's cache. Absent if there were none.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty" msgpack:"cache_write_tokens,omitempty" lim:"0.."`
	// Input tokens read from the provider's cache.
	CachedTokens int64 `json:"cached_tokens" msgpack:"cached_tokens" lim:"0.."`
	// Tokens shown to the model.
	InputTokens int64 `json:"input_tokens" msgpack:"input_tokens" lim:"0.."`
	// Tokens that the model wrote.
	OutputTokens int64 `json:"output_tokens" msgpack:"output_tokens" lim:"0.."`
	// Output tokens of reasoning, which is not shown.
	ReasoningTokens int64 `json:"reasoning_tokens" msgpack:"reasoning_tokens" lim:"0.."`
}

func (u *UsageTotal) invariant() error {
	if u.CacheWriteTokens < 0 || u.CachedTokens < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.ReasoningTokens < 0 {
		return errors.New("a count is below 0")
	}
	return nil
}

// OpenWake is a wake that is not settled.
type OpenWake struct {
	At     int64  `msgpack:"at"`
	Due    int64  `msgpack:"due"` // Unix ms
	Number uint32 `msgpack:"number"`
}

func (s *State) wakesInvariant() error {
	if len(s.Wakes) > WakesMax+1 || len(s.Wakes) > WakesMax && s.schedules() == nil {
		return fmt.Errorf("%d wakes are open", len(s.Wakes))
	}
	before := uint32(0)
	for i := range s.Wakes {
		if n := s.Wakes[i].Number; n <= before || n > s.WakesAsked {
			return fmt.Errorf("%s comes after %s of %d", wakeName(n), wakeName(before), s.WakesAsked)
		}
		if w := &s.Wakes[i]; w.At > s.Clock || w.Due <= 0 {
			return fmt.Errorf("%s of %d is due at %d, it is %d", wakeName(w.Number), w.At, w.Due, s.Clock)
		}
		before = s.Wakes[i].Number
	}
	return nil
}

// Run is a queued or active run. Its config is resolved and frozen when it is
// requested; only ToolOverridesSet changes its lists.
type Run struct {
	ShownRun
	Answer     uint64        `msgpack:"answer,omitempty"`   // sequence of the latest answer, while the run waits for input
	Asked      *Overrides    `msgpack:"asked,omitempty"`    // the config's lists as requested, if ToolOverridesSet changed them
	Before     Lifecycle     `msgpack:"before,omitempty"`   // lifecycle of a paused run after its resume
	Calls      []StepCall    `msgpack:"calls,omitempty"`    // of earlier turns, for step hooks alone
	Children   uint16        `msgpack:"children,omitempty"` // runs of other sessions that it has requested
	Config     RunConfig     `msgpack:"config"`
	Context    codec.Raw     `msgpack:"context,omitempty"`     // for later steps; an object
	Doubt      bool          `msgpack:"doubt,omitempty"`       // its config is checked before its next turn: see doubtFault
	Fallback   uint8         `msgpack:"fallback,omitempty"`    // the entry of its config's fallback that it has fallen back to, from 1; 0: none
	Fell       uint8         `msgpack:"fell,omitempty"`        // failed attempts at its latest turn after which another model was asked
	Held       Held          `msgpack:"held,omitempty"`        // what a pause holds back
	InputBytes int64         `msgpack:"input_bytes,omitempty"` // what a model is shown of a queued run's input
	Joined     []string      `msgpack:"joined,omitempty"`      // packs that its own calls enabled
	Lifecycle  Lifecycle     `msgpack:"lifecycle,omitempty"`   // empty: queued
	Operators  bool          `msgpack:"operators,omitempty"`   // requested through `ctl`. Any other run holds back no change through `ctl`
	Only       *[]string     `msgpack:"only,omitempty"`        // a client's list of tools, which narrows the operator's; descriptors as text
	PausedAt   int64         `msgpack:"paused_at,omitempty"`   // clock
	Skills     []ActiveSkill `msgpack:"skills,omitempty"`      // active ones, in the order of their activation
	Steers     []Steer       `msgpack:"steers,omitempty"`      // input that no turn has taken yet
	Workspace  *spaces.Pin   `msgpack:"workspace,omitempty"`   // named by its config; absent: the applied one, or none
}

// ShownRun is the part of a run that a view shows as it is stored.
type ShownRun struct {
	// Whether it is paused because its budget is spent; false if absent.
	Spent bool `json:"spent,omitempty" msgpack:"breach,omitempty"`
	// Cost so far, in micro-units by its prices; 0 if absent.
	Cost int64 `json:"cost,omitempty" msgpack:"cost,omitempty" lim:"0.."`
	// The run's, Unix milliseconds. While it is paused it stands still.
	Deadline int64 `json:"deadline,omitempty" msgpack:"deadline,omitempty"`
	// Why the answer ended with which the run waits for input, if not by stop.
	FinishReason string `json:"finish_reason,omitempty" msgpack:"finish,omitempty" lim:"..NameBytesMax"`
	// Runs count from 1.
	Number uint32 `json:"number" msgpack:"number" lim:"1.."`
	// Turns begun to repair an answer, since the latest good one.
	Repairs uint8 `json:"repairs,omitempty" msgpack:"repairs,omitempty" lim:"1.."`
	// Roles of the request.
	Roles []string `json:"roles,omitempty" msgpack:"roles,omitempty" lim:"..RolesMax,item=any"`
	// The firing of a schedule that requested it.
	Scheduled *Scheduled `json:"scheduled,omitempty" msgpack:"scheduled,omitempty"`
	// Sequence of the event with its input.
	Seq uint64 `json:"seq" msgpack:"seq" lim:"1.."`
	// Submission of the request.
	Submission string `json:"submission,omitempty" msgpack:"submission,omitempty" lim:"any"`
	// Number of turns opened so far.
	Turns uint32 `json:"turns" msgpack:"turns"`
	// Usage of the run.
	Usage UsageTotal `json:"usage" msgpack:"usage"`
	// The tool_ids that were carried out in earlier turns, which `used` in a condition
	// tests: only those of the turn's registry.
	Used []string `json:"used,omitempty" msgpack:"used,omitempty" lim:"..planner.ToolsMax,item=@tool_id"`
}

// Lifecycle is the status of a run.
type Lifecycle string

const (
	Queued       Lifecycle = "queued"
	Running      Lifecycle = "running"
	WaitingInput Lifecycle = "waiting_input"
	Paused       Lifecycle = "paused"
	Interrupting Lifecycle = "interrupting"
	Completed    Lifecycle = "completed"
	Failed       Lifecycle = "failed"
	Cancelled    Lifecycle = "cancelled"
	Interrupted  Lifecycle = "interrupted"
)

// isEnd reports whether a run in this lifecycle has ended.
func (l Lifecycle) isEnd() bool {
	return l == Completed || l == Failed || l == Cancelled || l == Interrupted
}

// Steer is input that waits for a turn.
type Steer struct {
	Bytes int64  `msgpack:"bytes"` // what a model is shown of it
	Seq   uint64 `msgpack:"seq"`   // of its event
}

// isInput reports whether one input can show a model this many bytes.
func isInput(bytes int64) bool { return bytes >= 0 && bytes <= inputBytesMax }

// Held is what a paused run opens when it is resumed.
type Held string

// What a pause holds back.
const (
	HeldGroup      Held = "group"      // the calls of the open group
	HeldTurn       Held = "turn"       // the next turn
	HeldGeneration Held = "generation" // the generation of a turn whose step is settled
)

func (s *State) runsInvariant() error {
	if s.Config != nil {
		if err := s.Config.invariant(s); err != nil {
			return err
		}
	}
	if len(s.Queue) > queueHeldMax || s.Run == nil && len(s.Queue) > 0 {
		return fmt.Errorf("%d runs are queued, active is %v", len(s.Queue), s.Run != nil)
	}
	if s.Last != nil {
		if err := s.Last.invariant(s); err != nil {
			return err
		}
	}
	if s.Run == nil {
		return nil
	}
	for i, r := range s.runs() {
		if i >= 0 && r.Number == s.Run.Number {
			return fmt.Errorf("run %d is active and queued", r.Number)
		}
		for j := range s.Queue[:max(0, i)] {
			if s.Queue[j].Number == r.Number {
				return fmt.Errorf("run %d is queued twice", r.Number)
			}
		}
		if err := r.invariant(s, i >= 0); err != nil {
			return fmt.Errorf("run %d: %w", r.Number, err)
		}
	}
	return nil
}

func (r *Run) invariant(s *State, queued bool) error {
	if r.Number == 0 || r.Number > s.Runs || r.Seq == 0 || r.Seq > s.Seq {
		return fmt.Errorf("it is one of %d, and of event %d", s.Runs, r.Seq)
	}
	if r.Asked != nil && r.Operators {
		st := s.stack()
		if bad := listsFault(s.registryFor(&st, r), "", r.Asked.lists()); bad != nil {
			return fmt.Errorf("as requested: %s", bad.detail)
		}
	}
	if err := r.lifecycleInvariant(queued, s.Seq); err != nil {
		return err
	}
	if bad := s.runConfigFault(r); bad != nil {
		return fmt.Errorf("%s: %s", bad.code, bad.detail)
	}
	if r.Deadline < 0 || r.PausedAt < 0 || r.PausedAt > s.Clock || len(r.Submission) > IDBytesMax || len(listOf(r.Only)) > NamesMax {
		return fmt.Errorf("it ends at %d, was paused at %d, and is of submission %q", r.Deadline, r.PausedAt, sentence.Clip(r.Submission, IDBytesMax))
	}
	if err := r.Usage.invariant(); err != nil {
		return fmt.Errorf("it used %+v: %w", r.Usage, err)
	}
	if err := r.Scheduled.invariant(s); err != nil {
		return err
	}
	for _, name := range r.Joined {
		if !space.IsSpaceName(name, space.Pack) {
			return fmt.Errorf("it enabled %q, which names no pack", name)
		}
	}
	if r.Workspace != nil && r.Workspace.Kind != space.Workspace {
		return fmt.Errorf("its workspace is a %s", r.Workspace.Kind)
	}
	for i := range r.Calls {
		if err := r.Calls[i].invariant(s, r); err != nil {
			return fmt.Errorf("earlier call %d: %w", i, err)
		}
	}
	if int(r.Fallback) > len(r.Config.Fallback) || queued && r.Fallback > 0 {
		return fmt.Errorf("it fell back to model %d of %d", r.Fallback, len(r.Config.Fallback))
	}
	if !r.skillsInvariant(queued, s.Seq) {
		return fmt.Errorf("its active skills are %v", r.Skills)
	}
	return r.stepsInvariant()
}

func (r *Run) lifecycleInvariant(queued bool, seq uint64) error {
	switch {
	case queued && (r.Lifecycle != "" || r.Turns > 0 || r.Held != "" || r.Before != "" || r.Spent):
		return fmt.Errorf("it is queued and %q after %d turns", r.Lifecycle, r.Turns)
	case queued:
	case r.Lifecycle == Paused:
		if r.Before != Running && r.Before != WaitingInput {
			return fmt.Errorf("it is paused and goes back to %q", r.Before)
		}
	case r.Lifecycle != Running && r.Lifecycle != WaitingInput && r.Lifecycle != Interrupting:
		return fmt.Errorf("it is active and %q", r.Lifecycle)
	case r.Before != "" || r.Held != "" || r.Spent:
		return fmt.Errorf("it is %s, and holds back %q", r.Lifecycle, r.Held)
	}
	switch r.Held {
	case "", HeldGroup, HeldTurn, HeldGeneration:
	default:
		return fmt.Errorf("it holds back %q", r.Held)
	}
	if r.Repairs > RepairsMax || uint32(r.Repairs) > r.Turns {
		return fmt.Errorf("it repaired %d answers in %d turns", r.Repairs, r.Turns)
	}
	if !isInput(r.InputBytes) || !queued && r.InputBytes != 0 {
		return fmt.Errorf("its input is of %d bytes", r.InputBytes)
	}
	if queued && r.Asked != nil {
		return fmt.Errorf("it is queued, and its lists were changed")
	}
	if len(r.Steers) > SteersMax || r.Answer > seq || r.Cost < 0 || r.Cost > CostMax {
		return fmt.Errorf("%d steers wait, its answer is that of event %d", len(r.Steers), r.Answer)
	}
	if len(r.FinishReason) > NameBytesMax || queued && r.FinishReason != "" {
		return fmt.Errorf("its answer ended by %q", sentence.Clip(r.FinishReason, CodeBytesMax))
	}
	for _, steer := range r.Steers {
		if steer.Seq == 0 || steer.Seq > seq || !isInput(steer.Bytes) {
			return fmt.Errorf("a steer is of event %d, the latest is %d, and of %d bytes", steer.Seq, seq, steer.Bytes)
		}
	}
	return nil
}

// stepsInvariant checks what the run keeps for its steps.
func (r *Run) stepsInvariant() error {
	of := RunRequested{Config: &r.Config, Roles: r.Roles}
	if bad := of.limits(); bad != nil {
		return fmt.Errorf("%s", bad.detail)
	}
	if len(r.Calls) > StepCallsMax || len(r.Used) > planner.ToolsMax || !slices.IsSorted(r.Used) {
		return fmt.Errorf("%d calls are kept, of %d tools", len(r.Calls), len(r.Used))
	}
	arguments := 0
	for i := range r.Calls {
		if arguments += len(r.Calls[i].Arguments); arguments > StepArgumentsBytesMax || len(r.Calls[i].Arguments) > StepArgumentBytesMax {
			return fmt.Errorf("arguments of %d bytes are kept of earlier calls", arguments)
		}
	}
	if len(r.Context) > planner.StepContextBytesMax || len(r.Context) > 0 && !codec.IsMap(r.Context) {
		return fmt.Errorf("its context has %d bytes, or is no object", len(r.Context))
	}
	return nil
}

// Ended is the last ended run.
type Ended struct {
	// Why the run ended.
	Code string `json:"code,omitempty" msgpack:"code,omitempty" lim:"any"`
	// Detail for people.
	Detail sentence.Text `json:"detail,omitempty" msgpack:"detail,omitempty" lim:"..BytesMax"`
	// Why the answer that ended the run ended, or the one with which it waited for input,
	// if not by stop.
	FinishReason string `json:"finish_reason,omitempty" msgpack:"finish_reason,omitempty" lim:"..NameBytesMax"`
	// How the run ended.
	Lifecycle Lifecycle `json:"lifecycle" msgpack:"lifecycle" lim:"enum=completed|failed|cancelled|interrupted"`
	// The run.
	Number uint32 `json:"number" msgpack:"number" lim:"1.."`
	// The budget that was exceeded. Absent: the run ended within its budget.
	OverBudget *OverBudget `json:"over_budget,omitempty" msgpack:"over_budget,omitempty"`
}

func (end *Ended) invariant(s *State) error {
	switch {
	case !end.Lifecycle.isEnd(), end.Number == 0 || end.Number > s.Runs:
		return fmt.Errorf("run %d of %d ended %q", end.Number, s.Runs, end.Lifecycle)
	case len(end.Code) > CodeBytesMax || end.Detail.Check() != nil:
		return fmt.Errorf("run %d ended with a code of %d bytes and the detail %q: %w", end.Number, len(end.Code), string(end.Detail), end.Detail.Check())
	case len(end.FinishReason) > NameBytesMax:
		return fmt.Errorf("run %d ended with a finish reason of %d bytes", end.Number, len(end.FinishReason))
	case end.OverBudget != nil && (end.OverBudget.Used < 0 || end.OverBudget.Limit < 0 || end.OverBudget.Budget == ""):
		return fmt.Errorf("run %d went over a budget by %+v", end.Number, *end.OverBudget)
	}
	return nil
}

// Turn is one generation and the batch of its calls. What the effect's bytes depend
// on is kept until it is settled. Until its generation is opened, only Number, Run,
// Registry and Step are set. Small fields are adjacent, so that idle sessions weigh
// less.
type Turn struct {
	At       int64               `msgpack:"at"` // the session's clock at the opening
	Batch    *Batch              `msgpack:"batch,omitempty"`
	Deadline int64               `msgpack:"deadline"`           // Unix ms
	Defined  *[]planner.Offer    `msgpack:"defined,omitempty"`  // in masked mode: the definitions that the model is shown, in order; for later turns, too
	Registry *spaces.RegistryPin `msgpack:"registry,omitempty"` // absent: the install record's
	RetryAt  int64               `msgpack:"retry_at,omitempty"` // Unix ms; 0: no attempt waits
	Settled  codec.Hash          `msgpack:"settled"`            // hash of its settlement; zero: none, or the session settled it
	Step     *TurnStep           `msgpack:"step,omitempty"`     // absent: neither a rule nor a hook applied
	Toolset  planner.Toolset     `msgpack:"toolset"`            // offered tools, and why others are not

	Items           int32  `msgpack:"items"` // length of the window
	Number          uint32 `msgpack:"number"`
	OutputTokensMax int32  `msgpack:"output_tokens_max,omitempty"` // limit from the budgets; 0: none
	Run             uint32 `msgpack:"run"`
	RunMS           int32  `msgpack:"run_ms"`
	Attempt         uint8  `msgpack:"attempt,omitempty"` // failed attempts before this one
	Shrunk          uint8  `msgpack:"shrunk,omitempty"`  // steps by which the window was made smaller because the model refused it
	Open            bool   `msgpack:"open"`              // its generation is not settled
	Results         bool   `msgpack:"results,omitempty"` // its registry has the tool that reads results
}

// wasOpened reports whether the latest turn's generation was opened: not while its step hook
// or a compaction before it is open, and never if the run failed because the hook did
// not answer.
func (s *State) wasOpened() bool {
	return s.Turn.RunMS > 0 && (!s.isCompacting() || s.Window.Compaction.Again)
}

// isOpen reports whether anything of the turn lacks a result.
func (t *Turn) isOpen() bool {
	if t.Open || t.Batch == nil {
		return t.Open
	}
	for i := range t.Batch.Calls {
		if !t.Batch.Calls[i].done() {
			return true
		}
	}
	return false
}

// turnInvariant checks that an active run waits for something, that nothing else waits,
// and that every deadline has a wake.
func (s *State) turnInvariant() error {
	t := s.Turn
	switch {
	case s.Run != nil && s.Run.Turns == 0:
		if t != nil && t.isOpen() {
			return fmt.Errorf("something of %s is open", turnName(t.Run, t.Number))
		}
		return s.wokenInvariant() // it was paused before its first turn
	case t == nil && s.Run == nil:
		return nil
	case t == nil || s.Run != nil && (t.Run != s.Run.Number || t.Number != s.Run.Turns):
		return fmt.Errorf("the active run has no turn")
	case t.RetryAt > 0 && (t.Open || t.Batch != nil || s.Run == nil):
		return fmt.Errorf("%s waits to be asked again beside something open", turnName(t.Run, t.Number))
	case t.OutputTokensMax < 0:
		return fmt.Errorf("%s may say %d tokens", turnName(t.Run, t.Number), t.OutputTokensMax)
	case t.At > s.Clock || t.Deadline < 0 || t.RunMS < 0:
		return fmt.Errorf("%s was opened at %d, it is %d", turnName(t.Run, t.Number), t.At, s.Clock)
	case t.Shrunk > shrinksMax:
		return fmt.Errorf("the window of %s shrank %d times", turnName(t.Run, t.Number), t.Shrunk)
	case s.Run != nil && int(s.Run.Fell) > int(t.Attempt)+1:
		return fmt.Errorf("%s fell back %d times in %d attempts", turnName(t.Run, t.Number), s.Run.Fell, t.Attempt+1)
	case t.Attempt >= AttemptsMax:
		return fmt.Errorf("%s is at attempt %d", turnName(t.Run, t.Number), t.Attempt+1)
	case t.Run == 0 || t.Number == 0 || t.Run > s.Runs:
		return fmt.Errorf("the latest turn is %s of %d runs", turnName(t.Run, t.Number), s.Runs)
	case t.Items < 0 || int(t.Items) > len(s.Items):
		return fmt.Errorf("the window of %s is %d of %d items", turnName(t.Run, t.Number), t.Items, len(s.Items))
	case t.Open && t.Batch != nil:
		return fmt.Errorf("%s is open beside its batch", turnName(t.Run, t.Number))
	case t.RunMS == 0 && (t.Open || t.Batch != nil):
		return fmt.Errorf("%s was not asked, and is open or was answered", turnName(t.Run, t.Number))
	}
	if t.Defined != nil {
		if err := offersInvariant(s.turnRegistry, *t.Defined); err != nil {
			return fmt.Errorf("the definitions of %s: %w", turnName(t.Run, t.Number), err)
		}
	}
	if t.Step != nil {
		if err := t.Step.invariant(s); err != nil {
			return fmt.Errorf("%s: %w", turnName(t.Run, t.Number), err)
		}
	}
	if t.RunMS == 0 {
		return s.wokenInvariant() // nothing was offered
	}
	if err := s.toolsetInvariant(&t.Toolset); err != nil {
		return err
	}
	if t.Batch != nil {
		if err := t.Batch.invariant(s); err != nil {
			return err
		}
	}
	return s.wokenInvariant()
}

// wokenInvariant checks that an active run waits for something, and that a wake is due
// by its deadline.
func (s *State) wokenInvariant() error {
	t := s.Turn
	deadline, any := s.nextDeadline()
	switch {
	case s.Run != nil && !any && s.Run.Lifecycle != WaitingInput && s.Run.Lifecycle != Paused:
		return fmt.Errorf("run %d is active and waits for nothing", s.Run.Number)
	case s.Run == nil && t.isOpen():
		return fmt.Errorf("something of %s is open without an active run", turnName(t.Run, t.Number))
	case !any, s.isWokenBy(deadline):
		return nil
	}
	return fmt.Errorf("nothing wakes the session by %d", deadline)
}

// toolsetInvariant checks that a toolset is one of the pinned registry.
func (s *State) toolsetInvariant(set *planner.Toolset) error {
	reg := s.turnRegistry
	if set.Registry != reg.Hash() || len(set.Verdicts) != 2*reg.Len() {
		return fmt.Errorf("the toolset is of registry %s, pinned is %s", set.Registry, reg.Hash())
	}
	switch planner.ProfileFrom(set.Source) {
	case "", planner.ProfileFromConfig, planner.ProfileFromSession, planner.ProfileFromProvider, planner.ProfileFromDefault:
	default:
		if set.IsFromProfile() {
			return fmt.Errorf("the toolset is from %s", sentence.Quoted(string(set.Source)))
		}
	}
	return offersInvariant(reg, set.Offers)
}

// offersInvariant checks that a registry has the tools that are offered or defined.
func offersInvariant(reg *planner.Registry, offers []planner.Offer) error {
	for _, o := range offers {
		if int(o.Tool()) >= reg.Len() || o.Variant() > len(reg.Tool(o.Tool()).Alternates) {
			return fmt.Errorf("tool %d, descriptor %d is offered of %d tools", o.Tool(), o.Variant(), reg.Len())
		}
	}
	return nil
}

// Batch is the calls of one turn.
type Batch struct {
	Calls    []Call       `msgpack:"calls"`  // at most CallsMax
	Excess   int          `msgpack:"excess"` // calls beyond CallsMax
	Group    int          `msgpack:"group"`  // the current group; len(Plan.Groups) when complete
	Plan     planner.Plan `msgpack:"plan"`
	PlanHash codec.Hash   `msgpack:"plan_hash"`
	Seq      uint64       `msgpack:"seq"` // of the ToolCallsObserved
}

func (b *Batch) invariant(s *State) error {
	switch {
	case len(b.Calls) == 0 || len(b.Calls) > CallsMax || len(b.Plan.Calls) != len(b.Calls):
		return fmt.Errorf("a batch of %d calls, %d are planned", len(b.Calls), len(b.Plan.Calls))
	case b.Excess < 0 || b.Excess > CallsSeenMax-CallsMax:
		return fmt.Errorf("a batch with %d calls in excess", b.Excess)
	case b.Seq == 0 || b.Seq > s.Seq:
		return fmt.Errorf("a batch of event %d, the latest is %d", b.Seq, s.Seq)
	case b.Group < 0 || b.Group > len(b.Plan.Groups):
		return fmt.Errorf("a batch in group %d of %d", b.Group, len(b.Plan.Groups))
	case b.PlanHash != b.Plan.Hash() || s.LastPlan != b.PlanHash:
		return fmt.Errorf("plan_hash is %s, the plan's is %s, the latest %s", b.PlanHash, b.Plan.Hash(), s.LastPlan)
	}
	group := make([]int, len(b.Calls)) // from 1; 0: in none
	for g, calls := range b.Plan.Groups {
		for _, i := range calls {
			if i < 0 || i >= len(b.Calls) || group[i] > 0 {
				return fmt.Errorf("the plan names call %d of %d, or names it twice", i, len(b.Calls))
			}
			group[i] = g + 1
		}
	}
	for i := range b.Calls {
		if err := b.Calls[i].invariant(s, group[i]-1); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// Call is one call of a batch. Its index identifies it; the provider's id is only
// data.
type Call struct {
	Approval       *Approval     `msgpack:"approval,omitempty"`  // while it waits for a person
	Child          *ChildCall    `msgpack:"child,omitempty"`     // of a run of another session, while it is open
	Arguments      string        `msgpack:"arguments,omitempty"` // until it has a result; then what the next step may read, until that begins
	At             int64         `msgpack:"at,omitempty"`        // the session's clock at the opening
	Code           string        `msgpack:"code,omitempty"`      // of a result that the session made
	Cut            bool          `msgpack:"cut,omitempty"`       // Arguments are cut, or in a blob
	Deadline       int64         `msgpack:"deadline,omitempty"`  // Unix ms, once it is open
	Detail         sentence.Text `msgpack:"detail,omitempty"`
	Edit           uint64        `msgpack:"edit,omitempty"` // of the ApprovalDecided that changed the arguments
	Host           *HostSession  `msgpack:"host,omitempty"` // at the opening
	Pack           *ReadPack     `msgpack:"pack,omitempty"` // of extensions_enable: what a person decides over, until it has a result
	ProviderCallID string        `msgpack:"provider_call_id,omitempty"`
	Result         codec.Hash    `msgpack:"result"` // hash of its status and output; zero: none, or the session made the result
	RunMS          int64         `msgpack:"run_ms,omitempty"`
	Seq            uint64        `msgpack:"seq,omitempty"` // of the event with its result
	Settled        codec.Hash    `msgpack:"settled"`       // hash of its settlement
	Status         CallStatus    `msgpack:"status"`
	Sync           uint32        `msgpack:"sync,omitempty"`    // the sync that reads for it, or runs it: extensions_enable
	Bytes          uint32        `msgpack:"bytes,omitempty"`   // what a model is shown of its result, in a session with a window
	ToolID         string        `msgpack:"tool_id,omitempty"` // empty: not in the registry
	ToolName       string        `msgpack:"tool_name"`
}

// CallStatus is the status of a call.
type CallStatus string

const (
	CallWaiting   CallStatus = "waiting" // its group has not begun
	CallAwaiting  CallStatus = "awaiting_approval"
	CallOpen      CallStatus = "open"      // opened, not settled
	CallSucceeded CallStatus = "succeeded" // by its settlement
	CallFailed    CallStatus = "failed"    // by its settlement, or refused arguments
	CallCancelled CallStatus = "cancelled" // by its settlement
	CallUnknown   CallStatus = "outcome_unknown"
	CallIgnored   CallStatus = "ignored" // refused before it was opened
)

// Approval is what a waiting call needs.
type Approval struct {
	ArgsHash codec.Hash `msgpack:"args_hash"` // SHA-256 of the arguments' text
	Deadline int64      `msgpack:"deadline"`  // Unix ms
}

// done reports whether the call has a result.
func (c *Call) done() bool {
	return c.Status != CallWaiting && c.Status != CallAwaiting && c.Status != CallOpen
}

// invariant checks one call; group is its group, -1 for none.
func (c *Call) invariant(s *State, group int) error {
	open := s.Turn.Batch.Group
	switch c.Status {
	case CallWaiting:
		if group < open || group == open && (s.Run == nil || s.Run.Lifecycle != Paused) {
			return fmt.Errorf("it waits in group %d, open is %d", group, open)
		}
	case CallAwaiting:
		if group < open || c.Approval == nil || s.Run == nil {
			return fmt.Errorf("it awaits approval in group %d, open is %d", group, open)
		}
	case CallOpen:
		if group != open || c.RunMS <= 0 || s.Run == nil {
			return fmt.Errorf("it is open in group %d, open is %d, for %d ms", group, open, c.RunMS)
		}
	case CallSucceeded, CallFailed, CallCancelled, CallUnknown, CallIgnored:
		if c.Arguments != "" && (len(c.Arguments) > planner.WhenArgumentsBytesMax || !s.mayKeepArguments()) || c.Host != nil || c.Approval != nil || c.Seq == 0 || c.Seq > s.Seq {
			return fmt.Errorf("its result is that of event %d, and it keeps arguments of %d bytes", c.Seq, len(c.Arguments))
		}
	default:
		return fmt.Errorf("its status is %q", c.Status)
	}
	if c.Cut && (!c.done() || !s.turnIsRuns() || s.Run.Config.StepHook == nil || len(c.Arguments) > StepArgumentBytesMax) {
		return fmt.Errorf("its arguments are cut to %d bytes", len(c.Arguments))
	}
	if c.Pack != nil && (c.done() || s.Spaces == nil) {
		return fmt.Errorf("it is %s, and a person is shown the pack %s", c.Status, c.Pack.Pin.Space)
	}
	if c.At > s.Clock || c.Deadline < 0 || c.Approval != nil && c.Approval.Deadline <= 0 {
		return fmt.Errorf("it was opened at %d, it is %d", c.At, s.Clock)
	}
	if c.Sync > 0 && (s.Spaces == nil || c.Sync > s.Spaces.SyncsAsked) || c.Pack != nil && len(c.Pack.Signer) > NameBytesMax {
		return fmt.Errorf("it waits for sync %d", c.Sync)
	}
	if c.Bytes != 0 && s.Window == nil {
		return fmt.Errorf("%d bytes of it are counted", c.Bytes)
	}
	if c.Edit > s.Seq || c.Approval != nil && c.Status != CallAwaiting {
		return fmt.Errorf("it is %s, edited by event %d of %d", c.Status, c.Edit, s.Seq)
	}
	if _, known := s.turnRegistry.Lookup(c.ToolID); !c.done() && (!known || c.Arguments == "") {
		return fmt.Errorf("it is of tool %q, with arguments of %d bytes", c.ToolID, len(c.Arguments))
	}
	if len(c.ToolName) > NameBytesMax || len(c.ProviderCallID) > ByBytesMax || len(c.Code) > CodeBytesMax || c.Detail.Check() != nil {
		return fmt.Errorf("a text of it is too long")
	}
	return nil
}

// mayKeepArguments reports whether calls of the latest turn may keep arguments
// for the next step.
func (s *State) mayKeepArguments() bool {
	if !s.turnIsRuns() {
		return false
	}
	c := &s.Run.Config
	return c.StepHook != nil || len(c.Steps) > 0 || c.Steps == nil && s.turnRegistry.AsksCalls()
}

// DoneBatch is what is stored of a completed batch: enough to check a repeated
// ToolBatchSettled. Its plan is LastPlan until a later batch is planned.
type DoneBatch struct {
	Results []codec.Hash `msgpack:"results"` // by call
	Run     uint32       `msgpack:"run"`
	Turn    uint32       `msgpack:"turn"`
}

// invariant checks the last completed batch. A later turn must not mistake its
// results for its own. If it is the latest turn's, it has as many calls as that.
func (d *DoneBatch) invariant(s *State) error {
	t := s.Turn
	latest := t != nil && d.Run == t.Run && d.Turn == t.Number
	switch {
	case d.Run == 0 || d.Turn == 0 || d.Run > s.Runs || len(d.Results) > CallsMax,
		t == nil, d.Run == t.Run && d.Turn > t.Number,
		s.Run != nil && d.Run == s.Run.Number && d.Turn > s.Run.Turns,
		slices.ContainsFunc(s.Queue, func(r Run) bool { return r.Number == d.Run }):
		return fmt.Errorf("%d results of %s are kept", len(d.Results), turnName(d.Run, d.Turn))
	case latest && (t.Batch == nil || t.isOpen() || len(d.Results) != len(t.Batch.Calls)):
		return fmt.Errorf("%d results of %s are kept, whose batch is another", len(d.Results), turnName(d.Run, d.Turn))
	}
	return nil
}
