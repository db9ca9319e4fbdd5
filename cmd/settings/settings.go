// Package settings reads a daemon's settings from flags, the environment and a
// config file. The first of them that has a value wins. An empty variable counts
// as unset.
//
// A daemon declares one struct of flags for kong. It embeds Connection first
// and Daemon last, each as `yaml:",inline"`. Every other field has the name of
// its flag as its yaml key, so the file uses the names of the flags. Unknown keys
// of the file are refused, with their line.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/telemetry/listen"
	"github.com/refold/refold/internal/yamlfile"
)

// Connection has the flags with which every daemon connects.
type Connection struct {
	NATS    string `name:"nats" yaml:"nats" group:"NATS" placeholder:"URL" help:"Servers, separated by commas (NATS_URL). Default: the context's, else nats://127.0.0.1:4222."`
	Creds   string `yaml:"creds" group:"NATS" placeholder:"FILE" help:"Credentials file (NATS_CREDS)."`
	Context string `yaml:"context" group:"NATS" placeholder:"NAME" help:"Context of the nats tool (NATS_CONTEXT)."`
	Inbox   string `name:"inbox-prefix" yaml:"inbox-prefix" group:"NATS" placeholder:"PREFIX" help:"Prefix of the inbox subjects, if each role has its own."`
	Prefix  string `yaml:"prefix" group:"NATS" default:"refold" help:"Prefix of all subjects (REFOLD_PREFIX)."`

	ClosedExit time.Duration `name:"closed-exit" yaml:"closed-exit" group:"NATS" default:"30s" help:"How long to try to connect again after a connection was closed for good, before the daemon ends with an error; 0: it ends at once."`

	Accept []string `name:"accept-stream-settings" yaml:"accept-stream-settings" group:"NATS" placeholder:"STREAM.SETTING" help:"Setting of a stream to leave as it is on the server, although history may be lost with it, such as REFOLD_LOG.max_age. May be repeated."`

	Durability  string `yaml:"durability" group:"NATS" enum:",interval,always,replicated" default:"" placeholder:"WHAT" help:"The servers' expected durability (REFOLD_DURABILITY); the daemon ends if it finds another: always (sync before each acknowledgement), interval (periodic sync), or replicated (every stream on three servers or more)."`
	Monitor     string `yaml:"monitor" group:"NATS" placeholder:"URL" help:"Monitoring addresses of all servers, separated by commas, from which to read their sync setting. Such as http://127.0.0.1:8222."`
	SystemCreds string `yaml:"system-creds" group:"NATS" placeholder:"FILE" help:"Credentials of a user of the system account, or a context's file, with which to read all servers' sync setting."`
}

// Daemon has the flags that every daemon's help ends with.
type Daemon struct {
	HTTP      string           `name:"http" yaml:"http" placeholder:"HOST:PORT" help:"Address to serve /metrics, /healthz and /readyz on, such as 127.0.0.1:9464. Default: none."`
	HTTPHosts []string         `name:"http-host" yaml:"http-host" placeholder:"NAME" help:"Name by which clients may address --http, such as a service name that Prometheus scrapes; IP addresses and localhost always may. May be repeated."`
	Pprof     bool             `yaml:"pprof" help:"Also serve /debug/pprof/ at --http, which must then be a loopback address."`
	LogLevel  string           `yaml:"log-level" default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error."`
	LogFormat string           `yaml:"log-format" default:"text" enum:"text,json" help:"Format of log lines: text or json."`
	Config    string           `yaml:"-" placeholder:"FILE" help:"YAML file with the same keys. The environment and flags override it."`
	Version   kong.VersionFlag `yaml:"-" help:"Print the version and exit."`
}

// Validate reports every problem of d that can be seen without the network.
func (d *Daemon) Validate() error {
	if d.HTTP == "" {
		if d.Pprof {
			return errors.New("--pprof: give --http too, such as --http 127.0.0.1:9464")
		}
		if len(d.HTTPHosts) > 0 {
			return errors.New("--http-host: give --http too, such as --http 0.0.0.0:9464")
		}
		return nil
	}
	return listen.Options{Address: d.HTTP, Pprof: d.Pprof, Hosts: d.HTTPHosts}.Validate()
}

// Program describes a daemon for its help.
type Program struct {
	Name        string
	Description string
	Variables   map[string]string // flags that the environment may set, besides Connection's, and the variable of each
	Groups      []kong.Group      // groups of its flags, in the order of the help
	Vars        kong.Vars         // values of ${NAME} in help texts
}

// Exit statuses of a daemon.
const (
	StatusDone   = 0 // it ran until it was stopped
	StatusFailed = 1 // it can't run
	StatusUsage  = 2 // the arguments are wrong
)

// Run runs a daemon until ctx ends and run has returned. parse reads its flags,
// as Parse does. Run returns the exit status, and prints errors to stderr.
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
		return StatusDone // stopped, perhaps while it was still starting
	}
	p.Complain(stderr, err)
	return StatusFailed
}

// Complain prints an error, each line after the program's name.
func (p Program) Complain(stderr io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, strings.TrimRight(line, "\n"))
	}
}

// variables are the flags of Connection that the environment may set.
var variables = map[string]string{
	"nats": natsio.VariableURL, "creds": natsio.VariableCreds, "context": natsio.VariableContext, "prefix": natsio.VariablePrefix, "durability": "REFOLD_DURABILITY",
}

// Environment holds the variables that a program was started with.
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

// Parse reads flags, the environment and, if --config names one, the config file.
// done is true if it printed help or the version to stdout instead. An error in
// the file names the file. F is a struct as the package's doc describes it.
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

// parse reads the command line, and flags that it does not set from resolvers.
// The last resolver that has a value wins. It returns the value of --config too.
func parse[F any](p Program, args []string, stdout, stderr io.Writer, resolvers ...kong.Resolver) (f F, config string, done bool, err error) {
	parser, err := kong.New(&f,
		kong.Name(p.Name), kong.Description(p.Description), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { done = true }), kong.Vars{"version": p.Name + " " + Version()}, p.Vars,
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

// resolver reads flags that the command line does not set from env.
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

// readConfig reads a YAML file of flags. Errors name their line.
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

// version is set by the linker in a release, whose bytes must not depend on the
// checkout: deploy/release.sh.
var version string

// Version returns the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
