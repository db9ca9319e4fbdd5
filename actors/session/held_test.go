package session_test

// The Held law: at every point, what is applied is what WorkspaceApplied and
// WorkspaceGone said last, or the install record if neither did. Sessions sync,
// apply and detach among all that other interleavings do, with a reader that
// dies, repeats itself and lies. REFOLD_INTERLEAVINGS and REFOLD_SEED are as in
// sendable_test.go.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// heldManifest writes a manifest of a space; {space} stands for its name.
func heldManifest(name string, n int) string {
	ref := codec.RefOf([]byte(name + strconv.Itoa(n))).String()
	file := `"files":[{"path":"a.md","ref":"` + ref + `","size":` + strconv.Itoa(10+n) + `,"media_type":"text/markdown"}]`
	head := `{"v":1,"kind":"workspace","space":"` + name + `"`
	switch n {
	case 0:
		return head + `,` + file + `,"prompts":[{"prompt_pack":"default","parts":[{"file":0,"vars":{"fact.open":1,"run":2}}]}]}`
	case 1:
		return head + `,` + file + `,"prompts":[{"prompt_pack":"default","parts":[{"file":0}]},{"prompt_pack":"short","parts":[]}],"catalogs":[{"tool_catalog":"default","tools":["read","keyed","loop"]}]}`
	case 2:
		return head + `,` + file + `,"context":[{"group":"docs","files":[0]}],"words":[{"tool":"keyed","args_schema":{"type":"object","required":["a"]}}],"catalogs":[{"tool_catalog":"default","tools":[{"tool":"keyed","word":0},"write"]},{"tool_catalog":"two","tools":[]}]}`
	case 3: // names a tool that nobody binds: coverage decides
		return head + `,"catalogs":[{"tool_catalog":"default","tools":["gone","read"]}]}`
	case 4: // words for a tool, with a schema that is none
		return head + `,"words":[{"tool":"read","args_schema":{"type":"strange"}}],"catalogs":[{"tool_catalog":"default","tools":[{"tool":"read","word":0}]}]}`
	case 5: // skills: one that narrows, one for configs, one that needs something
		return head + `,` + file + `,"prompts":[{"prompt_pack":"default","parts":[{"skills":true},{"file":0}]}],"skills":[` +
			`{"skill":"one","description":"d","body":0,"allowed_tools":["nosuch","read"]},` +
			`{"skill":"two","description":"d","body":0,"hidden":true,"allowed_tools":[]},{"skill":"zoo","description":"d","body":0,"needs":["bin:x"]}]}`
	}
	return head + `,"prompts":[{"prompt_pack":"none","parts":[{"file":7}]}]}` // not even a manifest
}

// heldPack writes a manifest of pack p or q.
func heldPack(name string, n int) string {
	head := `{"v":1,"kind":"pack","space":"` + name + `","version":"1.` + strconv.Itoa(n) + `.0"`
	tool := func(id, toolName, more string) string {
		return `{"tool_id":"` + name + "." + id + `","tool_name":"` + toolName + `","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"` + name + `-v1"}` + more + `}`
	}
	switch n {
	case 0:
		return head + `,"tools":[` + tool("find", name+"_find", "") + `]}`
	case 1: // a name that the other pack has too
		return head + `,"needs":["os:linux?"],"tools":[` + tool("find", name+"_find", `,"needs":["secret:KEY"]`) + `,` + tool("send", "send", `,"approval":"always"`) + `]}`
	case 2:
		ref := codec.RefOf([]byte(name)).String()
		return head + `,"files":[{"path":"a.md","ref":"` + ref + `","size":5,"media_type":"text/markdown"}],"prompts":[{"prompt_pack":"default","parts":[{"file":0,"vars":{"run":1}}]}],"tools":[` + tool("find", name+"_find", "") + `]}`
	case 3: // a name of the registry
		return head + `,"tools":[` + tool("read", "read", "") + `]}`
	case 4: // a target that is not granted
		return head + `,"tools":[` + strings.Replace(tool("x", name+"_x", ""), "-v1", "-v2", 1) + `]}`
	}
	return head + `,"tools":[` + tool("x", "not a name", "") + `]}` // not even a manifest
}

