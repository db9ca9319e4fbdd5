package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// LeftOut is an offered tool that an API is not sent.
type LeftOut struct {
	Tool string `json:"tool"` // its tool_name
	Why  string `json:"why"`  // for people
}

// plan is what differs between tools and what an API is sent of them.
type plan struct {
	Left  []LeftOut                    `json:"left,omitempty"`
	Names map[string]string            `json:"names,omitempty"` // own to shown
	Keys  map[string]map[string]string `json:"keys,omitempty"`  // by own name of the tool; own to shown
}

// LeftOut returns which tools the API is not sent, in their order.
func (d *Dialect) LeftOut(tools []executor.Tool) []LeftOut { return d.plan(tools).Left }

func (d *Dialect) plan(tools []executor.Tool) plan {
	var p plan
	var names []string
	for i := range tools {
		t := &tools[i]
		_, keys, err := d.Normalize(t.Schema)
		switch {
		case err != nil:
			p.Left = append(p.Left, LeftOut{t.Name, fmt.Sprintf("%s can't be told of it: %v", d.Name, err)})
			continue
		case d.toolsMax > 0 && len(names) == d.toolsMax:
			p.Left = append(p.Left, LeftOut{t.Name, fmt.Sprintf("%s takes at most %d tools, and is sent the first ones", d.Name, d.toolsMax)})
			continue
		}
		names = append(names, t.Name)
		if keys != nil {
			if p.Keys == nil {
				p.Keys = map[string]map[string]string{}
			}
			p.Keys[t.Name] = keys
		}
	}
	p.Names = rename(names, d.isName, d.fold)
	return p
}

// Adapted maps the names in an answer to those of the tools.
type Adapted struct {
	plan
	names map[string]string            // shown to own
	keys  map[string]map[string]string // by own name of the tool; shown to own
}

// Adapt returns a request with the tools that the API is sent, under the names
// that the model is shown, also in earlier calls, and with the response_format that
// it accepts. The schemas of tools are as they were: Normalize is for rendering
// them. masks says whether the API can be told to accept calls of some of its tools
// alone; without it, Defined is dropped, as it is if these are more than the API
// takes.
func (d *Dialect) Adapt(req executor.Request, masks bool) (executor.Request, *Adapted) {
	if !masks || d.toolsMax > 0 && len(req.Defined) > d.toolsMax {
		req.Defined = nil
	}
	req = d.formed(req)
	text, err := req.RenderDefined("plan."+d.Name, func(tools []executor.Tool) ([]byte, error) { return encode(d.plan(tools)), nil })
	a := &Adapted{}
	if err != nil || json.Unmarshal(text, &a.plan) != nil {
		return req, a
	}
	a.names, a.keys = reversed(a.Names), map[string]map[string]string{}
	for tool, keys := range a.Keys {
		a.keys[tool] = reversed(keys)
	}
	req.Tools, req.Defined = a.tools(req.Tools), a.tools(req.Defined)
	switch choice := req.ToolChoice; {
	case a.leaves(choice):
		req.ToolChoice = ""
	case a.Names[choice] != "":
		req.ToolChoice = a.Names[choice]
	}
	req.Messages = a.messages(d, req.Messages)
	return req, a
}

// tools returns the tools that the API is sent, under the names that it is shown.
func (a *Adapted) tools(tools []executor.Tool) []executor.Tool {
	if len(a.Left) == 0 && len(a.Names) == 0 || tools == nil {
		return tools
	}
	kept := make([]executor.Tool, 0, len(tools))
	for _, t := range tools {
		if a.leaves(t.Name) {
			continue
		}
		if shown := a.Names[t.Name]; shown != "" {
			t.Name = shown
		}
		kept = append(kept, t)
	}
	return kept
}

func (a *Adapted) leaves(tool string) bool {
	return slices.ContainsFunc(a.Left, func(l LeftOut) bool { return l.Tool == tool })
}

// messages renames the names and arguments of earlier calls.
func (a *Adapted) messages(d *Dialect, messages []executor.Message) []executor.Message {
	own := false
	for i := range messages {
		for j := range messages[i].Calls {
			call := &messages[i].Calls[j]
			name := a.Names[call.Name]
			if name == "" && planner.IsName(call.Name) && !d.isName(call.Name) { // not offered any more
				name = rename([]string{call.Name}, d.isName, d.fold)[call.Name]
			}
			keys := a.Keys[call.Name]
			if name == "" && keys == nil {
				continue
			}
			if !own {
				messages, own = slices.Clone(messages), true
			}
			calls := slices.Clone(messages[i].Calls)
			if name != "" {
				calls[j].Name = name
			}
			calls[j].Arguments = renameKeys(calls[j].Arguments, keys)
			messages[i].Calls = calls
		}
	}
	return messages
}

// Answer renames the names and arguments of an answer's calls to those of the
// tools. It changes the answer's calls.
func (a *Adapted) Answer(answer executor.Answer) executor.Answer {
	for i := range answer.Calls {
		call := &answer.Calls[i]
		if own := a.names[call.Name]; own != "" {
			call.Name = own
		}
		call.Arguments = renameKeys(call.Arguments, a.keys[call.Name])
	}
	return answer
}

func reversed(names map[string]string) map[string]string {
	all := make(map[string]string, len(names))
	for own, shown := range names {
		all[shown] = own
	}
	return all
}

// renameKeys renames keys of all objects in a JSON text. It returns a text
// without such keys, or that is no JSON, unchanged.
func renameKeys(arguments string, keys map[string]string) string {
	found := false
	for from := range keys {
		found = found || strings.Contains(arguments, from) || strings.Contains(arguments, `\u`)
	}
	if !found {
		return arguments
	}
	renamed, err := renameIn(json.RawMessage(arguments), keys)
	if err != nil {
		return arguments
	}
	return string(renamed)
}

func renameIn(value json.RawMessage, keys map[string]string) (json.RawMessage, error) {
	switch text := strings.TrimLeft(string(value), " \t\r\n"); {
	case strings.HasPrefix(text, "{"):
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			return nil, err
		}
		all := make(map[string]json.RawMessage, len(members))
		for name, member := range members {
			to := name
			if other, ok := keys[name]; ok {
				to = other
			}
			var err error
			if all[to], err = renameIn(member, keys); err != nil {
				return nil, err
			}
		}
		return encode(all), nil
	case strings.HasPrefix(text, "["):
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i := range items {
			var err error
			if items[i], err = renameIn(items[i], keys); err != nil {
				return nil, err
			}
		}
		return encode(items), nil
	}
	return value, nil
}

// Members returns the members of a tool's normalized schema.
func (d *Dialect) Members(t *executor.Tool) (map[string]any, error) {
	normal, _, err := d.Normalize(t.Schema)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(normal, &members); err != nil {
		return nil, errors.New("its schema is no JSON object")
	}
	schema := make(map[string]any, len(members))
	for name, value := range members {
		schema[name] = value
	}
	return schema, nil
}
