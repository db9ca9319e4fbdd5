package host

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNextHostKillsLeftovers: without a sandbox, processes of commands outlive
// a host that is killed. The next host on the same root kills them, whatever
// group they are in. A host on another root does not, and processes of a
// running host continue.
func TestNextHostKillsLeftovers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, rigSession)
	must(t, os.Mkdir(dir, 0o755))
	mkfifo(t, filepath.Join(dir, "ids"))
	mkfifo(t, filepath.Join(dir, "gate"))
	self, err := os.Executable()
	must(t, err)
	const line = `sh -c 'echo $$ > ids; read never < gate' & setsid sh -c 'echo $$ > ids; read never < gate' & read never < gate`
	begin := func() (b *exec.Cmd, left []process) {
		b = exec.Command(self)
		b.Env = append(os.Environ(), envMode+"="+modeServe, envRoot+"="+root, envShell+"="+line)
		b.Stdout, b.Stderr = io.Discard, io.Discard
		must(t, b.Start())
		t.Cleanup(func() { _ = b.Process.Kill() })
		return b, readIDs(t, filepath.Join(dir, "ids"), 2)
	}
	sweep := func(root string) string {
		var log bytes.Buffer
		New(root, Options{}).Sweep(t.Context(), &told{}, slog.New(slog.NewTextHandler(&log, nil)))
		return log.String()
	}
	killed, left := begin()
	must(t, killed.Process.Kill())
	_ = killed.Wait()
	lives, goOn := begin()
	other := t.TempDir()
	must(t, New(other, Options{}).Prepare())
	if log := sweep(other); log != "" {
		t.Errorf("a host on another root says %q", log)
	}
	for _, p := range left {
		if p.gone(t, 0) {
			t.Errorf("process %d ended by itself: the test shows nothing", p.pid)
		}
	}
	if log := sweep(root); !strings.Contains(log, "msg=leftover_processes_ended count=") {
		t.Errorf("the log is %q, want it to say that processes were ended", log)
	}
	wantGone(t, left)
	for _, p := range goOn {
		if p.gone(t, 0) {
			t.Errorf("process %d of a host that lives is gone", p.pid)
		}
	}
	must(t, lives.Process.Kill())
	_ = lives.Wait()
	sweep(root)
	wantGone(t, goOn)
}
