package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// flags are the daemon's flags. A config file has the same keys.
type flags struct {
	NATS      string `name:"nats" yaml:"nats" group:"NATS" placeholder:"URL" help:"Servers, separated by commas (NATS_URL). Default: the context's, else nats://127.0.0.1:4222."`
	Creds     string `yaml:"creds" group:"NATS" placeholder:"FILE" help:"Credentials file (NATS_CREDS)."`
	Context   string `yaml:"context" group:"NATS" placeholder:"NAME" help:"Context of the nats tool (NATS_CONTEXT)."`
	Inbox     string `name:"inbox-prefix" yaml:"inbox-prefix" group:"NATS" placeholder:"PREFIX" help:"Beginning of the subjects that answers come on, where each role has its own."`
	Prefix    string `yaml:"prefix" group:"NATS" default:"refold" help:"Beginning of all subjects (REFOLD_PREFIX)."`
	Provision bool   `yaml:"provision" group:"NATS" default:"true" negatable:"" help:"Create or update the streams at the start. Without it, a session-actor must have done so."`
	Replicas  int    `yaml:"replicas" group:"NATS" default:"0" help:"Replicas of every stream; 0 is one for a new stream, and leaves others as they are."`

	Models  []string `name:"model" yaml:"model" group:"What it serves" sep:"none" placeholder:"MODEL" help:"Model to serve: openai, scripted:FILE, recorded:FILE; NAME=MODEL serves it as the provider NAME. May be repeated."`
	Tools   []string `name:"tools" yaml:"tools" group:"What it serves" sep:"none" placeholder:"TOOLS" help:"Tools to serve: host, or recorded:FILE; NAME=TOOLS serves them as the executor NAME. May be repeated."`
	Workdir string   `yaml:"workdir" group:"What it serves" placeholder:"DIR" help:"With --tools host: where the directories of host sessions are. Bridges that share it serve each other's."`
	Ledger  string   `yaml:"ledger" group:"What it serves" placeholder:"FILE" help:"With --tools recorded: file that every execution is appended to."`

	OpenAIBaseURL string `name:"openai-base-url" yaml:"openai-base-url" group:"OpenAI" placeholder:"URL" help:"Server that speaks chat completions (OPENAI_BASE_URL). Default: https://api.openai.com/v1."`
	OpenAIKeyFile string `name:"openai-key-file" yaml:"openai-key-file" group:"OpenAI" placeholder:"FILE" help:"File with the key. Else the environment has it: OPENAI_API_KEY."`
	OpenAIWhole   bool   `name:"openai-whole" yaml:"openai-whole" group:"OpenAI" help:"Don't ask for streams."`

	Concurrency int           `yaml:"concurrency" default:"16" help:"Effects of each target that run at once."`
	Grace       time.Duration `yaml:"grace" default:"20s" help:"For how long what runs may go on after SIGTERM."`
	Name        string        `yaml:"name" default:"bridge" help:"Name of this bridge, for people."`
	LogLevel    string        `yaml:"log-level" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`

	Config  string           `yaml:"-" placeholder:"FILE" help:"YAML file with the same keys. Environment and flags win over it."`
	Version kong.VersionFlag `yaml:"-" help:"Print the version and exit."`
}

// variables are the flags that the environment may give.
var variables = map[string]string{
	"nats": "NATS_URL", "creds": "NATS_CREDS", "context": "NATS_CONTEXT", "prefix": "REFOLD_PREFIX",
	"openai-base-url": "OPENAI_BASE_URL",
}

// keyVariable holds a secret, so there is no flag for it.
const keyVariable = "OPENAI_API_KEY"

// environment is what the program was started with.
type environment map[string]string

func readEnvironment(environ []string) environment {
	env := make(environment, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Resolve gives kong the value of a flag that the command line does not have.
// An empty variable counts as none.
func (env environment) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if value := env[variables[flag.Name]]; value != "" {
		return value, nil
	}
	return nil, nil //nolint:nilnil // kong's way to say that there is none
}

// Validate has nothing to refuse: an environment holds foreign things.
func (environment) Validate(*kong.Application) error { return nil }

const description = `Carries out what Refold sessions ask for: asks models, runs tools. Start as many
as you like; those that serve the same share the work.

With the key in OPENAI_API_KEY, for sessions whose config says provider openai:

    bridge --model openai --tools host --workdir /var/lib/refold/hosts

Without a network, from a file that says what the model answers:

    bridge --model scripted:turns.yaml --tools host --workdir ./hosts

It stops on SIGTERM: what runs may end within --grace, the rest is settled or
given to other bridges.`

// parse reads flags, environment and config file; the first of them that has
// a value wins. done says that help or the version was printed instead.
func parse(args []string, env environment, stdout, stderr io.Writer) (f flags, done bool, err error) {
	parseWith := func(resolvers ...kong.Resolver) error {
		f = flags{}
		parser, err := kong.New(&f,
			kong.Name("bridge"), kong.Description(description), kong.Writers(stdout, stderr),
			kong.Exit(func(int) { done = true }), kong.Vars{"version": "bridge " + version()},
			kong.Resolvers(resolvers...), kong.ExplicitGroups([]kong.Group{
				{Key: "What it serves", Title: "What it serves:"}, {Key: "NATS", Title: "NATS:"}, {Key: "OpenAI", Title: "OpenAI:"},
			}),
		)
		if err != nil {
			return err
		}
		_, err = parser.Parse(args)
		return err
	}
	if err := parseWith(env); done || err != nil {
		return f, done, err
	}
	if f.Config != "" {
		file, err := readConfig(f.Config)
		if err != nil {
			return f, false, fmt.Errorf("--config %s: %w", f.Config, err)
		}
		if err := parseWith(file, env); err != nil {
			return f, false, err
		}
	}
	return f, false, f.validate()
}

// readConfig reads a YAML file whose keys are those of the flags.
func readConfig(path string) (kong.Resolver, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var known flags
	if err := yaml.UnmarshalWithOptions(data, &known, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(yaml.FormatError(err, false, true))
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, err
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}), nil
}

// validate reports every problem that can be seen without the network.
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
	say(len(f.Models)+len(f.Tools) == 0, "nothing to serve: give --model, --tools or both")
	say(has(f.Tools, kindHost) && f.Workdir == "", "--tools host: name the directory of host sessions with --workdir")
	say(!has(f.Tools, kindHost) && f.Workdir != "", "--workdir: only --tools host has use for it")
	say(has(f.Tools, kindRecorded) && f.Ledger == "", "--tools recorded: name the file of executions with --ledger")
	say(!has(f.Tools, kindRecorded) && f.Ledger != "", "--ledger: only --tools recorded:FILE has use for it")
	say(f.Concurrency < 1, "--concurrency: at least 1")
	say(f.Replicas < 0 || f.Replicas > 5, "--replicas: 0 to 5")
	say(f.Grace <= 0, "--grace: more than nothing, such as 20s")
	return errors.Join(all...)
}
