// Package full has the parts of refold's commands that link large libraries:
// exporters of telemetry, MCP and the proof kit. Only the program refold-full
// links it; package cli declares the parts and their flags.
package full

import (
	"io"

	"github.com/refold/refold/cmd/refold/cli"
	proof "github.com/refold/refold/proof/cli"
)

// Parts returns all parts.
func Parts() *cli.Full {
	return &cli.Full{
		Kit:       func() (bench, chaos, chaosPart any) { return &proof.Bench{}, &proof.Chaos{}, &proof.ChaosPart{} },
		Streams:   func(in io.Reader, out, err io.Writer) any { return proof.Streams{In: in, Out: out, Err: err} },
		Telemetry: startTelemetry,
		ImportMCP: importMCP, CheckMCP: checkMCP, StartMCP: startMCP,
		PrintSpans: printSpans, SendSpans: sendSpans,
	}
}
