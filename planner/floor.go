package planner

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Floor is what an install record's registry demands of every registry that a
// session sets in its place: the same tools, and other tools of the same
// targets, are bound at least as strictly. It is immutable, may be shared, and
// is safe for concurrent use. A nil *Floor demands nothing.
type Floor struct {
	record  *Registry
	targets map[string]*targetFloor
}

// targetFloor is what the record's tools of one target have in common.
type targetFloor struct {
	name         string
	union        []string // capabilities that one of them requires, sorted
	common       []string // capabilities that each of them requires, sorted
	asks         bool     // each of them has an approval
	parallelSafe bool     // one of them is
	retrySafe    bool     // one of them is
}

// NewFloor returns what an install record's registry demands.
func NewFloor(record *Registry) *Floor {
	f := &Floor{record: record, targets: map[string]*targetFloor{}}
	for i := range record.tools {
		spec := &record.tools[i].spec
		if spec.Executor.Target == "" { // no bridge carries its calls out
			continue
		}
		target, known := f.targets[spec.Executor.Target]
		if !known {
			target = &targetFloor{name: spec.Executor.Target, common: slices.Clone(spec.Requires), asks: true}
			f.targets[spec.Executor.Target] = target
		}
		target.union = append(target.union, spec.Requires...)
		target.common = slices.DeleteFunc(target.common, func(name string) bool { return !slices.Contains(spec.Requires, name) })
		target.asks = target.asks && spec.Approval != ApprovalNever
		target.parallelSafe = target.parallelSafe || spec.ParallelSafe
		target.retrySafe = target.retrySafe || spec.RetrySafe
	}
	for i := range record.tools {
		target := f.targets[record.tools[i].spec.Executor.Target]
		if target == nil {
			continue
		}
		slices.Sort(target.union)
		target.union = slices.Compact(target.union)
	}
	return f
}

