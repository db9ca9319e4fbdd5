package scripted_test

// The built-in scripts with the real tools, in a temporary directory.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/planner"
)

// talk is a session held with a script and the tools of the host.
type talk struct {
	script   *scripted.Script
	host     *host.Host
	registry *planner.Registry
	session  *executor.HostSession
	messages []executor.Message
	runs     int
	groups   []string // the plan of each batch
}

func newTalk(t *testing.T, s *scripted.Script, dir string) *talk {
	t.Helper()
	d := planner.Builtin()
	registry, err := planner.NewRegistry(d.Tools, d.Profiles, d.DefaultProfile, d.ProfileByProvider)
	must(t, err)
	return &talk{script: s, host: host.New(t.TempDir(), host.Options{WorkDir: dir}), registry: registry}
}

// offered returns the tools of this moment.
func (k *talk) offered() (planner.Toolset, []executor.Tool) {
	facts := planner.Facts{Capabilities: capabilities(k.registry)}
	if k.session != nil {
		facts.HostSession = k.session.Status
	}
	set := planner.Select(k.registry, planner.Request{Profile: "openai"}, facts)
	var shown []executor.Tool
	for _, o := range set.Offers {
		shown = append(shown, executor.Tool{Name: k.registry.Descriptor(o.Tool()).ToolName})
	}
	return set, shown
}

// capabilities returns all that any tool asks for.
func capabilities(r *planner.Registry) (all []string) {
	for _, s := range r.Tools() {
		all = append(all, s.Requires...)
	}
	return all
}

// say sends the model an input, carries out its calls, and returns the answer
// that ends the run, or the model's failure.
func (k *talk) say(t *testing.T, input string) (string, error) {
	t.Helper()
	k.runs++
	k.messages = append(k.messages, executor.Message{Role: "user", Text: input})
	for turn := 1; turn < 10; turn++ {
		batch := fmt.Sprintf("r%dt%d", k.runs, turn)
		set, tools := k.offered()
		answer, err := scripted.NewModel(k.script).Generate(t.Context(), executor.Request{
			Session: "s1", Effect: batch, Messages: k.messages, Tools: tools,
		}, func(string) {})
		if err != nil {
			return "", err
		}
		said := executor.Message{Role: "assistant", Text: answer.Text}
		var planned []planner.PlanCall
		for i, c := range answer.Calls {
			said.Calls = append(said.Calls, executor.MessageCall{ID: fmt.Sprintf("%sc%d", batch, i), Name: c.Name, Arguments: c.Arguments})
			p, bad := planner.Check(k.registry, &set, planner.ObservedCall{ToolName: c.Name, Arguments: c.Arguments})
			if !bad.OK() {
				t.Fatalf("%s: %s%s: %s: %s", batch, c.Name, c.Arguments, bad.Code, bad.Detail)
			}
			planned = append(planned, p)
		}
		k.messages = append(k.messages, said)
		if len(answer.Calls) == 0 {
			return answer.Text, nil
		}
		k.groups = append(k.groups, fmt.Sprint(planner.Schedule(planned).Groups))
		for _, c := range said.Calls {
			k.messages = append(k.messages, k.execute(t, c))
		}
	}
	t.Fatalf("%q: no answer after ten turns", input)
	return "", nil
}

func (k *talk) execute(t *testing.T, c executor.MessageCall) executor.Message {
	t.Helper()
	index, _ := k.registry.Lookup(c.Name)
	r, err := k.host.Execute(t.Context(), executor.Call{
		Session: "s1", Effect: c.ID, ToolID: k.registry.Tool(index).ToolID, ToolName: c.Name,
		Arguments: json.RawMessage(c.Arguments), IdempotencyKey: "s1." + c.ID, HostSession: k.session,
	})
	must(t, err)
	if r.HostSession != nil {
		k.session = r.HostSession
	}
	m := executor.Message{Role: "tool", CallID: c.ID, Text: r.Output}
	if r.Error != nil {
		m.Error, m.Text = true, "error: "+r.Error.Error()+"\n"+r.Output
	}
	return m
}

func goTest(t *testing.T, dir string) (string, error) {
	t.Helper()
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./...")
	test.Dir = dir
	test.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	out, err := test.CombinedOutput()
	return string(out), err
}

