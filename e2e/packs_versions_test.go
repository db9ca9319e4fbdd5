package e2e_test

// Versions of one pack: an upgrade during a batch, two majors served by two
// bridges at once, and a downgrade.

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
)

// upgradeScript is the model of the session that is upgraded.
const upgradeScript = `
turns:
  - shown: {tools: {include: [crm_find], exclude: [crm_close]}}
    calls: [{tool: crm_find, arguments: {n: 1}}, {tool: crm_find, arguments: {n: 2}}, {tool: crm_close}]
  - shown:
      tools: {include: [crm_find, crm_close]}
      results: [{tool: crm_find, error: false, text: one}, {tool: crm_find, error: false, text: one}, {tool: crm_close, error: true, text: tool_unknown}]
    calls: [{tool: crm_close}]
  - {say: Closed.}
  - shown: {tools: {include: [crm_find], exclude: [crm_close]}}
    calls: [{tool: crm_find, arguments: {n: 3}}]
  - {say: Back at 1.4.}
`

// secondScript is the model of the session that has the second major first.
const secondScript = `
turns:
  - shown: {tools: {include: [crm_search], exclude: [crm_find]}}
    calls: [{tool: crm_search, arguments: {text: ann}}]
  - shown: {results: [{tool: crm_search, error: false, text: two finds ann}]}
    say: Found.
  - shown: {tools: {include: [crm_find], exclude: [crm_search]}}
    calls: [{tool: crm_find, arguments: {n: 4}}]
  - shown: {results: [{tool: crm_find, error: false, text: one}]}
    say: Back at major 1.
`

// publishCRM publishes versions 1.4.0 and 1.5.0, whose executor is crm-v1, and
// returns the key that signed them.
func publishCRM(t *testing.T, s *system) string {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	tool := func(name string) string {
		return `{"tool_id": "crm.` + name + `", "tool_name": "crm_` + name + `", "args_schema": {"type": "object"}, "executor": {"kind": "effect", "target": "crm-v1"}}`
	}
	for version, tools := range map[string]string{"1.4.0": tool("find"), "1.5.0": tool("find") + ", " + tool("close")} {
		dir := t.TempDir()
		folder(t, dir, map[string]string{
			"agent.workspace.json": `{"v": 1, "kind": "pack", "name": "crm", "version": "` + version + `", "bindings": "b.json"}`,
			"b.json":               `{"tools": [` + tools + `]}`,
		})
		if out, errOut, status := run(t, endWithin, nil, "refold", "--nats", s.url, "pack", "publish", dir, "--key", writeFile(t, "seed", string(seed)+"\n")); status != 0 {
			t.Fatalf("publish %s: %s%s", version, out, errOut)
		}
	}
	return key
}

// versions returns which versions of the pack the calls of a lab were of.
func (l *lab) versions() string {
	var all []string
	for _, c := range l.did() {
		for _, of := range c.Spaces {
			all = append(all, c.ToolName+" "+of.Version)
		}
	}
	return strings.Join(all, ", ")
}

func TestPackIsUpgradedInABatchAndBack(t *testing.T) {
	t.Parallel()
	// The key of the publisher is not known before the server runs, so the grants come with the syncs.
	s := startSystem(t, spaceRecord(object{"space": "other"}))
	startDaemon(t, "bridge", "--nats", s.url, "--spaces", writeFile(t, "spaces.yaml", "targets: {packs: {spaces: {'*': {packs: true}}}}\n"),
		"--model", "scripted=scripted:"+writeFile(t, "upgrade.yaml", upgradeScript), "--model", "second=scripted:"+writeFile(t, "second.yaml", secondScript))
	first := &lab{outputs: map[string]string{"crm_find": "one"}, hold: map[string]chan struct{}{"crm_find": make(chan struct{})}}
	s.serve(func(b *bridge.Bridge) error { return b.Tool("crm-v1", first) })
	type question struct {
		Text string `json:"text"`
	}
	second := bridge.Pack{Name: "crm", Version: "2.0.0", Target: "crm-v2", Tools: []*function.Function{
		function.New("crm.search", func(_ context.Context, q question) (string, error) { return "two finds " + q.Text, nil }),
	}}
	hash, err := second.Hash()
	if err != nil {
		t.Fatal(err)
	}
	s.serve(func(b *bridge.Bridge) error { return b.Pack(second) })
	key := publishCRM(t, s)
	grant := object{"space": "crm", "kind": "pack", "target": "packs", "sources": list{"package"}, "keys": list{key}}
	s1, s2 := listen(t, s.nc, "refold.out.s1"), listen(t, s.nc, "refold.out.s2")
	adopt := func(sid string, e *ear, n int, want string, data object) {
		t.Helper()
		s.sync(sid, "crm", data)
		if staged := nth[spaces.WorkspaceStaged](t, e, spaces.NoticeWorkspaceStaged, n); staged.Version != want {
			t.Errorf("%s, sync %d: got %+v, want %s", sid, n, staged, want)
		}
	}

	adopt("s1", s1, 1, "1.4.0", object{"version": "1.4", "grant": grant, "apply": "next_run"})
	s.run(session.DoorIn, "s1", "Find one and two.", nil)
	until(t, time.Minute, "the first call", func() bool { return len(first.did()) == 1 })
	adopt("s1", s1, 2, "1.5.0", object{"version": "1", "apply": "next_step_boundary"})

	// The other session works with the second major meanwhile.
	adopt("s2", s2, 1, "2.0.0", object{"grant": object{"space": "crm", "kind": "pack", "target": "crm-v2", "digests": list{hash}}, "apply": "next_run"})
	other := object{"provider": "second", "model": "m"}
	s.run(session.DoorIn, "s2", "Find ann.", other)
	s.wantEnd("s2", 1, session.Completed, "")

	close(first.hold["crm_find"])
	s.wantEnd("s1", 1, session.Completed, "")
	if got, want := first.versions(), "crm_find 1.4.0, crm_find 1.4.0, crm_close 1.5.0"; got != want {
		t.Errorf("calls of the first run: got %s, want %s", got, want)
	}
	adopt("s1", s1, 3, "1.4.0", object{"version": "1.4.0", "apply": "next_run"})
	s.run(session.DoorIn, "s1", "Find three.", nil)
	s.wantEnd("s1", 2, session.Completed, "")

	s.say(session.DoorCtl, "s2", session.TypeWorkspaceDetached, object{"workspace": "crm"})
	adopt("s2", s2, 2, "1.4.0", object{"version": "1.4", "grant": grant, "apply": "next_run"})
	s.run(session.DoorIn, "s2", "Find four.", other)
	s.wantEnd("s2", 2, session.Completed, "")
	if got, want := first.versions(), "crm_find 1.4.0, crm_find 1.4.0, crm_close 1.5.0, crm_find 1.4.0, crm_find 1.4.0"; got != want {
		t.Errorf("all calls: got %s, want %s", got, want)
	}
	verifyAll(t, s.url)
}
