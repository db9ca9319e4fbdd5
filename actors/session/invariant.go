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

// Check returns the first invariant that the state breaks. It is for tests, for
// snapshots from outside and for the inspector. A state that only Evolve changed
// breaks none. If none is broken, no event panics, nor do Open and View.
func (s *State) Check() error {
	if s.install == nil || s.install.Hash != s.Install || s.install.Rules != int(s.Rules) {
		return fmt.Errorf("the state pinned install record %s, rules %d, and was given another", s.Install, s.Rules)
	}
	if s.Session == "" || s.Count == 0 && (s.Seq > 0 || s.Runs > 0) {
		return fmt.Errorf("session %q is at %d after %d events", s.Session, s.Seq, s.Count)
	}
	for _, check := range []func() error{s.spacesInvariant, s.memoryInvariant, s.itemsInvariant, s.runsInvariant, s.wakesInvariant, s.turnInvariant} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// memoryInvariant checks what the session remembers besides its runs.
func (s *State) memoryInvariant() error {
	if len(s.IDs) > IDsMax || len(s.Facts) > FactsMax || len(s.Submissions) > SubmissionsMax {
		return fmt.Errorf("%d ids, %d facts, %d submissions are remembered", len(s.IDs), len(s.Facts), len(s.Submissions))
	}
	for _, id := range s.IDs {
		if id == "" || len(id) > IDBytesMax {
			return fmt.Errorf("an id of %d bytes is remembered", len(id))
		}
	}
	for i := range s.Submissions {
		if of := &s.Submissions[i]; of.Name == "" || len(of.Name) > IDBytesMax || of.Run == 0 || of.Run > s.Runs {
			return fmt.Errorf("a submission of %d bytes is remembered, of run %d of %d", len(of.Name), of.Run, s.Runs)
		}
		if i > 0 && s.Submissions[i-1].Name >= s.Submissions[i].Name {
			return fmt.Errorf("the submissions %q and %q are out of order", s.Submissions[i-1].Name, s.Submissions[i].Name)
		}
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
	if s.Closed && (s.Run != nil || len(s.Queue) > 0) {
		return errors.New("the session is closed and has a run")
	}
	if s.Profile != "" && !s.registry.HasProfile(s.Profile) {
		return fmt.Errorf("the registry has no profile %q", s.Profile)
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

// registriesInvariant checks that the registries in use are those that the state names.
func (s *State) registriesInvariant() error {
	bases := []struct {
		pin *spaces.RegistryPin
		has *planner.Registry
	}{{s.Registry, s.baseRegistry()}}
	if s.turnSpace() == nil { // else its toolset names the composed registry
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

func (u *UsageTotal) invariant() error {
	if u.CacheWriteTokens < 0 || u.CachedTokens < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.ReasoningTokens < 0 {
		return errors.New("a count is below 0")
	}
	return nil
}

func (s *State) itemsInvariant() error {
	if len(s.Items) > itemsHeldMax {
		return fmt.Errorf("the transcript holds %d items", len(s.Items))
	}
	size, call := 0, 0
	for i := range s.Items {
		it := &s.Items[i]
		if err := it.invariant(s, call); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		size += it.encodedBytesMax()
		switch it.Role {
		case RoleAssistant:
			call = 0
		case RoleTool:
			call++
		case RoleUser:
		}
	}
	if size != int(s.ItemBytes) {
		return fmt.Errorf("item_bytes is %d, the items add up to %d", s.ItemBytes, size)
	}
	return nil
}

// invariant checks one item; call is the position of the next result.
func (it *Item) invariant(s *State, call int) error {
	switch {
	case it.Role != RoleUser && it.Role != RoleAssistant && it.Role != RoleTool:
		return fmt.Errorf("it is of role %q", it.Role)
	case it.Seq == 0 || it.Seq > s.Seq:
		return fmt.Errorf("it is of event %d, the latest is %d", it.Seq, s.Seq)
	case it.Role == RoleTool && it.Call != call, it.Role != RoleTool && it.Call != 0:
		return fmt.Errorf("it is of call %d, and follows %d results", it.Call, call)
	case it.Edit > s.Seq || len(it.Code) > CodeBytesMax || it.Detail.Check() != nil:
		return fmt.Errorf("it is of edit %d, with a code of %d bytes and the detail %q: %w", it.Edit, len(it.Code), string(it.Detail), it.Detail.Check())
	}
	return nil
}

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

func (c *SessionConfig) invariant(s *State) error {
	st := s.stack()
	of := SessionConfigured{RunConfig: c.Run, QueueMax: c.QueueMax}
	if bad := cmp.Or(of.limits(), s.configFault(&st, &c.Run, c.Workspace, false)); bad != nil {
		return fmt.Errorf("the session's config: %s: %s", bad.code, bad.detail)
	}
	return nil
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

func (r *Run) invariant(s *State, queued bool) error {
	if r.Number == 0 || r.Number > s.Runs || r.Seq == 0 || r.Seq > s.Seq {
		return fmt.Errorf("it is one of %d, and of event %d", s.Runs, r.Seq)
	}
	if r.Asked != nil && r.Operators {
		if bad := listsFault(s.registry, "", r.Asked.lists()); bad != nil {
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
	if !r.skillsInvariant(queued) {
		return fmt.Errorf("its active skills are %v", r.Skills)
	}
	return r.stepsInvariant()
}

// invariant checks one call of an earlier turn.
func (c *StepCall) invariant(s *State, r *Run) error {
	switch {
	case c.Step < 0 || int64(c.Step) > int64(r.Turns) || c.Seq > s.Seq || c.CallsSeq > s.Seq || c.Edit > s.Seq:
		return fmt.Errorf("it is of step %d of %d, of events %d, %d and %d", c.Step, r.Turns, c.CallsSeq, c.Seq, c.Edit)
	case len(c.Code) > CodeBytesMax || len(c.ToolID) > planner.ToolIDBytesMax || len(c.ToolName) > NameBytesMax || len(c.Effect) > NameBytesMax || len(c.Status) > CodeBytesMax:
		return errors.New("a text of it is too long")
	}
	return nil
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
	case t.Attempt >= AttemptsMax:
		return fmt.Errorf("%s is at attempt %d", turnName(t.Run, t.Number), t.Attempt+1)
	case t.Run == 0 || t.Number == 0 || t.Run > s.Runs:
		return fmt.Errorf("the latest turn is %s of %d runs", turnName(t.Run, t.Number), s.Runs)
	case t.Items < 0 || int(t.Items) > len(s.Items):
		return fmt.Errorf("the window of %s is %d of %d items", turnName(t.Run, t.Number), t.Items, len(s.Items))
	case t.Open && t.Batch != nil:
		return fmt.Errorf("%s is open beside its batch", turnName(t.Run, t.Number))
	case !t.wasOpened() && (t.Open || t.Batch != nil):
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
	if !t.wasOpened() {
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

// isEnd reports whether a run in this lifecycle has ended.
func (l Lifecycle) isEnd() bool {
	return l == Completed || l == Failed || l == Cancelled || l == Interrupted
}

// isInput reports whether one input can show a model this many bytes.
func isInput(bytes int64) bool { return bytes >= 0 && bytes <= inputBytesMax }

func (r *Run) lifecycleInvariant(queued bool, seq uint64) error {
	switch {
	case queued && (r.Lifecycle != "" || r.Turns > 0 || r.Held != "" || r.Before != "" || r.Breach):
		return fmt.Errorf("it is queued and %q after %d turns", r.Lifecycle, r.Turns)
	case queued:
	case r.Lifecycle == Paused:
		if r.Before != Running && r.Before != WaitingInput {
			return fmt.Errorf("it is paused and goes back to %q", r.Before)
		}
	case r.Lifecycle != Running && r.Lifecycle != WaitingInput && r.Lifecycle != Interrupting:
		return fmt.Errorf("it is active and %q", r.Lifecycle)
	case r.Before != "" || r.Held != "" || r.Breach:
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
	if len(r.Finish) > NameBytesMax || queued && r.Finish != "" {
		return fmt.Errorf("its answer ended by %q", sentence.Clip(r.Finish, CodeBytesMax))
	}
	for _, steer := range r.Steers {
		if steer.Seq == 0 || steer.Seq > seq || !isInput(steer.Bytes) {
			return fmt.Errorf("a steer is of event %d, the latest is %d, and of %d bytes", steer.Seq, seq, steer.Bytes)
		}
	}
	return nil
}

func (s *State) wakesInvariant() error {
	if len(s.Wakes) > WakesMax {
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

// invariant checks the record of who decided about the latest turn.
func (step *TurnStep) invariant(s *State) error {
	if len(step.Code) > CodeBytesMax || step.Detail.Check() != nil || len(step.Failed) > planner.StepRulesMax ||
		len(step.Last) > CallsMax || len(step.Calls) > CallsMax || len(step.Facts) > FactsMax {
		return fmt.Errorf("its step keeps too much")
	}
	if step.At > s.Clock || step.Deadline < 0 {
		return fmt.Errorf("its step began at %d, it is %d", step.At, s.Clock)
	}
	for i := range step.Calls {
		if len(step.Calls[i].Arguments) > planner.WhenArgumentsBytesMax {
			return fmt.Errorf("its step keeps arguments of %d bytes", len(step.Calls[i].Arguments))
		}
	}
	for i, tool := range step.Tools {
		if tool < 0 || int(tool) >= s.turnRegistry.Len() || i > 0 && tool <= step.Tools[i-1] {
			return fmt.Errorf("its hook is shown tool %d of %d", tool, s.turnRegistry.Len())
		}
	}
	if step.Open && (s.Run == nil || s.Run.Config.StepHook == nil || s.Turn.Open || s.Turn.Batch != nil || step.RunMS <= 0) {
		return fmt.Errorf("its step is open, and no hook is asked")
	}
	rules := 0
	switch step.From {
	case "":
		return nil
	case StepFromRun:
		if s.Run == nil {
			return nil // the rules went with the run
		}
		rules = len(s.Run.Config.Steps)
	case StepFromProfile:
		rules = s.turnRegistry.ProfileSteps(step.Profile).Len()
	case StepFromHook:
		if step.Prepared == nil {
			return fmt.Errorf("its hook said nothing")
		}
		if err := planner.CheckStep(s.turnRegistry, "", step.Prepared); err != nil {
			return fmt.Errorf("its hook said %s", err)
		}
		return nil
	}
	if step.Rule < 0 || step.Rule >= rules {
		return fmt.Errorf("rule %d of %d from %q applies", step.Rule, rules, step.From)
	}
	return nil
}
