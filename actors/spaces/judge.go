package spaces

import (
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Read is a manifest that a sync brought, and its reader's report.
type Read struct {
	Adopted
	grant    *Grant
	by       *space.Signature
	revision string
	code     string // why it is refused
	detail   string
	told     sentence.Text // what a model is told of a manifest that is not trusted; empty: NotRead
	problems []space.Problem
}

// refuse records why the manifest is refused.
func (r *Read) refuse(code, detail string, problems []space.Problem) bool {
	r.code, r.detail, r.problems = code, detail, problems
	return false
}

// isTrusted checks the manifest's identity and origin: steps 3 and 4.
func (r *Read) isTrusted(o *Sync, st *Stack) bool {
	detail, told := r.distrust(o, st)
	r.told = told
	return detail == "" || r.refuse(CodeWorkspaceUntrusted, detail, nil)
}

// distrust returns why the manifest is not trusted, or "". told is what a model may
// know of it: nothing of the manifest, for whose texts nobody vouches.
func (r *Read) distrust(o *Sync, st *Stack) (detail string, told sentence.Text) {
	version := r.Manifest.Version
	tell := func(n sentence.Number, args ...string) sentence.Text {
		return sentence.Say(n, append([]string{CodeWorkspaceUntrusted}, args...)...)
	}
	switch {
	case r.grant == nil:
		return "no grant is about " + sentence.Quoted(o.Space), ""
	case r.Manifest.Space != o.Space:
		return "the manifest is that of " + sentence.Quoted(r.Manifest.Space), ""
	case r.Manifest.Kind != o.Kind:
		return "the manifest is of kind " + sentence.Quoted(string(r.Manifest.Kind)), ""
	case r.grant.Version != "" && !space.Selects(r.grant.Version, version):
		return "the grant is for version " + r.grant.Version + ", and the manifest is of " + sentence.Quoted(version), tell(sentence.OtherVersionRead, r.grant.Version)
	case isSelector(o.Version) && version != "" && !space.Selects(o.Version, version):
		return "version " + o.Version + " was requested, and the manifest is of " + sentence.Quoted(version), tell(sentence.OtherVersionAsked, o.Version)
	case r.grant.ReaderSources() != nil && !slices.Contains(r.grant.ReaderSources(), r.Source):
		return "the grant is not for source " + sentence.Quoted(r.Source), tell(sentence.ReaderNotGranted, sentence.Quoted(r.Source))
	case r.isOlder(st) && o.Version != version:
		return "version " + version + " is lower than the applied one: request exactly that version to go back", ""
	case !r.grant.trusts(r.Manifest, r.by):
		return "the manifest is none of the grant's digests, and none of its keys signed it", tell(sentence.NotSigned)
	}
	return "", ""
}

// isOlder reports whether a pack has a lower version than the applied one.
func (r *Read) isOlder(st *Stack) bool {
	was := st.Find(r.Manifest.Space)
	if was == nil || r.Manifest.Kind != space.Pack {
		return false
	}
	v, _ := space.ParseVersion(r.Manifest.Version)
	w, _ := space.ParseVersion(was.Version)
	return v.Compare(w) < 0
}

// isGranted checks that the space contains only what it may.
func (r *Read) isGranted(of *Record) bool { return r.isFree(r.notGranted(of)) }

// notGranted returns a problem for each part that the space may not have: step 5.
func (r *Read) notGranted(of *Record) []space.Problem {
	var problems []space.Problem
	not := func(path, what string) {
		problems = append(problems, space.Problem{Code: space.NotGranted, Path: path, Detail: "the grant's may does not have " + what})
	}
	m := r.Manifest
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
		if fault := of.PromptFault(p.Params, p.ResponseFormat); fault != "" {
			problems = append(problems, space.Problem{Code: space.WrongType, Path: path, Detail: sentence.Clip(fault, sentence.BytesMax)})
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
			problems = append(problems, space.Problem{Code: space.NotGranted, Path: path + ".executor.target", Detail: "the grant does not let the pack name " + sentence.Quoted(t.Executor.Target)})
		}
		if fault := of.ToolFault(t); fault != "" {
			problems = append(problems, space.Problem{Code: space.WrongType, Path: path, Detail: sentence.Clip(fault, sentence.BytesMax)})
		}
	}
	return problems
}

// isFree reports whether there are no problems.
func (r *Read) isFree(problems []space.Problem) bool {
	if len(problems) == 0 {
		return true
	}
	problems = problems[:min(len(problems), space.ProblemsMax)]
	return r.refuse(string(WorkspaceInvalid), "what was read does not fit: see the problems", space.SortProblems(problems))
}