// packGrant is a grant of pack p or q: its digests name the draws.
func packGrant(name string) map[string]any {
	var digests []any
	for n := range 5 {
		raw, err := codec.FromJSON([]byte(heldPack(name, n)))
		if err != nil {
			panic(err)
		}
		digests = append(digests, codec.Sum(raw).String())
	}
	return map[string]any{"space": name, "kind": "pack", "digests": digests, "attach": []any{"operator", "model"}, "sources": []any{"module"}}
}

// held is an interleaving with what its notices said.
type held struct {
	*weave
	applied map[string]string // hashes of applied spaces, by name
	open    map[string][]byte // syncs as they were first seen
	over    map[string]bool   // syncs that ended
	counts  map[string]int    // notices
}

func newHeld(install *session.Install, seed uint64) *held {
	h := &held{weave: newWeave(install, seed), applied: map[string]string{}, open: map[string][]byte{}, over: map[string]bool{}, counts: map[string]int{}}
	for _, p := range h.log.state.Spaces.Applied {
		h.applied[p.Space] = p.Hash.String()
	}
	return h
}

// next draws an event and folds it: mostly about spaces.
func (h *held) next() error {
	before := h.standing()
	var err error
	if h.chance(2) {
		err = h.step()
	} else {
		u := h.space()
		if h.chance(10) {
			h.time += 70_000
		}
		payload, bad := codec.FromJSON([]byte(`{"data":` + u.data + `,"type":"` + u.typ + `"}`))
		if bad != nil {
			return fmt.Errorf("a draw is no JSON: %w: %s", bad, u.data)
		}
		err = h.log.fold(u.door, h.time, payload)
	}
	if err == nil {
		err = h.check(before)
	}
	return err
}

// standing is what no failure of a sync or a request changes: pins, the registry
// that turns are offered from, and what the model was shown before the transcript
// of that turn. An apply that fails at its boundary changes what is pending. A
// failure that ends a model's call may begin the next turn.
type standing struct{ applied, rest, turn, mark string }

func (h *held) standing() standing {
	s := h.log.state
	var mark codec.Hash
	if s.Spaces != nil && s.Spaces.Turn != nil {
		mark = s.Spaces.Turn.Mark
	}
	x := s.Spaces
	applied, pending := slices.Clone(x.Applied), slices.Clone(x.Pending)
	for i := range applied { // what is lacking is outside the law
		applied[i].Lacks = nil
	}
	for i := range pending {
		pending[i].Pin.Lacks = nil
	}
	turn := ""
	if s.Turn != nil {
		turn = fmt.Sprint(s.Turn.Run, s.Turn.Number)
	}
	return standing{fmt.Sprintf("%+v %v", applied, x.Composed), fmt.Sprintf("%+v %v", pending, offeredBelow(s.NextRegistry())), turn, mark.String()}
}

// check holds the latest event against the laws.
func (h *held) check(before standing) error {
	s := h.log.state
	failed, applied := h.log.rejected != nil, false
	for _, n := range h.log.notices {
		h.counts[n.Type]++
		switch said := n.Data.(type) {
		case spaces.WorkspaceFailed:
			failed = true
		case spaces.WorkspaceApplied:
			h.applied[said.Workspace], applied = said.Hash, true
			h.counts[string(said.Kind)]++
		case spaces.WorkspaceGone:
			if h.applied[said.Workspace] != said.Hash {
				return fmt.Errorf("event %d: %s is gone, applied was %q", s.Seq, said.Hash, h.applied)
			}
			delete(h.applied, said.Workspace)
			applied = true
		}
	}
	now, e := h.standing(), h.log.history[len(h.log.history)-1]
	if now.turn != before.turn {
		before.turn, before.mark = now.turn, now.mark
	}
	switch settles := e.Door == session.DoorSpace || h.log.rejected != nil; {
	case !applied && failed && now.applied != before.applied,
		!applied && failed && settles && now != before:
		return fmt.Errorf("event %d failed, and moved spaces from %+v to %+v", s.Seq, before, now)
	}
	got, workspaces := map[string]string{}, 0
	for _, p := range s.Spaces.Applied {
		got[p.Space] = p.Hash.String()
		if p.Kind == space.Workspace {
			workspaces++
		}
	}
	if !maps.Equal(got, h.applied) || workspaces > 1 {
		return fmt.Errorf("event %d: applied is %q, the notices say %q", s.Seq, got, h.applied)
	}
	if err := h.syncs(); err != nil {
		return err
	}
	if !h.chance(10) { // what follows composes anew
		return nil
	}
	if err := s.Check(); err != nil {
		return fmt.Errorf("event %d: %w", s.Seq, err)
	}
	return h.restore()
}

