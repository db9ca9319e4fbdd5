package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

// stepAsked is a step as its hook is asked.
type stepAsked struct {
	request *executor.StepRequest
	items   session.ItemList // the latest of the transcript
}

var steps = safeClass[session.Step]{
	executor: "hook", code: codeHookFailed,
	served: func(s *Target) bool { return s.Hook != nil },
	read: func(p *session.Step, _ string) (any, header, error) {
		request, err := stepRequest(p)
		name := subjects.EffectName{Class: p.Class, Target: p.Hook, Session: p.Session, Effect: p.Effect}
		return &stepAsked{request, p.Items}, header{name, p.V, p.RunMS, p.StartBy}, err
	},
	run: prepareStep,
	failed: func(effect string, fault *session.Fault) *settled {
		return &settled{session.TypeStepPrepared, session.StepPrepared{Effect: effect, Error: fault, Status: "failed"}}
	},
}

// prepareStep asks a hook.
func prepareStep(ctx context.Context, w *Worker, f *execution, start string) (*settled, error) {
	asked := f.own.(*stepAsked)
	request := *asked.request
	request.Start, request.Log = start, w.reader.StepLog(asked.request, asked.items)
	choice, err := f.served.Hook.PrepareStep(ctx, request)
	var b *session.StepPrepared
	if err == nil {
		b, err = preparedOf(&choice)
	}
	if err != nil {
		if fault := faultOf(err, codeHookFailed); fault.Code == session.CodeBadSettlement {
			w.logFor(f).Error("choice_refused", "detail", fault.Detail)
		}
		return nil, err
	}
	b.Effect, b.Status = f.name.Effect, "ok"
	return &settled{session.TypeStepPrepared, *b}, nil
}

// preparedOf returns a choice as the session accepts it. The error is an *Error
// that names the limit or other rule broken. Only the session knows which tools
// there are.
func preparedOf(c *executor.StepChoice) (*session.StepPrepared, error) {
	b := &session.StepPrepared{Model: c.Model, System: c.System, ToolChoice: c.ToolChoice}
	var err error
	if b.Context, err = objectOf("context", c.Context); err != nil {
		return nil, err
	}
	if b.Params, err = objectOf("params", c.Params); err != nil {
		return nil, err
	}
	// The session's own rules that need no registry; the others follow.
	if bad := planner.CheckStep(nil, "", &planner.StepRule{Context: b.Context, Model: b.Model, Params: b.Params, System: b.System}); bad != nil {
		return nil, badChoice(bad.Path, bad.Detail)
	}
	if n := len(c.ToolChoice); n > planner.ToolIDBytesMax {
		return nil, badChoice("tool_choice", fmt.Sprintf("%d bytes, at most %d", n, planner.ToolIDBytesMax))
	}
	if c.ToolChoice != prompt.Valid(c.ToolChoice) {
		return nil, badChoice("tool_choice", "is not UTF-8")
	}
	if c.ActiveTools != nil {
		if err := checkNames("active_tools", "tools", c.ActiveTools); err != nil {
			return nil, err
		}
		b.ActiveTools = &c.ActiveTools
	}
	if c.ToolRefs != nil {
		refs, err := refsOf(c)
		if err != nil {
			return nil, err
		}
		b.ToolRefs = &refs
	}
	return b, nil
}

func refsOf(c *executor.StepChoice) ([]codec.Ref, error) {
	if c.ActiveTools != nil {
		return nil, badChoice("tool_refs", "stands beside active_tools: give one of the two")
	}
	if err := checkNames("tool_refs", "descriptors", c.ToolRefs); err != nil {
		return nil, err
	}
	refs := make([]codec.Ref, len(c.ToolRefs))
	for i, text := range c.ToolRefs {
		var err error
		if refs[i], err = codec.ParseRef(text); err != nil {
			return nil, badChoice("tool_refs["+strconv.Itoa(i)+"]", "is no sha256-… of a descriptor")
		}
	}
	return refs, nil
}

func checkNames(field, unit string, names []string) error {
	if len(names) > planner.StepToolsMax {
		return badChoice(field, fmt.Sprintf("%d %s, at most %d", len(names), unit, planner.StepToolsMax))
	}
	for i, name := range names {
		switch {
		case len(name) > planner.ToolIDBytesMax:
			return badChoice(field+"["+strconv.Itoa(i)+"]", fmt.Sprintf("%d bytes, at most %d", len(name), planner.ToolIDBytesMax))
		case name != prompt.Valid(name):
			return badChoice(field+"["+strconv.Itoa(i)+"]", "is not UTF-8")
		}
	}
	return nil
}

// objectOf returns the object that encoding/json makes of v, nil for none.
func objectOf(field string, v any) (codec.Raw, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, badChoice(field, err.Error())
	}
	if string(text) == "null" {
		return nil, nil
	}
	raw, err := codec.FromJSON(text)
	if err != nil {
		return nil, badChoice(field, err.Error())
	}
	return raw, nil
}

// badChoice is the fault of a choice that no session accepts. It has the code
// that the session would give.
func badChoice(field, detail string) error {
	return &executor.Error{Code: session.CodeBadSettlement, Detail: field + ": " + detail}
}

func stepRequest(p *session.Step) (*executor.StepRequest, error) {
	s := &executor.StepRequest{
		Session: p.Session, Effect: p.Effect, Hook: p.Hook, Step: p.Step, Used: p.Used, Roles: p.Roles, InputSeq: p.InputSeq, Cut: p.ItemsCut,
		Provider: p.Provider, Model: p.Model, Facts: make(map[string]string, len(p.Facts)),
		Usage: executor.Usage{
			InputTokens: p.Usage.InputTokens, OutputTokens: p.Usage.OutputTokens,
			CachedTokens: p.Usage.CachedTokens, CacheWriteTokens: p.Usage.CacheWriteTokens, ReasoningTokens: p.Usage.ReasoningTokens,
		},
	}
	for _, c := range p.Calls {
		s.Calls = append(s.Calls, executor.StepCall{
			Effect: c.Effect, ToolID: c.ToolID, ToolName: c.ToolName, Status: string(c.Status), Code: c.Code, Step: c.Step,
			Seq: c.Seq, CallsSeq: c.CallsSeq, Edit: c.Edit, Arguments: c.Arguments, ArgumentsCut: c.ArgumentsCut,
		})
	}
	for _, t := range p.Tools {
		s.Tools = append(s.Tools, executor.StepTool{ToolID: t.ToolID, ToolName: t.ToolName})
	}
	for _, f := range p.Facts {
		var value string
		if err := codec.Unmarshal(f.Value, &value); err != nil {
			return nil, fmt.Errorf("fact %s: %w", f.Key, err)
		}
		s.Facts[f.Key] = value
	}
	if len(p.Context) > 0 {
		text, err := codec.ToJSON(p.Context)
		if err != nil {
			return nil, fmt.Errorf("context: %w", err)
		}
		s.Context = text
	}
	return s, nil
}
