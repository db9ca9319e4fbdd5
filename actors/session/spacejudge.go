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
	untrusted := func(detail string) bool { return r.refuse(CodeWorkspaceUntrusted, detail, nil) }
	switch {
	case r.grant == nil:
		return untrusted("no grant is about " + quoted(o.Space))
	case r.manifest.Space != o.Space:
		return untrusted("the manifest is that of " + quoted(r.manifest.Space))
	case r.manifest.Kind != o.Kind:
		return untrusted("the manifest is of kind " + quoted(string(r.manifest.Kind)))
	case r.grant.Version != "" && !space.Selects(r.grant.Version, r.manifest.Version):
		return untrusted("the grant is for version " + r.grant.Version + ", the manifest is of " + quoted(r.manifest.Version))
	case isSelector(o.Version) && r.manifest.Version != "" && !space.Selects(o.Version, r.manifest.Version):
		return untrusted("asked was version " + o.Version + ", the manifest is of " + quoted(r.manifest.Version))
	case r.grant.sources() != nil && !slices.Contains(r.grant.sources(), r.Source):
		return untrusted("the grant is not for source " + quoted(r.Source))
	case r.isOlder(st) && o.Version != r.manifest.Version:
		return untrusted("version " + r.manifest.Version + " is lower than the applied one: ask for exactly that version to go back")
	case !r.grant.trusts(r.manifest, r.by):
		return untrusted("the manifest is none of the grant's digests, and none of its keys signed it")
	}
	return true
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

// isGranted checks that the space contains only what it may: step 5.
func (r *read) isGranted() bool {
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
	return r.isFree(problems)
}

// isFree reports whether there are no problems.
func (r *read) isFree(problems []space.Problem) bool {
	if len(problems) == 0 {
		return true
	}
	return r.refuse(string(RejectWorkspaceInvalid), "what was read does not fit: see the problems", space.SortProblems(problems))
}

// composes checks that the space fits on the applied ones: steps 6 and 7.
func (s *State) composes(r *read, st, next *stack) bool {
	r.Asked = s.Seq
	*next = st.with(r.adopted)
	if bad := next.compose(); bad != nil {
		return r.isFree([]space.Problem{{Code: space.ProblemCode(bad.Code), Path: bad.Path, Detail: clip(bad.Detail, DetailBytesMax)}})
	}
	if bad := s.install.floor.Check(next.registry, r.manifest.Tools); bad != nil {
		return r.isFree([]space.Problem{{Code: space.NotGranted, Path: bad.Path, Detail: clip(bad.Detail, DetailBytesMax)}})
	}
	problems := next.skillProblems(&r.adopted)
	if s.install.Record.Policy.Coverage == CoverageFail {
		problems = append(problems, r.uncovered(next.registry)...)
	}
	return r.isFree(problems)
}