// syncs: an effect keeps its bytes as long as it is open, and ends once.
func (h *held) syncs() error {
	now := map[string]bool{}
	for _, e := range h.log.state.Open() {
		if e.Class != session.ClassSpace {
			continue
		}
		now[e.Name] = true
		was, seen := h.open[e.Name]
		if h.over[e.Name] || seen && !bytes.Equal(was, e.Payload) {
			return fmt.Errorf("%s is asked again, or with other bytes", e.Name)
		}
		h.open[e.Name] = bytes.Clone(e.Payload)
	}
	for name := range h.open {
		if !now[name] {
			delete(h.open, name)
			h.over[name] = true
		}
	}
	return nil
}

// restore goes on from a snapshot.
func (h *held) restore() error {
	s := h.log.state
	snap, err := session.ParseSnapshot(s.Snapshot().Bytes())
	if err != nil {
		return err
	}
	restored, err := session.Restore(snap, h.shelf())
	if err != nil {
		return err
	}
	was, _ := json.Marshal(s.View())
	is, _ := json.Marshal(restored.View())
	if restored.Hash() != s.Hash() || !bytes.Equal(was, is) || restored.NextRegistry().Hash() != s.NextRegistry().Hash() {
		return fmt.Errorf("event %d: a snapshot restores to something else", s.Seq)
	}
	h.log.state = restored
	return nil
}

func (h *held) shelf() shelf {
	out := shelf{install: h.log.install}
	for _, e := range h.log.history {
		if m, _, err := session.ParseSnapshotReady(e); err == nil {
			out.manifests = append(out.manifests, m)
		}
		if reg, err := session.ParseRegistrySet(e); err == nil {
			out.registries = append(out.registries, reg)
		}
	}
	return out
}

// space draws an event about spaces.
func (h *held) space() utterance {
	x := h.log.state.Spaces
	n := h.rng.IntN(100)
	switch {
	case len(x.Syncs) > 0 && n < 60:
		return h.read(&x.Syncs[h.rng.IntN(len(x.Syncs))])
	case len(x.Staged) == 0 && n < 80, n < 70:
		return utterance{session.DoorCtl, session.TypeWorkspaceSyncRequested, h.sync()}
	case n < 86:
		return utterance{session.DoorCtl, session.TypeWorkspaceApplyRequested, h.apply()}
	case n < 89:
		return utterance{session.DoorCtl, session.TypeWorkspaceDetached, `{"workspace":"` + h.name() + `"}`}
	case n < 92:
		return h.named()
	case n < 95 && h.turn() != "":
		return h.enable()
	case n < 96:
		return utterance{session.DoorCtl, session.TypeToolRegistrySet, `{"tools":[` + h.pick(``, `{"tool_id":"x.read","tool_name":"read","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"box"}}`,
			`{"tool_id":"x.keyed","tool_name":"keyed","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"box"}}`) + `]}`}
	}
	return h.read(&spaces.Sync{Space: h.name(), Number: uint32(h.rng.IntN(int(h.log.state.Spaces.SyncsAsked) + 2))})
}

func (h *held) name() string { return h.pick("a", "a", "b", "c", "p", "p", "q") }

// turn returns the generation that is open, or "".
func (h *held) turn() string {
	for _, e := range h.log.state.Open() {
		if e.Class == session.ClassLLM {
			return e.Name
		}
	}
	return ""
}

