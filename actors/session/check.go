package session

import (
	"fmt"

	"github.com/refold/refold/planner"
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
	for _, check := range []func() error{s.checkSpaces, s.checkMemory, s.checkItems, s.checkRuns, s.checkWakes, s.checkTurn} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkMemory checks what the session remembers besides its runs.
func (s *State) checkMemory() error {
	if len(s.IDs) > IDsMax || len(s.Facts) > FactsMax || len(s.Submissions) > SubmissionsMax {
		return fmt.Errorf("%d ids, %d facts, %d submissions are remembered", len(s.IDs), len(s.Facts), len(s.Submissions))
	}
	for _, id := range s.IDs {
		if id == "" || len(id) > IDBytesMax {
			return fmt.Errorf("an id of %d bytes is remembered", len(id))
		}
	}
	for i := range s.Submissions {
		if n := len(s.Submissions[i].Name); n == 0 || n > IDBytesMax {
			return fmt.Errorf("a submission of %d bytes is remembered", n)
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
		if bad := hostFault(s.Host); bad != nil || s.Host.Status == "none" {
			return fmt.Errorf("the host session is %+v", *s.Host)
		}
	}
	if s.Profile != "" && !s.registry.HasProfile(s.Profile) {
		return fmt.Errorf("the registry has no profile %q", s.Profile)
	}
	if o := s.Overrides; o != nil {
		if bad := listsFault(s.registry, "", o.lists()); bad != nil {
			return fmt.Errorf("the session's overrides: %s", bad.detail)
		}
	}
	if err := s.checkDone(); err != nil {
		return err
	}
	return s.checkRegistries()
}

// checkRegistries checks that the registries in use are those that the state names.
func (s *State) checkRegistries() error {
	bases := []struct {
		pin *RegistryPin
		has *planner.Registry
	}{{s.Registry, s.baseRegistry()}}
	if s.turnSpace() == nil { // else its toolset names the composed registry
		bases = append(bases, bases[0])
		bases[1].pin, bases[1].has = s.turnsPin(), s.turnRegistry
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

// turnsPin names the registry of the latest turn.
func (s *State) turnsPin() *RegistryPin {
	if s.Turn == nil {
		return nil
	}
	return s.Turn.Registry
}

func (s *State) checkItems() error {
	if len(s.Items) > itemsHeldMax {
		return fmt.Errorf("the transcript holds %d items", len(s.Items))
	}
	size, call := 0, 0
	for i := range s.Items {
		it := &s.Items[i]
		size += it.encodedBytesMax()
		switch {
		case it.Role != RoleUser && it.Role != RoleAssistant && it.Role != RoleTool:
			return fmt.Errorf("item %d is of role %q", i, it.Role)
		case it.Seq == 0 || it.Seq > s.Seq:
			return fmt.Errorf("item %d is of event %d, the latest is %d", i, it.Seq, s.Seq)
		case it.Role == RoleTool && it.Call != call, it.Role != RoleTool && it.Call != 0:
			return fmt.Errorf("item %d is of call %d, it follows %d results", i, it.Call, call)
		case it.Edit > s.Seq || len(it.Code) > CodeBytesMax || len(it.Detail) > DetailBytesMax:
			return fmt.Errorf("item %d is of edit %d, with a code of %d and a detail of %d bytes", i, it.Edit, len(it.Code), len(it.Detail))
		}
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

func (s *State) checkRuns() error {
	if s.Config != nil {
		st := s.stack()
		bad := s.configFault(&st, &s.Config.Run, s.Config.Workspace, false)
		if bad == nil {
			bad = queueMaxFault(s.Config.QueueMax)
		}
		if bad != nil {
			return fmt.Errorf("the session's config: %s: %s", bad.code, bad.detail)
		}
	}
	if len(s.Queue) > queueHeldMax || s.Run == nil && len(s.Queue) > 0 {
		return fmt.Errorf("%d runs are queued, active is %v", len(s.Queue), s.Run != nil)
	}
	if end := s.Last; end != nil {
		switch {
		case !end.Lifecycle.isEnd(), end.Number == 0 || end.Number > s.Runs:
			return fmt.Errorf("run %d of %d ended %q", end.Number, s.Runs, end.Lifecycle)
		case len(end.Code) > CodeBytesMax || len(end.Detail) > DetailBytesMax:
			return fmt.Errorf("run %d ended with a code of %d and a detail of %d bytes", end.Number, len(end.Code), len(end.Detail))
		}
	}
	if s.Run == nil {
		return nil
	}
	for i, r := range s.runs() {
		if r.Number == 0 || r.Number > s.Runs || r.Seq == 0 || r.Seq > s.Seq {
			return fmt.Errorf("run %d of %d is of event %d", r.Number, s.Runs, r.Seq)
		}
		if i >= 0 && r.Number == s.Run.Number {
			return fmt.Errorf("run %d is active and queued", r.Number)
		}
		for j := range s.Queue[:max(0, i)] {
			if s.Queue[j].Number == r.Number {
				return fmt.Errorf("run %d is queued twice", r.Number)
			}
		}
		if r.Asked != nil && r.Operators {
			if bad := listsFault(s.registry, "", r.Asked.lists()); bad != nil {
				return fmt.Errorf("run %d, as requested: %s", r.Number, bad.detail)
			}
		}
		if err := r.checkLifecycle(i >= 0, s.Seq); err != nil {
			return fmt.Errorf("run %d: %w", r.Number, err)
		}
		if bad := s.runConfigFault(r); bad != nil {
			return fmt.Errorf("run %d: %s: %s", r.Number, bad.code, bad.detail)
		}
		if !r.checkSkills(i >= 0) {
			return fmt.Errorf("run %d: its active skills are %v", r.Number, r.Skills)
		}
		if err := r.checkSteps(); err != nil {
			return fmt.Errorf("run %d: %w", r.Number, err)
		}
	}
	return nil
}

// checkTurn checks that an active run waits for something, that nothing else waits,
// and that every deadline has a wake.
func (s *State) checkTurn() error {
	t := s.Turn
	switch {
	case s.Run != nil && s.Run.Turns == 0:
		if t != nil && t.isOpen() {
			return fmt.Errorf("something of %s is open", turnName(t.Run, t.Number))
		}
		return s.checkWoken() // it was paused before its first turn
	case t == nil && s.Run == nil:
		return nil
	case t == nil || s.Run != nil && (t.Run != s.Run.Number || t.Number != s.Run.Turns):
		return fmt.Errorf("the active run has no turn")
	case t.RetryAt > 0 && (t.Open || t.Batch != nil || s.Run == nil):
		return fmt.Errorf("%s waits to be asked again beside something open", turnName(t.Run, t.Number))
	case t.OutputTokensMax < 0:
		return fmt.Errorf("%s may say %d tokens", turnName(t.Run, t.Number), t.OutputTokensMax)
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
	if err := checkOffers(s.turnRegistry, t.defined()); err != nil {
		return fmt.Errorf("the definitions of %s: %w", turnName(t.Run, t.Number), err)
	}
	if err := s.checkStep(); err != nil {
		return fmt.Errorf("%s: %w", turnName(t.Run, t.Number), err)
	}
	if !t.wasOpened() {
		return s.checkWoken() // nothing was offered
	}
	if err := s.checkToolset(&t.Toolset); err != nil {
		return err
	}
	if err := s.checkBatch(); err != nil {
		return err
	}
	return s.checkWoken()
}

// checkWoken checks that an active run waits for something, and that a wake is due
// by its deadline.
func (s *State) checkWoken() error {
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
