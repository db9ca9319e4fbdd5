package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/host"
)

// A bridge passes each call to Execute, with the session's present host session.
func ExampleHost_Execute() {
	root, err := os.MkdirTemp("", "host")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	h := host.New(root, host.Options{})

	var hs *executor.HostSession
	for i, c := range []struct{ tool, arguments string }{
		{host.ToolSessionOpen, `{}`},
		{host.ToolWriteFile, `{"path": "notes/a.txt", "content": "one\ntwo\n"}`},
		{host.ToolGrep, `{"pattern": "tw."}`},
		{host.ToolExec, `{"command": "wc -l < notes/a.txt; false"}`},
		{host.ToolReadFile, `{"path": "/etc/passwd"}`},
		{host.ToolSessionClose, `{}`},
	} {
		result, err := h.Execute(context.Background(), executor.Call{
			Session: "s1", IdempotencyKey: fmt.Sprintf("s1.r1t%dc0", i+1),
			ToolID: c.tool, Arguments: json.RawMessage(c.arguments), HostSession: hs,
		})
		switch {
		case err != nil:
			fmt.Println(err)
		case result.HostSession != nil:
			hs = result.HostSession
			fmt.Println(c.tool, hs.Status)
		case result.Error != nil:
			fmt.Println(result.Error.Code)
		default:
			fmt.Println(result.Output)
		}
	}

	// Output:
	// host.session.open ready
	// wrote 8 bytes to notes/a.txt
	// notes/a.txt:2:two
	//
	// exit status 1
	// 2
	//
	// path_escapes
	// host.session.close closed
}