// enable draws a model that enables packs.
func (h *held) enable() utterance {
	call := func() string {
		return `{"tool_name":"extensions_enable","arguments":"{\"extension\":\"` + h.pick("p", "p", "q", "a") + `\"` + h.pick(``, ``, ``, `,\"dryRun\":true`) + `}"}`
	}
	calls := call() + h.pick(``, `,`+call(), `,{"tool_name":"extensions_list"}`)
	return utterance{session.DoorLLM, session.TypeToolCallsObserved, `{"effect":"` + h.turn() + `","calls":[` + calls + `]}`}
}

func (h *held) sync() string {
	name := h.name()
	data := `{"workspace":"` + name + `"`
	switch {
	case h.chance(12):
		return data + `,"dry":true}`
	case h.chance(8):
		data += `,"only":["` + h.pick("tools", "prompts") + `"]`
	}
	if !h.chance(3) {
		data += `,"apply":"` + h.mode() + `"` + h.choice()
	}
	if name == "c" || h.chance(8) {
		data += `,"grant":{"space":"` + name + `"` + h.pick(``, `,"target":"files"`, `,"may":["prompt"]`, `,"run_ms":1000`) + `}`
	}
	return data + `}`
}

func (h *held) mode() string {
	return h.pick(string(spaces.ModeNextRun), string(spaces.ModeNextStep), string(spaces.ModeImmediate))
}

func (h *held) choice() string {
	return h.pick(``, ``, ``, `,"prompt_pack":"short"`, `,"tool_catalog":"two"`, `,"tool_catalog":"default"`)
}

func (h *held) apply() string {
	data := `{"mode":"` + h.mode() + `"` + h.choice()
	if h.chance(2) {
		data += `,"workspace":"` + h.name() + `"`
	}
	if h.chance(12) {
		data += `,"hash":"` + noBlob[len("sha256-"):] + `"`
	}
	return data + `}`
}

// named draws a run or a config that names what a space has.
func (h *held) named() utterance {
	config := `{"provider":"p","model":"m"` + h.pick(``, `,"prompt_pack":"default"`, `,"prompt_pack":"none"`, `,"tool_catalog":"default"`, `,"tool_catalog":"none"`,
		`,"prompt_refs":["`+noBlob+`"]`, `,"workspace":"none"`, `,"workspace":"`+h.someHash()+`"`, `,"skills":["one"]`, `,"skills":["two","zoo"]`)
	if h.chance(3) {
		return utterance{session.DoorCtl, session.TypeSessionConfigured, config + `}`}
	}
	return utterance{session.DoorCtl, session.TypeRunRequested, `{"input":{"text":"hi"},"config":` + config + `}}`}
}

// someHash returns a manifest that the session has, or none.
func (h *held) someHash() string {
	x := h.log.state.Spaces
	hashes := []string{noBlob[len("sha256-"):]}
	for i := range x.Applied {
		hashes = append(hashes, x.Applied[i].Hash.String())
	}
	for _, stage := range slices.Concat(x.Pending, x.Staged) {
		hashes = append(hashes, stage.Pin.Hash.String())
	}
	return hashes[h.rng.IntN(len(hashes))]
}

