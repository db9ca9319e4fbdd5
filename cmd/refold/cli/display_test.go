package cli

// Text and messages on one terminal, in one file, and separate: a message has
// its own line, no text is lost, and the status line leaves nothing behind.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

// speak writes text and messages as a run does, whose model is interrupted by a
// message in mid-line.
func speak(d *display) {
	d.text("hel")
	fmt.Fprint(d, "message\n")
	d.text("lo")
	d.endLine()
	fmt.Fprint(d, "closing\n")
	d.text("more")
	fmt.Fprint(d, "late\n")
	d.endLine()
	d.endLine()
}

func TestMessagesNeverSplitTextInOneFile(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "both"))
	bustest.OK(t, err)
	defer file.Close()
	speak(newDisplay(streams{out: file, err: file}))
	got, err := os.ReadFile(file.Name())
	if want := "hel\nmessage\nlo\nclosing\nmore\nlate\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestTextAndMessagesApart(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	speak(newDisplay(streams{out: &out, err: &errOut}))
	if out.String() != "hello\nmore\n" || errOut.String() != "message\nclosing\nlate\n" {
		t.Errorf("got %q and %q", out.String(), errOut.String())
	}
}

// TestStatusLineFitsTheTerminal: a line that fills it would wrap on some.
func TestStatusLineFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{0: "llm/openai 12s", 15: "llm/openai 12s", 14: "llm/openai 1…", 2: "…", 1: ""} {
		var all strings.Builder
		d := &display{out: &all, err: &all, rewrites: true, columns: columns}
		d.show("llm/openai 12s")
		if got := all.String(); got != want {
			t.Errorf("%d columns: got %q, want %q", columns, got, want)
		}
	}
}

func TestStatusLineIsRewritten(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	d := &display{out: &all, err: &all, shared: true, rewrites: true}
	d.text("hel")
	d.show("shell 1s")
	d.show("shell 1s")
	d.show("shell 2s")
	fmt.Fprint(d, "message\n")
	d.show(strings.Repeat("long ", 20))
	d.text("lo\n")
	d.show("")
	const gone = "\r\x1b[K"
	long := strings.Repeat("long ", 20)[:statusMax-1] + "…"
	if got, want := all.String(), "hel\nshell 1s"+gone+"shell 2s"+gone+"message\n"+long+gone+"lo\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