// fits checks that the space may have its parts and composes on the applied ones:
// steps 5 to 7. All problems are reported at once.
func (x *Spaces) fits(r *Read, st, next *Stack) bool {
	problems := r.notGranted(x.Record)
	r.Asked, _ = x.Session.Now()
	*next = st.with(r.Adopted)
	registry := st.Registry // of the catalogs' tools, if the space does not compose
	if next.Compose() != nil {
		problems = append(problems, next.faults()...)
	} else {
		registry = next.Registry
		if bad := x.Record.Floor.Check(registry, r.Manifest.Tools); bad != nil {
			problems = append(problems, space.Problem{Code: space.NotGranted, Path: bad.Path, Detail: sentence.Clip(bad.Detail, sentence.BytesMax)})
		}
	}
	problems = append(problems, next.skillProblems(&r.Adopted)...)
	problems = append(problems, r.repeated(registry)...)
	if x.Record.AllBound {
		problems = append(problems, r.uncovered(registry)...)
	}
	return r.isFree(problems)
}

// faults returns what keeps the Stack from composing.
func (st *Stack) faults() (problems []space.Problem) {
	for _, bad := range planner.ComposeFaults(st.base, st.layers()) {
		p := space.Problem{Code: space.ProblemCode(bad.Code), Path: bad.Path, Detail: bad.Detail}
		p.Detail = sentence.Clip(p.Detail, sentence.BytesMax)
		problems = append(problems, p)
	}
	return problems
}

// repeated returns a problem for each catalog entry whose tool an entry before it
// names, perhaps otherwise.
func (a *Adopted) repeated(registry *planner.Registry) (problems []space.Problem) {
	for i := range a.Manifest.Catalogs {
		c := &a.Manifest.Catalogs[i]
		entries, _ := c.Entries()
		first := map[planner.ToolIndex]string{}
		for j := range entries {
			name := entries[j].Tool
			t, ok := registry.Lookup(a.ToolIn(registry, name))
			if !ok {
				continue
			}
			if before, again := first[t]; again {
				problems = append(problems, space.Problem{
					Code: space.Duplicate, Path: "catalogs[" + strconv.Itoa(i) + "].tools[" + strconv.Itoa(j) + "]",
					Detail: sentence.Clip("catalog "+c.ToolCatalog+" names "+registry.Tool(t).ToolID+" twice: as "+sentence.Quoted(before)+", and as "+sentence.Quoted(name), sentence.BytesMax),
				})
				continue
			}
			first[t] = name
		}
	}
	return problems
}

// uncovered returns a problem for each catalog entry whose tool a registry lacks.
func (a *Adopted) uncovered(registry *planner.Registry) (problems []space.Problem) {
	for i := range a.Manifest.Catalogs {
		c := &a.Manifest.Catalogs[i]
		entries, _ := c.Entries()
		for j := range entries {
			if _, ok := registry.Lookup(a.ToolIn(registry, entries[j].Tool)); !ok {
				problems = append(problems, space.Problem{
					Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tools[" + strconv.Itoa(j) + "]",
					Detail: "catalog " + c.ToolCatalog + " names " + sentence.Quoted(entries[j].Tool) + ", which the registry does not bind",
				})
			}
		}
		choice, ok := registry.Lookup(a.ToolIn(registry, c.ToolChoice))
		if ok && !slices.ContainsFunc(entries, func(e space.Entry) bool {
			t, listed := registry.Lookup(a.ToolIn(registry, e.Tool))
			return listed && t == choice
		}) {
			problems = append(problems, space.Problem{
				Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tool_choice",
				Detail: "catalog " + c.ToolCatalog + " chooses " + sentence.Quoted(c.ToolChoice) + ", which it does not list",
			})
		}
		if !ok && !planner.IsChoiceMode(c.ToolChoice) {
			problems = append(problems, space.Problem{
				Code: space.UnknownTool, Path: "catalogs[" + strconv.Itoa(i) + "].tool_choice",
				Detail: "catalog " + c.ToolCatalog + " chooses " + sentence.Quoted(c.ToolChoice) + ", which the registry does not bind",
			})
		}
	}
	return problems
}

// warnings returns an operator's warnings about a space that can be staged.
func (x *Spaces) warnings(r *Read, next *Stack) []space.Problem {
	warnings := append(r.uncovered(next.Registry), r.unknownAllowed(next.Registry)...)
	for _, l := range r.Manifest.LeftOut {
		warnings = append(warnings, l.Problem())
	}
	if r.Manifest.Scanned {
		warnings = append(warnings, space.Problem{Code: space.NoIndex, Detail: "there is no index: write one with refold space index DIR > agent.workspace.json"})
	}
	if missing := x.Session.Missing(next); missing != "" {
		warnings = append(warnings, space.Problem{Code: space.NameInUse, Detail: missing})
	}
	return space.SortProblems(warnings)
}
