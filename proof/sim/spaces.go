package sim

// What readers of spaces and operators do with spaces.

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// packKey signs packs.
var packKey = func() nkeys.KeyPair {
	pair, err := nkeys.FromSeed([]byte("SUACVJZMGJ5FNP6KCG7Z3ASVT65VKBBKFSHCS7ETAIZQXXU3DPSCAV3EWA"))
	if err != nil {
		panic(err)
	}
	return pair
}()

// grants are the grants of the install record: two workspaces, and a pack that
// operators and models may enable.
var grants = func() string {
	key, err := packKey.PublicKey()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`"spaces":[{"space":"a","target":"s"},{"space":"b","target":"s"},`+
		`{"space":"k","kind":"pack","target":"s","targets":["x"],"sources":["module"],"attach":["operator","model"],"keys":[%q]}]`, key)
}()

// spaceControls are operators' actions on spaces.
var spaceControls = []struct{ typ, data string }{
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a","apply":"next_step_boundary"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a","apply":"immediate_if_idle"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"b","apply":"immediate_if_idle"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"b","apply":"next_run"}`},
	{session.TypeWorkspaceApplyRequested, `{"mode":"next_step_boundary"}`},
	{session.TypeWorkspaceApplyRequested, `{"mode":"immediate_if_idle"}`},
	{session.TypeWorkspaceDetached, `{"workspace":"a"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"k","apply":"next_step_boundary"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"k","apply":"immediate_if_idle"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"k","version":"1.0.0"}`},
	{session.TypeWorkspaceApplyRequested, `{"workspace":"k","mode":"next_step_boundary"}`},
	{session.TypeWorkspaceDetached, `{"workspace":"k"}`},
}

// packControls is the number of the last ones, about the pack.
const packControls = 5

// controlSpace detaches an applied space now and then, or does something else.
// While nothing is applied, it acts on the pack every other time, so that turns
// with the pack's tool occur.
func (s *sim) controlSpace(sid string) {
	from := 0
	switch spaces := s.judge.of(sid).state.Spaces; {
	case spaces == nil || len(spaces.Applied) == 0:
		if s.draw(4) > 1 {
			from = len(spaceControls) - packControls
		}
	case s.draw(3) == 2:
		s.publish(session.DoorCtl, sid, session.TypeWorkspaceDetached, `{"workspace":"`+spaces.Applied[0].Space+`"}`)
		return
	}
	c := spaceControls[from+s.draw(len(spaceControls)-from)]
	s.publish(session.DoorCtl, sid, c.typ, c.data)
}

const (
	folderIndex = `{"v":1,"prompts":{"default":"p.json"},"tools":{"default":"t.json"},"context":{"docs":["doc.md"]}}`
	docText     = "Goods can be returned within 14 days."
)

// folders are what a reader may find: two good ones, and an invalid one.
var folders = []map[string]string{
	{"agent.workspace.json": folderIndex, "p.json": `["one.md"]`, "t.json": `["read","write"]`, "doc.md": docText, "one.md": "You are the desk of {{session}}."},
	{"agent.workspace.json": folderIndex, "p.json": `["two.md",{"context":"docs"}]`, "t.json": `["ask","gone"]`, "doc.md": docText, "two.md": "You are the desk."},
	{"agent.workspace.json": folderIndex, "p.json": `["nosuch.md"]`},
}

// packFiles returns a version of the pack k.
func packFiles(version string) map[string]string {
	return map[string]string{
		"agent.workspace.json": `{"v":1,"kind":"pack","name":"k","version":"` + version + `","bindings":"b.json"}`,
		"b.json":               `{"tools":[{"tool_id":"k.extra","tool_name":"extra","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"}}]}`,
	}
}

// packContents are what a reader may find of the pack: versions with their
// signatures, one with the signature of another, one without, and a workspace.
var packContents = func() (all []executor.SpaceContent) {
	for _, c := range []struct{ files, signed map[string]string }{
		{packFiles("1.0.0"), packFiles("1.0.0")}, {packFiles("1.1.0"), packFiles("1.1.0")}, {packFiles("1.1.0"), packFiles("1.1.0")},
		{packFiles("1.2.0"), packFiles("1.1.0")}, {packFiles("1.1.0"), nil}, {folders[0], nil},
	} {
		content := executor.SpaceContent{Files: mapFS(c.files), Revision: "r", Source: "module"}
		if c.signed != nil {
			content.Signatures = []space.Signature{signOf(c.signed)}
		}
		all = append(all, content)
	}
	return all
}()

// signOf signs the manifest of a folder.
func signOf(files map[string]string) space.Signature {
	built, err := spacefiles.Read(context.Background(), func(context.Context) (fs.FS, error) { return mapFS(files), nil },
		func() spacefiles.Options { return spacefiles.Options{Space: "k", Kind: space.Pack} })
	if err != nil || built.Manifest == nil {
		panic(fmt.Sprint(err, built.Problems))
	}
	key, err := packKey.PublicKey()
	if err != nil {
		panic(err)
	}
	sig, err := packKey.Sign(space.SignedText(built.Manifest.Bytes()))
	if err != nil {
		panic(err)
	}
	return space.Signature{Key: key, Sig: base64.RawURLEncoding.EncodeToString(sig)}
}

func mapFS(texts map[string]string) fs.FS {
	files := fstest.MapFS{}
	for path, text := range texts {
		files[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return files
}

// ReadSpace reads one of a few folders, as if the source changed.
func (b *bridge) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	subject, _ := ctx.Value(carries{}).(string)
	name, err := b.sim.names.ParseEffect(subject)
	if err != nil {
		panic(err)
	}
	one := b.sim.judge.start(b.proc, subjects.EffectName{Class: session.ClassSpace, Target: "s", Session: r.Session, Effect: name.Effect})
	defer b.sim.judge.over(one)
	what, err := b.run(ctx, "read "+r.Space+" "+r.Session+"."+name.Effect)
	if err != nil {
		return executor.SpaceContent{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnreadable, Detail: "the disk is gone"}
	}
	pick := func(n int) int {
		if b.sim.calm {
			return 0
		}
		return b.sim.draw(n)
	}
	if r.Space == "k" {
		return packContents[pick(len(packContents))], nil
	}
	return executor.SpaceContent{Files: mapFS(folders[pick(len(folders))]), Revision: "r"}, nil
}
