package host

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackGitDirectory: git runs programs that the files of .git name
// (core.fsmonitor, hooks), for whoever uses git in the directory later. A model
// without a shell could plant one.
func TestAttackGitDirectory(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		".git/config": "[core]\n", "sub/.git/config": "[core]\n", "module/.git": "gitdir: ../.git/modules/module\n", "in": "text\n", ".github/f": "text\n", ".gitignore": "x\n",
	}
	r := newRig(t, Options{}, files)
	r.symlink(".git", "link")
	r.symlink(".git/config", "file")
	must(t, os.Link(filepath.Join(r.dir, ".git/config"), filepath.Join(r.dir, "hard")))
	before := snapshot(t, r.dir)
	for _, path := range []string{
		".git/config", ".git/hooks/post-checkout", "sub/.git/config", "./sub/../.git/config", r.dir + "/.git/config", "link/config", "link/new", "file", ".GIT/config", "new/.git/config", ".git", "module/.git", "new/.git",
	} {
		for tool, a := range map[string]args{
			ToolWriteFile: {"path": path, "content": "[core]\n\tfsmonitor = id\n"},
			ToolEditFile:  {"path": path, "old_text": "[core]", "new_text": "[evil]"},
			ToolReadFile:  {"path": path},
			ToolListDir:   {"path": path},
			ToolGrep:      {"path": path, "pattern": "core"},
		} {
			if detail := r.refused(CodePermission, tool, a); !strings.Contains(detail, ".git") {
				t.Errorf("%s %s: %q; want the reason", tool, path, detail)
			}
		}
		for _, patch := range []string{
			"*** Add File: " + path + "\n+x", "*** Update File: " + path + "\n-[core]\n+[evil]", "*** Update File: in\n*** Move to: " + path + "\n-text\n+x",
		} {
			r.refused(CodePermission, ToolApplyPatch, args{"patch": "*** Begin Patch\n" + patch + "\n*** End Patch"})
		}
	}
	r.refused(CodePermission, ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Delete File: .git/config\n*** End Patch"})
	r.refused(CodePermission, ToolSessionOpen, args{"workdir": rigSession + "/.git"})
	for _, pattern := range []string{".git/*", "**/config", "*/.git/*", ".git/config", "{.git,x}/**"} {
		if out := r.ok(ToolGlob, args{"pattern": pattern}); strings.Contains(out, "config") {
			t.Errorf("glob %s: %q; want nothing of .git", pattern, out)
		}
	}
	if after := snapshot(t, r.dir); !maps.Equal(after, before) {
		t.Errorf("afterwards: %s\nbefore: %s", after, before)
	}
	// What git's directory is, may be asked, and other names only look like it.
	wantOutput(t, "exists", r.ok(ToolExists, args{"path": ".git/config"}), "true")
	wantIn(t, r.ok(ToolListDir, nil), ".git/")
	r.ok(ToolWriteFile, args{"path": ".github/workflows/new", "content": "x"})
	r.ok(ToolEditFile, args{"path": ".gitignore", "old_text": "x", "new_text": "y"})
	r.ok(ToolEditFile, args{"path": "hard", "old_text": "[core]", "new_text": "[other]"}) // replaced: the other name keeps its content
	wantIn(t, r.ok(ToolExec, args{"command": "pwd; cat config", "workdir": ".git"}), "[core]")
}

// TestBindingAllowsGitDirectory: an operator who binds the other tool_ids allows
// it, with the same arguments.
func TestBindingAllowsGitDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{".git/config": "[core]\n"})
	wantIn(t, r.ok("host.git.read_file", args{"path": ".git/config"}), "[core]")
	r.ok("host.git.write_file", args{"path": ".git/info/exclude", "content": "x\n"})
	r.ok("host.git.edit_file", args{"path": ".git/config", "old_text": "[core]", "new_text": "[user]"})
	r.ok("host.git.apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: .git/info/exclude\n*** End Patch"})
	wantIn(t, r.ok("host.git.grep", args{"pattern": "user"}), ".git/config:1:")
	wantIn(t, r.ok("host.git.glob", args{"pattern": ".git/*"}), ".git/config")
	wantIn(t, r.ok("host.git.list_dir", args{"path": ".git"}), "config")
	r.refused(CodePathEscapes, "host.git.read_file", args{"path": "../x"})
	r.refused(CodeToolUnbound, "host.git.exec", args{"command": "true"})
}
