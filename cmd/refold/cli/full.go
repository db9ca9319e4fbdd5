package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
)

// Full has the parts of commands that link large libraries: exporters of
// telemetry, MCP and the proof kit. Package full has them. The program refold has
// none, so that it builds in less time: if a command line needs one, it starts
// refold-full with the same arguments in its place. The fields are required.
type Full struct {
	// Kit returns new commands of the proof kit for kong, and Streams what they
	// expect to be bound.
	Kit     func() (bench, chaos, chaosPart any)
	Streams func(in io.Reader, out, err io.Writer) any

	// Telemetry starts what dev or serve export.
	Telemetry func(ctx context.Context, d *settings.Daemon, service, prefix string, log *slog.Logger) (*Telemetry, error)

	// ImportMCP lists the tools of the servers in file, and prints them and the
	// changes since the last import. secrets are files by the secret's name.
	ImportMCP func(ctx context.Context, out io.Writer, file, target string, secrets map[string]string) (*MCPImport, error)
	// CheckMCP compares the tools of the servers in file with the imported ones.
	CheckMCP func(ctx context.Context, file string) (findings []MCPFinding, same int, err error)
	// StartMCP starts a filesystem server on a directory and imports its tools;
	// program is empty for the one from npm.
	StartMCP func(ctx context.Context, out io.Writer, program, dir string) (*MCPServer, error)

	// PrintSpans prints OTLP JSON, a trace a line.
	PrintSpans func(out io.Writer, of SpanForm, spans []*timeline.Span) error
	// SendSpans sends spans to a collector.
	SendSpans func(ctx context.Context, collector string, of SpanForm, spans []*timeline.Span) error
}

// Telemetry is what dev or serve export about themselves.
type Telemetry struct {
	Registry *meter.Registry
	Traces   engine.Traces
	Observe  executor.Observer
	Address  string // of --http, or ""
	// Reads sets the sources of metrics and health; stats is nil for a program without a
	// bridge.
	Reads func(stats func() bridge.Stats, notReady func(context.Context) []string)
	Close func() error
}

// MCPImport is the result of an import.
type MCPImport struct {
	Functions []*function.Function
	Needs     map[string][]string // what the tools need, by tool_id
	Keep      func() error        // writes the lock with which bridges compare the tools
}

// MCPFinding is a difference from what was imported, of a tool or of a whole server.
type MCPFinding struct{ Server, Tool, ToolID, What string }

// MCPServer is a running MCP server.
type MCPServer struct {
	Functions []*function.Function
	Executors map[string]executor.Executor // by target
	Close     func()
}

// SpanForm is how spans of a session are exported.
type SpanForm struct {
	Session, Prefix string
	Unit            string // of a trace: run, turn, tree
}

// elsewhere stands for a command that only refold-full has.
type elsewhere struct {
	Args []string `arg:"" optional:"" help:"Arguments of the command."`
}

func (elsewhere) needsFull() bool        { return true }
func (t traceCommand) needsFull() bool   { return t.JSON || t.OTLP != "" }
func (importMCPCommand) needsFull() bool { return true }
func (d demoCommand) needsFull() bool    { return d.MCP }
func (d doctorCommand) needsFull() bool  { return len(d.MCP) > 0 }

func (d devCommand) needsFull() bool       { return exportsAnything(d.HTTP) }
func (h httpServeCommand) needsFull() bool { return exportsAnything(h.HTTP) }
func (r retainCommand) needsFull() bool    { return r.Every > 0 && exportsAnything(r.HTTP) }

// exportsAnything: only --http and OpenTelemetry's variables make a program export
// something.
func exportsAnything(address string) bool {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") && value != "" {
			return true
		}
	}
	return address != ""
}

// needsFull reports whether only refold-full can run a command line.
func needsFull(node *kong.Node) bool {
	command, ok := node.Target.Addr().Interface().(interface{ needsFull() bool })
	return ok && command.needsFull()
}

// kit returns the commands of the proof kit.
func (f *Full) kit() []kong.Option {
	bench, chaos, part, tags := any(&elsewhere{}), any(&elsewhere{}), any(&elsewhere{}), []string{`cmd:""`, `passthrough:""`}
	if f != nil {
		bench, chaos, part = f.Kit()
		tags = nil
	}
	return []kong.Option{
		kong.DynamicCommand("bench", "Measure Refold on this machine, on servers of its own.", "", bench, tags...),
		kong.DynamicCommand("chaos", "Kill a session-actor and a bridge at every message that they send, on a server of their own, and check the outcome.", "", chaos, tags...),
		kong.DynamicCommand("chaos-part", "", "", part, append(tags, `hidden:""`)...),
	}
}
