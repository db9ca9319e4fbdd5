package cli

// Reading commands: the output of sessions, transcript, log and tail on a
// terminal of a given width and on a pipe.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// onTerminal runs a command on a terminal of so many columns, and returns its
// status and all that it shows.
func (w *world) onTerminal(columns uint16, args ...string) (status int, shown string) {
	w.t.Helper()
	ours, theirs, err := pty.Open()
	if err == nil {
		err = pty.Setsize(theirs, &pty.Winsize{Rows: 24, Cols: columns})
	}
	bustest.OK(w.t, err)
	defer ours.Close()
	read := make(chan string, 1)
	go func() {
		data, err := io.ReadAll(ours) // ends when nobody has the terminal open
		if err != nil && !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrClosed) {
			data = append(data, err.Error()...)
		}
		read <- string(data)
	}()
	args = append([]string{"--nats", w.node.URL()}, args...)
	status = Main(w.ctx, args, theirs, settings.Terminal(theirs), settings.Terminal(theirs))
	theirs.Close()
	return status, strings.ReplaceAll(<-read, "\r\n", "\n")
}

// environment sets what a terminal is known by.
func environment(t *testing.T, term, noColor, columns string) {
	t.Helper()
	t.Setenv("TERM", term)
	t.Setenv("NO_COLOR", noColor)
	t.Setenv("COLUMNS", columns)
}

// ended runs a session to its end and waits until the notices say so.
func (w *world) ended(sid, input, answer string) {
	w.t.Helper()
	w.does(0, "run", sid, input, "--no-follow")
	w.waits(sid, 1)
	w.settle(sid, "r1t1", map[string]any{"text": map[string]any{"text": answer}})
	w.indexed(sid, string(session.Completed))
}

// indexed waits until the index has a session in a state.
func (w *world) indexed(sid, state string) {
	w.t.Helper()
	bustest.Until(w.t, sid+" is "+state, func() bool {
		for row, err := range w.Index(w.ctx, client.IndexOptions{Name: sid}) {
			return err == nil && row.State == state
		}
		return false
	})
}

// sgr is what begins and ends a color.
var sgr = regexp.MustCompile("\x1b\\[[0-9]*m")

func TestSessionsOnATerminalAndAPipe(t *testing.T) { //nolint:paralleltest // it sets the environment
	w := newWorld(t)
	w.ended("plain", "hi", strings.Repeat("many words ", 30))
	w.ended("hostile", "hi", "wide \u4e16\u754c\u4e16\u754c\u4e16\u754c, red \x1b[31m and the clipboard \x1b]52;c;eA==\a")
	w.does(0, "run", "active", "what is here?", "--no-follow")
	w.indexed("active", string(session.Running))

	environment(t, "xterm", "", "")
	for _, columns := range []uint16{1, 5, 19, 40, 60, 200} {
		status, shown := w.onTerminal(columns, "sessions")
		lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
		if status != 0 || len(lines) != 4 || columns >= 40 && !strings.Contains(shown, "\x1b[32mcom") || strings.Contains(shown, "\x1b]") || strings.Contains(shown, "\a") {
			t.Errorf("%d columns: status %d, %q", columns, status, shown)
		}
		for _, line := range lines {
			if n := settings.Cells(sgr.ReplaceAllString(line, "")); n > int(columns) {
				t.Errorf("%d columns: a line takes %d: %q", columns, n, line)
			}
		}
	}
	_, shown := w.onTerminal(200, "sessions")
	like(t, "a table", sgr.ReplaceAllString(shown, ""), `^SESSION  STATE      WAITS FOR  MODEL  AGE  LATEST TEXT\n`+
		`active   running    model      p/m    \d+s +what is here\?\n`+
		`hostile  completed  nobody     p/m    \d+s +wide 世界世界世界, red \\x1b\[31m and the clipboard \\x1b\]52;c;eA==\\x07\n`+
		`plain    completed  nobody     p/m    \d+s +many words many words .*…\n$`)
	environment(t, "xterm", "", "70")
	if _, shown := w.onTerminal(200, "sessions"); longest(sgr.ReplaceAllString(shown, "")) != 70 {
		t.Errorf("COLUMNS=70: %q", shown)
	}
	for _, plain := range [][2]string{{"xterm", "1"}, {"dumb", ""}} {
		environment(t, plain[0], plain[1], "")
		if _, shown := w.onTerminal(80, "sessions"); strings.Contains(shown, "\x1b") || !strings.Contains(shown, "completed") {
			t.Errorf("TERM=%s NO_COLOR=%s: %q", plain[0], plain[1], shown)
		}
	}

	out, errOut := w.does(0, "sessions")
	like(t, "a pipe", out, `^active\trunning\tmodel\tp/m\t[0-9-]+T[0-9:]+Z\twhat is here\?\nhostile\t.*\nplain\tcompleted\tnobody\tp/m\t.*\tmany words .*…\n$`)
	if errOut != "" || strings.Contains(out, "\x1b") {
		t.Errorf("a pipe: %q and %q", out, errOut)
	}
	w.pages(t)
}

