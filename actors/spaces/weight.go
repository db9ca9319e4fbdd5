package spaces

import "github.com/refold/refold/space"

// Sizes in bytes of the structs that a state of spaces holds, and of an entry of its
// lists, on a 64-bit machine, rounded up to the heap's size classes.
const (
	spacesWeight    = 208 + 64 // with its content
	pinWeight       = 192
	stageWeight     = 216
	namesWeight     = 48 // of a pin: its RegistryPin
	grantWeight     = 248
	syncWeight      = 272
	knownWeight     = 40
	doneSyncWeight  = 36
	heldWeight      = 40
	ownWeight       = 40
	turnSpaceWeight = 192
	partWeight      = 88
	usedGrantWeight = 112
	pairWeight      = 40
)

// Weight returns about how many bytes of memory the spaces take, with all pins of the
// session, and without what sessions share: registries, and the manifests of the install
// record.
func (x *Spaces) Weight() int {
	n := spacesWeight + (cap(x.Staged)-len(x.Staged))*stageWeight + cap(x.content.own)*ownWeight + cap(x.content.manifests)*heldWeight + cap(x.content.named)*8
	for i := range x.content.manifests {
		if m := &x.content.manifests[i]; x.Record.content.find(m.hash) != m.Manifest {
			n += m.Weight()
		}
	}
	n += cap(x.Grants)*grantWeight + cap(x.Syncs)*syncWeight + cap(x.SyncsDone)*doneSyncWeight
	for i := range x.Grants {
		g := &x.Grants[i].Grant
		n += space.TextWeight(g.Space) + space.TextWeight(g.Target) + space.TextWeight(g.Version) + space.ListWeight(g.Attach) + space.ListWeight(g.Digests)
		n += space.ListWeight(g.Keys) + space.ListWeight(g.May) + space.ListWeight(g.Sources) + space.ListWeight(g.Targets)
	}
	for i := range x.Syncs {
		o := &x.Syncs[i]
		n += space.TextWeight(o.Call) + space.TextWeight(o.Catalog) + space.TextWeight(o.Prompt) + space.TextWeight(o.Space) + space.TextWeight(o.Target) + space.TextWeight(o.Version)
		n += cap(o.Known)*knownWeight + space.ListWeight(o.Only)
	}
	if t := x.Turn; t != nil {
		n += turnSpaceWeight + cap(t.Grants)*usedGrantWeight + space.ListWeight(t.Narrowed) + cap(t.Parts)*partWeight + cap(t.Vars)*pairWeight
		for i := range t.Parts {
			n += space.ListWeight(t.Parts[i].Names)
		}
		for i := range t.Vars {
			n += space.TextWeight(t.Vars[i].Key) + space.TextWeight(t.Vars[i].Value)
		}
	}
	x.eachPin(func(p *Pin) { n += p.weight() })
	return n
}

func (p *Pin) weight() int {
	n := pinWeight + space.TextWeight(p.Catalog) + space.TextWeight(p.Prompt) + space.TextWeight(p.Source) + space.TextWeight(p.Space)
	if p.Registry != nil {
		n += namesWeight
	}
	return n + space.TextWeight(p.Version) + space.ListWeight(p.Lacks)
}