// Check returns a *RegistryError for the first tool that is bound more loosely
// than the install record binds it. tools are those of reg in the order given.
// A tool of the record is compared by its tool_id; a tool that the record lacks,
// or has at another target, by its target. The record's own registry passes.
func (f *Floor) Check(reg *Registry, tools []ToolSpec) *RegistryError {
	for i := range tools {
		t := reg.byID[tools[i].ToolID]
		path, spec := fmt.Sprintf("tools[%d]", i), &reg.tools[t].spec
		if same, ok := f.record.byID[spec.ToolID]; ok {
			if bad := f.record.tools[same].floors(path, &reg.tools[t]); bad != nil {
				return bad
			}
		}
		if target := f.target(spec); target != nil {
			if bad := target.floors(path, spec); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// floors says where other, a tool of the same tool_id in another registry, is
// bound more loosely than t, a tool of the record.
func (t *tool) floors(path string, other *tool) *RegistryError {
	record, spec := &t.spec, &other.spec
	of := record.ToolID + " in the install record"
	switch lacks := lacking(spec, record.Requires); {
	case spec.ParallelSafe && spec.Access == AccessRead && record.Access != AccessRead:
		return fault(path+".access", "is write for %s: one that is parallel-safe must say so", of)
	case !t.approvalHolds(other):
		return fault(path+".approval", "is %s for %s", quoted(record.Approval), of)
	case spec.Executor.Kind != record.Executor.Kind:
		return fault(path+".executor.kind", "is %s for %s", record.Executor.Kind, of)
	case spec.Executor.By == ByClients && record.Executor.By == ByApprovers:
		return fault(path+".executor.by", "is %s for %s", ByApprovers, of)
	case len(record.Executor.ResultSchema) > 0 && !bytes.Equal(spec.Executor.ResultSchema, record.Executor.ResultSchema):
		return fault(path+".executor.result_schema", "is another for %s", of)
	case spec.ParallelSafe && !record.ParallelSafe:
		return fault(path+".parallel_safe", "is false for %s", of)
	case lacks != "":
		return fault(path+".requires", "the install record requires %s of %s", quoted(lacks), record.ToolID)
	case spec.ParallelSafe && spec.ResourceKind != record.ResourceKind && spec.ResourceKey == record.ResourceKey && record.ResourceKey != "":
		return fault(path+".resource_kind", "is %s for %s: one that is parallel-safe must keep it", quoted(string(record.ResourceKind)), of)
	case spec.ParallelSafe && spec.ResourceKey != record.ResourceKey && record.ResourceKey != "":
		return fault(path+".resource_key", "is %s for %s: one that is parallel-safe must keep it", quoted(record.ResourceKey), of)
	case spec.RetrySafe && !record.RetrySafe:
		return fault(path+".retry_safe", "is false for %s", of)
	}
	return nil
}

// approvalHolds reports whether other requires an approval whenever t does:
// always, or by the same condition with the same names meaning the same tools.
func (t *tool) approvalHolds(other *tool) bool {
	if t.spec.Approval == ApprovalNever || other.spec.Approval == ApprovalAlways {
		return true
	}
	same := t.spec.Approval == other.spec.Approval
	if !same || t.approval == nil || other.approval == nil {
		return same
	}
	return slices.Equal(t.approval.used, other.approval.used)
}

// floors says where a tool is bound more loosely than every one of the record's
// tools of its target.
func (f *targetFloor) floors(path string, spec *ToolSpec) *RegistryError {
	of := "every tool of the target " + f.name
	switch lacks := lacking(spec, f.common); {
	case f.asks && spec.Approval == ApprovalNever:
		return fault(path+".approval", "is not never for %s in the install record", of)
	case spec.ParallelSafe && !f.parallelSafe:
		return fault(path+".parallel_safe", "is false for %s in the install record", of)
	case lacks != "":
		return fault(path+".requires", "the install record requires %s of %s", quoted(lacks), of)
	case spec.RetrySafe && !f.retrySafe:
		return fault(path+".retry_safe", "is false for %s in the install record", of)
	}
	return nil
}

// lacking returns the first of capabilities that a tool does not require, or "".
func lacking(spec *ToolSpec, capabilities []string) string {
	for _, name := range capabilities {
		if !slices.Contains(spec.Requires, name) {
			return name
		}
	}
	return ""
}

// target returns what the record demands of a tool by its target, or nil if it
// demands nothing: the record has no such target, or has this tool there. A
// target below one of the record's belongs to it: host-w1 to host, as workers
// are named.
func (f *Floor) target(spec *ToolSpec) *targetFloor {
	target := f.below(spec.Executor.Target)
	if t, ok := f.record.byID[spec.ToolID]; ok && target == f.below(f.record.tools[t].spec.Executor.Target) {
		return nil
	}
	return target
}

// below returns the record's target of that name, else the nearest one above
// it.
func (f *Floor) below(name string) *targetFloor {
	for {
		if target, ok := f.targets[name]; ok {
			return target
		}
		end := strings.LastIndexByte(name, '-')
		if end < 0 {
			return nil
		}
		name = name[:end]
	}
}

// requires returns what a tool of reg requires in addition to its own spec. A
// tool that the record lacks at this target requires the capabilities of all of
// the record's tools there.
func (f *Floor) requires(reg *Registry, t ToolIndex) []string {
	if f == nil || reg == f.record {
		return nil
	}
	target := f.target(&reg.tools[t].spec)
	if target == nil {
		return nil
	}
	return target.union
}

// verdictIndexMax is the greatest index in a verdict, which has one byte for
// it.
const verdictIndexMax = 1<<8 - 1

// capability returns the name of the capability that a verdict is about, as
// Registry.available counts them, or "" if it is not known.
func (f *Floor) capability(reg *Registry, t ToolIndex, index int) string {
	own := reg.tools[t].spec.Requires
	if index < len(own) {
		return own[index]
	}
	added := f.requires(reg, t)
	if index -= len(own); index < len(added) && index+len(own) < verdictIndexMax {
		return added[index]
	}
	return ""
}
