package session

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Source resolves what a state refers to by hash. The caller shares registries
// between sessions: a registry is 20 KB, and there may be a million sessions.
type Source interface {
	// Install returns the parsed install record with a hash.
	Install(hash codec.Hash) (*Install, error)
	// Registry returns the registry with a hash that the ToolRegistrySet at seq
	// set: see ParseRegistrySet.
	Registry(seq uint64, hash codec.Hash) (*planner.Registry, error)
	// Space returns the manifest with a hash that is in the WorkspaceSnapshotReady
	// at seq: see ParseSnapshotReady.
	Space(seq uint64, hash codec.Hash) (*space.Manifest, error)
}

// ParseRegistrySet returns the registry in a ToolRegistrySet or a ChildRequested. It has the hash that
// the fold gave it when it accepted the event.
func ParseRegistrySet(e Event) (*planner.Registry, error) {
	env, bad := open(e)
	data := env.Data
	switch {
	case bad != nil:
	case env.Type == TypeChildRequested:
		data, _ = fieldOf(env.Data, "registry")
	case env.Type != TypeToolRegistrySet:
		bad = refuse(RejectInvalidData, "is a "+sentence.Quoted(env.Type))
	}
	var registry *planner.Registry
	if bad == nil {
		_, registry, bad = registryOf(data)
	}
	if bad != nil {
		return nil, fmt.Errorf("event %d: no registry: %s: %s", e.Seq, bad.code, bad.detail)
	}
	return registry, nil
}

// registryOf decodes and validates a whole registry.
func registryOf(data codec.Raw) (set ToolRegistrySet, registry *planner.Registry, bad *refusal) {
	if bad := profileRulesFault(data); bad != nil {
		return set, nil, refuse(RejectInvalidRegistry, bad.detail)
	}
	if bad := decodeBody(data, &set); bad != nil {
		return set, nil, bad
	}
	if i := slices.IndexFunc(set.Tools, func(t planner.ToolSpec) bool { return isSessionTool(t.ToolID) }); i >= 0 {
		return set, nil, refuse(RejectInvalidRegistry, "tools["+strconv.Itoa(i)+"].tool_id: "+reservedID)
	}
	registry, err := planner.Defaults(set).Registry()
	if err != nil {
		return set, nil, refuse(RejectInvalidRegistry, err.Error())
	}
	for i := range set.Tools {
		if fault := cmp.Or(toolFault(&set.Tools[i]), agentFault(registry, &set.Tools[i])); fault != "" {
			return set, nil, refuse(RejectInvalidRegistry, "tools["+strconv.Itoa(i)+"]."+fault)
		}
	}
	return set, registry, nil
}

// toolRegistrySet replaces the session's registry. An open batch keeps the registry
// of its turn.
func (s *State) toolRegistrySet(data codec.Raw) *refusal {
	set, registry, bad := registryOf(data)
	if bad != nil {
		return bad
	}
	if err := s.install.floor.Check(registry, set.Tools); err != nil {
		return refuse(RejectRegistryLoosens, err.Error())
	}
	pin := &spaces.RegistryPin{Hash: registry.Hash(), Seq: s.Seq}
	if registry.Hash() == s.install.Registry.Hash() {
		registry, pin = s.install.Registry, nil
	}
	x := s.spaces()
	st, misfit := x.Rebase(registry)
	if misfit != "" {
		return refuse(RejectInvalidRegistry, misfit)
	}
	if bad := s.orphanFault(&st); bad != nil {
		return refuse(RejectInvalidRegistry, bad.detail)
	}
	s.Registry = pin
	if s.Spaces != nil {
		x.Recompose(&st)
		return nil
	}
	s.registry, s.toolsMoved = st.Registry, true
	s.doubtClients()
	return nil
}

// orphanFault returns a refusal if something that an operator said names a part
// that a stack does not have.
func (s *State) orphanFault(st *spaces.Stack) *refusal {
	registry := st.Registry
	if own := s.profile(); own != "" && !registry.HasProfile(own) {
		return refuse(RejectUnknownProfile, "the session's profile "+sentence.Quoted(own)+" is not in it")
	}
	if o := s.Overrides; o != nil {
		if bad := listsFault(registry, "the session's overrides: ", o.lists()); bad != nil {
			return bad
		}
	}
	switch record := s.install.Record.Config; {
	case s.Config != nil:
		if bad := s.configFault(st, &s.Config.Run, s.Config.Workspace, false); bad != nil {
			return refuse(bad.code, "the session's "+bad.detail)
		}
	case record != nil && !record.isOwn():
		if bad := namesFault(st, record); bad != nil {
			return refuse(bad.code, "the install record's "+bad.detail)
		}
	}
	for _, run := range s.runs() {
		var bad *refusal
		if run.Doubt || !run.Operators { // it fails by itself, if it must: see doubtFault
			bad = listsFault(s.registryFor(st, run), "config.", run.overridden())
		} else {
			bad = s.configFault(st, &run.Config, run.Workspace, true)
			if bad == nil && run.Asked != nil {
				bad = listsFault(s.registryFor(st, run), "config.", run.Asked.lists())
			}
		}
		if bad != nil {
			return refuse(bad.code, "run "+strconv.FormatUint(uint64(run.Number), 10)+": "+bad.detail)
		}
	}
	return nil
}

