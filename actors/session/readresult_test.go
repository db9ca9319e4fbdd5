package session_test

// The tool that reads results, in registries of the session's tests.

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// resultTools are the tools of a run with a context, compiled as the session does.
var resultTools = sync.OnceValue(func() *planner.LayerTools {
	text, err := os.ReadFile("sessiontools.json")
	var raw codec.Raw
	if err == nil {
		raw, err = codec.FromJSON(text)
	}
	var specs []planner.ToolSpec
	if err == nil {
		err = codec.Unmarshal(raw, &specs)
	}
	specs = slices.DeleteFunc(specs, func(t planner.ToolSpec) bool { return t.ToolID != session.ToolReadResult })
	tools, bad := planner.SessionTools(specs)
	if err != nil || bad != nil || len(specs) != 1 {
		panic(fmt.Sprint(err, bad, specs))
	}
	return tools
})

// composedOf has the registry with the tool on top of each one, by hash.
var composedOf sync.Map

// registryWith returns a registry, with results with the tool on top.
func registryWith(below *planner.Registry, results bool) *planner.Registry {
	if !results {
		return below
	}
	if made, ok := composedOf.Load(below.Hash()); ok {
		return made.(*planner.Registry)
	}
	made, bad := planner.Compose(below, []planner.Layer{{Name: "refold.result", Tools: resultTools()}})
	if bad != nil {
		made = below
	}
	composedOf.Store(below.Hash(), made)
	return made
}

// nextContext returns the context of the run that begins or continues next.
func nextContext(s *session.State) *session.ContextConfig {
	switch record := s.InstallRecord().Record.Config; {
	case s.Run != nil:
		return s.Run.Config.Context
	case s.Config != nil:
		return s.Config.Run.Context
	case record != nil:
		return record.Context
	}
	return nil
}

// offeredBelow describes a registry without the tool that reads results, which follows
// from the run.
func offeredBelow(registry *planner.Registry) string {
	var refs strings.Builder
	for i, tool := range registry.Tools() {
		if tool.ToolID != session.ToolReadResult {
			fmt.Fprintln(&refs, tool.ToolID, registry.Ref(planner.ToolIndex(i)))
		}
	}
	return codec.Digest([]byte(refs.String())).String()
}

// The record of new sessions is one registry for all of them, whether they are new or
// restored, and a turn costs no new one.
func TestResultToolIsComposedOnce(t *testing.T) {
	t.Parallel()
	install, err := session.ParseInstall([]byte(`{"v":1,"rules":1,"config":{"provider":"p","model":"m","context":{}},"tools":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := install.Offered().LookupID(session.ToolReadResult); !ok {
		t.Fatal("a run of the record's config has no tool that reads results")
	}
	if _, ok := install.Composed().LookupID(session.ToolReadResult); ok {
		t.Error("the registry of new sessions has it, too: it would be in runs without a context")
	}
	s := session.New(install, "s1")
	payload, err := session.Envelope{V: session.Version, Type: session.TypeRunRequested}.With(session.RunRequested{Input: session.Content{Text: "hi"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Evolve(session.Event{Session: "s1", Door: session.DoorIn, Seq: 1, Time: 1, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	restored, err := session.Restore(s.Snapshot(), given(install))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session.State{"folded": s, "restored": restored} {
		if s.TurnRegistry() != install.Offered() || s.NextRegistry() != install.Offered() {
			t.Errorf("%s: the session has a registry of its own", name)
		}
	}
	if ref := registryWith(install.Registry, true).Ref(0).Hash; ref != session.ReadResultRef() {
		t.Errorf("the descriptor is %s, want %s", session.ReadResultRef(), ref)
	}
}