// The program is broken, the script repairs it with the real tools, and then
// its tests pass.
func TestDemo(t *testing.T) {
	t.Parallel()
	script, files := scripted.Demo()
	dir := t.TempDir()
	must(t, scripted.Unpack(files, dir))
	if out, err := goTest(t, dir); err == nil || !strings.Contains(out, "right after another: Book(blue, 10:00-11:00) = blue is taken 09:00-10:00") {
		t.Fatalf("before: %v\n%s", err, out)
	}
	k := newTalk(t, script, dir)
	got, err := k.say(t, scripted.DemoInput)
	if err != nil || !strings.HasPrefix(got, "The tests pass.") {
		t.Fatalf("answered %q, %v", got, err)
	}
	if want := "[[0]] [[0 1 2]] [[0]] [[0]]"; strings.Join(k.groups, " ") != want {
		t.Errorf("groups %v, want %s: three calls side by side", k.groups, want)
	}
	if out, err := goTest(t, dir); err != nil {
		t.Errorf("after: %v\n%s", err, out)
	}
}

// If a tool returns another result than the script expects, the script fails.
func TestDemoFailsOnOtherResults(t *testing.T) {
	t.Parallel()
	script, files := scripted.Demo()
	for i := range files.Files {
		files.Files[i].Data = []byte(strings.ReplaceAll(string(files.Files[i].Data), "<=", "<"))
	}
	dir := t.TempDir()
	must(t, scripted.Unpack(files, dir))
	_, err := newTalk(t, script, dir).say(t, scripted.DemoInput)
	want := `script_mismatch: demo.yaml:32: turn 3: results[0].text: expected what contains "s.From <= t.To && t.From <= s.To", shown "`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEchoCallsToolsByWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "note.txt"), []byte("milk and bread\n"), 0o600))
	k := newTalk(t, scripted.Echo(), dir)
	for _, c := range []struct {
		input string
		want  []string // parts of the answer
		turns int      // messages of the model
	}{
		{"hello there", []string{"You said: hello there"}, 1},
		{"reading is fun", []string{"You said: reading is fun"}, 1},
		{"list", []string{"There is:\n", "note.txt"}, 3}, // open_session, list_dir, the answer
		{"list .", []string{"There is:\n", "note.txt"}, 2},
		{"read note.txt", []string{"It says:\n", "milk and bread"}, 2},
		{"read none.txt", []string{"That failed: error: "}, 2},
		{"grep br[e]ad", []string{"It stands here:\n", "note.txt"}, 2},
		{"run wc -l note.txt; echo done", []string{"It returned:\n", "1 note.txt", "done"}, 2},
		{"bye", []string{"You said: bye"}, 1},
	} {
		before := len(k.messages)
		got, err := k.say(t, c.input)
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: answered %q, want %q in it", c.input, got, part)
			}
		}
		turns := 0
		for _, m := range k.messages[before:] {
			if m.Role == "assistant" {
				turns++
			}
		}
		if turns != c.turns {
			t.Errorf("%s: %d turns, want %d", c.input, turns, c.turns)
		}
	}
}

func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"../a", "/a", "b/../../a"} {
		err := scripted.Unpack(&txtar.Archive{Files: []txtar.File{{Name: name}}}, filepath.Join(dir, "in"))
		if err == nil || !strings.HasPrefix(err.Error(), "unpack: "+name+" would lie outside of ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	must(t, scripted.Unpack(&txtar.Archive{Files: []txtar.File{{Name: "b/c", Data: []byte("d")}}}, dir))
	if got, err := os.ReadFile(filepath.Join(dir, "b", "c")); err != nil || string(got) != "d" {
		t.Errorf("got %q, %v", got, err)
	}
	// A file stands where a directory should.
	if err := scripted.Unpack(&txtar.Archive{Files: []txtar.File{{Name: "b/c/e"}}}, dir); err == nil {
		t.Error("unpacked a file into a file")
	}
	if err := scripted.Unpack(&txtar.Archive{Files: []txtar.File{{Name: "b"}}}, dir); err == nil {
		t.Error("unpacked a file over a directory")
	}
}
