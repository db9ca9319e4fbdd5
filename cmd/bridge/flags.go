package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/cmd/settings/exports"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/space"
)

// flags are the flags of bridge. A config file has the same keys.
type flags struct {
	settings.Connection `yaml:",inline"`
	Provision           bool `yaml:"provision" group:"NATS" default:"true" negatable:"" help:"Create or update the streams at the start. Without it, a session-actor must have done so."`
	Replicas            int  `yaml:"replicas" group:"NATS" default:"0" help:"Replicas of every stream; 0 is one for a new stream, and leaves others as they are."`

	Models         []string          `name:"model" yaml:"model" group:"What it serves" sep:"none" placeholder:"MODEL" help:"Model to serve: ${models}, scripted:FILE, recorded:FILE; NAME=MODEL serves it as the provider NAME, NAME=MODEL:URL that of another server. A variable such as OPENAI_BASE_URL names another server for all models of that API. May be repeated."`
	Tools          []string          `name:"tools" yaml:"tools" group:"What it serves" sep:"none" placeholder:"TOOLS" help:"Tools to serve: host, services (NATS micro services whose metadata declares tools) or services:NAME,NAME (those alone), mcp:FILE (the MCP servers of a file), recorded:FILE; NAME=TOOLS serves them as the executor NAME. May be repeated."`
	Workdir        string            `yaml:"workdir" group:"What it serves" placeholder:"DIR" help:"With --tools host: directory of the host sessions. Bridges that share it serve each other's sessions: they are one worker."`
	Spaces         string            `yaml:"spaces" group:"What it serves" placeholder:"FILE" help:"File that lists which spaces (workspaces of prompts, catalogs and context files) this bridge reads for which targets. See docs/workspaces.md and docs/packs.md."`
	Secret         map[string]string `yaml:"secret" group:"Secrets" placeholder:"NAME=FILE" help:"File with a secret that packs need. It is read for each call. May be repeated."`
	SecretsDir     string            `name:"secrets" yaml:"secrets" group:"Secrets" placeholder:"DIR" help:"Folder with a file for each secret, named after it, as Kubernetes and agents of secret managers write it."`
	SecretsCatalog []string          `name:"secrets-catalog" yaml:"secrets-catalog" group:"Secrets" sep:"none" placeholder:"FILE" help:"JSON list that adds to the catalog of secrets, which names the environment variable of each. May be repeated. See docs/packs.md."`
	ServiceSecret  map[string]string `name:"service-secret" yaml:"service-secret" group:"Secrets" placeholder:"TARGET/HEADER=NAME" help:"With --tools services: header of requests to the services of a target, with the secret to send in it, such as crm-v1/Crm-Key=CRM_KEY. May be repeated."`
	NoTools        bool              `name:"no-session-tools" yaml:"no-session-tools" group:"What it serves" help:"Don't serve the tools that list, read and search the context files of a session's workspace. By default every bridge with the right serves them."`
	Ledger         string            `yaml:"ledger" group:"What it serves" placeholder:"FILE" help:"With --tools recorded: file to which every execution is appended."`

	Worker     string        `yaml:"worker" group:"Host tools" placeholder:"NAME" help:"Name of this worker of the fleet; only it serves its host sessions. Default: the name in the file .worker of --workdir, created at the first start."`
	WorkerLost time.Duration `name:"worker-lost" yaml:"worker-lost" group:"Host tools" default:"30s" help:"How long a worker may be silent before others settle its calls as lost."`
	HostTTL    time.Duration `name:"host-ttl" yaml:"host-ttl" group:"Host tools" default:"0s" help:"How long an unused host session lives; 0: for ever. Its files stay."`

	HostKeep time.Duration `name:"host-keep" yaml:"host-keep" group:"Host tools" default:"0s" help:"How long the files of an ended host session stay, such as 720h; 0: for ever."`

	Sandbox        string        `yaml:"sandbox" group:"Host tools" enum:"required,auto,off" default:"auto" help:"Confinement of the shell: required, all of it or the bridge does not start; auto, as far as this system can, logged at the start; off, none."`
	SandboxNetwork bool          `name:"sandbox-network" yaml:"sandbox-network" group:"Host tools" help:"Let commands use the network."`
	LetModels      bool          `name:"model-may-control-every-session" yaml:"model-may-control-every-session" group:"Host tools" help:"Serve a shell with network access although NATS needs no credentials: a command can then publish any event of any session."`
	SandboxRead    []string      `name:"sandbox-read" yaml:"sandbox-read" group:"Host tools" sep:"none" placeholder:"PATH" help:"Absolute path that commands may also read and execute, such as /opt/toolchain. May be repeated."`
	ShellCPU       time.Duration `name:"shell-cpu" yaml:"shell-cpu" group:"Host tools" default:"10m" help:"CPU time of each process of a command."`
	ShellMemory    settings.Size `name:"shell-memory" yaml:"shell-memory" group:"Host tools" default:"2GiB" placeholder:"SIZE" help:"Memory of a command."`
	ShellFileSize  settings.Size `name:"shell-file-size" yaml:"shell-file-size" group:"Host tools" default:"1GiB" placeholder:"SIZE" help:"Size of each file that a command writes."`
	ShellProcesses int           `name:"shell-processes" yaml:"shell-processes" group:"Host tools" default:"256" help:"Processes of a command at once."`
	ShellOutput    settings.Size `name:"shell-output" yaml:"shell-output" group:"Host tools" default:"256MiB" placeholder:"SIZE" help:"How much a command may write to its output, shown or not."`

	OpenAIWhole bool `name:"openai-whole" yaml:"openai-whole" group:"Models" help:"With models of OpenAI's APIs: don't request streams."`

	KeyFiles  map[string]string `name:"key-file" yaml:"key-file" group:"Models" placeholder:"NAME=FILE" help:"File with the key of the model that is served as NAME. Else the environment has it, such as OPENAI_API_KEY, unless --model names a server. May be repeated."`
	ModelIdle time.Duration     `name:"model-idle" yaml:"model-idle" group:"Models" default:"3m" help:"How long the stream of an answer may be silent."`
	FirstByte time.Duration     `name:"model-first-byte" yaml:"model-first-byte" group:"Models" default:"0s" help:"How long a server may take to begin an answer; 0: as --model-idle, or without a limit with --openai-whole."`

	Rates         []string      `name:"rate" yaml:"rate" group:"Models" placeholder:"NAME=N/UNIT" help:"How many generations may start: openai=60/m, openai/gpt-x=10/s for one of its models; units s, m, h, d. Several separated by commas, or repeated."`
	BreakerFaults int           `name:"breaker-faults" yaml:"breaker-faults" group:"Models" default:"10" help:"How many attempts in a row a model may fail, unreachable or overloaded, before its generations wait; 0: no limit."`
	BreakerPause  time.Duration `name:"breaker-pause" yaml:"breaker-pause" group:"Models" default:"30s" help:"How long they wait; then one is tried."`

	Fair        int           `yaml:"fair" default:"0" help:"Share the slots of each target of tools fairly between sessions, among this many prefetched calls, which other bridges don't get; one session has at most 64 open. 0: first come, first served."`
	Slots       int           `yaml:"slots" default:"0" help:"Effects of all targets that run at once; 0: as many as each target's concurrency allows."`
	Priorities  []string      `name:"priority" yaml:"priority" placeholder:"TARGET=N" help:"Which target goes first when slots are few: llm/openai=2, tool/mail=-1; others have 0. Several separated by commas, or repeated. Needs --slots."`
	Concurrency int           `yaml:"concurrency" default:"16" help:"Effects of each target that run at once."`
	Grace       time.Duration `yaml:"grace" default:"20s" help:"How long running effects may continue after SIGTERM."`
	Name        string        `yaml:"name" default:"bridge" help:"Name of this bridge, for people."`

	exports.Traces  `yaml:",inline"`
	settings.Daemon `yaml:",inline"`
}

