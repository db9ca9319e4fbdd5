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
