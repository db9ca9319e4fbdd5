// Command refold-full is refold with all parts of its commands linked: exporters of
// telemetry, MCP and the proof kit. refold starts it when a command needs one.
package main

import (
	"github.com/refold/refold/cmd/refold/cli"
	"github.com/refold/refold/cmd/refold/full"
)

func main() { cli.Program(full.Parts()) }
