package recorded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Target is the executor of the recorded tools, and Profile the profile with
// all of them.
const (
	Target  = "recorded"
	Profile = "recorded"
)

// ToolsFile returns the name of the file with a recording's tool definitions:
// x-tools.json for x.jsonl.
func ToolsFile(recording string) string {
	return strings.TrimSuffix(recording, filepath.Ext(recording)) + "-tools.json"
}

// LoadInstall reads a recording and the definitions of its tools, and returns it
// with the result of Install. If definitions is empty, it is ToolsFile(file).
func LoadInstall(file, definitions string, retrySafe []string) (r *Recording, record []byte, notes []string, err error) {
	if r, err = Load(file); err != nil {
		return nil, nil, nil, err
	}
	definitions = cmp.Or(definitions, ToolsFile(file))
	tools, err := LoadTools(definitions)
	if err != nil {
		return nil, nil, nil, err
	}
	record, notes, err = r.Install(tools, retrySafe)
	return r, record, notes, err
}

// LoadTools reads a file of OpenAI tool definitions for Install.
func LoadTools(file string) ([]Tool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open tool definitions: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, toolsFileBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read tool definitions: %w", err)
	}
	if len(data) > toolsFileBytesMax {
		return nil, fmt.Errorf("%s: more than %d bytes", filepath.Base(file), toolsFileBytesMax)
	}
	tools, err := ParseTools(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return tools, nil
}

// Tool is a tool as a chat completions request defines it.
type Tool struct {
	Name        string
	Description string
	Schema      codec.Raw // JSON Schema; that of any object if the definition has none
}

// ParseTools reads a JSON array of tool definitions, each a function bare or
// wrapped as {"type":"function","function":{…}}.
func ParseTools(data []byte) ([]Tool, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	var defs []struct {
		function
		Wrapped *function `json:"function"`
	}
	if err := json.Unmarshal(data, &defs); err != nil {
		return nil, fmt.Errorf("not a list of tool definitions: %w", err)
	}
	tools := make([]Tool, 0, len(defs))
	for i, def := range defs {
		fn := def.function
		if def.Wrapped != nil {
			fn = *def.Wrapped
		}
		if fn.Name == "" {
			return nil, fmt.Errorf("[%d]: no function with a name", i)
		}
		tool := Tool{Name: fn.Name, Description: fn.Description, Schema: anyObject()}
		if len(fn.Parameters) > 0 && string(fn.Parameters) != "null" {
			raw, err := codec.FromJSON(fn.Parameters)
			if err != nil {
				return nil, fmt.Errorf("[%d]: parameters of %s: %w", i, fn.Name, err)
			}
			tool.Schema = raw
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// anyObject is the schema of unknown arguments.
func anyObject() codec.Raw {
	raw, err := codec.FromJSON([]byte(`{"type":"object"}`))
	if err != nil {
		panic(err) // the text is constant
	}
	return raw
}

// Install returns the install record, as JSON, under which the recording can
// run again: its tools, each bound to Target and parallel-safe, retry-safe if
// its name matches a pattern of retrySafe (as in path.Match: get_*), one
// profile with all of them, and a config that uses this package's Model.
//
// A recording is evidence of what its tools accepted. A tool that was called
// and is not defined is added; a schema that a recorded call violates is
// replaced by that of any object. Each such change gives a note, for people.
func (r *Recording) Install(tools []Tool, retrySafe []string) (record []byte, notes []string, err error) {
	tools, notes, err = r.withCalls(tools)
	if err != nil {
		return nil, nil, err
	}
	rec := newRecord(tools, r.turnsMax())
	for i := range rec.Tools {
		if rec.Tools[i].RetrySafe, err = matches(retrySafe, rec.Tools[i].ToolName); err != nil {
			return nil, nil, err
		}
	}
	record, _, err = encode(rec)
	return record, notes, err
}

// newRecord returns the record for these tools, none of them retry-safe.
func newRecord(tools []Tool, turnsMax int) *session.InstallRecord {
	rec := &session.InstallRecord{
		V: session.Version, Rules: session.RulesVersion, DefaultProfile: Profile,
		Profiles: []planner.Profile{{Profile: Profile, Tools: []string{}}},
		Tools:    []planner.ToolSpec{},
		Config:   &session.RunConfig{Provider: ModelName, Model: ModelName, Profile: Profile, TurnsMax: turnsMax},
	}
	for _, t := range tools {
		id := Target + "." + t.Name
		rec.Profiles[0].Tools = append(rec.Profiles[0].Tools, id)
		rec.Tools = append(rec.Tools, planner.ToolSpec{
			ToolID: id, ToolName: t.Name, Description: t.Description, ArgsSchema: t.Schema,
			Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: Target}, ParallelSafe: true,
		})
	}
	return rec
}

// encode returns the record's JSON text, and the record as sessions use it.
func encode(rec *session.InstallRecord) (text []byte, in *session.Install, err error) {
	packed, err := codec.Marshal(rec)
	if err == nil {
		text, err = codec.ToJSONIndent(packed)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("install record: %w", err)
	}
	in, err = session.ParseInstall(text)
	return text, in, err
}

// turnsMax returns a limit of turns that no recorded run reaches, with the turn
// that reports the end of the recording.
func (r *Recording) turnsMax() int {
	most := session.TurnsDefault
	for _, c := range r.conversations {
		for _, run := range c.Runs {
			most = max(most, len(run.Turns)+1)
		}
	}
	return min(most, session.TurnsMax)
}

// withCalls adapts the tools to the recorded calls, as Install says.
func (r *Recording) withCalls(tools []Tool) (all []Tool, notes []string, err error) {
	all = append(all, tools...)
	at := map[string]int{}
	for i, t := range all {
		at[t.Name] = i
	}
	for call := range r.calls {
		if _, ok := at[call.Name]; !ok {
			at[call.Name] = len(all)
			all = append(all, Tool{Name: call.Name, Schema: anyObject()})
			notes = append(notes, call.Name+" is called and not defined: added, with any object as arguments")
		}
	}
	_, in, err := encode(newRecord(all, session.TurnsDefault))
	if err != nil {
		return nil, nil, err
	}
	offered := planner.Select(in.Registry, planner.Request{Profile: Profile}, planner.Facts{})
	loosened := map[string]bool{}
	for call := range r.calls {
		_, bad := planner.Check(in.Registry, &offered, planner.ObservedCall{ToolName: call.Name, Arguments: call.Arguments})
		if bad.OK() || loosened[call.Name] {
			continue
		}
		loosened[call.Name] = true
		all[at[call.Name]].Schema = anyObject()
		notes = append(notes, fmt.Sprintf("%s was called otherwise than its schema says (%s): takes any object", call.Name, bad.Detail))
	}
	return all, notes, nil
}

func (r *Recording) calls(yield func(*Call) bool) {
	for _, c := range r.conversations {
		for _, call := range c.calls {
			if !yield(call) {
				return
			}
		}
	}
}

func matches(patterns []string, name string) (bool, error) {
	for _, p := range patterns {
		ok, err := path.Match(p, name)
		if errors.Is(err, path.ErrBadPattern) {
			return false, fmt.Errorf("retry-safe pattern %q: use * ? and [a-z], as in get_*", p)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