func longest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, settings.Cells(strings.TrimSuffix(line, "\n")))
	}
	return n
}

// pages reads the sessions page by page, and as JSON.
func (w *world) pages(t *testing.T) {
	t.Helper()
	var all []string
	after := ""
	for range 3 {
		out, errOut := w.does(0, "sessions", "--limit", "1", "--json", "--after="+after)
		var row client.IndexRow
		if err := json.Unmarshal([]byte(out), &row); err != nil || strings.Count(out, "\n") != 1 {
			t.Fatalf("%q: %v", out, err)
		}
		if more := fmt.Sprintf("more: refold sessions --after %s, with the same flags\n", row.Cursor); len(all) < 2 && errOut != more {
			t.Errorf("behind %s: %q, want %q", row.Session, errOut, more)
		}
		all, after = append(all, row.Session), row.Cursor
	}
	if want := []string{"active", "hostile", "plain"}; !slices.Equal(all, want) {
		t.Errorf("page by page: got %q, want %q", all, want)
	}
	for args, want := range map[string]string{
		"--state failed":                     `^no session matches that has a notice; .* --all finds older sessions\n$`,
		"--state running,paused":             `^active\t.*\n$`,
		"--name pl --since 1h":               `^plain\t.*\n$`,
		"--since 2999-01-31T12:00:00Z":       `^no session matches`,
		"--waits-for model --model p/m":      `^active\t.*\n$`,
		"--all --state silent --name nosuch": `^no session matches\n$`,
	} {
		w.prints(0, want, append([]string{"sessions"}, strings.Fields(args)...)...)
	}
	w.prints(statusUsage, `^refold: a cursor is that of a listed row`, "sessions", "--after", "yesterday")
}

// TestSessionsWithoutNotices: --all finds a session that only the log knows,
// and a terminal shows the progress.
func TestSessionsWithoutNotices(t *testing.T) { //nolint:paralleltest // it sets the environment
	w := newWorld(t)
	w.ended("kept", "hi", "hello")
	w.ended("gone", "hi", "hello")
	out, err := w.bus.Names().Out("gone")
	bustest.OK(t, err)
	w.purges(w.bus.Names().NoticesStream(), out)
	w.prints(0, `^kept\t.*\n$`, "sessions")
	w.prints(0, `^kept\t.*\ngone\tsilent\t-\t-\t-\t\n$`, "sessions", "--all")
	environment(t, "xterm", "", "")
	status, shown := w.onTerminal(100, "sessions", "--all")
	if status != 0 || !strings.Contains(shown, "\r\x1b[Klooking through the log for sessions without notices: partition 2 of 64\r\x1b[K") {
		t.Errorf("status %d, %q", status, shown)
	}
}

const chatRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[
	{"tool_id":"mail.send","tool_name":"send","args_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false},
	 "executor":{"kind":"effect","target":"mail"},"approval":"always"}]}`

// converses has a session talk: a call that is refused, one that a person
// changes, a result in a blob, a steer, an answer; and a second run.
func (w *world) converses() {
	w.t.Helper()
	w.does(0, "install", file(w.t, chatRecord))
	w.does(0, "run", "s1", "write to them", "--no-follow")
	w.waits("s1", 1)
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r1t1","text":{"text":"I write."},"calls":[
		{"tool_name":"send","arguments":"{\"to\":\"ann\"}"},{"tool_name":"send","arguments":"{\"too\":\"bob\"}"}]}`)
	w.reaches("s1", "a call waits", func(v session.View) bool { return v.WaitsFor == "approval" })
	w.does(0, "steer", "s1", "and be quick")
	w.does(0, "approve", "s1", "r1t1c0", "--args", `{"to":"anna"}`, "--yes", "--reason", "her name")
	text := strings.Repeat("sent ```\n", session.TextBytesMax/8)
	ref, err := w.bus.PutBlob(w.ctx, []byte(text))
	bustest.OK(w.t, err)
	output, err := json.Marshal(session.Content{Blob: &ref, MediaType: "text/plain", Size: int64(len(text))})
	bustest.OK(w.t, err)
	w.says(session.DoorTool, "s1", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"succeeded","output":`+string(output)+`}`)
	w.reaches("s1", "turn 2", func(v session.View) bool { return v.Turn != nil && v.Turn.Effect == "r1t2" })
	w.settle("s1", "r1t2", map[string]any{"text": map[string]any{"text": "Done.\n> not a quote of mine"}})
	w.does(0, "run", "s1", "again", "--no-follow")
	w.waits("s1", 2)
}

func TestTranscriptIsMarkdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converses()
	out, errOut := w.does(0, "transcript", "s1")
	if errOut != "" {
		t.Errorf("standard error: %q", errOut)
	}
	short := strings.ReplaceAll(out, strings.Repeat("sent ```\n", session.TextBytesMax/8-1), "…")
	like(t, "Markdown", short, `^# Session s1\n\n## Run 1: p/m, [0-9-]+ [0-9:]+Z\n\n\*\*User\*\*\n\n> write to them\n\n`+
		"\\*\\*Assistant\\*\\*\n\n> I write\\.\n\n\\*\\*Call of `send` r1t1c0\\*\\*\n\n```json\n{\n  \"to\": \"ann\"\n}\n```\n\n"+
		"\\*\\*Call of `send` r1t1c1\\*\\*\n\n```json\n{\n  \"too\": \"bob\"\n}\n```\n\n"+
		"\\*`send` r1t1c0 waits for approval\\.\\*\n\n\\*`send` r1t1c0 was approved by refold: her name\\.\\*\n\n"+
		"\\*\\*Result of `send` r1t1c0, succeeded, run with other arguments: \\{\"to\":\"anna\"\\}\\*\\*\n\n````\n…sent ```\n````\n\n"+
		"\\*\\*Result of `send` r1t1c1, refused: invalid_arguments: there is no \"too\" here; did you mean \"to\"\\?\\*\\*\n\n"+
		`\*\*User, while the run was active\*\*\n\n> and be quick\n\n\*\*Assistant\*\*\n\n> Done\.\n> > not a quote of mine\n\n\*Run 1 completed\.\*\n`+
		`\n## Run 2: p/m, [0-9-]+ [0-9:]+Z\n\n\*\*User\*\*\n\n> again\n$`)
	w.prints(0, `^# Session s1\n\n## Run 2: p/m, .*\n\n\*\*User\*\*\n\n> again\n$`, "transcript", "s1", "--run", "2")
	w.prints(statusFailed, `^refold: session s1 has no run 3 that has begun; it has 2 requested runs\n$`, "transcript", "s1", "--run", "3")
	w.prints(statusFailed, `^refold: the log holds no event of this session\n$`, "transcript", "nobody")
	objects, _ := w.does(0, "transcript", "s1", "--json")
	var kinds []string
	for line := range strings.Lines(objects) {
		var e client.TranscriptEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got, want := strings.Join(kinds, " "), "run input text call call asked decided result result steer text end run input"; got != want {
		t.Errorf("JSON: got %s, want %s", got, want)
	}
	w.chats(t)
}