// read draws what a reader says of a sync: the truth, mostly.
func (h *held) read(o *spaces.Sync) utterance {
	effect := `{"effect":"y` + strconv.Itoa(int(o.Number)) + `"`
	switch n := h.rng.IntN(20); {
	case n < 12:
		name := o.Space
		if h.chance(12) {
			name = h.name()
		}
		if o.Kind == space.Pack && !h.chance(12) {
			return utterance{session.DoorSpace, session.TypeWorkspaceSnapshotReady, effect + `,"manifest":` + heldPack(name, h.rng.IntN(6)) +
				h.pick(``, ``, ``, `,"lacks":["secret:KEY"]`) + `,"source":"` + h.pick("module", "module", "module", "package") + `"` + h.pick(``, `,"output":{"text":"loaded"}`) + `}`}
		}
		return utterance{session.DoorSpace, session.TypeWorkspaceSnapshotReady, effect + `,"manifest":` + heldManifest(name, h.rng.IntN(7)) + h.pick(``, ``, `,"lacks":["bin:x"]`, ``, ``, ``, `,"revision":"r"`, `,"source":"module"`, `,"source":"no"`) + `}`}
	case n < 16 && (len(o.Known) > 0 || h.chance(4)):
		hash := h.someHash()
		if len(o.Known) > 0 && !h.chance(4) {
			hash = o.Known[h.rng.IntN(len(o.Known))].Hash.String()
		}
		return utterance{session.DoorSpace, session.TypeWorkspaceSyncUnchanged, effect + `,"hash":"` + hash + `"` + h.pick(``, `,"source":"module"`) + `}`}
	case n < 18:
		return utterance{session.DoorSpace, session.TypeWorkspaceSyncFailed, effect + `,"error":{"code":"` + h.pick("space_unreadable", "") + `"},"problems":[{"code":"` + h.pick("missing_file", "strange") + `","detail":"x"}]}`}
	}
	return utterance{session.DoorSpace, session.TypeWorkspaceSnapshotReady, effect + h.pick(`}`, `,"manifest":"gA=="}`, `,"manifest":{}}`, `,"manifest":{"v":1,"kind":"workspace","space":"a"},"lacks":["bin:x"]}`)}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	var embedded any
	if err := json.Unmarshal([]byte(heldManifest("a", 0)), &embedded); err != nil {
		t.Fatal(err)
	}
	var installs []*session.Install
	for _, coverage := range []string{session.CoverageWarn, session.CoverageFail} {
		installs = append(installs,
			weaveInstallWith(t, map[string]any{"spaces": []any{map[string]any{"space": "a"}, map[string]any{"space": "b", "may": []any{"prompt"}}, packGrant("p"), packGrant("q")}, "policy": map[string]any{"coverage": coverage}}),
			weaveInstallWith(t, map[string]any{"spaces": []any{map[string]any{"space": "a", "manifest": embedded}, map[string]any{"space": "b"}, packGrant("p")}, "policy": map[string]any{"coverage": coverage}}))
	}
	first, count := fromEnv(t, "REFOLD_SEED", 1), fromEnv(t, "REFOLD_INTERLEAVINGS", interleavings/25)
	var next, events, applied, failed, packs atomic.Uint64
	var broken atomic.Bool
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1) - 1; n < count && !broken.Load(); n = next.Add(1) - 1 {
				h := newHeld(installs[(first+n)%uint64(len(installs))], first+n)
				err := h.interleave()
				events.Add(uint64(len(h.log.history)))
				applied.Add(uint64(h.counts[spaces.NoticeWorkspaceApplied]))
				failed.Add(uint64(h.counts[spaces.NoticeWorkspaceFailed]))
				packs.Add(uint64(h.counts[string(space.Pack)]))
				if err != nil && !broken.Swap(true) {
					t.Errorf("REFOLD_SEED=%d REFOLD_INTERLEAVINGS=1: after %d events: %v\n%s", first+n, len(h.log.history), err, asTest(h.log.history))
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d events: %d applied, %d of them packs, %d failed", events.Load(), applied.Load(), packs.Load(), failed.Load())
	if applied.Load() < count/4 || failed.Load() < count/2 || packs.Load() < count/20 {
		t.Errorf("%d applies, %d of packs, and %d failures in %d interleavings: the draws have gone stale", applied.Load(), packs.Load(), failed.Load(), count)
	}
}

// interleave makes the interleaving, and folds it again: the same bytes.
func (h *held) interleave() error {
	for range 20 + h.rng.IntN(30) {
		if err := h.next(); err != nil {
			return err
		}
	}
	if again := session.Fold(h.log.install, "s1", slices.Values(h.log.history)); again.Hash() != h.log.state.Hash() {
		return fmt.Errorf("folded again: another state")
	}
	return nil
}

// All draws except the last are manifests.
func TestHeldManifests(t *testing.T) {
	t.Parallel()
	for n := range 7 {
		raw, err := codec.FromJSON([]byte(heldManifest("a", n)))
		if err != nil {
			t.Fatal(err)
		}
		if m, problems := space.Parse(raw); (m == nil) != (n == 6) {
			t.Errorf("manifest %d: %v", n, problems)
		}
		if raw, err = codec.FromJSON([]byte(heldPack("p", n))); err != nil {
			t.Fatal(err)
		}
		if m, problems := space.Parse(raw); (m == nil) != (n >= 5) {
			t.Errorf("pack %d: %v", n, problems)
		}
	}
}
