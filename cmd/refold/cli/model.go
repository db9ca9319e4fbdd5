package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/sandbox"
	"github.com/refold/refold/planner"
)

// modelFlags are flags for recorded models.
type modelFlags struct {
	Tools     string   `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of a recording. Default: x-tools.json next to x.jsonl."`
	RetrySafe []string `placeholder:"PATTERNS" help:"Names of recorded tools that may run twice, as in get_*,search_*."`
	Ledger    string   `type:"path" placeholder:"FILE" help:"File to which a recording's executions are appended."`
}

// model is a model with its tools, and the install record that goes with it.
type model struct {
	install   []byte
	serve     func(*bridge.Bridge) error
	recording *recorded.Recording // nil: not a recorded one
	ledger    string              // of the recording
	notes     []string            // about the record, for people
	close     func() error
}

// hostDirs are the directories of host sessions, and their sandbox.
type hostDirs struct {
	hosts   string // directories of host sessions
	workdir string // working directory of all host sessions; "": one a session
	box     *sandbox.Box
	noShell string // why no commands run; "": they do
}

// open opens the model that a --model flag names. Its files go to dir.
func (f modelFlags) open(name string, at hostDirs, dir string) (*model, error) {
	kind, file, _ := strings.Cut(name, ":")
	switch kind {
	case "echo", "demo":
		return scriptedModel(kind, at)
	case "scripted":
		if file == "" {
			return nil, errors.New("--model scripted:FILE: name the file")
		}
		return scriptedModel(file, at)
	case "recorded":
		if file == "" {
			return nil, errors.New("--model recorded:FILE: name the file, OpenAI chat JSONL")
		}
		return f.recordedModel(file, dir)
	}
	return nil, fmt.Errorf("--model %s: echo, demo, scripted:FILE or recorded:FILE; for a provider's model use refold dev --model KIND:NAME, with KIND %s", name, provider.Kinds(""))
}

// scriptedModel returns a scripted model with the built-in host tools.
func scriptedModel(name string, at hostDirs) (*model, error) {
	script, err := scripted.Open(name)
	if err != nil {
		return nil, err
	}
	var asks []planner.ApprovalRule
	if name == scripted.NameEcho { // so that approvals can be tried
		asks = []planner.ApprovalRule{{Decision: planner.Ask, Tools: []string{"write_file"}}}
	}
	m, err := hostTools("scripted", "scripted", at, asks...)
	if err != nil {
		return nil, err
	}
	tools := m.serve
	m.serve = func(b *bridge.Bridge) error {
		return errors.Join(b.Model("scripted", scripted.NewModel(script)), tools(b))
	}
	return m, nil
}

// withConfig returns the built-in install record with a default config, so that a
// run needs none, and with rules for approvals. The config has a context if a provider
// serves the model. Without a name the config is the built-in record's.
func withConfig(of, name string, approval ...planner.ApprovalRule) ([]byte, error) {
	d := planner.Builtin()
	config := &session.RunConfig{Context: &session.ContextConfig{}}
	if name != "" {
		config = &session.RunConfig{Provider: of, Model: name}
		if provider.DialectOf(of) != nil { // the others accept everything
			config.Context = contextOf(name)
		}
	}
	return codec.Marshal(session.InstallRecord{
		Config:         config,
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Policy: session.Policy{Approval: approval}, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	})
}

// recordedModel returns a recorded model with the recorded tools.
func (f modelFlags) recordedModel(file, dir string) (*model, error) {
	recording, record, notes, err := recorded.LoadInstall(file, f.Tools, f.RetrySafe)
	if err != nil {
		return nil, err
	}
	path := cmp.Or(f.Ledger, filepath.Join(dir, "ledger.jsonl"))
	ledger, err := recorded.OpenLedger(path)
	if err != nil {
		return nil, err
	}
	return &model{
		install: record, recording: recording, ledger: path, notes: notes, close: ledger.Close,
		serve: func(b *bridge.Bridge) error {
			executor := recorded.NewExecutor(recording, ledger)
			return errors.Join(b.Model(recorded.ModelName, recorded.NewModel(recording)), b.Tool(recorded.Target, executor))
		},
	}, nil
}
