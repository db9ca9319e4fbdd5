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

// registryOf returns a registry of tools, checked as in an install record.
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

// Spec returns the tool as a registry has it, as a JSON object without its
// descriptor's tool_ref, which is computed later.
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

// Specs returns tools as a registry of their own, {"tools": […]}, with which
// client.SetRegistry replaces a session's. The error reports every problem.
func Specs(tools ...*Function) (json.RawMessage, error) {
	list, err := specs(tools)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"tools": list})
}

func specs(tools []*Function) ([]json.RawMessage, error) {
	if err := checkAll(tools); err != nil {
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

// InstallRecord returns base with tools added, ready for `refold install`: a tool
// with the tool_id of one in base replaces it, and each of the others is added at
// the end of every profile. base is an install record as JSON, as `refold install
// --show` prints it, or a part of one; {} and nil are empty records. Capabilities
// that the tools require are granted only if base grants them. The error reports
// the problems of the tools, or of the whole record.
func InstallRecord(base []byte, tools ...*Function) ([]byte, error) {
	list, err := specs(tools)
	if err != nil {
		return nil, err
	}
	record := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &record); err != nil {
			return nil, fmt.Errorf("base: is not an install record as JSON: %w", err)
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

// addTools adds tools, whose specs are in list, to a record and its profiles.
func addTools(record map[string]json.RawMessage, tools []*Function, list []json.RawMessage) error {
	var existing []json.RawMessage
	var profiles []map[string]json.RawMessage
	for key, to := range map[string]any{"tools": &existing, "profiles": &profiles} {
		if record[key] == nil {
			continue
		}
		if err := json.Unmarshal(record[key], to); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	positions := map[string]int{}
	for i, spec := range existing {
		var named struct {
			ToolID string `json:"tool_id"`
		}
		if err := json.Unmarshal(spec, &named); err != nil {
			return fmt.Errorf("tools[%d]: %w", i, err)
		}
		positions[named.ToolID] = i
	}
	var added []string
	for i, f := range tools {
		if at, ok := positions[f.ToolID()]; ok {
			existing[at] = list[i]
			continue
		}
		existing = append(existing, list[i])
		added = append(added, f.ToolID())
	}
	for i, profile := range profiles {
		var names []string
		if err := json.Unmarshal(profile["tools"], &names); err != nil {
			return fmt.Errorf("profiles[%d].tools: %w", i, err)
		}
		all, err := json.Marshal(slices.Concat(names, added))
		if err != nil {
			return err
		}
		profile["tools"] = all
	}
	for key, value := range map[string]any{"tools": existing, "profiles": profiles} {
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
