package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// skillBlobs is a manifest with one skill of two files, and their blobs.
func skillBlobs(t *testing.T) (of executor.CallSpace, blobs map[string][]byte) {
	t.Helper()
	blobs = map[string][]byte{}
	m := &space.Manifest{V: 1, Kind: space.Workspace, Space: "team", Skills: []space.Skill{{Skill: "greet", Description: "d", Body: 0, Files: []int{1, 2}}}}
	for _, f := range []struct{ path, content string }{{"skills/greet/SKILL.md#body", "Run scripts/run.sh."}, {"skills/greet/notes.md", "n\n"}, {"skills/greet/scripts/run.sh", "#!/bin/sh\necho hello $1\n"}} {
		ref := codec.RefOf([]byte(f.content))
		blobs[ref.String()] = []byte(f.content)
		m.Files = append(m.Files, space.File{Path: f.path, Ref: ref, Size: int64(len(f.content)), MediaType: "text/plain"})
	}
	if again, problems := space.Parse(m.Bytes()); again == nil {
		t.Fatal(problems)
	}
	name := codec.RefOf(m.Bytes()).String()
	blobs[name] = m.Bytes()
	return executor.CallSpace{Space: "team", Manifest: name}, blobs
}

// unpack calls the tool as a bridge does.
func (r *rig) unpack(skill string, of executor.CallSpace) executor.Result {
	r.t.Helper()
	got, err := r.h.Execute(r.t.Context(), executor.Call{
		ToolID: ToolSkillUnpack, Session: rigSession, Arguments: json.RawMessage(`{"skill":"` + skill + `"}`), HostSession: r.hs, Spaces: []executor.CallSpace{of},
	})
	must(r.t, err)
	return got
}

// TestSkillIsUnpacked: the files are below .refold/skills, scripts are
// executable, and a repeat returns the same.
func TestSkillIsUnpacked(t *testing.T) {
	t.Parallel()
	of, blobs := skillBlobs(t)
	r := newRig(t, Options{}, nil)
	if got := r.unpack("greet", of); got.Error == nil || got.Error.Code != CodeToolUnbound {
		t.Errorf("without blobs: got %+v", got)
	}
	r.h.UseBlobs(func(_ context.Context, _, name string) ([]byte, error) {
		if content, ok := blobs[name]; ok {
			return content, nil
		}
		return nil, errors.New("not stored")
	})
	const want = "unpacked into .refold/skills/greet:\n.refold/skills/greet/SKILL.md (19 bytes)\n.refold/skills/greet/notes.md (2 bytes)\n.refold/skills/greet/scripts/run.sh (24 bytes)"
	for range 2 {
		if got := r.unpack("greet", of); got.Error != nil || got.Output != want {
			t.Fatalf("got %+v, want %s", got, want)
		}
		r.write(".refold/skills/greet/notes.md", "edited") // a repeat puts it right
	}
	ran := r.call(ToolExec, map[string]any{"command": ".refold/skills/greet/scripts/run.sh ann"})
	if ran.Error != nil || !strings.Contains(ran.Output, "hello ann") {
		t.Errorf("the script: got %+v", ran)
	}
	if got := r.unpack("other", of); got.Error == nil || got.Error.Code != CodeInvalidArguments {
		t.Errorf("an unknown skill: got %+v", got)
	}
}

// TestUnpackedSkillStaysInside: a link in the path leads nowhere, and a blob
// with another hash is not written.
func TestUnpackedSkillStaysInside(t *testing.T) {
	t.Parallel()
	of, blobs := skillBlobs(t)
	r := newRig(t, Options{}, nil)
	r.h.UseBlobs(func(_ context.Context, _, name string) ([]byte, error) { return blobs[name], nil })
	outside := t.TempDir()
	r.symlink(outside, ".refold")
	if got := r.unpack("greet", of); got.Error == nil || got.Error.Code != CodePathEscapes {
		t.Errorf("a link that leads out: got %+v", got)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	must(t, os.Remove(filepath.Join(r.dir, ".refold")))
	r.write(".refold", "a file")
	if got := r.unpack("greet", of); got.Error == nil {
		t.Errorf("a file in the way: got %+v", got)
	}
	must(t, os.Remove(filepath.Join(r.dir, ".refold")))
	notes := codec.RefOf([]byte("n\n")).String()
	blobs[notes] = []byte("other")
	if got := r.unpack("greet", of); got.Error == nil || !strings.Contains(got.Error.Detail, "other bytes") {
		t.Errorf("other bytes: got %+v", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir, ".refold/skills/greet/notes.md")); err == nil {
		t.Error("they were written")
	}
}
