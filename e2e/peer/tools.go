package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
)

// grace is longer than the test keeps a call waiting.
const grace = 2 * time.Minute

// serveTools is a bridge whose calls are carried out at a URL, which counts them.
func serveTools(ctx context.Context, nats, name, url string) error {
	b, err := bridge.Connect(ctx, bridge.Options{URL: nats, Name: name, Grace: grace, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Tool("lab", poster(url)); err != nil {
		return err
	}
	return b.Run(ctx)
}

// poster carries calls out at its URL.
type poster string

// Execute posts the call, once. It waits for the answer as long as it may.
func (p poster) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	body, err := json.Marshal(map[string]string{"session": call.Session, "effect": call.Effect, "tool": call.ToolName})
	if err != nil {
		return executor.Result{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(p), bytes.NewReader(body))
	if err != nil {
		return executor.Result{}, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return executor.Result{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return executor.Result{}, fmt.Errorf("%s: %s", p, answer.Status)
	}
	return executor.Result{Output: "done"}, nil
}
