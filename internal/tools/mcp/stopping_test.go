package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// TestStoppingBridgeEndsTheWaitForAServer: a call that waits for a server that can't
// be started ends as soon as the bridge begins to stop.
func TestStoppingBridgeEndsTheWaitForAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	s := w.config.Servers["peer"]
	s.Command = filepath.Join(t.TempDir(), "missing")
	w.config.Servers["peer"] = s
	w.open()
	stopping, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	began := time.Now()
	r, err := w.servers.Execute(executor.WithStopping(t.Context(), stopping), executor.Call{
		ToolID: "mcp.peer.echo", Arguments: json.RawMessage(`{"text": "a"}`), RetrySafe: true, Session: "s1", Effect: "r1t1c0", Start: "x",
	})
	if took := time.Since(began); !errors.Is(err, executor.ErrStopping) || r.Error == nil || r.Error.Code != CodeServerMissing || took > patience/2 {
		t.Errorf("got %+v, %v after %v, want server_missing at once", r.Error, err, took)
	}
}