// TurnRegistry returns the registry of the latest turn's offers.
func (s *State) TurnRegistry() *planner.Registry { return s.turnRegistry }

// NextRegistry returns the registry of the next turn's offers.
func (s *State) NextRegistry() *planner.Registry {
	st := s.runStack()
	return st.Registry
}

// ShareRegistries replaces the registries in the state with equal ones from same,
// so that many sessions share one. same must return a registry of the same hash.
// Nothing else changes.
func (s *State) ShareRegistries(same func(*planner.Registry) *planner.Registry) {
	held := []**planner.Registry{&s.registry, &s.turnRegistry}
	if s.Spaces != nil {
		s.Spaces.EachRegistry(func(r **planner.Registry) { held = append(held, r) })
	}
	for _, r := range held {
		if *r != s.install.Registry && *r != s.install.Composed() && *r != s.install.Offered() {
			*r = same(*r)
		}
	}
}

func (s *State) pinned() *spaces.RegistryPin {
	if s.Registry == nil {
		return nil
	}
	pin := *s.Registry
	return &pin
}

// toolProfileSelected selects the session's profile, from the next turn on.
func (s *State) toolProfileSelected(b *ToolProfileSelected) *refusal {
	if !s.registry.HasProfile(b.Profile) {
		return refuse(RejectUnknownProfile, "profile: the registry has no profile "+sentence.Quoted(b.Profile))
	}
	s.Profile, s.toolsMoved = &b.Profile, true
	return nil
}

// toolOverridesSet changes the lists of the session or of the active run.
func (s *State) toolOverridesSet(b *ToolOverridesSet) *refusal {
	given, registry := &Overrides{Disable: listOf(b.Disable), Enable: listOf(b.Enable), Force: listOf(b.Force)}, s.registry
	if b.Scope == ScopeRun && s.Run != nil {
		st := s.stack()
		registry = s.registryFor(&st, s.Run)
	}
	if bad := listsFault(registry, "", given.lists()); bad != nil {
		return bad
	}
	switch {
	case b.Scope == ScopeRun && s.Run == nil:
		return refuse(RejectRunNotActive, "scope run: no run is active")
	case b.Scope == ScopeRun:
		c := &s.Run.Config
		if s.Run.Asked == nil {
			s.Run.Asked = &Overrides{Disable: c.Disable, Enable: c.Enable, Force: c.Force}
		}
		setLists(b, &c.Disable, &c.Enable, &c.Force)
	case b.Scope == ScopeSession:
		o := s.sessionLists()
		setLists(b, &o.Disable, &o.Enable, &o.Force)
		s.setOperators(OperatorsSet{Overrides: o, Schedules: s.schedules()})
	}
	s.toolsMoved = true
	return nil
}

// setLists replaces the lists that b gives. Lists are never written to: a run's may
// be those of the session's config.
func setLists(b *ToolOverridesSet, disable, enable, force *[]string) {
	for _, l := range []struct {
		given *[]string
		to    *[]string
	}{{b.Disable, disable}, {b.Enable, enable}, {b.Force, force}} {
		if l.given == nil {
			continue
		}
		*l.to = slices.Clip(*l.given)
		if len(*l.given) == 0 {
			*l.to = nil
		}
	}
}

// listOf returns the list that p points to, nil if it points to none.
func listOf[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return *p
}

// overridden returns the lists of a run that ToolOverridesSet has set.
func (r *Run) overridden() (set []list) {
	if r.Asked == nil {
		return nil
	}
	now := Overrides{Disable: r.Config.Disable, Enable: r.Config.Enable, Force: r.Config.Force}
	asked := r.Asked.lists()
	for i, l := range now.lists() {
		if !slices.Equal(l.names, asked[i].names) {
			set = append(set, l)
		}
	}
	return set
}

// list is a list of tools with the name of its field.
type list struct {
	field string
	names []string
}

func (o *Overrides) lists() []list {
	return []list{{"disable", o.Disable}, {"enable", o.Enable}, {"force", o.Force}}
}

// listsFault refuses lists with a name that the registry doesn't have, or with two
// names of one tool.
func listsFault(reg *planner.Registry, path string, lists []list) *refusal {
	for _, l := range lists {
		var before []planner.ToolIndex
		for i, name := range l.names {
			tool, ok := reg.Lookup(name)
			if !ok {
				return refuse(RejectUnknownTool, path+l.field+"["+strconv.Itoa(i)+"]: the registry has no tool "+sentence.Quoted(name))
			}
			if first := slices.Index(before, tool); first >= 0 {
				return refuse(RejectInvalidData, path+l.field+"["+strconv.Itoa(i)+"]: "+sentence.Quoted(name)+" is the tool of "+
					l.field+"["+strconv.Itoa(first)+"]: name each tool once")
			}
			before = append(before, tool)
		}
	}
	return nil
}

// isMasked reports whether the active run shows the same definitions in all its
// turns.
func (s *State) isMasked() bool { return s.Run.Config.ToolsMode == ToolsMasked }

