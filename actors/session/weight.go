package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

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
	doneWeight       = 32
	stepCallWeight   = 144
	lastCallWeight   = 64
	spacesWeight     = 208 + 64 // with its content
	pinWeight        = 192
	stageWeight      = 216
	namesWeight      = 48 // of a pin: its RegistryPin
	grantWeight      = 248
	syncWeight       = 272
	knownWeight      = 40
	doneSyncWeight   = 36
	heldWeight       = 40
	ownWeight        = 40
	turnSpaceWeight  = 192
	partWeight       = 88
	usedGrantWeight  = 112
	pairWeight       = 40
	stringWeight     = 16
	roomWeight       = 8 // overhead of the heap for a short text
)

// Weight returns about how many bytes of memory the state takes, without what
// sessions share: the install record, its manifests, and all registries. Its cost
// does not grow with a session's length nor with a manifest's, so it may be called
// after every event. It is accurate within a half; text that a config or a pin
// shares with another counts in each, and patterns of a pack count up to twice.
func (s *State) Weight() int {
	n := stateWeight + weightOf(s.Session) + weightOf(s.Profile)
	n += cap(s.Items)*itemWeight + max(0, int(s.ItemBytes)-len(s.Items)*itemFixedBytesMax)
	n += weightOfList(s.IDs) + cap(s.Wakes)*wakeWeight + cap(s.Facts)*factWeight
	for i := range s.Facts {
		n += weightOf(s.Facts[i].Name) + weightOf(s.Facts[i].Value)
	}
	if n += cap(s.Submissions) * submissionWeight; len(s.Submissions) > 0 {
		n += len(s.Submissions) * weightOf(s.Submissions[0].Name) // they are mostly alike
	}
	n += s.Host.weight() + s.Overrides.weight() + s.Turn.weight()
	if s.Spaces != nil {
		n += s.Spaces.weight(s.install)
		s.eachPin(func(p *SpacePin) { n += p.weight() })
	}
	if s.Config != nil {
		n += s.Config.Run.weight(s.install)
	}
	if s.Done != nil {
		n += doneWeight + cap(s.Done.Results)*len(codec.Hash{})
	}
	if s.Last != nil {
		n += endedWeight + weightOf(s.Last.Detail) + weightOf(s.Last.FinishReason)
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

// weightOf returns the memory of a text without its header.
func weightOf[T ~string | ~[]byte](text T) int {
	if len(text) == 0 {
		return 0
	}
	return len(text) + roomWeight
}

func weightOfList(list []string) (n int) {
	for _, text := range list {
		n += weightOf(text)
	}
	return n + cap(list)*stringWeight
}

func (h *HostSession) weight() int {
	if h == nil {
		return 0
	}
	return hostWeight + weightOf(h.ID) + weightOf(h.Root) + weightOf(h.Route)
}

func (o *Overrides) weight() int {
	if o == nil {
		return 0
	}
	return 3*stringWeight + weightOfList(o.Disable) + weightOfList(o.Enable) + weightOfList(o.Force)
}

// weight returns the memory of a run without the Run itself.
func (r *Run) weight(install *Install) int {
	n := r.Config.weight(install) - configWeight + weightOfList(listOf(r.Only))
	n += r.Asked.weight() + weightOf(r.Context) + weightOfList(r.Joined) + weightOfList(r.Roles) + weightOf(r.Submission) + weightOf(r.Finish) + weightOfList(r.Used)
	for _, active := range r.Skills {
		n += 2*stringWeight + weightOf(active.Name) + weightOf(active.Space)
	}
	n += cap(r.Steers)*steerWeight + cap(r.Calls)*stepCallWeight
	for i := range r.Calls {
		n += weightOf(r.Calls[i].ToolName) + weightOf(r.Calls[i].Effect) + weightOf(r.Calls[i].Arguments)
	}
	return n
}

func (c *RunConfig) weight(install *Install) int {
	n := configWeight + weightOf(c.Model) + weightOf(c.Params) + weightOf(c.Provider) + weightOf(c.ResponseFormat)
	if shared := install.Record.Config; shared == nil || c.System != shared.System {
		n += weightOf(c.System)
	}
	n += weightOfList(c.Disable) + weightOfList(c.Enable) + weightOfList(c.Force) + weightOfList(c.Skills)
	n += weightOfList(listOf(c.ActiveTools)) + (cap(listOf(c.PromptRefs))+cap(listOf(c.ToolRefs)))*len(codec.Hash{})
	for i := range c.Steps {
		n += weightOfRule(&c.Steps[i])
	}
	if c.Prices != nil {
		n += cap(c.Prices.Models) * modelPriceWeight
	}
	return n
}

func weightOfRule(r *planner.StepRule) int {
	return ruleWeight + weightOf(r.Context) + weightOf(r.Params) + weightOf(r.System) + weightOf(r.When) + weightOfList(listOf(r.ActiveTools))
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
			n += weightOf(t.Step.Calls[i].Arguments)
		}
		if t.Step.Prepared != nil {
			n += weightOfRule(t.Step.Prepared)
		}
	}
	if b := t.Batch; b != nil {
		n += batchWeight + cap(b.Calls)*callWeight + cap(b.Plan.Calls)*planCallWeight
		for i := range b.Calls {
			c := &b.Calls[i]
			n += weightOf(c.Arguments) + weightOf(c.Detail) + weightOf(c.ProviderCallID) + c.Host.weight()
		}
		n += len(b.Plan.Groups)*stringWeight + len(b.Calls)*8
	}
	return n
}

