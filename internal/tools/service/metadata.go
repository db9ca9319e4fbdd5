package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/planner"
)

// MetadataKey is the metadata key that makes an endpoint a tool. Its value is a
// JSON object with the members of metadata.
const MetadataKey = "refold.tool"

// metadata describes the tool of an endpoint.
type metadata struct {
	ToolID       string          // default: <service>.<endpoint>
	ToolName     string          // default: the tool_id with _ for dots
	Description  string          // default: the service's
	Schema       json.RawMessage // of the arguments
	RetrySafe    bool
	ParallelSafe bool
	Access       string
	ResourceKey  string
	ResourceKind string
	Requires     []string
	Approval     string
	DeadlineMS   int64
}

// members returns the members of the JSON object by name, each with its
// destination and type.
func (m *metadata) members() map[string]member {
	return map[string]member{
		"tool_id": {&m.ToolID, "a text"}, "tool_name": {&m.ToolName, "a text"}, "description": {&m.Description, "a text"},
		"schema":     {&m.Schema, "a JSON Schema, an object"},
		"retry_safe": {&m.RetrySafe, "true or false"}, "parallel_safe": {&m.ParallelSafe, "true or false"},
		"access": {&m.Access, "read or write"}, "resource_key": {&m.ResourceKey, "a text"}, "resource_kind": {&m.ResourceKind, "text or path"},
		"requires": {&m.Requires, "a list of texts"}, "approval": {&m.Approval, "never, always or a condition, as a text"},
		"deadline_ms": {&m.DeadlineMS, "a whole number of milliseconds"},
	}
}

type member struct {
	to   any
	want string
}

// parseMetadata reads a value of MetadataKey. The error reports every problem,
// each with its member's name.
func parseMetadata(text string, redactor *secrets.Redactor) (m metadata, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &given); err != nil || given == nil {
		return m, fmt.Errorf("is a JSON object: {\"schema\": {…}, …}, not %s", redactor.Clip(text, quotedMax))
	}
	members := m.members()
	var all []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		to, known := members[name]
		switch {
		case !known:
			all = append(all, fmt.Errorf("%s: there is no such member, there are %s", name, strings.Join(slices.Sorted(maps.Keys(members)), ", ")))
		case bytes.Equal(value, []byte("null")), json.Unmarshal(value, to.to) != nil:
			all = append(all, fmt.Errorf("%s: is %s, not %s", name, to.want, redactor.Clip(string(value), quotedMax)))
		}
	}
	if given["schema"] == nil {
		all = append(all, errors.New(`schema: is missing; of a tool without arguments it is {"type": "object", "additionalProperties": false}`))
	}
	if m.Access != "" && m.Access != string(planner.AccessRead) && m.Access != string(planner.AccessWrite) {
		all = append(all, fmt.Errorf("access: is read or write, not %q", redactor.Clip(m.Access, quotedMax)))
	}
	if m.DeadlineMS < 0 || m.DeadlineMS > planner.DeadlineMSMax {
		all = append(all, fmt.Errorf("deadline_ms: is 0 (the session's) to %d, not %d", int64(planner.DeadlineMSMax), m.DeadlineMS))
	}
	return m, errors.Join(all...)
}

func (m *metadata) deadline() time.Duration { return time.Duration(m.DeadlineMS) * time.Millisecond }