// keptDefinitions returns the definitions that the active run's next turn keeps:
// none in its first turn, and none under another registry.
func (s *State) keptDefinitions(next *planner.Registry) *[]planner.Offer {
	if s.turnIsRuns() && s.isMasked() && s.turnRegistry.Hash() == next.Hash() {
		return s.Turn.Defined
	}
	return nil
}

// shown returns the definitions that the latest turn shows the model if it offers
// set. In masked mode these are the previous turn's, plus those that are only in
// set.
func (s *State) shown(set *planner.Toolset) []planner.Offer {
	if !s.isMasked() {
		return set.Offers
	}
	defined := s.Turn.defined()
	if len(defined) == 0 {
		defined = planner.Define(s.turnRegistry, s.runsToolRequest(), s.offerFacts())
	}
	return set.Redefine(defined)
}

// defined returns the definitions that the turn shows; nil unless masked.
func (t *Turn) defined() []planner.Offer { return listOf(t.Defined) }

// definitions returns the descriptors that the latest turn's generation defines,
// nil if they are those of the offered tools.
func (s *State) definitions(t *Turn) []codec.Hash {
	defined := t.defined()
	if len(defined) == 0 || slices.Equal(defined, t.Toolset.Offers) {
		return nil
	}
	return s.refs(defined)
}

// masks reports whether the turn shows the model a tool that it may not call.
func (t *Turn) masks(tool planner.ToolIndex) bool {
	return t.Toolset.Verdict(tool).Reason != planner.Offered &&
		slices.ContainsFunc(t.defined(), func(o planner.Offer) bool { return o.Tool() == tool })
}

const reservedID = "refold.* is kept for the session's own tools: choose another"

// isSessionTool reports whether a tool_id is reserved for the session's own tools.
func isSessionTool(id string) bool { return strings.HasPrefix(id, spaces.OwnLayer+".") }

// sessionToolsJSON is the session's own tools, in the form of an install record.
//
//go:embed sessiontools.json
var sessionToolsJSON []byte

// The layers of the session's own tools, decoded once, when the program starts: that of
// sessions with a grant, and that of runs with a context.
var sessionLayer, resultLayer = readSessionTools()

func readSessionTools() (ofSession, ofResults planner.Layer) {
	raw, err := codec.FromJSON(sessionToolsJSON)
	var specs, results []planner.ToolSpec
	if err == nil {
		err = codec.Unmarshal(raw, &specs)
	}
	if err != nil {
		panic(fmt.Sprintf("session: sessiontools.json: %v", err))
	}
	specs = slices.DeleteFunc(specs, func(t planner.ToolSpec) bool {
		isResult := strings.HasPrefix(t.ToolID, resultToolsLayer+".")
		if isResult {
			results = append(results, t)
		}
		return isResult
	})
	return layerOf(spaces.OwnLayer, specs), layerOf(resultToolsLayer, results)
}

// layerOf compiles tools of sessiontools.json.
func layerOf(name string, specs []planner.ToolSpec) planner.Layer {
	tools, bad := planner.SessionTools(specs)
	if bad != nil {
		panic("session: sessiontools.json: " + bad.Error())
	}
	return planner.Layer{Name: name, Tools: tools}
}

// factsFault refuses facts by their names and values.
func factsFault(facts codec.Pairs) *refusal {
	for _, pair := range facts {
		var value *string
		switch err := codec.Decode(pair.Value, &value); {
		case err != nil:
			return refuse(RejectInvalidData, "facts: "+sentence.Quoted(pair.Key)+" must be text or null")
		case pair.Key == "" || len(pair.Key) > FactNameBytesMax:
			return refuse(RejectInvalidData, "facts: a name is 1 to "+strconv.Itoa(FactNameBytesMax)+" bytes")
		case value != nil && len(*value) > FactValueBytesMax:
			return refuse(RejectLimitExceeded, "facts: "+sentence.Quoted(pair.Key)+" has at most "+strconv.Itoa(FactValueBytesMax)+" bytes")
		}
	}
	return nil
}

// factsSet sets and removes facts, all of them or none.
func (s *State) factsSet(b *FactsSet) *refusal {
	facts := slices.Clone(s.Facts)
	if bad := factsFault(b.Facts); bad != nil {
		return bad
	}
	for _, pair := range b.Facts {
		var value *string
		_ = codec.Decode(pair.Value, &value) // it was checked
		at, found := slices.BinarySearchFunc(facts, pair.Key, func(f planner.Fact, name string) int {
			return strings.Compare(f.Name, name)
		})
		switch {
		case value == nil && found:
			facts = slices.Delete(facts, at, at+1)
		case value != nil && found:
			facts[at].Value = *value
		case value != nil:
			facts = slices.Insert(facts, at, planner.Fact{Name: pair.Key, Value: *value})
		}
	}
	if len(facts) > FactsMax {
		return refuse(RejectLimitExceeded, "facts: a session has at most "+strconv.Itoa(FactsMax))
	}
	s.Facts, s.toolsMoved = facts, true
	return nil
}
