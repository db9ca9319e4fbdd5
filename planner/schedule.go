package planner

import "github.com/refold/refold/codec"

// PlanCall is one call of a batch without its arguments: names and key, which
// determine the order. Check makes it.
type PlanCall struct {
	Access       Access `msgpack:"access,omitempty"` // empty: there is no such tool
	Key          Key    `msgpack:"key"`
	ParallelSafe bool   `msgpack:"parallel_safe,omitempty"`
	Rejected     bool   `msgpack:"rejected,omitempty"` // in no group
	ToolID       string `msgpack:"tool_id,omitempty"`
	ToolName     string `msgpack:"tool_name,omitempty"`
}

// Plan is the order in which the calls of a batch may run. Calls of one group
// may run at the same time; group n+1 begins when every call of the groups up
// to n has a result.
type Plan struct {
	Calls  []PlanCall `msgpack:"calls"`
	Groups [][]int    `msgpack:"groups"` // positions in Calls, in call order
}

// Schedule plans a batch: a call joins the first group after all earlier calls
// that it conflicts with. Rejected calls are in no group and conflict with
// nothing. The plan keeps calls; the caller must not change them.
func Schedule(calls []PlanCall) Plan {
	plan := Plan{Calls: calls, Groups: [][]int{}}
	if len(calls) == 0 {
		return plan
	}
	var room [groupRoom]int
	group, groups := append(room[:0], make([]int, len(calls))...), 0
	members := 0
	for i := range calls {
		if calls[i].Rejected {
			continue
		}
		for j := range i {
			if group[j] >= group[i] && calls[i].conflicts(&calls[j]) {
				group[i] = group[j] + 1
			}
		}
		groups = max(groups, group[i]+1)
		members++
	}
	plan.Groups = make([][]int, groups)
	all := make([]int, 0, members) // the groups, one after another
	for g := range plan.Groups {
		from := len(all)
		for i := range calls {
			if group[i] == g && !calls[i].Rejected {
				all = append(all, i)
			}
		}
		plan.Groups[g] = all[from:len(all):len(all)]
	}
	return plan
}

// groupRoom is the number of calls that need no heap allocation: most batches
// have fewer.
const groupRoom = 16

// Conflicts returns the calls before call i that must not run at the same time as it.
func (p Plan) Conflicts(i int) (with []int) {
	for j := range i {
		if p.Calls[i].conflicts(&p.Calls[j]) {
			with = append(with, j)
		}
	}
	return with
}

// conflicts reports whether two calls must not run at the same time.
func (c *PlanCall) conflicts(other *PlanCall) bool {
	switch {
	case c.Rejected || other.Rejected:
		return false
	case !c.ParallelSafe || !other.ParallelSafe:
		return true
	case c.Access == AccessRead && other.Access == AccessRead:
		return false
	}
	return c.Key.overlaps(other.Key)
}

// Bytes returns the plan's canonical bytes: names, keys and groups. They are
// written without reflection, since every batch of every session needs them.
func (p Plan) Bytes() []byte { return p.append(make([]byte, 0, 32+128*len(p.Calls))) }

// append appends the plan's canonical bytes to out.
func (p *Plan) append(out []byte) []byte {
	out = codec.AppendString(codec.AppendMap(out, 2), "calls")
	out = codec.AppendArray(out, len(p.Calls))
	for i := range p.Calls {
		out = p.Calls[i].append(out)
	}
	out = codec.AppendArray(codec.AppendString(out, "groups"), len(p.Groups))
	for _, group := range p.Groups {
		out = codec.AppendArray(out, len(group))
		for _, i := range group {
			out = codec.AppendUint(out, uint64(i))
		}
	}
	return out
}

// append writes the call as its tags say. A map this small has a header of one
// byte: that of an empty map plus the number of entries.
func (c *PlanCall) append(out []byte) []byte {
	head := len(out)
	out, n := appendEntry(codec.AppendMap(out, 0), 1, "access", string(c.Access))
	out = c.Key.append(codec.AppendString(out, "key"))
	for _, flag := range [...]struct {
		key string
		is  bool
	}{{"parallel_safe", c.ParallelSafe}, {"rejected", c.Rejected}} {
		if flag.is {
			out, n = codec.AppendBool(codec.AppendString(out, flag.key), true), n+1
		}
	}
	out, n = appendEntry(out, n, "tool_id", c.ToolID)
	out, n = appendEntry(out, n, "tool_name", c.ToolName)
	out[head] += n
	return out
}

// append writes the key as its tags say.
func (k Key) append(out []byte) []byte {
	head := len(out)
	out, n := appendEntry(codec.AppendMap(out, 0), 0, "bare", k.Bare)
	out, n = appendEntry(out, n, "part", k.Part)
	out[head] += n
	return out
}

// appendEntry writes an entry of a map that has n entries, unless its text is
// empty.
func appendEntry(out []byte, n byte, key, text string) ([]byte, byte) {
	if text == "" {
		return out, n
	}
	return codec.AppendString(codec.AppendString(out, key), text), n + 1
}

// Hash returns the BLAKE2b-256 of Bytes: the plan_hash.
func (p Plan) Hash() codec.Hash {
	var room [1 << 10]byte
	return codec.Digest(p.append(room[:0]))
}
