package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/llm/schema"
)

// tellLeftOut adds to the view's offered tools why the API of the turn's provider
// is not sent them, and returns why that can't hold the model to the schema of its
// answer, "" if it can. It folds the session's events again: a view has no schemas.
func tellLeftOut(ctx context.Context, c *client.Client, v *session.View) (string, error) {
	var tools []executor.Tool
	var form codec.Raw
	name := ""
	_, err := c.Replay(ctx, v.Session, 0, func(_ session.Event, _ []session.Notice, state *session.State) {
		t := state.Turn
		if t == nil || state.Run == nil || fmt.Sprintf("r%dt%d", t.Run, t.Number) != v.Turn.Effect {
			return
		}
		name, form, tools = state.TurnProvider(), state.ResponseFormat(), tools[:0]
		for i := range t.Toolset.Offers {
			d := t.Toolset.Descriptor(state.TurnRegistry(), i)
			text, err := codec.ToJSON(d.ArgsSchema)
			if err != nil {
				continue // a registry has no such schema
			}
			tools = append(tools, executor.Tool{Name: d.ToolName, Description: d.Description, Schema: text})
		}
	})
	dialect := provider.DialectOf(name)
	if err != nil || dialect == nil {
		return "", err
	}
	for _, left := range dialect.LeftOut(tools) {
		for i := range v.Tools {
			if v.Tools[i].Offered && v.Tools[i].ToolName == left.Tool {
				v.Tools[i].Why = "offered, but the model does not see it: " + left.Why
			}
		}
	}
	return looserForm(dialect, form), nil
}

// looserForm returns why an API can't hold the model to the schema of a
// response_format, "" if it can, or there is none.
func looserForm(dialect *schema.Dialect, form codec.Raw) string {
	var f session.ResponseFormat
	if len(form) == 0 || codec.Decode(form, &f) != nil || f.Type != session.FormatSchema {
		return ""
	}
	text, err := codec.ToJSON(f.Schema)
	if err != nil {
		return ""
	}
	return dialect.Answer(&executor.Format{Name: f.Name, Schema: text, Strict: f.Strict}).Why
}

// tellSchemas prints what becomes of imported tools for providers' APIs.
func tellSchemas(out io.Writer, tools []*function.Function) error {
	all := make([]executor.Tool, len(tools))
	for i, f := range tools {
		text, err := f.Spec()
		if err != nil {
			return err
		}
		var spec struct {
			Name   string          `json:"tool_name"`
			Schema json.RawMessage `json:"args_schema"`
		}
		if err := json.Unmarshal(text, &spec); err != nil {
			return err
		}
		all[i] = executor.Tool{Name: spec.Name, Schema: spec.Schema}
	}
	for _, line := range schema.Tell(all) {
		fmt.Fprintf(out, "refold: %s\n", line)
	}
	return nil
}
