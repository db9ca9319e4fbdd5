package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// TestRunSendsFiles: files become parts of the input, and an unusable one is told
// before anything is published.
func TestRunSendsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	notes, archive := filepath.Join(dir, "notes, old.txt"), filepath.Join(dir, "a.zip")
	bustest.OK(t, os.WriteFile(notes, []byte("Milk\n"), 0o600))
	bustest.OK(t, os.WriteFile(archive, []byte("PK\x03\x04\xff"), 0o600))
	w.does(0, "run", "s1", "what?", "--file", "../../internal/media/testdata/dot.png", "--file", notes, "--no-follow")
	w.waits("s1", 1)
	w.prints(0, `(?s)\*\*User\*\*\n\n> what\?\n> \[dot\.png, image/png, 91 bytes, sha256-766b.*\]\n> Milk\n`, "transcript", "s1")
	w.prints(statusUsage, `^refold: run: --file .*/a.zip: by its content it is no image, PDF or UTF-8 text: convert it`, "run", "s1", "what?", "--file", archive)
	w.prints(statusUsage, `^refold: run: --file /nowhere.png: does not exist: check the path`, "run", "s1", "what?", "--file", "/nowhere.png")
}

// TestRunOfAFaultyAnswer: the exit status says how the run ended, and the transcript
// that the model was asked again.
func TestRunOfAFaultyAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := `{"provider":"p","model":"m","response_format":{"type":"json_schema","schema":{"type":"object","required":["sum"]}}}`
	run := w.begin("", "run", "s1", "1 + 2?", "--config", config)
	w.waits("s1", 1)
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "It is 3."}})
	w.reaches("s1", "the second turn is open", func(v session.View) bool { return v.Run != nil && v.Run.Turns == 2 && v.Run.Repairs == 1 })
	w.settle("s1", "r1t2", map[string]any{"text": map[string]any{"text": "{}"}})
	out, errOut := w.end(run, statusFailed)
	like(t, "run", out, `\{\}\n$`)
	like(t, "run", errOut, `refold: run 1 failed: invalid_answer: needs the member "sum"\n$`)
	w.prints(0, `(?s)> It is 3\.\n\n\*The answer does not have the required form: .*\. The model is asked to repair it\.\*\n.*> \{\}\n\n\*Run 1 failed: invalid_answer: needs the member "sum"\.\*\n$`, "transcript", "s1")
	w.prints(0, `(?s)\{"role":"assistant","content":"It is 3\."\},\n\{"role":"user","content":"Your answer does not have the required form: `, "transcript", "s1", "--format", "openai")
	w.prints(0, `the answer does not have the required form: cannot be read`, "replay", "s1", "--events")
}

// TestFollowingTellsOfARepair: while the run goes on, progress says what is wrong.
func TestFollowingTellsOfARepair(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &following{out: &out, run: 1}
	for _, effect := range []string{"r1t1", "r2t1"} { // the second one is another run's
		data := `{"effect":"` + effect + `","text":"[]","invalid":"is of type object","usage":{}}`
		f.note(client.Notice{Type: session.ProgressTurnSettled, Data: json.RawMessage(data)})
	}
	if got, want := out.String(), "the answer does not have the required form: is of type object; the model is asked to repair it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
