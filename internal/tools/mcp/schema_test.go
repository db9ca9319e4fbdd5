package mcp

// Schemas of older drafts, and names.

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOlderSchemasAreConverted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, want string }{
		{"says its draft", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"object"}`, `{"type":"object"}`},
		{"items by position", `{"properties":{"a":{"items":[{"type":"string"},true],"additionalItems":false}}}`,
			`{"properties":{"a":{"items":false,"prefixItems":[{"type":"string"},true]}}}`},
		{"additionalItems alone", `{"items":{"type":"string"},"additionalItems":false}`, `{"items":{"type":"string"}}`},
		{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`},
		{"exclusive bounds", `{"anyOf":[{"minimum":1,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false}]}`, `{"anyOf":[{"exclusiveMinimum":1,"maximum":5}]}`},
		{"definitions stay", `{"definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
			`{"definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`},
		{"a property of that name", `{"properties":{"dependencies":{"type":"array"},"items":{"type":"string"}}}`, `{"properties":{"dependencies":{"type":"array"},"items":{"type":"string"}}}`},
		{"a property called $schema", `{"properties":{"$schema":{"type":"string"}}}`, `{"properties":{"$schema":{"type":"string"}}}`},
	} {
		var old any
		must(t, json.Unmarshal([]byte(c.old), &old))
		got, err := modern(old)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	if _, err := modern([]any{}); err == nil {
		t.Error("a list is taken for a schema")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	for tool, want := range map[string]string{
		"read_file": "mcp.peer.read_file peer_read_file",
		"a b/ä.c":   "mcp.peer.a_b___c peer_a_b___c",
		long:        "mcp.peer." + strings.Repeat("a", 110) + "_c2a908d9 peer_" + strings.Repeat("a", 50) + "_c2a908d9",
	} {
		if got := toolID("peer", tool) + " " + toolName("peer", tool); got != want {
			t.Errorf("%.20q: got %s, want %s", tool, got, want)
		}
	}
}
