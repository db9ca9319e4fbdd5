package function

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// registryOf returns tools as a registry, checked as those of an install record.
func registryOf(specs []planner.ToolSpec) (*planner.Registry, error) {
	record, err := codec.Marshal(session.InstallRecord{Rules: session.RulesVersion, Tools: specs, V: session.Version})
	if err != nil {
		return nil, err
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "install record: "))
	}
	return install.Registry, nil
}

// Spec returns the tool as a registry has it, a JSON object, with its
// descriptor's tool_ref left to be computed.
func (f *Function) Spec() (json.RawMessage, error) {
	if f.err != nil {
		return nil, f.err
	}
	packed, err := codec.Marshal(f.spec)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", f.spec.ToolID, err)
	}
	return codec.ToJSON(packed)
}

// Specs returns tools as a registry of their own, {"tools": […]}: what
// client.SetRegistry gives a session in place of the one that it has. The error
// reports everything that is wrong with them.
func Specs(tools ...*Function) (json.RawMessage, error) {
	list, err := specs(tools)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"tools": list})
}

func specs(tools []*Function) ([]json.RawMessage, error) {
	if err := check(tools); err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(tools))
	for i, f := range tools {
		var err error
		if list[i], err = f.Spec(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// InstallRecord returns base with tools added, ready for `refold install`: a
// tool that has the tool_id of one in base takes its place, and each of the
// others joins every profile at its end. base is an install record as JSON, as
// `refold install --show` prints it, or a part of one: {} and nil stand for a
// record without anything. What the tools require is granted only if base
// grants it: see `capabilities`. The error says what is wrong with the tools,
// or with the record as a whole.
func InstallRecord(base []byte, tools ...*Function) ([]byte, error) {
	list, err := specs(tools)
	if err != nil {
		return nil, err
	}
	record := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &record); err != nil {
			return nil, fmt.Errorf("base: is no install record as JSON: %w", err)
		}
	}
	if err := addTools(record, tools, list); err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	for key, value := range map[string]int{"v": session.Version, "rules": session.RulesVersion} {
		if record[key] == nil {
			record[key] = fmt.Append(nil, value)
		}
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, err
	}
	if _, err := session.ParseInstall(text); err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// addTools adds tools, whose specs are given too, to a record and its profiles.
func addTools(record map[string]json.RawMessage, tools []*Function, list []json.RawMessage) error {
	var there []json.RawMessage
	var profiles []map[string]json.RawMessage
	for key, to := range map[string]any{"tools": &there, "profiles": &profiles} {
		if record[key] == nil {
			continue
		}
		if err := json.Unmarshal(record[key], to); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	places := map[string]int{}
	for i, spec := range there {
		var named struct {
			ToolID string `json:"tool_id"`
		}
		if err := json.Unmarshal(spec, &named); err != nil {
			return fmt.Errorf("tools[%d]: %w", i, err)
		}
		places[named.ToolID] = i
	}
	var fresh []string
	for i, f := range tools {
		if place, ok := places[f.ToolID()]; ok {
			there[place] = list[i]
			continue
		}
		there = append(there, list[i])
		fresh = append(fresh, f.ToolID())
	}
	for i, profile := range profiles {
		var names []string
		if err := json.Unmarshal(profile["tools"], &names); err != nil {
			return fmt.Errorf("profiles[%d].tools: %w", i, err)
		}
		all, err := json.Marshal(slices.Concat(names, fresh))
		if err != nil {
			return err
		}
		profile["tools"] = all
	}
	for key, value := range map[string]any{"tools": there, "profiles": profiles} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		record[key] = text
	}
	if len(profiles) == 0 {
		delete(record, "profiles")
	}
	return nil
}
