package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/tools/sandbox"
)

// TestToolsWork: what developers use works in the sandbox: chmod, times, threads,
// renames from $TMPDIR. A tool that this machine has must work in every way in
// which commands are started. Which tools it lacks is logged.
func TestToolsWork(t *testing.T) {
	t.Parallel()
	_, best, err := sandbox.New(sandbox.Config{})
	must(t, err)
	const project = "mkdir p && cd p && "
	for _, tool := range []struct {
		name string
		at   []string // a command that prints the directory of the tool's own files; none: it has no other than the system's
		line string
	}{
		{"git", nil, project + `git init -q . && git config user.name x && git config user.email x@y && echo a >f && chmod 755 f && git add f && git commit -qm a && git checkout -qb b && git tag t && git gc -q &&
			git remote add up "file://$PWD" && git fetch -q up && git clone -q "file://$PWD" ../c && git -C ../c log --oneline -1 && git worktree add -q ../w t && git stash -q; test -x ../c/f && test -x ../w/f && git fsck`},
		{"tar", nil, project + `mkdir d && echo a >d/f && ln -s f d/l && ln d/f d/g && chmod 0400 d/f && touch -d 2001-01-01 d/f && tar cpzf a.tgz d && mkdir x && tar xpzf a.tgz -C x && test $(stat -c %a%Y x/d/f) = $(stat -c %a%Y d/f) && cp -a d e && rm -rf d x e`},
		{"gcc", nil, project + `printf '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n' >a.c && gcc -O1 -pthread -o a a.c && test "$(./a)" = hi`},
		{"make", nil, project + `printf 'all: a b\na b:\n\techo $@ >$@ && chmod 600 $@\n' >Makefile && make -j2 && make && test -f a`},
		{"python3", []string{"python3", "-c", "import sys; print(sys.base_prefix)"}, project + `python3 -m venv --without-pip v && v/bin/python -c 'import os, tempfile, threading, subprocess, sqlite3, shutil
t = threading.Thread(target=print); t.start(); t.join()
n = tempfile.NamedTemporaryFile(delete=False); n.close(); os.rename(n.name, "moved"); os.utime("moved", (1, 1)); os.chmod("moved", 0o640)
assert subprocess.run(["/bin/echo", "hi"], capture_output=True).stdout == b"hi\n"
sqlite3.connect("db").execute("create table t (x)"); shutil.copytree("v", "copy", symlinks=True); shutil.rmtree("copy")'`},
		{"node", nil, project + `node -e 'const fs = require("fs"), os = require("os"), w = require("worker_threads"); new w.Worker("1", {eval: true}); fs.writeFileSync(os.tmpdir() + "/f", "x"); fs.renameSync(os.tmpdir() + "/f", "g"); fs.chmodSync("g", 0o755); fs.utimesSync("g", 1, 1); fs.cpSync(".", "../q", {recursive: true}); require("child_process").execSync("true")'`},
		{"npm", nil, project + `mkdir dep && echo '{"name":"dep","version":"1.0.0","bin":"b.js"}' >dep/package.json && printf '#!/usr/bin/env node\n' >dep/b.js && npm init -y >/dev/null && npm pkg set scripts.hi="echo hi" && npm pack ./dep && npm install --offline --no-audit --no-fund ./dep-1.0.0.tgz && npm run hi && test -x node_modules/.bin/dep`},
		{"strace", nil, `strace -f -o t /bin/sh -c '/bin/true; /bin/true' && grep -q exited.with.0 t`},
		{"gdb", nil, `gdb -q -batch -ex 'break exit' -ex run -ex backtrace /bin/true`},
		{"go", []string{"go", "env", "GOROOT"}, project + `go mod init x && printf 'package main\n\nfunc main() { println("hi") }\n' >main.go && printf 'package main\n\nfunc init() { main() }\n' >a.go && gofmt -l . && go build -o a . && ./a`},
		{"cargo", []string{"rustc", "--print", "sysroot"}, `cargo new -q p && cd p && cargo build -q --offline && ./target/debug/p`},
	} {
		program, err := exec.LookPath(tool.name)
		if err != nil {
			t.Logf("%s: this machine has none, so it is not tested: %v", tool.name, err)
			continue
		}
		path, read := filepath.Dir(program), []string{filepath.Dir(program)}
		if tool.at != nil {
			out, err := exec.Command(tool.at[0], tool.at[1:]...).Output()
			if err != nil {
				t.Logf("%s: it does not work outside of the sandbox, so it is not tested: %v", tool.name, err)
				continue
			}
			root := strings.TrimSpace(string(out))
			path, read = filepath.Join(root, "bin"), append(read, root)
		}
		boxesNamed(t, tool.name, sandbox.Config{Read: read}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
			if tool.name == "go" && b.Means() != best.Means { // it compiles its runtime first, which takes long
				return
			}
			dir := t.TempDir()
			temp := filepath.Join(dir, ".tmp")
			must(t, os.Mkdir(temp, 0o700))
			env := []string{"PATH=" + path + ":/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + temp, "USER=x", "GOTOOLCHAIN=local", "GOPROXY=off", "CGO_ENABLED=0"}
			if out, end := run(t, b, dir, env, "/bin/sh", "-ec", tool.line); end.Exit != 0 {
				t.Errorf("%s: %.2000q, %+v; want exit status 0", tool.name, out, end)
			}
		})
	}
}