var program = settings.Program{
	Name: "refold-bridge",
	Description: `Carries out the effects of Refold sessions: calls models, runs tools, reads
spaces. Start as many as you like; those that serve the same targets share the work.

With the key in OPENAI_API_KEY, for sessions whose config has the provider openai:

    refold bridge serve --model openai --tools host --workdir /var/lib/refold/hosts

A model on your own machine, as the provider local:

    refold bridge serve --model local=openai-chat:http://127.0.0.1:11434/v1

Without a network, with a model's answers from a file:

    refold bridge serve --model scripted:turns.yaml --tools host --workdir ./hosts

It stops on SIGTERM: running effects may end within --grace, the others are settled
or left to other bridges.`,
	Vars: kong.Vars{"models": provider.Kinds("")},
	Groups: []kong.Group{
		{Key: "What it serves", Title: "What it serves:"}, {Key: "Secrets", Title: "Secrets of packs:"}, {Key: "Host tools", Title: "Host tools:"}, {Key: "NATS", Title: "NATS:"}, {Key: "Models", Title: "Models of the network:"},
		{Key: "Traces", Title: "Traces:"},
	},
}

// parse reads flags, environment and config file; the first of them that has
// a value wins. done is true if it printed help or the version instead.
func parse(args []string, env settings.Environment, stdout, stderr io.Writer) (f flags, done bool, err error) {
	f, done, err = settings.Parse[flags](program, args, env, stdout, stderr)
	if done || err != nil {
		return f, done, err
	}
	return f, false, f.validate()
}

