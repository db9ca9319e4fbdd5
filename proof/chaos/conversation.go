package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/internal/tools/sessiontools"
	"github.com/refold/refold/planner"
)

// Source says where conversations come from, in this process and in the
// processes that it starts.
type Source struct {
	Model     string   // demo, or recorded:FILE
	Tools     string   // with a recording: its tool definitions; empty: in its folder
	RetrySafe []string // with a recording: patterns of tools that may run twice
}

// Conversation is what the user says in one session.
type Conversation struct {
	ID      string
	Session string
	Says    []string // each begins a run
	Ends    []RunEnd // how each run ends if nothing is wrong, without its Detail; none: completed, or as Cancelled says

	// Cancelled: each run is cancelled as soon as its first turn is asked, and
	// the bridge comes only when the last one has ended, so that in every trial
	// what is withdrawn has not begun.
	Cancelled bool

	// Adopts: a workspace is synced and applied while the first run's first turn is
	// open, and synced again when the run has ended.
	Adopts bool

	Marks  int // how much is left of spaces if nothing is wrong
	Prompt int // how many turns show a prompt before the transcript

	Config json.RawMessage // of the runs; nil: the install record's
}

// Cast is a model and its tools, with the conversations that they know.
type Cast struct {
	Conversations []Conversation
	Install       []byte   // record that the sessions pin
	Notes         []string // about the record, for people

	recording *recorded.Recording // nil: the built-in demo, or echo
	echo      *scripted.Script    // nil: another
}

// Open reads what a source names.
func Open(s Source) (*Cast, error) {
	if s.Model == echoModel {
		return nil, errors.New("model echo holds no conversations: demo, or recorded:FILE")
	}
	return open(s)
}

// open reads what a process of a trial may be given.
func open(s Source) (*Cast, error) {
	kind, file, _ := strings.Cut(s.Model, ":")
	switch {
	case kind == "demo" && file == "":
		return demoCast()
	case s.Model == echoModel:
		return echoCast()
	case kind == "recorded" && file != "":
		return recordedCast(s, file)
	}
	return nil, fmt.Errorf("model %q: demo, or recorded:FILE", s.Model)
}

// Sessions of the built-in demo: one as it is, and one whose run is cancelled. A
// third adopts a workspace, and in a fourth the model enables a pack.
const (
	demoSession      = "demo"
	cancelledSession = "cancelled"
)

func demoCast() (*Cast, error) {
	d := planner.Builtin()
	of := session.InstallRecord{
		Config:         &session.RunConfig{Provider: scriptedModel, Model: scriptedModel},
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	}
	if err := allowPack(&of); err != nil {
		return nil, err
	}
	record, err := codec.Marshal(of)
	return &Cast{
		Conversations: []Conversation{
			{ID: demoSession, Session: demoSession, Says: []string{scripted.DemoInput}},
			{ID: cancelledSession, Session: cancelledSession, Says: []string{scripted.DemoInput}, Cancelled: true},
			workspaceConversation(), packConversation(),
		},
		Install: record,
	}, err
}

func recordedCast(s Source, file string) (*Cast, error) {
	recording, record, notes, err := recorded.LoadInstall(file, s.Tools, s.RetrySafe)
	if err != nil {
		return nil, err
	}
	c := &Cast{recording: recording, Install: record, Notes: notes}
	for _, conversation := range recording.Conversations() {
		next := Conversation{ID: conversation.ID, Session: conversation.Session(), Says: conversation.Users()}
		for i := range conversation.Runs {
			end := conversation.Runs[i].Ends()
			next.Ends = append(next.Ends, RunEnd{Lifecycle: end.Lifecycle, Code: end.Code})
		}
		c.Conversations = append(c.Conversations, next)
	}
	return c, nil
}

// Names under which the demo's model and tools are served.
const (
	scriptedModel = "scripted"
	hostTools     = "host"
)

// Where things are in the directory of a trial.
func ledgerIn(dir string) string  { return filepath.Join(dir, "ledger.jsonl") }
func programIn(dir string) string { return filepath.Join(dir, "program") }
func hostsIn(dir string) string   { return filepath.Join(dir, "hosts") }

// prepare puts into a trial's directory what the tools will find there.
func (c *Cast) prepare(dir string) error {
	if c.recording != nil {
		return nil
	}
	if err := os.MkdirAll(programIn(dir), 0o755); err != nil {
		return err
	}
	_, files := scripted.Demo()
	return errors.Join(scripted.Unpack(files, programIn(dir)), prepareWorkspace(dir))
}

// serve gives a bridge model and tools. Each execution is in the ledger of the
// trial's directory, and on disk, before it begins. The ledger stays open as
// long as the process lives.
func (c *Cast) serve(b *bridge.Bridge, dir string) error {
	if c.echo != nil {
		return b.Model(scriptedModel, scripted.NewModel(c.echo))
	}
	ledger, err := recorded.OpenLedger(ledgerIn(dir))
	if err != nil {
		return err
	}
	if c.recording != nil {
		executor := recorded.NewExecutor(c.recording, ledger)
		return errors.Join(b.Model(recorded.ModelName, recorded.NewModel(c.recording)), b.Tool(recorded.Target, executor))
	}
	// Paths in what it compiles would make each trial compile anew, and so small a
	// program is tested with half of the work if nothing is collected.
	tools := host.New(hostsIn(dir), host.Options{WorkDir: programIn(dir), EnvironAdd: []string{"GOFLAGS=-trimpath", "GOGC=off", "GOMAXPROCS=1"}})
	if err := tools.Prepare(); err != nil {
		return err
	}
	script, _ := scripted.Demo()
	return errors.Join(
		b.Model(scriptedModel, scripted.NewModel(script)), b.Tool(hostTools, accounted{tools, ledger}),
		b.Tool(sessiontools.Target, accounted{sessiontools.New(b.Blob), ledger}), serveWorkspace(b, dir), servePack(b, ledger),
	)
}

// volatile is what tests print of the time that they took.
var volatile = regexp.MustCompile(`\(cached\)|\b\d+\.\d+s\b`)

// plain returns a text of the transcript without what differs from trial to
// trial whatever happens.
func (c *Cast) plain(dir, text string) string {
	if c.recording != nil {
		return text
	}
	return volatile.ReplaceAllString(strings.ReplaceAll(text, dir, "DIR"), "TIME")
}

// accounted records what an executor is asked to carry out.
type accounted struct {
	executor.Executor
	ledger *recorded.Ledger
}

// Execute notes the execution and then carries the call out.
func (a accounted) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	if err := a.ledger.Note(call); err != nil {
		return executor.Result{}, err
	}
	return a.Executor.Execute(ctx, call)
}