// weight returns the memory of a session's spaces without their pins and without
// the manifests of the install record.
func (x *Spaces) weight(install *Install) int {
	n := spacesWeight + (cap(x.Staged)-len(x.Staged))*stageWeight + cap(x.content.own)*ownWeight + cap(x.content.manifests)*heldWeight + cap(x.content.named)*8
	for i := range x.content.manifests {
		if m := &x.content.manifests[i]; install.content.find(m.hash) != m.Manifest {
			n += m.Weight()
		}
	}
	n += cap(x.Grants)*grantWeight + cap(x.Syncs)*syncWeight + cap(x.SyncsDone)*doneSyncWeight
	for i := range x.Grants {
		g := &x.Grants[i].Grant
		n += weightOf(g.Space) + weightOf(g.Target) + weightOf(g.Version) + weightOfList(g.Attach) + weightOfList(g.Digests)
		n += weightOfList(g.Keys) + weightOfList(g.May) + weightOfList(g.Sources) + weightOfList(g.Targets)
	}
	for i := range x.Syncs {
		o := &x.Syncs[i]
		n += weightOf(o.Call) + weightOf(o.Catalog) + weightOf(o.Prompt) + weightOf(o.Space) + weightOf(o.Target) + weightOf(o.Version)
		n += cap(o.Known)*knownWeight + weightOfList(o.Only)
	}
	if t := x.Turn; t != nil {
		n += turnSpaceWeight + cap(t.Grants)*usedGrantWeight + weightOfList(t.Narrowed) + cap(t.Parts)*partWeight + cap(t.Vars)*pairWeight
		for i := range t.Parts {
			n += weightOfList(t.Parts[i].Names)
		}
		for i := range t.Vars {
			n += weightOf(t.Vars[i].Key) + weightOf(t.Vars[i].Value)
		}
	}
	return n
}

func (p *SpacePin) weight() int {
	return pinWeight + weightOf(p.Catalog) + weightOf(p.Prompt) + weightOf(p.Source) + weightOf(p.Space) + weightOf(p.Version) + weightOfList(p.Lacks) + p.Registry.weight()
}

func (p *RegistryPin) weight() int {
	if p == nil {
		return 0
	}
	return namesWeight
}