// validate reports every problem that it can find without the network.
func (f *flags) validate() error {
	var all []error
	say := func(wrong bool, text string) {
		if wrong {
			all = append(all, errors.New(text))
		}
	}
	has := func(list []string, kind string) bool {
		return slices.ContainsFunc(list, func(text string) bool {
			of := parseOffer(text)
			return of.kind == kind
		})
	}
	say(len(f.Models)+len(f.Tools) == 0 && f.Spaces == "", "nothing to serve: give --model, --tools, or --spaces")
	say(has(f.Tools, kindHost) && f.Workdir == "", "--tools host: name the directory of host sessions with --workdir")
	say(!has(f.Tools, kindHost) && f.Workdir != "", "--workdir: only --tools host uses it")
	say(has(f.Tools, kindRecorded) && f.Ledger == "", "--tools recorded: name the file of executions with --ledger")
	say(!has(f.Tools, kindRecorded) && f.Ledger != "", "--ledger: only --tools recorded:FILE uses it")
	say(f.Concurrency < 1, "--concurrency: at least 1")
	say(f.Replicas < 0 || f.Replicas > 5, "--replicas: 0 to 5")
	say(f.HostTTL < 0 || f.HostTTL > 0 && f.HostTTL < time.Second, "--host-ttl: 1s or more, or 0 for never")
	say(f.HostKeep < 0 || f.HostKeep > 0 && f.HostKeep < time.Hour, "--host-keep: 1h or more, or 0 for ever")
	if err := (bridge.Fleet{Target: kindHost, Worker: cmp.Or(f.Worker, "w"), Lost: f.WorkerLost}).Validate(); err != nil {
		all = append(all, fmt.Errorf("--worker, --worker-lost: %w", err))
	}
	if _, err := streams.ParseMonitors(f.Monitor); err != nil {
		all = append(all, fmt.Errorf("--monitor: %w", err))
	}
	for name := range f.Secret {
		say(!space.IsSecretName(name), "--secret "+name+": a secret's name is letters, digits and _, such as CRM_KEY")
	}
	for at := range f.ServiceSecret {
		target, _, ok := strings.Cut(at, "/")
		say(!ok, "--service-secret "+at+": write TARGET/HEADER=NAME, such as crm-v1/Crm-Key=CRM_KEY")
		say(ok && !slices.ContainsFunc(f.Tools, func(text string) bool {
			of := parseOffer(text)
			return of.kind == kindServices && of.name == target
		}), "--service-secret "+at+": no --tools services is served as "+target)
	}
	for name := range f.KeyFiles {
		say(!slices.ContainsFunc(f.Models, func(text string) bool { return parseOffer(text).name == name }), "--key-file "+name+": no --model is served as "+name)
	}
	_, err := f.limits()
	_, wrong := f.priorities()
	all = append(all, err, wrong)
	say(f.Slots < 0 || f.Slots > 4096, "--slots: 0 to 4096")
	say(f.BreakerFaults < 0 || f.BreakerFaults > 1000, "--breaker-faults: 0 to 1000")
	say(f.BreakerPause < time.Second || f.BreakerPause > time.Hour, "--breaker-pause: 1s to 1h")
	all = append(all, f.Validate())
	say(f.Fair < 0 || f.Fair > 4096, "--fair: 0 to 4096")
	say(f.ModelIdle <= 0, "--model-idle: more than 0, such as 3m")
	say(f.FirstByte < 0, "--model-first-byte: a time such as 1m, or 0 for that of --model-idle")
	say(f.Grace <= 0, "--grace: more than 0, such as 20s")
	return errors.Join(all...)
}
