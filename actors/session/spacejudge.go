package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// isTrusted checks the manifest's identity and origin: steps 3 and 4.
func (r *read) isTrusted(o *OpenSync, st *stack) bool {
	detail, told := r.distrust(o, st)
	r.told = told
	return detail == "" || r.refuse(CodeWorkspaceUntrusted, detail, nil)
}

// distrust returns why the manifest is not trusted, or "". told is what a model may
// know of it: nothing of the manifest, for whose texts nobody vouches.
func (r *read) distrust(o *OpenSync, st *stack) (detail, told string) {
	version := r.manifest.Version
	switch {
	case r.grant == nil:
		return "no grant is about " + quoted(o.Space), ""
	case r.manifest.Space != o.Space:
		return "the manifest is that of " + quoted(r.manifest.Space), ""
	case r.manifest.Kind != o.Kind:
		return "the manifest is of kind " + quoted(string(r.manifest.Kind)), ""
	case r.grant.Version != "" && !space.Selects(r.grant.Version, version):
		told = "the grant is for version " + r.grant.Version
		return told + ", the manifest is of " + quoted(version), told + ", and another was read"
	case isSelector(o.Version) && version != "" && !space.Selects(o.Version, version):
		told = "asked was version " + o.Version
		return told + ", the manifest is of " + quoted(version), told + ", and another was read"
	case r.grant.sources() != nil && !slices.Contains(r.grant.sources(), r.Source):
		return "the grant is not for source " + quoted(r.Source), "the grant is not for source " + quoted(r.Source)
	case r.isOlder(st) && o.Version != version:
		return "version " + version + " is lower than the applied one: ask for exactly that version to go back", ""
	case !r.grant.trusts(r.manifest, r.by):
		told = "the manifest is none of the grant's digests, and none of its keys signed it"
		return told, told
	}
	return "", ""
}

// isOlder reports whether a pack has a lower version than the applied one.
func (r *read) isOlder(st *stack) bool {
	was := st.find(r.manifest.Space)
	if was == nil || r.manifest.Kind != space.Pack {
		return false
	}
	v, _ := space.ParseVersion(r.manifest.Version)
	w, _ := space.ParseVersion(was.Version)
	return v.Compare(w) < 0
}

// covers reports whether the grant allows a requested version.
func (g *Grant) covers(version string) bool {
	if g.Version == "" {
		return true
	}
	if v, ok := space.ParseVersion(version); ok {
		s, ok := space.ParseSelector(g.Version)
		return ok && s.Matches(v)
	}
	return version == g.Version || strings.HasPrefix(version, g.Version+".")
}

// isGranted checks that the space contains only what it may.
func (r *read) isGranted() bool { return r.isFree(r.notGranted()) }

// notGranted returns a problem for each part that the space may not have: step 5.
func (r *read) notGranted() []space.Problem {
	var problems []space.Problem
	not := func(path, what string) {
		problems = append(problems, space.Problem{Code: space.NotGranted, Path: path, Detail: "the grant's may does not have " + what})
	}
	m := r.manifest
	for i := range m.Prompts {
		p, path := &m.Prompts[i], "prompts["+strconv.Itoa(i)+"]"
		if !r.grant.may(MayPrompt) {
			not(path, MayPrompt)
		}
		if len(p.Params) > 0 && !r.grant.may(MayParams) {
			not(path+".params", MayParams)
		}
		if len(p.ResponseFormat) > 0 && !r.grant.may(MayResponseFormat) {
			not(path+".response_format", MayResponseFormat)
		}
		if codec.HasBinary(p.Params) || codec.HasBinary(p.ResponseFormat) {
			problems = append(problems, space.Problem{Code: space.WrongType, Path: path, Detail: "params or response_format " + noBinary})
		} else if fault := formatFault(p.ResponseFormat); fault != "" {
			problems = append(problems, space.Problem{Code: space.WrongType, Path: path, Detail: clip("response_format"+fault, DetailBytesMax)})
		}
	}
	if len(m.Words) > 0 && !r.grant.may(MayRewords) {
		not("words", MayRewords)
	}
	if len(m.Skills) > 0 && !r.grant.may(MaySkills) {
		not("skills", MaySkills)
	}
	for i := range m.Tools {
		t, path := &m.Tools[i], "tools["+strconv.Itoa(i)+"]"
		if t.Executor.Kind != planner.ExecutorEffect {
			problems = append(problems, space.Problem{Code: space.NotGranted, Path: path + ".executor.kind", Detail: "tools of packs are carried out by bridges: effect"})
		}
		if !r.grant.binds(m.Space, m.Version, t.Executor.Target) {
			problems = append(problems, space.Problem{Code: space.NotGranted, Path: path + ".executor.target", Detail: "the grant does not let the pack name " + quoted(t.Executor.Target)})
		}
		if fault := toolFault(t); fault != "" {
			problems = append(problems, space.Problem{Code: space.WrongType, Path: path, Detail: clip(fault, DetailBytesMax)})
		}
	}
	return problems
}

