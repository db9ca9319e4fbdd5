package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

const (
	inOpenAI = `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Read a and b."},
		{"role":"assistant","content":null,"tool_calls":[{"id":"x1","type":"function","function":{"name":"read","arguments":"{\"f\":\"a\"}"}},{"id":"x2","type":"function","function":{"name":"read","arguments":"{\"f\":\"b\"}"}}]},
		{"role":"tool","tool_call_id":"x2","content":"the text of b"},{"role":"tool","tool_call_id":"x1","content":[{"type":"text","text":"the text of a"}]},
		{"role":"assistant","content":"Both are read."}]}`
	inAnthropic = `[{"role":"user","content":"Read a and b."},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"tool_use","id":"x1","name":"read","input":{"f":"a"}},{"type":"tool_use","id":"x2","name":"read","input":{"f":"b"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"x1","content":"the text of a"},{"type":"tool_result","tool_use_id":"x2","content":[{"type":"text","text":"the text of b"}]}]},
		{"role":"assistant","content":[{"type":"text","text":"Both are read."}]}]`
)

// TestImportIsShownToTheModel: the first turn of a session shows what was imported, from
// each form and from an archive, before the run's input.
func TestImportIsShownToTheModel(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	const shown = `(?s)user.*Read a and b\..*assistant.*r0t2c0 of read: \{"f":"a"\}.*r0t2c1 of read.*tool.*r0t2c0.*the text of a.*tool.*r0t2c1.*the text of b.*assistant.*Both are read\..*user.*And now\?`
	for sid, c := range map[string]struct{ text, told string }{
		"chat":   {inOpenAI, `^1 system text left out: the session's config has its own, as system\n$`},
		"claude": {inAnthropic, `^1 part of reasoning left out: only the provider that wrote it can read it\n$`},
	} {
		name := filepath.Join(dir, sid+".json")
		bustest.OK(t, os.WriteFile(name, []byte(c.text), 0o600))
		out, errOut := w.does(0, "import", name, "--as", sid)
		like(t, "import", out, `^imported 5 messages into session `+sid+`; go on: refold run `+sid+` "…"\n$`)
		like(t, "import", errOut, c.told)
		w.ended(sid, "And now?", "Nothing more.")
		out, _ = w.does(0, "prompt", sid, "--window")
		like(t, "the window of "+sid, out, shown)
		out, _ = w.does(0, "transcript", sid, "--format", "openai")
		like(t, "the transcript of "+sid, out, `(?s)^\[\n\{"role":"user","content":"Read a and b\."\}.*"r0t2c0".*"r0t2c1".*"the text of a".*"the text of b".*"Both are read\.".*"And now\?".*"Nothing more\."\}\n\]\n$`)
	}
	out, _ := w.does(0, "replay", "chat", "--events")
	like(t, "events", out, `imported 5 messages, \d+ bytes, sha256-`)
	w.does(0, "verify", "chat")

	w.does(0, "archive", "chat", "--to", dir)
	archive := filepath.Join(dir, "chat.refold")
	live, _ := w.does(0, "replay", "chat")
	if got, _ := offline(t, 0, "replay", archive); got != live {
		t.Errorf("replay of the archive: got %q, want %q", got, live)
	}
	want, _ := w.does(0, "transcript", "chat")
	if got, _ := offline(t, 0, "transcript", archive); got != want {
		t.Errorf("transcript of the archive: got %q, want %q", got, want)
	}
	w.does(0, "import", archive, "--as", "again", "--json")
	w.ended("again", "Really?", "Really.")
	out, _ = w.does(0, "prompt", "again", "--window")
	like(t, "the window after the archive", out, shown+`.*Nothing more\..*user.*Really\?`)

	_, errOut := w.does(statusFailed, "import", archive, "--as", "again")
	like(t, "again", errOut, `session again refused the import: .*import into a new session`)
	_, errOut = w.does(statusUsage, "import", archive, "--as", "no session")
	like(t, "a bad name", errOut, `^refold: import: --as: `)
}

// TestImportRefusesWhatCanNotBeSent, before anything is stored.
func TestImportRefusesWhatCanNotBeSent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                   `not a conversation`,
		`[]`:                                   `the conversation is empty`,
		`[{"a":1}]`:                            `messages\[0\]: it has no role`,
		`[{"role":"bot","content":"x"}]`:       `messages\[0\]: the role "bot" is none of`,
		`[{"role":"assistant","content":"x"}]`: `messages\[0\]: the first message is an assistant's`,
		`[{"role":"user","content":[{"type":"audio"}]}]`:                                                                                                                               `messages\[0\]: a part has the type "audio"`,
		`[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"y"}]`:                                                                                                           `messages\[1\]: it has a result of the call "y"`,
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`:                                                                           `download the image`,
		`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"y","function":{"name":"f"}}]}]`:                                                                       `the call "y" has no result`,
		`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"y","function":{"name":"f"}}]},{"role":"user","content":"z"}]`:                                         `messages\[2\]: the call "y" has no result`,
		`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"y","function":{"name":"f","arguments":"no"}}]}]`:                                                      `messages\[1\]: the call "y" has no name, or arguments`,
		`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"y","function":{"name":"f"}},{"id":"y","function":{"name":"f"}}]}]`:                                    `two calls have the id "y"`,
		`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"y","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"y"},{"role":"tool","tool_call_id":"y"}]`: `messages\[3\]: the call "y" has a second result`,
	} {
		name := filepath.Join(t.TempDir(), "c.json")
		bustest.OK(t, os.WriteFile(name, []byte(text), 0o600))
		_, errOut := offline(t, statusFailed, "import", name, "--as", "s1")
		like(t, text, errOut, `^refold: import .*c\.json: .*`+want)
		if strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: %q has several lines", text, errOut)
		}
	}
}
