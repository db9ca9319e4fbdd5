package session

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// ingressFault refuses the first field of c that the policy keeps out of the door
// `in`.
func (in *Install) ingressFault(c *RunConfig) *refusal {
	v := reflect.ValueOf(c).Elem()
	for i, field := range configFields {
		if !v.Field(i).IsZero() && !slices.Contains(in.ingress, field) {
			return refuse(RejectNotPermitted, "config."+field+": the install policy keeps it to the door ctl")
		}
	}
	return nil
}

// configFields are the names of a RunConfig's fields on the wire. Every request is
// checked against them: to make the list each time took 8% of the fold.
var configFields = func() (names []string) {
	t := reflect.TypeFor[RunConfig]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("msgpack"), ",")
		names = append(names, name)
	}
	return names
}()

// clientsRun returns the run of a client's request with a config: what the operator
// set, in the session or the install record, with what the client names. A client
// only narrows the operator's tools, bans and limits; its other fields replace the
// operator's. ignored are names in its `disable` that the registry does not have.
func (s *State) clientsRun(own *RunConfig) (run Run, ignored []string, bad *refusal) {
	held := s.configFor()
	run = Run{Config: held.replacedBy(own)}
	c := &run.Config
	if bad := s.fixWorkspace(&run); bad != nil {
		return run, nil, bad
	}
	now, _ := s.stackAtStart()
	st, bad := s.stackOf(&now, c, run.Workspace)
	if bad != nil {
		return run, nil, bad
	}
	c.Disable, ignored = known(st.registry, own.Disable)
	if bad := s.configFault(&now, c, run.Workspace, true); bad != nil {
		return run, nil, bad
	}
	c.Disable = united(st.registry, held.Disable, c.Disable)
	c.TurnsMax = int(smaller(int64(held.TurnsMax), int64(c.TurnsMax)))
	c.Budget, c.DeadlinesMS = held.Budget.narrowed(c.Budget), held.DeadlinesMS.narrowed(c.DeadlinesMS)
	if s.install.Record.Policy.IngressTools != IngressReplace {
		if own.ActiveTools != nil || own.ToolRefs != nil {
			only := baseOf(own.ActiveTools, own.ToolRefs)
			run.Only = &only
			c.ActiveTools, c.ToolRefs = held.ActiveTools, held.ToolRefs
		}
		if own.Enable != nil {
			c.Enable = shared(st.registry, held.Enable, own.Enable)
		}
	}
	if own.Prices == nil {
		bad = c.priceFor(&held)
	}
	return run, ignored, bad
}

