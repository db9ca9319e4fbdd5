package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/llm/scripted"
)

const mcpInput = "Write down that I need tea and bread, and tell me what is in the directory."

// mcpScript scripts the demo's model; %[1]q is the note, %[2]q its directory.
const mcpScript = `
turns:
  - shown: {last: user, tools: {include: [files_write_file, files_read_text_file, files_list_directory]}}
    say: I write it down, and read it again.
    calls:
      - {tool: files_write_file, arguments: {path: %[1]q, content: "tea\nbread\n"}}
      - {tool: files_read_text_file, arguments: {path: %[1]q}}
      - {tool: files_list_directory, arguments: {path: %[2]q}}
  - shown:
      results:
        - {tool: files_write_file, error: false}
        - {tool: files_read_text_file, error: false, text: bread}
        - {tool: files_list_directory, error: false, text: shopping.txt}
    say: "It is written down. The directory has: ${result}"
`

// mcpModel starts the server, imports its tools, and returns their model.
func (d demoCommand) mcpModel(ctx context.Context, s streams, full *Full, work string) (*model, error) {
	work, err := filepath.EvalSymlinks(work)
	if err != nil {
		return nil, err
	}
	script, err := scripted.Parse("demo", fmt.Appendf(nil, mcpScript, filepath.Join(work, "shopping.txt"), work))
	if err != nil {
		return nil, err
	}
	server, err := full.StartMCP(ctx, s.out, d.MCPServer, work)
	if err != nil {
		return nil, err
	}
	record, err := function.InstallRecord([]byte(`{"config": {"provider": "scripted", "model": "scripted"}}`), server.Functions...)
	if err != nil {
		server.Close()
		return nil, err
	}
	return &model{
		install: record,
		close:   func() error { server.Close(); return nil },
		serve: func(b *bridge.Bridge) error {
			all := []error{b.Model("scripted", scripted.NewModel(script))}
			for target, executor := range server.Executors {
				all = append(all, b.Tool(target, executor))
			}
			return errors.Join(all...)
		},
	}, nil
}

// note makes the session write a note with the server's tools, and folds it again.
func (d demoCommand) note(ctx context.Context, out io.Writer, c *client.Client, work string) error {
	fmt.Fprintf(out, "A session uses them on %s\n\n", work)
	if err := tellRun(ctx, out, c, demoSession, mcpInput); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nNow all events are folded again, from the first one:")
	return foldAgain(ctx, out, c, demoSession)
}
