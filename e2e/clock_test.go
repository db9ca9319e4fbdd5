package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// plantClock builds a bridge whose machine shows a time 11 minutes ahead. Go programs
// read the time without libc, so that libfaketime has no effect on them.
func plantClock(t *testing.T) (name string) {
	t.Helper()
	read, err := filepath.Abs("../internal/natsio/clock.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(read)
	if err != nil {
		t.Fatal(err)
	}
	skewed := bytes.Replace(source, []byte("return now.Round(0), "), []byte("return now.Round(0).Add(11 * time.Minute), "), 1)
	if bytes.Equal(source, skewed) {
		t.Fatalf("%s does not read the clock any more: skew it elsewhere", read)
	}
	overlay := writeFile(t, "overlay.json", jsonText(t, object{"Replace": object{read: writeFile(t, "clock.go", string(skewed))}}))
	name = "bridge-" + t.Name()
	if said, err := exec.Command("go", "build", "-overlay", overlay, "-o", program(name), "../cmd/bridge").CombinedOutput(); err != nil {
		t.Fatalf("build with a skewed clock: %v\n%s", err, said)
	}
	return name
}

// TestClockOfABridgeIsAhead: the only bridge runs on a machine whose clock is wrong. Its
// model turns and calls succeed, and the doctor tells the offset.
func TestClockOfABridgeIsAhead(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	startDaemon(t, plantClock(t), "--nats", s.url, "--model", "scripted:echo", "--tools", "host", "--workdir", t.TempDir())
	s.run(session.DoorIn, "s1", "run echo written > note.txt && cat note.txt", object{"provider": "scripted", "model": "echo"})
	s.wantEnd("s1", 1, session.Completed, "")
	if got := outcomes(t, s, "s1"); got != "succeeded, succeeded" {
		t.Errorf("calls: got %q, want two that succeeded", got)
	}
	out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "bridge", "doctor")
	if want := regexp.MustCompile(`clock: bridge \S+: its machine's clock is (10m59|11m0)\S*s ahead of the NATS server's`); status != 0 || !want.MatchString(out) {
		t.Errorf("doctor: status %d, got\n%s%s, want the offset", status, out, errOut)
	}
}