// chats reads the conversation as OpenAI's chat API takes it.
func (w *world) chats(t *testing.T) {
	t.Helper()
	out, _ := w.does(0, "transcript", "s1", "--format", "openai")
	var messages []struct {
		Role       string  `json:"role"`
		Content    *string `json:"content"`
		ToolCallID string  `json:"tool_call_id"`
		ToolCalls  []struct {
			ID, Type string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal([]byte(out), &messages); err != nil {
		t.Fatalf("%v in %.2000q", err, out)
	}
	var got []string
	for _, m := range messages {
		line := fmt.Sprintf("%s %s%.20q", m.Role, m.ToolCallID, *m.Content)
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf(" %s %s %s%s", c.Type, c.ID, c.Function.Name, c.Function.Arguments)
		}
		got = append(got, line)
	}
	want := []string{
		`user "write to them"`, `assistant "I write." function r1t1c0 send{"to":"ann"} function r1t1c1 send{"too":"bob"}`,
		`tool r1t1c0"A person changed the"`, `tool r1t1c1"error: invalid_argum"`, `user "and be quick"`, `assistant "Done.\n> not a quote "`, `user "again"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("openai: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A call that has no result yet has one all the same.
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r2t1","calls":[{"tool_name":"send","arguments":"{\"to\":\"ann\"}"}]}`)
	w.reaches("s1", "a call waits", func(v session.View) bool { return v.WaitsFor == "approval" })
	w.prints(0, `^\[\n\{"role":"user","content":"again"\},\n\{"role":"assistant","content":"","tool_calls":\[.*\]\},\n\{"role":"tool","content":"\(no result\)","tool_call_id":"r2t1c0"\}\n\]\n$`,
		"transcript", "s1", "--run", "2", "--format", "openai")
}

// TestTranscriptOfWhatWentWrong: a turn that failed, a call that failed, a run
// that was cancelled with a call open, and an event that was rejected.
func TestTranscriptOfWhatWentWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[
		{"tool_id":"a.look","tool_name":"look","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"a"},"parallel_safe":true,"access":"read"}]}`))
	w.does(0, "run", "s1", "one", "--no-follow")
	w.waits("s1", 1)
	w.does(statusFailed, "cancel", "s1", "--run", "7")
	w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"look"},{"tool_name":"look"}]}`)
	w.reaches("s1", "calls are open", func(v session.View) bool { return v.WaitsFor == "tools" })
	w.says(session.DoorTool, "s1", session.TypeToolCallSettled, `{"effect":"r1t1c0","status":"failed","error":{"code":"broken","detail":"no\u001b[2J light"},"output":{"text":"half"}}`)
	w.does(0, "cancel", "s1")
	w.does(0, "run", "s1", "two", "--no-follow")
	w.waits("s1", 2)
	w.settle("s1", "r2t1", map[string]any{"status": "failed", "error": map[string]any{"code": "overloaded", "detail": "later"}})
	w.reaches("s1", "it ends", func(v session.View) bool { return v.Lifecycle == session.Failed })
	out, _ := w.does(0, "transcript", "s1")
	like(t, "Markdown", out, `\*RunCancelRequested was rejected: stale: .*\*\n(?s:.*)`+
		"\\*\\*Result of `look` r1t1c0, failed: broken: no\\\\x1b\\[2J light\\*\\*\n\n```\nhalf\n```\n\n\\*\\*Result of `look` r1t1c1, cancelled: cancelled: the run was stopped .*\\*\\*\n\n"+
		`\*Run 1 cancelled: cancelled\.\*\n\n## Run 2: .*\n\n\*\*User\*\*\n\n> two\n\n\*Turn r2t1 failed: overloaded: later\*\n\n\*Run 2 failed: overloaded: later\.\*\n$`)
}

func TestLogPrintsEachEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("s1", "hi", "hello\x1b[2J")
	if _, err := w.Publish(w.ctx, session.DoorIn, "s1", []byte("no envelope"), ""); err != nil {
		t.Fatal(err)
	}
	at := `[0-9-]+ [0-9:.]+Z`
	first := `2  ` + at + `  in  RunRequested  id [0-9A-Z]{26}  by refold\n  \{\n    "input": \{\n      "text": "hi"\n    \},\n    "when_busy": "queue"\n  \}\n`
	second := `3  ` + at + `  llm  GenerationSettled\n  \{\n    "effect": "r1t1",\n    "status": "ok",\n    "text": \{\n      "text": "hello\\u001b\[2J"\n    \}\n  \}\n`
	third := `4  ` + at + `  in  -\n  can't be decoded: codec: .*\n  payload, as base64: bm8gZW52ZWxvcGU=\n`
	w.prints(0, `^`+first+second+third+`$`, "log", "s1")
	w.prints(0, `^`+second+`$`, "log", "s1", "--from", "3", "--to", "3")
	w.prints(0, `^the session has no event there\n$`, "log", "s1", "--from", "9")
	w.prints(statusFailed, `^refold: the log holds no event of this session\n$`, "log", "nobody")
	w.prints(statusUsage, `--from is after --to`, "log", "s1", "--from", "3", "--to", "2")
	out, errOut := w.does(0, "log", "s1", "--json")
	like(t, "JSON", out, `^\{"session":"s1","seq":2,"time":\d+,"door":"in","type":"RunRequested","id":"[0-9A-Z]{26}","by":"refold","data":\{"input":\{"text":"hi"\},"when_busy":"queue"\}\}\n`+
		`\{.*\}\n\{"session":"s1","seq":4,"time":\d+,"door":"in","fault":"codec: .*","payload":"bm8gZW52ZWxvcGU="\}\n$`)
	if errOut != "" {
		t.Errorf("standard error: %q", errOut)
	}
}

// TestTailEnds: from a beginning in the past it ends at the present unless it
// follows; else it follows.
func TestTailEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("s1", "hi", "hello")
	w.ended("s2", "hi", "hello")
	all := `  s1  1  SessionOpened .*\n.*  s1  2  RunStarted .*\n.*  s1  3  RunFinished .*\n`
	w.prints(0, `^\S+`+all+`$`, "tail", "s1", "--all")
	w.prints(0, `^\S+`+all+`.*  s2  1  SessionOpened .*\n.*\n.*\n$`, "tail", "--all")
	w.prints(0, `^\S+  s1  3  RunFinished`, "tail", "s1", "--since", "2")
	follow := w.begin("", "tail", "s1", "--all", "-f")
	follow.out.shows(t, `s1  3  RunFinished`)
	w.does(0, "run", "s1", "more", "--no-follow")
	follow.out.shows(t, `s1  4  RunStarted`)
	follow.stop()
	if _, errOut := w.end(follow, statusInterrupted); errOut != "" {
		t.Errorf("stopped: %q", errOut)
	}
}

// TestColorsAreOfTerminals: styled output of a terminal is plain in a file.
func TestColorsAreOfTerminals(t *testing.T) { //nolint:paralleltest // it sets the environment
	w := newWorld(t)
	w.ended("s1", "hi", "hello")
	environment(t, "xterm", "", "")
	for _, args := range [][]string{{"transcript", "s1"}, {"log", "s1"}, {"sessions"}} {
		if _, shown := w.onTerminal(80, args...); !strings.Contains(shown, "\x1b[1m") {
			t.Errorf("%q on a terminal: %q", args, shown)
		}
		f, err := os.CreateTemp(t.TempDir(), "out")
		bustest.OK(t, err)
		status := Main(w.ctx, append([]string{"--nats", w.node.URL()}, args...), strings.NewReader(""), settings.Terminal(f), io.Discard)
		written, err := os.ReadFile(f.Name())
		if f.Close(); err != nil || status != 0 || strings.Contains(string(written), "\x1b") || len(written) == 0 {
			t.Errorf("%q in a file: status %d, %q, %v", args, status, written, err)
		}
	}
}

// purges takes what a stream has on a subject out of it, as its age does.
func (w *world) purges(stream, subject string) {
	w.t.Helper()
	_, js := testbus.JS(w.t, w.node)
	s, err := js.Stream(w.ctx, stream)
	bustest.OK(w.t, err)
	bustest.OK(w.t, s.Purge(w.ctx, jetstream.WithPurgeSubject(subject)))
}
