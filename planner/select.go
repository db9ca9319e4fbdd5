package planner

import (
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// Source says where the base of a turn's tools comes from. The first list that
// is given counts.
type Source string

const (
	FromProfile Source = ""        // Request.Profile, or all tools if that is empty too
	FromStep    Source = "step"    // the step's active_tools or tool_refs
	FromRun     Source = "run"     // the run's active_tools or tool_refs
	FromCatalog Source = "catalog" // the applied workspace catalog
)

// Overrides are the lists of one scope, by tool_id or tool_name.
type Overrides struct {
	Enable  []string
	Disable []string
	Force   []string
}

// Request is what the step, the run, the session and the workspace say about
// the tools of a turn. Names that the registry lacks are skipped.
type Request struct {
	// Base counts unless From is FromProfile; an empty Base means no tools. Its
	// entries are tool_ids, tool_names, or the text form of a descriptor's Ref,
	// which offers the tool under that descriptor.
	Base        []string
	From        Source
	Join        []string    // layers whose tools join a run's base
	Profile     string      // the resolved profile; "" is all tools by tool_id
	ProfileFrom ProfileFrom // how the profile was chosen
	Session     Overrides
	Run         Overrides
	Narrow      [][]string // the lists of active skills: only their tools are offered; empty: no restriction
	Only        *[]string  // a client's list, in the form of Base: of the tools of steps 1 and 2 only these, in its order; nil: no restriction
}

// Facts is what is known when tools are selected or checked.
type Facts struct {
	HostSession  string // ready, closed, expired, error, none; "" is none
	Facts        []Fact
	Capabilities []string // granted by the install record
	SpaceFiles   bool     // an applied space has context files
	Skills       bool     // an applied space has a skill for models
	Grants       bool     // a grant lets models enable packs
	Lacks        []Lacks  // by layer
	Floor        *Floor   // the install record's demands on the registry; nil: none
	Denied       []int    // by tool of the registry: see Approvals.Denied. not known when a call is checked again
}

// Lacks lists the needs of a layer and its tools that are not met.
type Lacks struct {
	Layer string
	Needs []string
}

// hostReady is the status of a host session that can be used.
const hostReady = "ready"

// Offer is one tool of a toolset, with the variant of its descriptor that the
// model is shown.
type Offer uint32

const offerVariantShift = 16

// Tool returns the tool.
func (o Offer) Tool() ToolIndex { return ToolIndex(o & (1<<offerVariantShift - 1)) }

// Variant returns 0 for the tool's own descriptor, n for its nth alternate.
func (o Offer) Variant() int { return int(o >> offerVariantShift) }

// Toolset is the tools of one turn and, for every other tool of the registry,
// why it is not offered. It is small, and sufficient to check the turn's calls
// later. It belongs to the registry with its hash.
type Toolset struct {
	Fingerprint codec.Hash `msgpack:"fingerprint"`       // BLAKE2b-256 of what is offered, in order
	Offers      []Offer    `msgpack:"offers"`            // in order
	Profile     string     `msgpack:"profile,omitempty"` // the profile, if that is the base
	Registry    codec.Hash `msgpack:"registry"`
	Source      Source     `msgpack:"source,omitempty"` // of the base; for a profile, how it was chosen (a ProfileFrom)
	Verdicts    []byte     `msgpack:"verdicts"`         // two bytes for each tool of the registry
}

// Select returns the tools to offer in a turn. It is total and depends on its
// arguments only:
//
//  1. the base, as Request.From says;
//  2. for a profile, the enabled tools (session, then run); for a profile or a
//     catalog, the tools of layers; for the run's list, the tools of the layers
//     that it names. Of all these only the tools of a client's list stay, in its
//     order; the tools of layers that the run names stay, too. Always the forced
//     tools. While skills narrow, only the tools of their lists, forced tools and
//     the session's own tools stay;
//  3. without the tools that the session or the run disables: deny wins over
//     everything;
//  4. without tools that are unavailable, lack a capability or a need, or whose
//     every call the policy denies, forced or not;
//  5. in the base's order, then the others by tool_id.
func Select(reg *Registry, req Request, facts Facts) Toolset {
	chosen := listed(reg, req)
	ts := Toolset{
		Offers: make([]Offer, 0, len(chosen.offers)), Registry: reg.hash,
		Source: req.From, Verdicts: make([]byte, 2*len(reg.tools)),
	}
	if req.From == FromProfile {
		ts.Profile, ts.Source = req.Profile, Source(req.ProfileFrom)
	}
	left := reg.narrowed(req)
	sessionDisabled := reg.marks(req.Session.Disable)
	runDisabled := reg.marks(req.Run.Disable)
	for i := range reg.tools {
		t := ToolIndex(i)
		v := Verdict{Reason: NotListed}
		switch {
		case !chosen.in[i]:
			if chosen.cut != nil && chosen.cut[i] {
				v.Reason = NotAsked
			}
		case left != nil && left[i]:
			v.Reason = NotOfSkill
		case sessionDisabled[i]:
			v.Reason = DisabledBySession
		case runDisabled[i]:
			v.Reason = DisabledByRun
		default:
			v = reg.permitted(t, facts)
		}
		ts.setVerdict(t, v)
	}
	for _, o := range chosen.offers {
		if ts.Verdict(o.Tool()).Reason == Offered {
			ts.Offers = append(ts.Offers, o)
		}
	}
	ts.Fingerprint = fingerprint(reg, ts.Offers)
	return ts
}

// listed returns the tools of steps 1 and 2, in order.
func listed(reg *Registry, req Request) *choice {
	chosen := newChoice(reg)
	chosen.addBase(req)
	base := len(chosen.offers)
	if req.From == FromProfile {
		chosen.add(req.Session.Enable)
		chosen.add(req.Run.Enable)
	}
	if req.From == FromProfile || req.From == FromCatalog {
		reg.joining(nil, func(t ToolIndex) { chosen.offer(offered{tool: t}) })
	}
	if req.From == FromRun && len(req.Join) > 0 {
		reg.joining(req.Join, func(t ToolIndex) { chosen.offer(offered{tool: t}) })
	}
	if req.Only != nil {
		chosen = chosen.only(req)
		base = len(chosen.offers)
	}
	chosen.add(req.Session.Force)
	chosen.add(req.Run.Force)
	slices.SortFunc(chosen.offers[base:], func(a, b Offer) int { return int(a.Tool()) - int(b.Tool()) })
	return chosen
}

// resolve finds a tool by tool_id, by a tool_name, or by a descriptor's Ref. A
// tool_id means the tool's own descriptor, the others the one that they name.
func (r *Registry) resolve(name string) (offered, bool) {
	if t, ok := r.byID[name]; ok {
		return offered{tool: t}, true
	}
	if o, ok := r.byName[name]; ok {
		return o, true
	}
	if ref, err := codec.ParseRef(name); err == nil {
		o, ok := r.byRef[ref]
		return o, ok
	}
	return offered{}, false
}

// marks returns, by tool, whether a list names it.
func (r *Registry) marks(names []string) []bool {
	marked := make([]bool, len(r.tools))
	for _, name := range names {
		if o, ok := r.resolve(name); ok {
			marked[o.tool] = true
		}
	}
	return marked
}

// narrowed returns, by tool, whether skills leave it out; nil: they leave out none.
func (r *Registry) narrowed(req Request) []bool {
	if len(req.Narrow) == 0 {
		return nil
	}
	left := make([]bool, len(r.tools))
	for i := range left {
		left[i] = true
	}
	keep := func(names []string) {
		for _, name := range names {
			if o, ok := r.resolve(name); ok {
				left[o.tool] = false
			}
		}
	}
	for i := range req.Narrow {
		keep(req.Narrow[i])
	}
	keep(req.Session.Force)
	keep(req.Run.Force)
	for i := range r.layers {
		if r.layers[i].reserved {
			keep(r.layers[i].Tools)
		}
	}
	return left
}

// permitted returns step 4's verdict on a tool.
func (r *Registry) permitted(t ToolIndex, facts Facts) Verdict {
	if v := r.available(t, facts); v.Reason != Offered {
		return v
	}
	return facts.checkPolicy(t)
}

// checkPolicy returns the verdict of step 4's last part: whether the policy denies
// every call of the tool.
func (f *Facts) checkPolicy(t ToolIndex) Verdict {
	if int(t) < len(f.Denied) && f.Denied[t] > 0 {
		return Verdict{Reason: Denied, Index: min(f.Denied[t]-1, verdictIndexMax)}
	}
	return Verdict{Reason: Offered}
}

// available returns step 4's verdict on a tool, without the policy's.
func (r *Registry) available(t ToolIndex, facts Facts) Verdict {
	spec := &r.tools[t].spec
	for i, rule := range spec.Availability {
		if !rule.holds(facts) {
			return Verdict{Reason: RuleFails, Index: i}
		}
	}
	if v := r.checkNeeds(t, facts); v.Reason != Offered {
		return v
	}
	return r.checkCapabilities(t, facts)
}

// checkCapabilities returns the verdict of step 4's third part: whether every capability
// that the tool requires is granted.
func (r *Registry) checkCapabilities(t ToolIndex, facts Facts) Verdict {
	spec := &r.tools[t].spec
	for i, name := range spec.Requires {
		if !slices.Contains(facts.Capabilities, name) {
			return Verdict{Reason: CapabilityMissing, Index: i}
		}
	}
	for i, name := range facts.Floor.requires(r, t) {
		if !slices.Contains(facts.Capabilities, name) {
			return Verdict{Reason: CapabilityMissing, Index: min(len(spec.Requires)+i, verdictIndexMax)}
		}
	}
	return Verdict{Reason: Offered}
}

// checkNeeds returns the verdict of step 4's second part: whether the
// needs of the tool and its pack are met. Optional needs do not count.
func (r *Registry) checkNeeds(t ToolIndex, facts Facts) Verdict {
	if r.tools[t].layer == 0 || len(facts.Lacks) == 0 {
		return Verdict{Reason: Offered}
	}
	at := slices.IndexFunc(facts.Lacks, func(l Lacks) bool { return l.Layer == r.layers[r.tools[t].layer-1].Layer })
	for i := 0; at >= 0; i++ {
		need := r.need(t, i)
		if need == "" {
			break
		}
		if !strings.HasSuffix(need, "?") && slices.Contains(facts.Lacks[at].Needs, need) {
			return Verdict{Reason: Lacking, Index: min(i, verdictIndexMax)}
		}
	}
	return Verdict{Reason: Offered}
}

// need returns need i of a tool, or "". Verdicts count its pack's needs after
// its own.
func (r *Registry) need(t ToolIndex, i int) string {
	tool := &r.tools[t]
	if i < len(tool.spec.Needs) {
		return tool.spec.Needs[i]
	}
	if i -= len(tool.spec.Needs); tool.layer > 0 && i < len(r.layers[tool.layer-1].needs) {
		return r.layers[tool.layer-1].needs[i]
	}
	return ""
}

// holds reports whether the rule holds. A rule of an unknown kind, which no
// registry has, does not.
func (r Rule) holds(facts Facts) bool {
	switch r.Kind {
	case RuleAlways:
		return true
	case RuleHostSessionReady:
		return facts.HostSession == hostReady
	case RuleHostSessionNotReady:
		return facts.HostSession != hostReady
	case RuleSpaceFiles:
		return facts.SpaceFiles
	case RuleSkills:
		return facts.Skills
	case RuleGrants:
		return facts.Grants
	case RuleFact:
		for _, f := range facts.Facts {
			if f.Name == r.Name {
				return f.Value == r.Equals
			}
		}
	}
	return false
}

// fingerprint is the BLAKE2b-256 of the tools and descriptors offered, in order.
func fingerprint(reg *Registry, offers []Offer) codec.Hash {
	var room [1 << 10]byte
	text := room[:0]
	for _, o := range offers {
		text = append(text, reg.tools[o.Tool()].descriptors[o.Variant()].line...)
	}
	return codec.Digest(text)
}

// Ref returns the descriptor of the i-th offer. ts must be of reg.
func (ts *Toolset) Ref(reg *Registry, i int) codec.Ref {
	o := ts.Offers[i]
	return reg.tools[o.Tool()].descriptors[o.Variant()].ref
}

// Descriptor returns what the model is shown of the i-th offer. ts must be of reg.
func (ts *Toolset) Descriptor(reg *Registry, i int) Descriptor {
	o := ts.Offers[i]
	return reg.tools[o.Tool()].descriptors[o.Variant()].Descriptor
}

// DescriptorBytes returns the size of all offered descriptors in bytes. ts must
// be of reg.
func (ts *Toolset) DescriptorBytes(reg *Registry) int {
	n := 0
	for _, o := range ts.Offers {
		n += len(reg.tools[o.Tool()].descriptors[o.Variant()].bytes)
	}
	return n
}
