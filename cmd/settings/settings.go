// Package settings reads a daemon's settings from flags, the environment and a
// config file, in this order: the first that has a value wins. An empty
// variable counts as none.
//
// A daemon declares one struct of flags for kong. It embeds Connection first
// and Daemon last, each as `yaml:",inline"`, and every other field has the name
// of its flag as its yaml key, so that the file has the same names. Unknown
// keys of the file are refused, with their line.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
)

// Connection is how every daemon connects.
type Connection struct {
	NATS    string `name:"nats" yaml:"nats" group:"NATS" placeholder:"URL" help:"Servers, separated by commas (NATS_URL). Default: the context's, else nats://127.0.0.1:4222."`
	Creds   string `yaml:"creds" group:"NATS" placeholder:"FILE" help:"Credentials file (NATS_CREDS)."`
	Context string `yaml:"context" group:"NATS" placeholder:"NAME" help:"Context of the nats tool (NATS_CONTEXT)."`
	Inbox   string `name:"inbox-prefix" yaml:"inbox-prefix" group:"NATS" placeholder:"PREFIX" help:"Prefix of the inbox subjects, if each role has its own."`
	Prefix  string `yaml:"prefix" group:"NATS" default:"refold" help:"Prefix of all subjects (REFOLD_PREFIX)."`

	Durability  string `yaml:"durability" group:"NATS" enum:",interval,always,replicated" default:"" placeholder:"WHAT" help:"The servers' expected durability (REFOLD_DURABILITY); the daemon ends if it finds another: always (sync before each acknowledgement), interval (periodic sync), or replicated (every stream on three servers or more)."`
	Monitor     string `yaml:"monitor" group:"NATS" placeholder:"URL" help:"Monitoring addresses of all servers, separated by commas, to ask how they sync. Such as http://127.0.0.1:8222."`
	SystemCreds string `yaml:"system-creds" group:"NATS" placeholder:"FILE" help:"Credentials of a user of the system account, or a context's file, to ask how all servers sync."`
}

// Daemon is what every daemon has at the end of its flags.
type Daemon struct {
	HTTP      string           `name:"http" yaml:"http" placeholder:"HOST:PORT" help:"Address to serve /metrics, /healthz and /readyz on, such as 127.0.0.1:9464. Default: none."`
	Pprof     bool             `yaml:"pprof" help:"Also serve /debug/pprof/ at --http, which must then be a loopback address."`
	LogLevel  string           `yaml:"log-level" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	LogFormat string           `yaml:"log-format" default:"text" enum:"text,json" help:"Format of log lines: text or json."`
	Config    string           `yaml:"-" placeholder:"FILE" help:"YAML file with the same keys. The environment and flags override it."`
	Version   kong.VersionFlag `yaml:"-" help:"Print the version and exit."`
}

// Validate reports every problem of d that can be seen without the network.
func (d *Daemon) Validate() error { return d.validateHTTP() }

// Program is a daemon, for its help.
type Program struct {
	Name        string
	Description string
	Variables   map[string]string // besides those of Connection: flags that the environment may give, and the variable of each
	Groups      []kong.Group      // of its flags, in the order of the help
}

// Exit statuses of a daemon.
const (
	StatusDone   = 0 // it was stopped, and ended
	StatusFailed = 1 // it can't run
	StatusUsage  = 2 // the arguments are wrong
)

// Run runs a daemon until ctx ends, and what it has until then to its end. parse
// reads its flags, as Parse does. Run returns the exit status; what is wrong is on
// stderr.
func Run[F any](
	ctx context.Context, p Program, stderr io.Writer, parse func() (f F, done bool, err error), run func(F) error,
) int {
	f, done, err := parse()
	switch {
	case done:
		return StatusDone
	case err != nil:
		p.Complain(stderr, err)
		return StatusUsage
	}
	err = run(f)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return StatusDone // perhaps while it still started
	}
	p.Complain(stderr, err)
	return StatusFailed
}

// Complain prints an error, each of its lines with the program's name.
func (p Program) Complain(stderr io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, strings.TrimRight(line, "\n"))
	}
}

// variables are the flags of Connection that the environment may give.
var variables = map[string]string{
	"nats": "NATS_URL", "creds": "NATS_CREDS", "context": "NATS_CONTEXT", "prefix": "REFOLD_PREFIX", "durability": "REFOLD_DURABILITY",
}

// Environment is what a program was started with.
type Environment map[string]string

// ReadEnvironment reads NAME=value pairs, as os.Environ returns them.
func ReadEnvironment(environ []string) Environment {
	env := make(Environment, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Lookup returns a variable, as os.LookupEnv does.
func (e Environment) Lookup(name string) (value string, ok bool) {
	value, ok = e[name]
	return value, ok
}

// Parse reads flags, environment and, if --config names one, the config file.
// done says that help or the version was printed to stdout instead. An error
// of the file names it. F is a struct as the package's doc describes it.
func Parse[F any](p Program, args []string, env Environment, stdout, stderr io.Writer) (f F, done bool, err error) {
	fromEnvironment := p.resolver(env)
	f, config, done, err := parse[F](p, args, stdout, stderr, fromEnvironment)
	if done || err != nil || config == "" {
		return f, done, err
	}
	fromFile, err := readConfig[F](config)
	if err == nil {
		f, _, done, err = parse[F](p, args, stdout, stderr, fromFile, fromEnvironment)
	}
	if err != nil {
		return f, false, fmt.Errorf("--config %s: %w", config, err)
	}
	return f, done, nil
}

// parse reads the command line, and what it does not have from resolvers: of
// several that have a value the last one wins. It returns the value of
// --config too.
func parse[F any](p Program, args []string, stdout, stderr io.Writer, resolvers ...kong.Resolver) (f F, config string, done bool, err error) {
	parser, err := kong.New(&f,
		kong.Name(p.Name), kong.Description(p.Description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { done = true }), kong.Vars{"version": p.Name + " " + Version()},
		kong.Resolvers(resolvers...), kong.ExplicitGroups(p.Groups),
	)
	if err != nil {
		return f, "", false, err
	}
	read, err := parser.Parse(args)
	if done || err != nil {
		return f, "", done, err
	}
	for _, flag := range read.Flags() {
		if flag.Name == "config" {
			config = flag.Target.String()
		}
	}
	return f, config, false, nil
}

// resolver gives flags that the command line does not have.
func (p Program) resolver(env Environment) kong.Resolver {
	known := maps.Clone(variables)
	maps.Copy(known, p.Variables)
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if value := env[known[flag.Name]]; value != "" {
			return value, nil
		}
		return nil, nil //nolint:nilnil // kong's way to say that there is none
	})
}

// readConfig reads a YAML file whose keys are those of the flags. Errors in it
// are reported with their line.
func readConfig[F any](path string) (kong.Resolver, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	var known F
	if err := yaml.UnmarshalWithOptions(data, &known, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlfile.Explain(err, &known)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}), nil
}

// Version returns the version of this build.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
