package bridge

// What readers of spaces do in the simulation, and what operators do with spaces.

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// simSpaces are the grants of the install record.
const simSpaces = `"spaces":[{"space":"a","target":"s"},{"space":"b","target":"s"}]`

// simSpaceControls are what operators do with spaces.
var simSpaceControls = []struct{ typ, data string }{
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a","apply":"next_step_boundary"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"a","apply":"immediate_if_idle"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"b","apply":"immediate_if_idle"}`},
	{session.TypeWorkspaceSyncRequested, `{"workspace":"b","apply":"next_run"}`},
	{session.TypeWorkspaceApplyRequested, `{"mode":"next_step_boundary"}`},
	{session.TypeWorkspaceApplyRequested, `{"mode":"immediate_if_idle"}`},
	{session.TypeWorkspaceDetached, `{"workspace":"a"}`},
}

// controlSpace detaches what is applied now and then, or does something else.
func (s *sim) controlSpace(sid string) {
	if spaces := s.judge.of(sid).state.Spaces; spaces != nil && len(spaces.Applied) > 0 && s.draw(3) == 2 {
		s.publish(session.DoorCtl, sid, session.TypeWorkspaceDetached, `{"workspace":"`+spaces.Applied[0].Space+`"}`)
		return
	}
	c := simSpaceControls[s.draw(len(simSpaceControls))]
	s.publish(session.DoorCtl, sid, c.typ, c.data)
}

const (
	simIndex = `{"v":1,"prompts":{"default":"p.json"},"tools":{"default":"t.json"},"context":{"docs":["doc.md"]}}`
	simDoc   = "Goods can be returned within 14 days."
)

// simFolders are what a reader finds: what a session may adopt, twice, and what it
// may not.
var simFolders = []map[string]string{
	{"agent.workspace.json": simIndex, "p.json": `["one.md"]`, "t.json": `["read","write"]`, "doc.md": simDoc, "one.md": "You are the desk of {{session}}."},
	{"agent.workspace.json": simIndex, "p.json": `["two.md",{"context":"docs"}]`, "t.json": `["ask","gone"]`, "doc.md": simDoc, "two.md": "You are the desk."},
	{"agent.workspace.json": simIndex, "p.json": `["nosuch.md"]`},
}

// readSpace reads one of a few folders: it stands as the source does at the time.
func (b *simBridge) readSpace(ctx context.Context, r SpaceRequest) (SpaceContent, error) {
	subject, _ := ctx.Value(carries{}).(string)
	name, err := b.sim.names.ParseEffect(subject)
	if err != nil {
		panic(err)
	}
	one := b.sim.judge.start(b.proc, b.worker.instance, subjects.EffectName{Class: session.ClassSpace, Target: "s", Session: r.Session, Effect: name.Effect})
	what, err := b.run(ctx, "read "+r.Space+" "+r.Session+"."+name.Effect)
	if err != nil {
		return SpaceContent{}, err
	}
	b.sim.judge.answer(one)
	if what == lost {
		return SpaceContent{}, &Error{Code: codeSpaceUnreadable, Detail: "the disk is gone"}
	}
	files := fstest.MapFS{}
	folder := 0
	if !b.sim.calm {
		folder = b.sim.draw(len(simFolders))
	}
	for path, text := range simFolders[folder] {
		files[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return SpaceContent{Files: fs.FS(files), Revision: "r"}, nil
}
