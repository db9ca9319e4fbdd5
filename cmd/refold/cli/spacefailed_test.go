package cli

// Advice of refold space about readers that fail or are not trusted, and about
// a detach that would leave a name without its workspace. The test plays the
// reader.

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
)

func TestSpaceSyncSaysWhatToDoAboutItsReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sealed := `{"space":"sealed","target":"files","digests":["` + strings.Repeat("0", 64) + `"]},{"space":"support"`
	w.does(0, "install", file(t, strings.Replace(spaceRecord, `{"space":"support"`, sealed, 1)))
	failed := func(code string) (string, string) {
		return session.TypeWorkspaceSyncFailed, `{"effect":"EFFECT","error":{"code":"` + code + `","detail":"as it is"}}`
	}
	ready := func(manifest string) (string, string) {
		return session.TypeWorkspaceSnapshotReady, `{"effect":"EFFECT","manifest":` + manifest + `}`
	}
	for n, c := range []struct {
		space, want string
		settles     func() (typ, data string)
	}{
		{"support", `space_unknown: as it is\n  the file of refold bridge serve --spaces lists which spaces there are, and where their versions are\n$`,
			func() (string, string) { return failed("space_unknown") }},
		{"support", `space_unreadable: as it is\n  read the log of the bridge that read it\n$`,
			func() (string, string) { return failed("space_unreadable") }},
		{"support", `strange: as it is\n$`, func() (string, string) { return failed("strange") }},
		{"support", `bad_settlement: manifest: must be an object\n  read the log of the bridge that read it\n$`,
			func() (string, string) { return ready(`"bytes"`) }},
		{"support", `workspace_untrusted: the manifest is that of "other"\n  the grant in the install record lists what is trusted: refold install --show\n$`,
			func() (string, string) { return ready(`{"v":1,"kind":"workspace","space":"other"}`) }},
		{"sealed", `workspace_untrusted: the manifest is none of the grant's digests, and none of its keys signed it\n  the grant`,
			func() (string, string) { return ready(`{"v":1,"kind":"workspace","space":"sealed"}`) }},
	} {
		sync := w.begin("", "space", "sync", "s1", c.space)
		var effect string
		w.reaches("s1", "the sync is open", func(v session.View) bool {
			if len(v.Syncs) == 0 {
				return false
			}
			effect = v.Syncs[0].Effect
			return true
		})
		typ, data := c.settles()
		w.says(session.DoorSpace, "s1", typ, strings.Replace(data, "EFFECT", effect, 1))
		out, errOut := w.end(sync, statusFailed)
		like(t, c.want, errOut, `^(session s1 is new: this opens it\n)?refold: `+c.space+` is not staged: `+c.want)
		if out != "" {
			t.Errorf("case %d: it prints %q", n, out)
		}
	}
	w.prints(statusFailed, `^refold: rejected: not_permitted: only: .*\n  the grant in the install record forbids it: refold install --show\n$`, "space", "sync", "s1", "sealed", "--only", "tools")
}

func TestSpaceDetachNamesReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := folder(t, "any", support())
	w.does(0, "install", file(t, spaceRecord))
	w.serve(func(b *bridge.Bridge) error { return b.Space("files", bridge.Folder{Dir: dir}) })
	w.does(0, "space", "sync", "s1", "support", "--apply", "immediate_if_idle")
	w.says(session.DoorCtl, "s1", session.TypeSessionConfigured, `{"provider":"p","model":"m","prompt_pack":"short"}`)
	w.prints(statusFailed, `^refold: rejected: workspace_invalid: .*config\.prompt_pack: .*"short".*\n  what is applied and staged stays as it is`, "space", "detach", "s1", "support")
	w.says(session.DoorCtl, "s1", session.TypeSessionConfigured, `{"provider":"p","model":"m"}`)
	w.does(0, "space", "sync", "s1", "support", "--apply", "next_run", "--tool-catalog", "default") // a choice alone is pending
	w.prints(0, `^support 1\.4\.2 is pending \([0-9a-f]{12}\), against support 1\.4\.2 is applied \([0-9a-f]{12}\)\n  no difference\n$`, "space", "diff", "s1")
	w.does(0, "space", "sync", "s1", "support", "--apply", "next_run", "--prompt-pack", "short")
	w.prints(0, `\n  changed  chosen prompt pack: "default" to "short"\n$`, "space", "diff", "s1")
	w.prints(0, `^support 1\.4\.2 is applied: manifest [0-9a-f]{64}\n$`, "space", "apply", "s1", "--mode", "immediate_if_idle") // what is pending
	w.prints(0, `^support is detached; no workspace is applied\n$`, "space", "detach", "s1", "support")
}
