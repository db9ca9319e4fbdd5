package planner

import "slices"

// ToolName returns the name under which a tool is offered, or "". ts must be of
// reg.
func (ts *Toolset) ToolName(reg *Registry, t ToolIndex) string {
	for _, o := range ts.Offers {
		if o.Tool() == t {
			return reg.tools[t].descriptors[o.Variant()].ToolName
		}
	}
	return ""
}

// Offerable returns the tools that a list could bring into a turn, in the order of
// the registry: no skill leaves them out, nothing disables them, and they are
// available and permitted. Of req, only Narrow and the disabled tools count.
func Offerable(reg *Registry, req Request, facts Facts) []ToolIndex {
	session, run := reg.marks(req.Session.Disable), reg.marks(req.Run.Disable)
	left := reg.narrowed(req)
	tools := make([]ToolIndex, 0, len(reg.tools))
	for i := range reg.tools {
		t := ToolIndex(i)
		if (left == nil || !left[i]) && !session[i] && !run[i] && reg.permitted(t, facts).Reason == Offered {
			tools = append(tools, t)
		}
	}
	return tools
}

// Define returns the tools whose definitions a masked run shows from its first
// turn on, in the order of Select: those of steps 1 and 2, without tools that
// are disabled, lack a capability, or that the policy denies. Availability rules and active skills do
// not count, since they change during a run.
func Define(reg *Registry, req Request, facts Facts) []Offer {
	session, run := reg.marks(req.Session.Disable), reg.marks(req.Run.Disable)
	return slices.DeleteFunc(listed(reg, req).offers, func(o Offer) bool {
		t := o.Tool()
		return session[t] || run[t] || reg.checkCapabilities(t, facts).Reason != Offered || facts.checkPolicy(t).Reason != Offered
	})
}

// Redefine returns defined with every tool that the toolset offers. A tool that
// defined lacks is appended, and a tool offered under another descriptor is
// replaced in its place. It does not change defined, and returns it if nothing
// is missing.
func (ts *Toolset) Redefine(defined []Offer) []Offer {
	own := false
	for _, o := range ts.Offers {
		at := slices.IndexFunc(defined, func(d Offer) bool { return d.Tool() == o.Tool() })
		if at >= 0 && defined[at] == o {
			continue
		}
		if !own {
			defined, own = slices.Clone(defined), true
		}
		if at < 0 {
			defined = append(defined, o)
		} else {
			defined[at] = o
		}
	}
	return defined
}
