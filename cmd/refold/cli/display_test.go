package cli

// Text and messages on one terminal, in one file, and separate: a message has
// its own line, no text is lost, and the status line leaves nothing behind. The
// text of models comes turn by turn; a turn that starts again starts on a new line.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/client"
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

func TestModelTextIsPrintedOnce(t *testing.T) {
	t.Parallel()
	text := func(run, turn uint32, text string) client.Shown {
		return client.Shown{Kind: client.ShownText, Run: run, Turn: turn, Text: text}
	}
	is := func(kind client.ShownKind, run, turn uint32) client.Shown {
		return client.Shown{Kind: kind, Run: run, Turn: turn}
	}
	for _, c := range []struct {
		name   string
		shown  []client.Shown
		answer string
		want   string
	}{
		{"nothing", nil, "", ""},
		{"nothing was shown", nil, "hello", "hello\n"},
		{"as it came", []client.Shown{text(2, 1, "hel"), text(2, 1, "lo"), is(client.ShownDone, 2, 1)}, "hello", "hello\n"},
		{"begun again", []client.Shown{text(2, 1, "hel"), is(client.ShownAgain, 2, 1), text(2, 1, "he"), text(2, 1, "llo"), is(client.ShownDone, 2, 1)}, "hello", "hel\n(started again)\nhello\n"},
		{"another attempt", []client.Shown{text(2, 1, "hel\n"), is(client.ShownFailed, 2, 1), is(client.ShownAgain, 2, 1), text(2, 1, "hello"), is(client.ShownDone, 2, 1)}, "hello", "hel\n(started again)\nhello\n"},
		{"two turns", []client.Shown{text(2, 1, "I look."), is(client.ShownDone, 2, 1), text(2, 2, "There.\n"), is(client.ShownDone, 2, 2)}, "There.\n", "I look.\nThere.\n"},
		{"the answer is of an earlier turn", []client.Shown{text(2, 1, "There."), is(client.ShownDone, 2, 1), text(2, 2, "I fai"), is(client.ShownFailed, 2, 2)}, "There.", "There.\nI fai\n"},
		{"the answer was not shown", []client.Shown{text(2, 1, "I look.\n"), is(client.ShownDone, 2, 1)}, "There.", "I look.\nThere.\n"},
		{"without an answer", []client.Shown{text(2, 1, "I fai"), is(client.ShownFailed, 2, 1)}, "", "I fai\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			l := newDisplay(streams{out: &out, err: io.Discard})
			for _, s := range c.shown {
				l.shown(s)
			}
			l.end(c.answer)
			l.shown(text(2, 3, "late"))
			if got := out.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A second start of a turn starts on a new line, in `refold run` and in `refold
// tail`, between whose notices the text is printed.
func TestTextIsShownAsItArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tail := w.begin("", "tail", "s1", "--all", "--follow")
	run := w.begin("", "run", "s1", "hi")
	w.waits("s1", 1)
	say := func(start string, n int, text string) {
		t.Helper()
		bustest.OK(t, w.bus.PublishLive("s1", fmt.Appendf(nil, `{"effect":"r1t1","start":%q,"n":%d,"text":%q}`, start, n, text)))
	}
	bustest.Until(t, "tail prints words", func() bool {
		say("A", 0, "hel") // until it listens: a repeat is not shown
		return strings.Contains(tail.out.String(), "hel")
	})
	run.out.shows(t, "hel")
	say("B", 0, "good")
	run.out.shows(t, "good")
	tail.out.shows(t, "good")
	say("B", 2, "!") // one is missed: the log has the rest
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "good day!"}})
	out, errOut := w.end(run, 0)
	if out != "hel\n(started again)\ngood day!\n" {
		t.Errorf("run prints %q", out)
	}
	like(t, "the closing line", errOut, `^run 1: 1 turn, 0 calls, \d+\.\d s\n$`)
	tail.out.shows(t, " day!")
	tail.stop()
	// Notices come between, whenever they come.
	out, _ = w.end(tail, statusInterrupted)
	rest := out
	for _, want := range []string{"hel", "(started again)\n", "good", " day!"} {
		var found bool
		if _, rest, found = strings.Cut(rest, want); !found {
			t.Errorf("tail prints %q, in which %q is not where it should be", out, want)
			break
		}
	}
	if strings.Count(out, "hel") != 1 || strings.Count(out, "(started again)") != 1 {
		t.Errorf("tail prints %q, with something twice", out)
	}
}

// TestLinesOfCallsWaitForTheText: a notice and the text take different ways, so a
// line about a call may arrive within the text of its turn, or of the next one.
func TestLinesOfCallsWaitForTheText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := newDisplay(streams{out: &out, err: io.Discard})
	line := func(text string) func() { return func() { fmt.Fprintln(&out, text) } }
	l.aside(true, line("<before>"))
	l.shown(client.Shown{Kind: client.ShownText, Run: 1, Turn: 1, Text: "I "})
	l.aside(true, line("<call>"))
	l.aside(false, line("<other>"))
	l.shown(client.Shown{Kind: client.ShownText, Run: 1, Turn: 1, Text: "look."})
	l.shown(client.Shown{Kind: client.ShownDone, Run: 1, Turn: 1})
	l.aside(true, line("<after>"))
	l.shown(client.Shown{Kind: client.ShownText, Run: 1, Turn: 2, Text: "Do"})
	l.aside(true, line("<late>"))
	l.end("")
	if got, want := out.String(), "<before>\nI \n<other>\nlook.\n<call>\n<after>\nDo\n<late>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
