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

// Source names the origin of conversations, for all processes of a trial.
type Source struct {
	Model     string   // demo, or recorded:FILE
	Tools     string   // with a recording: its tool definitions; "": in its folder
	RetrySafe []string // with a recording: patterns of tools that may run twice
}

// Conversation is the user's part of one session.
type Conversation struct {
	ID      string
	Session string
	Says    []string // each begins a run
	Ends    []RunEnd // how each run ends if nothing is wrong, without its Detail

	// Cancelled: each run is cancelled as soon as its first turn is published.
	// The bridge starts only when the last run has ended, so that no trial begins
	// a withdrawn effect.
	Cancelled bool

	// Adopts: a workspace is synced and applied while the first run's first turn is
	// open, and synced again when the run has ended.
	Adopts bool

	Reply     string // answers the question that the first run asks; "": it asks none
	Scheduled bool   // a schedule requests the run

	Children int   // sessions below this one, if nothing is wrong
	Tokens   int64 // that the runs use, with those of the children; 0: not compared

	Marks  int // length of End.Spaces if nothing is wrong
	Prompt int // number of turns that show a prompt before the transcript

	Compactions int // number of summaries if nothing is wrong

	Config json.RawMessage // of the runs; nil: the install record's
}

// Cast is a model and its tools, with their conversations.
type Cast struct {
	Conversations []Conversation
	Install       []byte   // record that the sessions pin
	Notes         []string // about the record, for people

	recording *recorded.Recording // nil: the built-in demo
}

// Open loads a source.
func Open(s Source) (*Cast, error) {
	kind, file, _ := strings.Cut(s.Model, ":")
	switch {
	case kind == "demo" && file == "":
		return demoCast()
	case kind == "recorded" && file != "":
		return recordedCast(s, file)
	}
	return nil, fmt.Errorf("model %q: demo, or recorded:FILE", s.Model)
}

// Sessions of the built-in demo: a plain one, and one whose run is cancelled. A
// third adopts a workspace, in a fourth the model enables a pack, and a fifth becomes too
// long for its model. The run of a sixth waits for a person and for the time, that of a
// seventh is requested by a schedule, and an eighth has a tree of children.
const (
	demoSession      = "demo"
	cancelledSession = "cancelled"
)

// completes are the ends of a conversation with one run that completes.
var completes = []RunEnd{{Lifecycle: string(session.Completed)}}

func demoCast() (*Cast, error) {
	d := planner.Builtin()
	of := session.InstallRecord{
		Config:         &session.RunConfig{Provider: scriptedModel, Model: scriptedModel},
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	}
	if err := errors.Join(allowPack(&of), allowTree(&of)); err != nil {
		return nil, err
	}
	record, err := codec.Marshal(of)
	return &Cast{
		Conversations: []Conversation{
			{ID: demoSession, Session: demoSession, Says: []string{scripted.DemoInput}, Ends: completes},
			{ID: cancelledSession, Session: cancelledSession, Says: []string{scripted.DemoInput}, Ends: []RunEnd{{Lifecycle: string(session.Cancelled)}}, Cancelled: true},
			workspaceConversation(), packConversation(), longConversation(), waitConversation(), scheduleConversation(), treeConversation(),
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

// Names of the targets of the demo's model and tools.
const (
	scriptedModel = "scripted"
	hostTools     = "host"
)

// Paths in the directory of a trial.
func ledgerIn(dir string) string  { return filepath.Join(dir, "ledger.jsonl") }
func programIn(dir string) string { return filepath.Join(dir, "program") }
func hostsIn(dir string) string   { return filepath.Join(dir, "hosts") }

// prepare writes the tools' files into a trial's directory.
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

// serve registers model and tools with a bridge. Each execution is in the trial's
// ledger, on disk, before it begins. The ledger stays open until the process
// ends.
func (c *Cast) serve(b *bridge.Bridge, dir string) error {
	ledger, err := recorded.OpenLedger(ledgerIn(dir))
	if err != nil {
		return err
	}
	if c.recording != nil {
		executor := recorded.NewExecutor(c.recording, ledger)
		return errors.Join(b.Model(recorded.ModelName, recorded.NewModel(c.recording)), b.Tool(recorded.Target, executor))
	}
	// Paths in compiled files would make each trial compile anew. Without garbage
	// collection a test of such a small program takes half of the work.
	tools := host.New(hostsIn(dir), host.Options{WorkDir: programIn(dir), EnvironAdd: []string{"GOFLAGS=-trimpath", "GOGC=off", "GOMAXPROCS=1"}})
	if err := tools.Prepare(); err != nil {
		return err
	}
	script, _ := scripted.Demo()
	return errors.Join(
		b.Model(scriptedModel, scripted.NewModel(script)), b.Tool(hostTools, accounted{tools, ledger}),
		b.Tool(sessiontools.Target, accounted{sessiontools.New(b.BlobOf), ledger}), serveWorkspace(b, dir), servePack(b, ledger), serveLong(b), serveWait(b), serveTree(b),
	)
}

// volatile matches the durations that tests print.
var volatile = regexp.MustCompile(`\(cached\)|\b\d+\.\d+s\b`)

// plain returns a text without the parts that differ between any two trials.
func (c *Cast) plain(dir, text string) string {
	if c.recording != nil {
		return text
	}
	return volatile.ReplaceAllString(strings.ReplaceAll(text, dir, "DIR"), "TIME")
}

// accounted records an executor's calls.
type accounted struct {
	executor.Executor
	ledger *recorded.Ledger
}

// Execute records the execution and then carries the call out.
func (a accounted) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	if err := a.ledger.Note(call); err != nil {
		return executor.Result{}, err
	}
	return a.Executor.Execute(ctx, call)
}
