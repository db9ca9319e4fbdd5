package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/host"
)

// flags are the daemon's flags. A config file has the same keys.
type flags struct {
	NATS     string `name:"nats" env:"NATS_URL" placeholder:"URL" help:"NATS servers, separated by commas. Default: the context's, else nats://127.0.0.1:4222." yaml:"nats"`
	Creds    string `env:"NATS_CREDS" placeholder:"FILE" help:"Credentials file." yaml:"creds"`
	Context  string `env:"NATS_CONTEXT" placeholder:"NAME" help:"Context of the nats tool." yaml:"context"`
	Prefix   string `env:"REFOLD_PREFIX" default:"refold" help:"Beginning of all subjects." yaml:"prefix"`
	Replicas int    `default:"0" help:"Replicas of every stream; 0 is one for a new stream, and leaves others as they are." yaml:"replicas"`
	Install  string `placeholder:"FILE" help:"Install record to publish if the log has none. Default: the built-in one." yaml:"install"`
	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error." yaml:"log-level"`

	Config  string `placeholder:"FILE" help:"YAML file with the same keys; what is given here or in the environment wins." yaml:"-"`
	Version bool   `help:"Print the version and exit." yaml:"-"`
}

// Main runs the daemon until ctx ends and returns the exit status: 0 after a
// drain, 1 if it can't run, 2 if the arguments are wrong.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parse(args, stdout, stderr)
	var exit exitError
	switch {
	case errors.As(err, &exit):
		return int(exit)
	case err != nil:
		fmt.Fprintln(stderr, "session-actor:", err)
		return 2
	case f.Version:
		fmt.Fprintln(stdout, "session-actor", version())
		return 0
	}
	if err := run(ctx, f, stderr); err != nil {
		fmt.Fprintln(stderr, "session-actor:", err)
		return 1
	}
	return 0
}

// exitError ends parsing with a status: help was asked for.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// parse reads flags, environment and config file.
func parse(args []string, stdout, stderr io.Writer) (f flags, err error) {
	defer func() {
		if v := recover(); v != nil {
			exit, ok := v.(exitError)
			if !ok {
				panic(v)
			}
			err = exit
		}
	}()
	options := []kong.Option{
		kong.Name("session-actor"), kong.Writers(stdout, stderr), kong.Exit(func(status int) { panic(exitError(status)) }),
		kong.Description("Runs Refold sessions: folds the log, asks for effects, answers views. It stops on SIGTERM, after handing its lanes over."),
	}
	parser, err := kong.New(&f, options...)
	if err != nil {
		return f, err
	}
	if _, err := parser.Parse(args); err != nil {
		return f, err
	}
	if f.Config == "" {
		return f, nil
	}
	file, err := readConfig(f.Config)
	if err != nil {
		return f, err
	}
	given := f
	f = flags{}
	if parser, err = kong.New(&f, append(options, kong.Resolvers(file))...); err != nil {
		return given, err
	}
	_, err = parser.Parse(args)
	return f, err
}

// readConfig reads a YAML file whose keys are those of the flags.
func readConfig(path string) (kong.Resolver, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var known flags
	if err := yaml.UnmarshalWithOptions(data, &known, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("--config %s: %s", path, yaml.FormatError(err, false, true))
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}), nil
}

// run connects, provisions and runs a host until ctx ends.
func run(ctx context.Context, f flags, stderr io.Writer) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	record, source := session.BuiltinInstall(), "built-in"
	if f.Install != "" {
		var err error
		if record, err = os.ReadFile(f.Install); err != nil {
			return fmt.Errorf("--install: %w", err)
		}
		if _, err := session.ParseInstall(record); err != nil {
			return fmt.Errorf("--install %s: %w", f.Install, err)
		}
		source = f.Install
	}
	b, err := bus.Connect(ctx, bus.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, Name: "session-actor", Logger: log,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	conf, err := bus.ParseConf(refold.StreamsConf, b.Names())
	if err != nil {
		return err
	}
	if err := b.Provision(ctx, conf, f.Replicas); err != nil {
		return err
	}
	stored, err := host.EnsureInstall(ctx, b, record)
	if err != nil {
		return err
	}
	h := host.New(b, log, host.Options{Version: version()})
	log.Info("session-actor runs", "url", b.URL(), "server", b.ServerVersion(), "prefix", b.Names().Prefix(),
		"replicas", f.Replicas, "install", source, "install_published", stored, "instance", h.Instance(), "version", version())
	if err := h.Run(ctx); err != nil {
		return err
	}
	log.Info("session-actor drained", "instance", h.Instance())
	return nil
}

// version returns the version of this build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