// isFree reports whether there are no problems.
func (r *read) isFree(problems []space.Problem) bool {
	if len(problems) == 0 {
		return true
	}
	problems = problems[:min(len(problems), space.ProblemsMax)]
	return r.refuse(string(RejectWorkspaceInvalid), "what was read does not fit: see the problems", space.SortProblems(problems))
}

// fits checks that the space may have its parts and composes on the applied ones:
// steps 5 to 7. All problems are reported at once.
func (s *State) fits(r *read, st, next *stack) bool {
	problems := r.notGranted()
	r.Asked = s.Seq
	*next = st.with(r.adopted)
	registry := st.registry // of the catalogs' tools, if the space does not compose
	if next.compose() != nil {
		problems = append(problems, next.faults()...)
	} else {
		registry = next.registry
		if bad := s.install.floor.Check(registry, r.manifest.Tools); bad != nil {
			problems = append(problems, space.Problem{Code: space.NotGranted, Path: bad.Path, Detail: clip(bad.Detail, DetailBytesMax)})
		}
	}
	problems = append(problems, next.skillProblems(&r.adopted)...)
	problems = append(problems, r.repeated(registry)...)
	if s.install.Record.Policy.Coverage == CoverageFail {
		problems = append(problems, r.uncovered(registry)...)
	}
	return r.isFree(problems)
}

// faults returns what keeps the stack from composing.
func (st *stack) faults() (problems []space.Problem) {
	for _, bad := range planner.ComposeFaults(st.base, st.layers()) {
		p := space.Problem{Code: space.ProblemCode(bad.Code), Path: bad.Path, Detail: bad.Detail}
		p.Detail = clip(p.Detail, DetailBytesMax)
		problems = append(problems, p)
	}
	return problems
}

// repeated returns a problem for each catalog entry whose tool an entry before it
// names, perhaps otherwise.
func (a *adopted) repeated(registry *planner.Registry) (problems []space.Problem) {
	for i := range a.manifest.Catalogs {
		c := &a.manifest.Catalogs[i]
		entries, _ := c.Entries()
		first := map[planner.ToolIndex]string{}
		for j := range entries {
			name := entries[j].Tool
			t, ok := registry.Lookup(a.tool(registry, name))
			if !ok {
				continue
			}
			if before, again := first[t]; again {
				problems = append(problems, space.Problem{
					Code: space.Duplicate, Path: "catalogs[" + strconv.Itoa(i) + "].tools[" + strconv.Itoa(j) + "]",
					Detail: clip("catalog "+c.ToolCatalog+" names "+registry.Tool(t).ToolID+" twice: as "+quoted(before)+", and as "+quoted(name), DetailBytesMax),
				})
				continue
			}
			first[t] = name
		}
	}
	return problems
}
