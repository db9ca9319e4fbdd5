package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/cmd/settings/exports"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// flags are the flags of session-actor. A config file has the same keys.
type flags struct {
	settings.Connection `yaml:",inline"`
	Replicas            int `yaml:"replicas" group:"NATS" default:"0" help:"Replicas of every stream; 0 is one for a new stream, and leaves others as they are."`

	Consumers []string `name:"consumer" yaml:"consumer" group:"NATS" placeholder:"CLASS/TARGET" help:"Consumer of bridges or webhooks that may create none, such as tool/host or webhook/crm; refold roles lists those of its users. May be repeated."`

	Install string `yaml:"install" placeholder:"FILE" help:"Install record to publish if the log has none: tools, profiles, default config. Default: the built-in one."`

	VerifyLoads    bool          `yaml:"verify-loads" help:"Compare each session with its stored effects and snapshots when it is first loaded. This is automatic while the log has holes. For the first start after a restore or a power failure: such a load reads the session from its beginning."`
	Memory         settings.Size `yaml:"memory" default:"256MiB" placeholder:"SIZE" help:"About how much memory sessions may take; beyond it the least recently used ones are evicted. The process needs more. Such as 256MiB, 2GiB."`
	SnapshotVerify bool          `yaml:"snapshot-verify" default:"true" negatable:"" help:"Compare each snapshot with the log once a day, in the background. A wrong one quarantines its session."`

	exports.Traces  `yaml:",inline"`
	settings.Daemon `yaml:",inline"`
}

// memoryMin is room for a few sessions of each lane.
const memoryMin = 1 << 20

var program = settings.Program{
	Name: "refold-session-actor",
	Description: `Runs Refold sessions: folds the log, publishes effects, answers views.

Run as many as you like; they share the lanes of the log. It creates or updates
the streams when it starts, and stops on SIGTERM, after handing its lanes over.`,
	Groups: []kong.Group{{Key: "NATS", Title: "NATS:"}, {Key: "Traces", Title: "Traces:"}},
}

// replicasMax is JetStream's limit.
const replicasMax = 5

// parse reads flags, environment and config file; the first of them that has a
// value wins. done is true if it printed help or the version instead.
func parse(args []string, env settings.Environment, stdout, stderr io.Writer) (f flags, done bool, err error) {
	f, done, err = settings.Parse[flags](program, args, env, stdout, stderr)
	if done || err != nil {
		return f, done, err
	}
	if err := f.Validate(); err != nil {
		return f, false, err
	}
	if f.Replicas < 0 || f.Replicas > replicasMax {
		return f, false, fmt.Errorf("--replicas: 0 to %d, not %d", replicasMax, f.Replicas)
	}
	if f.Memory < memoryMin {
		return f, false, fmt.Errorf("--memory: at least 1MiB, not %s", f.Memory)
	}
	if _, err := streams.ParseMonitors(f.Monitor); err != nil {
		return f, false, fmt.Errorf("--monitor: %w", err)
	}
	for _, c := range f.Consumers {
		class, target := consumerOf(c)
		_, err := subjects.BridgeName(class, target)
		if class == subjects.ClassWebhook {
			_, err = subjects.WebhookConsumer(target)
		}
		if err != nil {
			return f, false, fmt.Errorf("--consumer %s: want CLASS/TARGET, such as tool/host or webhook/crm: %w", c, err)
		}
	}
	return f, false, nil
}

// consumerOf parses a value of --consumer.
func consumerOf(text string) (session.Class, string) {
	class, target, _ := strings.Cut(text, "/")
	return session.Class(class), target
}
