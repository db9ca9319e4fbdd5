package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/tools/mcp"
)

// An agent with the tools of a server. Here this program is the server, too; others are
// started with a command such as npx.
func ExampleFile() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "refold-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	file := filepath.Join(dir, "servers.yaml")
	text := fmt.Appendf(nil, `
servers:
  peer:
    command: %q
    env: [TOOLS_MCP_LEDGER=%s]
`, self, filepath.Join(dir, "ledger"))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		panic(err)
	}

	rt, err := refold.Open(ctx, embedded.Dir(filepath.Join(dir, "data")))
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	helper, err := rt.Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("peer_look", nil)), refoldtest.Say("I have looked."))),
		refold.ToolsFrom(mcp.File(file)))
	if err != nil {
		panic(err)
	}
	run, err := helper.Session("hello").Ask(ctx, "Look.")
	if err != nil {
		panic(err)
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Calls[0].Tool, answer.Calls[0].Status)
	fmt.Println(answer.Text)
	// Output:
	// peer_look succeeded
	// I have looked.
}
