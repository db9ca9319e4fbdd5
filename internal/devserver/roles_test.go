package devserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/natsio"
)

// lockedBuffer holds the log of several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A server with roles resumes the sessions of one without them. Its operator has
// the permissions of people, its user of models serves a provider, a program
// without a key is only a client, and the server's own parts are refused nothing.
func TestUsersHaveThePermissionsOfTheirRoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, c, stop := start(t, dir)
	run(ctx, t, c, "one")
	before, err := c.View(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	stop()

	var log lockedBuffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	server, err := devserver.Start(ctx, devserver.Options{
		Dir: dir, Install: []byte(record), Roles: true, Model: "openai", Logger: logger,
		Serve: func(b *bridge.Bridge) error { return b.Model("scripted", scripted.NewModel(scripted.Echo())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	operator, err := client.Connect(ctx, client.Options{Context: server.Context(devserver.Operator), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	if after, err := operator.View(ctx, "s1"); err != nil || after.Hash != before.Hash {
		t.Errorf("on accounts: got %s (%v), want %s", after.Hash, err, before.Hash)
	}
	if got := run(ctx, t, operator, "two"); !strings.Contains(got, "two") {
		t.Errorf("answer: got %q", got)
	}

	models, err := bridge.Connect(ctx, bridge.Options{Context: server.Context(devserver.Models), Name: "models", Logger: logger, Grace: time.Second})
	if err == nil {
		err = models.Model("openai", scripted.NewModel(scripted.Echo()))
	}
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- models.Run(serving) }()
	seq, err := operator.Run(ctx, "s2", "three", client.RunOptions{Config: json.RawMessage(`{"provider":"openai","model":"m"}`), Operator: true})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := operator.End(ctx, "s2", seq, 1, nil); err != nil || done.Lifecycle != session.Completed {
		t.Errorf("a run of the models' user: got %+v (%v)", done, err)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	models.Close()
	if r, err := operator.Replay(ctx, "s1", 0, nil); err != nil || !r.Identical() {
		t.Errorf("replay: got %+v (%v)", r, err)
	}

	anyone, err := client.Connect(ctx, client.Options{URL: server.URL(), CoreOnly: true, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer anyone.Close()
	if _, err := anyone.Run(ctx, "s3", "no key", client.RunOptions{}); err != nil {
		t.Errorf("a run without a key: %v", err)
	}
	if said := log.String(); strings.Contains(said, "nats_permission_denied") {
		t.Errorf("refused:\n%s", said)
	}
	if other, err := client.Connect(ctx, client.Options{URL: server.URL()}); err == nil || !strings.Contains(err.Error(), "NATS_CONTEXT") {
		t.Errorf("who brings no key reads streams (%v), want a hint at NATS_CONTEXT", err)
		other.Close()
	}
}

// A server for keys only refuses programs without one.
func TestKeysOnlyRefusesProgramsWithoutKey(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: []byte(record), Roles: true, KeysOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if other, err := client.Connect(ctx, client.Options{URL: server.URL(), CoreOnly: true}); !errors.Is(err, natsio.ErrUnauthorized) {
		t.Errorf("without a key: got %v, want %v", err, natsio.ErrUnauthorized)
		if err == nil {
			other.Close()
		}
	}
	admin, err := client.Connect(ctx, client.Options{Context: server.Context(devserver.Admin)})
	if err != nil {
		t.Fatalf("with a key: %v", err)
	}
	admin.Close()
}
