package session_test

// Sessions with spaces of their own, for TestWeight.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// spacious are shapes of sessions with spaces: each tells one of them its events.
func spacious(t *testing.T) map[string]func(say func(session.Door, string, any)) {
	t.Helper()
	adopt := func(say func(session.Door, string, any), n int, apply spaces.Mode, m *space.Manifest) {
		manifest := m.Bytes()
		grant := &spaces.Grant{Space: m.Space, Kind: m.Kind, Digests: []string{codec.Sum(manifest).String()}, Sources: []string{spaces.SourceModule}}
		say(session.DoorCtl, session.TypeWorkspaceSyncRequested, session.WorkspaceSyncRequested{Workspace: m.Space, Grant: grant, Apply: apply})
		say(session.DoorSpace, session.TypeWorkspaceSnapshotReady, session.WorkspaceSnapshotReady{
			Effect: fmt.Sprintf("y%d", n), Manifest: manifest, Source: spaces.SourceModule,
		})
	}
	applied := func(m *space.Manifest) func(say func(session.Door, string, any)) {
		return func(say func(session.Door, string, any)) {
			adopt(say, 1, spaces.ModeImmediate, m)
			say(session.DoorIn, session.TypeRunRequested, weighedRun(1))
		}
	}
	return map[string]func(say func(session.Door, string, any)){
		"a workspace":              applied(workspaceOf("support", 4, 40)),
		"a large manifest":         applied(workspaceOf("support", 128, 1000)),
		"a manifest of many names": applied(workspaceOfNames()),
		"a pack of small tools":    applied(packOf(t, 12, `{"type":"object","properties":{"id":{"type":"integer","maximum":9},"note":{"type":"string"}},"required":["id"]}`)),
		"a pack of a large tool":   applied(packOf(t, 1, `{"properties":{`+strings.TrimSuffix(strings.Repeat(`"?":{"type":"string","enum":["a","b"]},`, 300), ",")+`}}`)),
		"spaces that wait": func(say func(session.Door, string, any)) {
			for n := 1; n <= 10; n++ {
				adopt(say, n, "", workspaceOf(fmt.Sprintf("support-%d", n), 1, 40))
			}
			adopt(say, 11, spaces.ModeNextRun, workspaceOf("support", 1, 40))
			for n := range spaces.SyncsMax {
				say(session.DoorCtl, session.TypeWorkspaceSyncRequested, session.WorkspaceSyncRequested{Workspace: fmt.Sprintf("support-%d", n+1)})
			}
		},
	}
}

// workspaceOf is a workspace with n templates, context files, skills and words,
// and texts of some length.
func workspaceOf(name string, n, length int) *space.Manifest {
	text := strings.Repeat("Be short. ", length/10)
	m := &space.Manifest{
		V: 1, Kind: space.Workspace, Space: name, Version: "1.0.0", Defaults: &space.Defaults{PromptPack: "default", ToolCatalog: "default"},
		Prompts:  []space.Prompt{{PromptPack: "default", Parts: []space.Part{{Context: "docs"}, {Skills: true}}}},
		Context:  []space.Group{{Group: "all"}, {Group: "docs", Files: []int{0, 1, 2}}},
		Catalogs: []space.Catalog{{ToolCatalog: "default"}},
	}
	for i := range 3 * n {
		path := fmt.Sprintf("folder/of/some/files/%04d.md", i)
		m.Files = append(m.Files, space.File{Path: path, MediaType: "text/markdown", Ref: codec.RefOf([]byte(path)), Size: 100})
		m.Context[0].Files = append(m.Context[0].Files, i)
	}
	for i := range n {
		if i < 32 {
			m.Prompts[0].Parts = append(m.Prompts[0].Parts, space.Part{File: &i, Vars: codec.Pairs{{Key: "fact.region", Value: codec.Raw{1}}, {Key: "run", Value: codec.Raw{1}}}})
		}
		m.Skills = append(m.Skills, space.Skill{Skill: fmt.Sprintf("skill-%04d", i), Description: text, Body: i, Files: []int{i + n}, AllowedTools: []string{"read_file", "shell"}})
		m.Words = append(m.Words, space.Word{Tool: fmt.Sprintf("tool_%04d", i), Description: text})
		m.Catalogs[0].Tools = append(m.Catalogs[0].Tools, space.Entry{Tool: fmt.Sprintf("tool_%04d", i), Word: &i}.Raw())
	}
	return m
}

// workspaceOfNames is a workspace of many small parts.
func workspaceOfNames() *space.Manifest {
	m := &space.Manifest{V: 1, Kind: space.Workspace, Space: "support"}
	for i := range space.CatalogsMax {
		c := space.Catalog{ToolCatalog: fmt.Sprintf("catalog-%02d", i)}
		for n := range space.EntriesMax / 4 {
			c.Tools = append(c.Tools, space.Entry{Tool: fmt.Sprintf("%x", n)}.Raw())
		}
		m.Catalogs = append(m.Catalogs, c)
		p := space.Prompt{PromptPack: fmt.Sprintf("prompt-%02d", i)}
		for range space.PartsMax / 2 {
			p.Parts = append(p.Parts, space.Part{Skills: true})
		}
		m.Prompts = append(m.Prompts, p)
	}
	return m
}

// packOf is a pack of n tools with one schema, in which ? stands for a number.
func packOf(t *testing.T, n int, schema string) *space.Manifest {
	t.Helper()
	for i := 0; strings.Contains(schema, "?"); i++ {
		schema = strings.Replace(schema, "?", fmt.Sprintf("p%d", i), 1)
	}
	raw, err := codec.FromJSON([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	m := &space.Manifest{V: 1, Kind: space.Pack, Space: "crm", Version: "1.4.0"}
	for i := range n {
		m.Tools = append(m.Tools, planner.ToolSpec{
			ToolID: fmt.Sprintf("crm.find_%03d", i), ToolName: fmt.Sprintf("find_%03d", i), Description: "Finds customers by what is known of them.",
			ArgsSchema: raw, Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "crm-v1"},
		})
	}
	return m
}
