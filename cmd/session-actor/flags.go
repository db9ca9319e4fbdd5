package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// flags are the daemon's flags. A config file has the same keys.
type flags struct {
	NATS     string `name:"nats" yaml:"nats" group:"NATS" placeholder:"URL" help:"Servers, separated by commas (NATS_URL). Default: the context's, else nats://127.0.0.1:4222."`
	Creds    string `yaml:"creds" group:"NATS" placeholder:"FILE" help:"Credentials file (NATS_CREDS)."`
	Context  string `yaml:"context" group:"NATS" placeholder:"NAME" help:"Context of the nats tool (NATS_CONTEXT)."`
	Inbox    string `name:"inbox-prefix" yaml:"inbox-prefix" group:"NATS" placeholder:"PREFIX" help:"Beginning of the subjects that answers come on, where each role has its own."`
	Prefix   string `yaml:"prefix" group:"NATS" default:"refold" help:"Beginning of all subjects (REFOLD_PREFIX)."`
	Replicas int    `yaml:"replicas" group:"NATS" default:"0" help:"Replicas of every stream; 0 is one for a new stream, and leaves others as they are."`

	Install  string `yaml:"install" placeholder:"FILE" help:"Install record to publish if the log has none: tools, profiles, default config. Default: the built-in one."`
	LogLevel string `yaml:"log-level" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`

	Config  string           `yaml:"-" placeholder:"FILE" help:"YAML file with the same keys. Environment and flags win over it."`
	Version kong.VersionFlag `yaml:"-" help:"Print the version and exit."`
}

// variables are the flags that the environment may give.
var variables = map[string]string{
	"nats": "NATS_URL", "creds": "NATS_CREDS", "context": "NATS_CONTEXT", "prefix": "REFOLD_PREFIX",
}

const description = `Runs Refold sessions: folds the log, asks for effects, answers views.

Run as many as you like; they share the lanes of the log. It creates or updates
the streams when it starts, and stops on SIGTERM, after handing its lanes over.`

// replicasMax is what JetStream takes.
const replicasMax = 5

// parse reads flags, environment and config file; the first of them that has a
// value wins. done says that help or the version was printed instead.
func parse(args, environ []string, stdout, stderr io.Writer) (f flags, done bool, err error) {
	parseWith := func(resolvers ...kong.Resolver) error {
		f = flags{}
		parser, err := kong.New(&f,
			kong.Name("session-actor"), kong.Description(description), kong.Writers(stdout, stderr),
			kong.Exit(func(int) { done = true }), kong.Vars{"version": "session-actor " + version()},
			kong.Resolvers(resolvers...), kong.ExplicitGroups([]kong.Group{{Key: "NATS", Title: "NATS:"}}),
		)
		if err != nil {
			return err
		}
		_, err = parser.Parse(args)
		return err
	}
	// Of several resolvers the last one that has a value wins.
	env := environment(environ)
	if err := parseWith(env); done || err != nil {
		return f, done, err
	}
	if f.Config != "" {
		file, err := readConfig(f.Config)
		if err != nil {
			return f, false, fmt.Errorf("--config %s: %w", f.Config, err)
		}
		if err := parseWith(file, env); err != nil {
			return f, false, fmt.Errorf("--config %s: %w", f.Config, err)
		}
	}
	if f.Replicas < 0 || f.Replicas > replicasMax {
		return f, false, fmt.Errorf("--replicas: 0 to %d, not %d", replicasMax, f.Replicas)
	}
	return f, false, nil
}

// environment gives flags that the command line does not have. An empty
// variable counts as none.
func environment(environ []string) kong.Resolver {
	values := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if value := values[variables[flag.Name]]; value != "" {
			return value, nil
		}
		return nil, nil //nolint:nilnil // kong's way to say that there is none
	})
}

// readConfig reads a YAML file whose keys are those of the flags. What is wrong
// in it is told with its line.
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
	if err := yaml.Unmarshal(data, &values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}), nil
}
