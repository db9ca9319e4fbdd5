package cli

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
	w.does(0, "run", "s1", "what?", "--file", "../../../internal/media/testdata/dot.png", "--file", notes, "--no-follow")
	w.waits("s1", 1)
	w.prints(0, `(?s)\*\*User\*\*\n\n> what\?\n> \[dot\.png, image/png, 91 bytes, sha256-766b.*\]\n> Milk\n`, "transcript", "s1")
	w.prints(statusUsage, `^refold: run: --file .*/a.zip: by its content it is no image, PDF or UTF-8 text: convert it`, "run", "s1", "what?", "--file", archive)
	w.prints(statusUsage, `^refold: run: --file /nowhere.png: does not exist: check the path`, "run", "s1", "what?", "--file", "/nowhere.png")
}

// TestSteersAndEditsSendFiles: with the same flag, limits and errors as a run.
func TestSteersAndEditsSendFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const dot = "../../../internal/media/testdata/dot.png"
	archive := filepath.Join(t.TempDir(), "a.zip")
	bustest.OK(t, os.WriteFile(archive, []byte("PK\x03\x04\xff"), 0o600))
	w.does(0, "run", "s1", "what?", "--no-follow")
	w.waits("s1", 1)
	w.does(0, "steer", "s1", "And this?", "--file", dot)
	w.does(0, "run", "s1", "later", "--no-follow")
	w.does(0, "queue", "s1", "--edit", "2", "Look.", "--file", dot)
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "It is 3."}})
	w.reaches("s1", "the second turn is open", func(v session.View) bool { return v.Run != nil && v.Run.Turns == 2 })
	w.settle("s1", "r1t2", map[string]any{"text": map[string]any{"text": "A dot."}})
	w.reaches("s1", "the second run is active", func(v session.View) bool { return v.Run != nil && v.Run.Number == 2 })
	w.prints(0, `(?s)\*\*User, while the run was active\*\*\n\n> And this\?\n> \[dot\.png, image/png, 91 bytes, sha256-766b.*> Look\.\n> \[dot\.png, image/png`, "transcript", "s1")
	w.prints(statusUsage, `^refold: steer: --file .*/a.zip: by its content it is no image, PDF or UTF-8 text: convert it`, "steer", "s1", "x", "--file", archive)
	w.prints(statusUsage, `^refold: queue: --file .*/a.zip: by its content`, "queue", "s1", "--edit", "2", "x", "--file", archive)
	w.prints(statusUsage, `^refold: queue: a text and files go with --edit N`, "queue", "s1", "--file", dot)
}

// TestExplicitRunsSayHowAnswersEnded: while the run waits for input, and at its end.
func TestExplicitRunsSayHowAnswersEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin("", "run", "s1", "go", "--config", `{"provider":"p","model":"m","completion":"explicit"}`)
	w.waits("s1", 1)
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "I won't."}, "finish_reason": "refusal"})
	w.reaches("s1", "the run waits for input", func(v session.View) bool { return v.WaitsFor == "input" })
	w.prints(0, `"finish_reason": "refusal"`, "view", "s1")
	seq, err := w.CompleteRun(t.Context(), "s1", client.ControlOptions{})
	bustest.OK(t, err)
	_, err = w.Taken(t.Context(), "s1", seq)
	bustest.OK(t, err)
	_, errOut := w.end(run, 0)
	like(t, "run", errOut, `the model refused \(refusal\)\nrun 1: `)
	w.prints(0, `(?s)> I won't\.\n\n\*the model refused \(refusal\)\.\*\n.*\*Run 1 completed: the model refused \(refusal\)\.\*`, "transcript", "s1")
	w.prints(0, `(?s)turn r1t1.*the model refused \(refusal\)\n.*the model refused \(refusal\)\n`, "replay", "s1", "--events")
	w.prints(0, `(?s)"last": \{[^}]*"finish_reason": "refusal"`, "view", "s1")
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

// TestFollowingTellsOfAnswers: while the run goes on, progress says what is wrong with
// an answer, and how it ended.
func TestFollowingTellsOfAnswers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &following{out: &out, run: 1}
	for _, effect := range []string{"r1t1", "r2t1"} { // the second one is another run's
		data := `{"effect":"` + effect + `","text":"[]","invalid":"is of type object","usage":{}}`
		f.note(client.Notice{Type: session.ProgressTurnSettled, Data: json.RawMessage(data)})
	}
	for _, data := range []string{
		`{"effect":"r1t2","text":"Half","finish_reason":"length","usage":{}}`, `{"effect":"r1t3","text":"All","finish_reason":"stop","usage":{}}`,
		`{"effect":"r1t4","calls":1,"finish_reason":"length","usage":{}}`, // its result says so
	} {
		f.note(client.Notice{Type: session.ProgressTurnSettled, Data: json.RawMessage(data)})
	}
	const want = "the answer does not have the required form: is of type object; the model is asked to repair it\nthe output limit cut the answer off (length)\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