// replacedBy returns c with the fields that own names. A list of tools replaces
// another, whatever its form.
func (c RunConfig) replacedBy(own *RunConfig) RunConfig {
	if own.ActiveTools != nil || own.ToolRefs != nil {
		c.ActiveTools, c.ToolRefs = nil, nil
	}
	from, to := reflect.ValueOf(own).Elem(), reflect.ValueOf(&c).Elem()
	for i := range configFields {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	return c
}

// known splits a list into the names that the registry has, and the others.
func known(reg *planner.Registry, names []string) (have, lacks []string) {
	for _, name := range names {
		if _, ok := reg.Lookup(name); ok {
			have = append(have, name)
		} else {
			lacks = append(lacks, name)
		}
	}
	return have, lacks
}

// united returns a list with the tools of another that it does not name yet.
func united(reg *planner.Registry, list, other []string) []string {
	out := slices.Clone(list)
	for _, name := range other {
		if !names(reg, out, name) {
			out = append(out, name)
		}
	}
	return out
}

// shared returns the entries of a list whose tools another names, too.
func shared(reg *planner.Registry, list, other []string) (out []string) {
	for _, name := range list {
		if names(reg, other, name) {
			out = append(out, name)
		}
	}
	return out
}

// names reports whether a list names a tool, by either of its names.
func names(reg *planner.Registry, list []string, name string) bool {
	tool, ok := reg.Lookup(name)
	return slices.ContainsFunc(list, func(other string) bool {
		t, is := reg.Lookup(other)
		return other == name || ok && is && t == tool
	})
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// narrowed returns the smaller limits of two budgets. What happens to a run that
// reaches one is the operator's decision.
func (b *Budget) narrowed(by *Budget) *Budget {
	if b == nil || by == nil || b == by {
		return orOther(b, by)
	}
	return &Budget{
		Cost: smaller(b.Cost, by.Cost), OnBreach: b.OnBreach, SessionCost: smaller(b.SessionCost, by.SessionCost),
		SessionTokens: smaller(b.SessionTokens, by.SessionTokens), Tokens: smaller(b.Tokens, by.Tokens),
	}
}

func (d *DeadlinesMS) narrowed(by *DeadlinesMS) *DeadlinesMS {
	if d == nil || by == nil || d == by {
		return orOther(d, by)
	}
	return &DeadlinesMS{
		Approval: smaller(d.Approval, by.Approval), Call: smaller(d.Call, by.Call),
		Run: smaller(d.Run, by.Run), Turn: smaller(d.Turn, by.Turn),
	}
}

func orOther[T any](p, other *T) *T {
	if p == nil {
		return other
	}
	return p
}

// priceFor gives a client's config the operator's prices for its model. The prices
// outside `models` are those of the operator's own model. A budget of cost needs a
// price: a model without one would escape it.
func (c *RunConfig) priceFor(held *RunConfig) *refusal {
	if c.Model == held.Model && c.Provider == held.Provider {
		return nil
	}
	if p := held.Prices; p != nil {
		c.Prices = &Prices{Models: p.Models}
		if price := p.of(c.Model); price != nil {
			c.Prices.CacheRead, c.Prices.CacheWrite, c.Prices.Input, c.Prices.Output = price.CacheRead, price.CacheWrite, price.Input, price.Output
			return nil
		}
	}
	if b := c.Budget; b != nil && (b.Cost > 0 || b.SessionCost > 0) {
		return refuse(RejectNotPermitted, "config.model: the operator's prices have none for "+quoted(c.Model)+", and a budget of cost holds")
	}
	return nil
}

// stackAtStart returns the stack that applies when a run begins that is requested
// now: with the spaces that wait, which are applied before its first turn. waits
// reports whether there are any.
func (s *State) stackAtStart() (st stack, waits bool) {
	st = s.stack()
	if s.Spaces == nil || len(s.Spaces.Pending) == 0 {
		return st, false
	}
	for i := range s.Spaces.Pending {
		pin := s.Spaces.Pending[i].Pin
		st = st.with(s.adoptedOf(pin))
	}
	if st.compose() != nil { // none of them may be applied
		return s.stack(), true
	}
	return st, true
}

// doubtClients marks the clients' runs: what they name may be gone.
func (s *State) doubtClients() {
	for _, run := range s.runs() {
		run.Doubt = !run.Operators
	}
}

// doubtFault checks the active run's config again before its turn, if it is in doubt:
// it is a client's, and tools or spaces have changed since; or it was accepted with
// a space that waited. A client's request never holds back what comes through `ctl`:
// its run fails instead.
func (s *State) doubtFault(run *Run) *refusal {
	if !run.Doubt {
		return nil
	}
	run.Doubt = false
	return s.runConfigFault(run)
}

// runConfigFault checks the config of a run that was accepted. Nothing in an
// operator's may be gone. In a client's only a name in `disable` may: it disables
// nothing.
func (s *State) runConfigFault(run *Run) *refusal {
	st, c := s.stack(), run.Config
	if run.Doubt {
		return nil // it is checked before its next turn
	}
	if run.Operators {
		return s.configFault(&st, &c, run.Workspace, true)
	}
	if own := run.Workspace; own != nil && !s.isGranted(own.Space) {
		return refuse(RejectWorkspaceInvalid, "config.workspace: the session has no grant for "+quoted(own.Space)+" any more")
	}
	of, bad := s.stackOf(&st, &c, run.Workspace)
	if bad != nil {
		return bad
	}
	disabled, _ := known(of.registry, c.Disable)
	c.Disable = united(of.registry, nil, disabled) // one tool may have got two of the names
	if bad := s.configFault(&st, &c, run.Workspace, true); bad != nil {
		return bad
	}
	return onlyFault(of.registry, listOf(run.Only))
}

// onlyFault refuses a client's list that names what the registry does not have.
func onlyFault(reg *planner.Registry, names []string) *refusal {
	for i, name := range names {
		if _, ok := reg.Lookup(name); ok {
			continue
		}
		ref, err := codec.ParseRef(name)
		if _, ok := reg.LookupRef(ref); err != nil || !ok {
			return refuse(RejectUnknownTool, "config.active_tools["+strconv.Itoa(i)+"]: the registry has no tool "+quoted(name))
		}
	}
	return nil
}
