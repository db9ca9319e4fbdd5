package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Finding is a difference from what was imported, of a tool or of a whole server.
type Finding struct {
	Server string
	Tool   string // at the server; empty: it is about the server
	ToolID string // likewise
	What   string // the difference, with both hashes if a schema differs
}

// Check requests the tools of all servers concurrently, and compares them with what
// was imported. A server that does not answer until ctx ends is a finding; its
// program is then stopped, which takes some seconds more if it does not end by
// itself. Check returns how many imported tools are unchanged. It calls no tool.
func (s *Servers) Check(ctx context.Context) (findings []Finding, same int) {
	var mu sync.Mutex
	var checks sync.WaitGroup
	for _, server := range s.servers {
		checks.Go(func() {
			wrong, right := server.check(ctx)
			mu.Lock()
			defer mu.Unlock()
			findings, same = append(findings, wrong...), same+right
		})
	}
	checks.Wait()
	for _, id := range slices.Sorted(maps.Keys(s.lock)) {
		if s.of(id) == nil {
			findings = append(findings, Finding{ToolID: id, Tool: s.lock[id].Tool, What: "its server is not in the file any more"})
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.ToolID, b.ToolID))
	})
	return findings, same
}

func (s *server) check(ctx context.Context) (findings []Finding, same int) {
	pinned := s.pinned()
	if s.config.URL == "" && s.config.Command == "" {
		return []Finding{{Server: s.name, What: "it has neither a command nor a url"}}, 0
	}
	with, err := s.fill(ctx, "")
	var t *session
	if err == nil {
		t, err = s.begin(ctx, with)
	}
	if err != nil {
		return []Finding{{Server: s.name, What: fmt.Sprintf("it is not reached, so its imported tools (%d) can't be compared: %s", len(pinned), s.clip(err.Error(), 2*errorTextMax))}}, 0
	}
	defer t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(pinned) == 0 {
		findings = append(findings, Finding{Server: s.name, What: "no tool of it is imported"})
	}
	for _, id := range pinned {
		if what := changeInFull(s.lock[id], t.tools[id], t.refused[id]); what != "" {
			findings = append(findings, Finding{Server: s.name, Tool: s.lock[id].Tool, ToolID: id, What: what})
			continue
		}
		same++
	}
	return findings, same
}

// pinned returns the tool_ids of the server's imported tools, sorted.
func (s *server) pinned() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(s.lock)) {
		if strings.HasPrefix(id, s.prefix()) {
			ids = append(ids, id)
		}
	}
	return ids
}

// changeInFull is change with the hashes of both schemas.
func changeInFull(pinned Pin, tool *Tool, refused string) string {
	what := change(pinned, tool, refused)
	if what != "" && tool != nil && refused == "" && pinned.Schema != tool.Pin.Schema {
		what += fmt.Sprintf(" (schema pinned %s, found %s)", pinned.Schema, tool.Pin.Schema)
	}
	return what
}
