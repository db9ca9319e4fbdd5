package planner

// ToolName returns the name that a tool is offered under, "" if it is not. ts
// must be of reg.
func (ts *Toolset) ToolName(reg *Registry, t ToolIndex) string {
	for _, o := range ts.Offers {
		if o.Tool() == t {
			return reg.tools[t].descriptors[o.Variant()].ToolName
		}
	}
	return ""
}

// Offerable returns the tools that a list could bring into a turn, in the order
// of the registry: those that nothing disables, and that are available and
// permitted. Only what req disables counts.
func Offerable(reg *Registry, req Request, facts Facts) []ToolIndex {
	session, run := reg.marks(req.Session.Disable), reg.marks(req.Run.Disable)
	tools := make([]ToolIndex, 0, len(reg.tools))
	for i := range reg.tools {
		t := ToolIndex(i)
		if !session[i] && !run[i] && reg.available(t, facts).Reason == Offered {
			tools = append(tools, t)
		}
	}
	return tools
}
