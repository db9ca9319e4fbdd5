package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// The escapes are also tried by a user without rights, and where namespaces are
// refused. This program is started again for that.

const (
	refusesName = "refuses-namespaces"   // is what this program is called to refuse namespaces
	againEnv    = "REFOLD_SANDBOX_AGAIN" // its value: in what way this program was started again
	nobody      = 65534                  // a user and a group without rights
	againTests  = "^(TestAttack|TestFilesOutside|TestNetworkOutside|TestPrivileges|TestMounts|TestMetadata|TestRequired)"
)

// refuseNamespaces executes this program again, which then can create none.
func refuseNamespaces(args []string) error {
	runtime.LockOSThread()
	if err := sandbox.RefuseNamespaces(); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", append([]string{"sandbox.test"}, args...), os.Environ())
}

func TestAsOtherUsersAndWithoutNamespaces(t *testing.T) {
	t.Parallel()
	if os.Getenv(againEnv) != "" {
		return
	}
	for _, way := range []struct {
		name           string
		nobody, refuse bool
	}{
		{"nobody", true, false},
		{"namespaces refused", false, true},
		{"nobody, namespaces refused", true, true},
	} {
		if way.nobody && os.Getuid() != 0 {
			t.Logf("%s: only root can become another user; this user has no rights, and so tests the same", way.name)
			way.nobody = false
		}
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dir := readable(t, way.nobody)
			args := []string{"sandbox.test", "-test.run=" + againTests, "-test.count=1"}
			if way.refuse {
				args[0] = refusesName
			} else {
				args[1] += "|TestToolsWork"
			}
			var out bytes.Buffer
			cmd := &exec.Cmd{
				Path: filepath.Join(dir, "sandbox.test"), Args: args, Dir: dir, Stdout: &out, Stderr: &out,
				Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"), againEnv + "=" + way.name},
			}
			if way.nobody {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			if err := cmd.Run(); err != nil || !strings.HasSuffix(strings.TrimSpace(out.String()), "PASS") {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}

// readable returns a directory with what this program needs to test itself, which
// the other user may use.
func readable(t *testing.T, nobodys bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "refold-again-") //nolint:usetesting // another user can't enter the parent of t.TempDir
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	must(t, err)
	for _, sub := range []string{"testdata", "tmp"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	must(t, os.Chmod(dir, 0o755))
	if nobodys {
		must(t, os.Chown(filepath.Join(dir, "tmp"), nobody, nobody))
	}
	for from, to := range map[string]string{self: "sandbox.test", "testdata/call.c": "testdata/call.c", "escape_linux_test.go": "escape_linux_test.go"} {
		// Not written by this process: another test's child could hold the file open
		// for writing, and the kernel then doesn't execute it.
		if out, err := exec.Command("install", "-m", "755", from, filepath.Join(dir, to)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// TestMetadataIsReported: it holds in a mount namespace, and nowhere else.
func TestMetadataIsReported(t *testing.T) {
	t.Parallel()
	for _, means := range sandbox.Means() {
		_, report, err := sandbox.NewBy(readsSelf(t), means)
		spaces := strings.Contains(means, "namespaces")
		switch {
		case err != nil && spaces: // this user may not; boxes tests that New then goes on
		case err != nil:
			t.Errorf("%s: %v; want it to work everywhere", means, err)
		case report.Holds(sandbox.Metadata) != spaces:
			t.Errorf("%s: %s; want metadata in a namespace only", means, report)
		case !spaces && !strings.Contains(report.String(), "metadata (no mount namespace: modes, times and attributes of the user's other files can be changed)"):
			t.Errorf("%s: %s; want the reason", means, report)
		}
	}
}

// TestRequiredNeedsMetadata: without a mount namespace a required sandbox is
// refused, and one that is not required runs commands.
func TestRequiredNeedsMetadata(t *testing.T) {
	t.Parallel()
	refused := strings.HasSuffix(os.Getenv(againEnv), "namespaces refused")
	box, report, err := sandbox.New(sandbox.Config{})
	if err != nil || box == nil {
		t.Fatalf("New: %v, %v; want a sandbox", report, err)
	}
	if out, end := run(t, box, t.TempDir(), nil, "/bin/sh", "-c", "echo runs"); out != "runs\n" || end.Exit != 0 {
		t.Errorf("a command: %q, %+v; want it to run", out, end)
	}
	_, _, err = sandbox.New(sandbox.Config{Mode: sandbox.Required})
	if report.Holds(sandbox.Metadata) {
		if refused {
			t.Errorf("namespaces are refused, and the report says %s", report)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "metadata (") || !strings.Contains(report.String(), "not enforced: ") {
		t.Errorf("required: %v; want an error that names metadata; the report says %s", err, report)
	}
}
