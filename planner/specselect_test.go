package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// runFacts sets the facts: host=STATUS, root=DIRECTORY of the host session,
// capabilities=(…), and every other argument as a fact.
func (s *spec) runFacts(_ *testing.T, d *datadriven.TestData) string {
	s.facts, s.root = planner.Facts{}, ""
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "host":
			s.facts.HostSession = strings.Join(arg.Vals, ",")
		case "root":
			s.root = arg.Vals[0]
		case "capabilities":
			s.facts.Capabilities = arg.Vals
		default:
			s.facts.Facts = append(s.facts.Facts, planner.Fact{Name: arg.Key, Value: strings.Join(arg.Vals, ",")})
		}
	}
	return "ok"
}

// request reads the arguments of select and recheck.
func request(t *testing.T, d *datadriven.TestData) planner.Request {
	t.Helper()
	var req planner.Request
	lists := map[string]*[]string{
		"step": &req.Base, "run": &req.Base, "catalog": &req.Base,
		"session.enable": &req.Session.Enable, "session.disable": &req.Session.Disable, "session.force": &req.Session.Force,
		"run.enable": &req.Run.Enable, "run.disable": &req.Run.Disable, "run.force": &req.Run.Force,
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "profile" {
			req.Profile = arg.Vals[0]
			continue
		}
		list, ok := lists[arg.Key]
		if !ok {
			t.Fatalf("%s: no argument %q", d.Pos, arg.Key)
		}
		*list = arg.Vals
		if list == &req.Base {
			req.From = planner.Source(arg.Key)
		}
	}
	return req
}

// runSelect shows what is offered, in order, and why the rest is not.
func (s *spec) runSelect(t *testing.T, d *datadriven.TestData) string {
	s.request = request(t, d)
	s.toolset = planner.Select(s.reg, s.request, s.facts)
	return s.show()
}

func (s *spec) show() string {
	var out strings.Builder
	for _, o := range s.toolset.Offers {
		fmt.Fprintf(&out, "+ %s", s.reg.Tool(o.Tool()).ToolID)
		if o.Variant() > 0 {
			fmt.Fprintf(&out, " as alternate %d", o.Variant())
		}
		out.WriteByte('\n')
	}
	for i, spec := range s.reg.Tools() {
		if why := planner.Why(s.reg, s.facts.Floor, &s.toolset, planner.ToolIndex(i)); why != "offered" {
			fmt.Fprintf(&out, "- %s: %s\n", spec.ToolID, why)
		}
	}
	return out.String()
}

// runResolve shows which profile a run has.
func (s *spec) runResolve(t *testing.T, d *datadriven.TestData) string {
	var config, session, provider string
	d.MaybeScanArgs(t, "config", &config)
	d.MaybeScanArgs(t, "session", &session)
	d.MaybeScanArgs(t, "provider", &provider)
	name, from := planner.ResolveProfile(s.reg, config, session, provider)
	why := planner.WhyProfile(&planner.Toolset{Profile: name, Source: planner.Source(from)}, provider)
	return fmt.Sprintf("%s: %s", or(name, "all tools"), why)
}

// checker checks under the working directory that was set.
func (s *spec) checker() *planner.Checker { return &planner.Checker{Root: s.root} }

// runCall checks calls against the last selection, one a line: a name, then
// arguments.
func (s *spec) runCall(_ *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		name, arguments, _ := strings.Cut(line, " ")
		plan, why := s.checker().Check(s.reg, &s.toolset, planner.ObservedCall{ToolName: repeated(name), Arguments: repeated(arguments)})
		fmt.Fprint(&out, verdict(why))
		if why.OK() {
			fmt.Fprintf(&out, ", key %s", or(plan.Key.String(), "-"))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// runRecheck checks the tools named in the input again, with the lists of this
// moment and the facts as they are now.
func (s *spec) runRecheck(t *testing.T, d *datadriven.TestData) string {
	req := request(t, d)
	var out strings.Builder
	for _, name := range strings.Fields(d.Input) {
		tool, ok := s.reg.Lookup(name)
		if !ok {
			t.Fatalf("%s: no tool %q", d.Pos, name)
		}
		fmt.Fprintf(&out, "%s: %s\n", name, verdict(planner.Recheck(s.reg, s.reg, tool, req, s.facts)))
	}
	return out.String()
}

// runBatch checks and plans calls, one a line: a name, then arguments.
func (s *spec) runBatch(_ *testing.T, d *datadriven.TestData) string {
	var calls []planner.PlanCall
	var out strings.Builder
	for i, line := range strings.Split(d.Input, "\n") {
		name, arguments, _ := strings.Cut(line, " ")
		call, why := s.checker().Check(s.reg, &s.toolset, planner.ObservedCall{ToolName: name, Arguments: arguments})
		fmt.Fprintf(&out, "%d %s %s: %s\n", i, or(call.ToolID, "?"), or(call.Key.String(), "-"), verdict(why))
		calls = append(calls, call)
	}
	s.plan = planner.Schedule(calls)
	fmt.Fprintf(&out, "groups %s\n", groups(s.plan))
	return out.String()
}

// runWire shows the bytes, as JSON, and the hash of what a session keeps or
// names: the registry, its descriptors, the last toolset or the last plan.
func (s *spec) runWire(t *testing.T, d *datadriven.TestData) string {
	var data []byte
	var err error
	switch what := d.CmdArgs[0].Key; what {
	case "registry":
		data = s.reg.Bytes()
	case "toolset":
		data, err = codec.Marshal(s.toolset)
	case "plan":
		data = s.plan.Bytes()
	case "descriptors":
		var out strings.Builder
		for _, blob := range s.reg.Blobs() {
			fmt.Fprintf(&out, "%s %d bytes\n", blob.Ref, len(blob.Content))
		}
		return out.String()
	default:
		t.Fatalf("%s: no wire form of %q", d.Pos, what)
	}
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	text, err := codec.ToJSONIndent(data)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return fmt.Sprintf("%s\nsha256 %s", text, codec.Sum(data))
}

// runPlan plans calls that are written as in the rules: P0(k) is parallel-safe
// and writes k, P0(k?) reads it, N0 is not parallel-safe, X0 was rejected.
func (s *spec) runPlan(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		plan := planner.Schedule(parseCalls(t, line))
		fmt.Fprintf(&out, "%s\n", groups(plan))
	}
	return out.String()
}

func parseCalls(t testing.TB, line string) []planner.PlanCall {
	t.Helper()
	var calls []planner.PlanCall
	for i, word := range strings.Fields(line) {
		name, key, keyed := strings.Cut(word, "(")
		call := planner.PlanCall{Access: planner.AccessWrite, ToolID: "x." + name, ToolName: name}
		if keyed {
			key, read := strings.CutSuffix(strings.TrimSuffix(key, ")"), "?")
			if read {
				call.Access = planner.AccessRead
			}
			call.Key.Bare, call.Key.Part, _ = strings.Cut(key, ":")
		}
		switch name {
		case fmt.Sprintf("P%d", i):
			call.ParallelSafe = true
		case fmt.Sprintf("N%d", i):
		case fmt.Sprintf("X%d", i):
			call.Rejected = true
		default:
			t.Fatalf("call %d is %q: write P%d, N%d or X%d", i, word, i, i, i)
		}
		calls = append(calls, call)
	}
	return calls
}

func groups(plan planner.Plan) string {
	text := make([]string, len(plan.Groups))
	for i, group := range plan.Groups {
		text[i] = strings.Trim(fmt.Sprint(group), "[]")
	}
	return or(strings.Join(text, " · "), "none")
}
