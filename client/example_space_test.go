package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
)

// files is a reader of one space in memory.
type files struct{ fstest.MapFS }

// ReadSpace returns the files, for any space.
func (f files) ReadSpace(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
	return executor.SpaceContent{Files: f.MapFS, Source: "factory", Revision: "monday"}, nil
}

// A session adopts content that people edit: it is synced, and then applied.
func ExampleClient_Sync() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, stop := startWithReader(ctx, files{fstest.MapFS{"AGENTS.md": {Data: []byte("Be brief.")}}})
	defer stop()

	seq, err := c.Sync(ctx, "hello", "support", client.SyncOptions{})
	if err != nil {
		log.Fatal(err)
	}
	end, err := c.SyncEnd(ctx, "hello", seq)
	switch {
	case err != nil:
		log.Fatal(err)
	case end.Staged == nil:
		log.Fatal(end.Failed.Code, end.Problems)
	}
	fmt.Println(end.Staged.Outcome, "from", end.Staged.Revision, "with", len(end.Manifest.Prompts), "prompt pack")

	if seq, err = c.Apply(ctx, "hello", client.ApplyOptions{Mode: spaces.ModeImmediate, Hash: end.Staged.Hash}); err != nil {
		log.Fatal(err)
	}
	v, err := c.Taken(ctx, "hello", seq)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied", v.Workspace.Space, "with prompt pack", v.Workspace.PromptPack)

	// Nothing is staged any more, so a second apply is refused.
	if seq, err = c.Apply(ctx, "hello", client.ApplyOptions{}); err != nil {
		log.Fatal(err)
	}
	var refused *client.RejectedError
	_, err = c.Taken(ctx, "hello", seq)
	fmt.Println(errors.As(err, &refused), refused.Code)

	// Output:
	// staged from monday with 1 prompt pack
	// applied support with prompt pack default
	// true nothing_staged
}

// startWithReader runs a server, a session-actor and a bridge that reads the space
// support.
func startWithReader(ctx context.Context, r executor.SpaceReader) (c *client.Client, stop func()) {
	record := `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"},"spaces":[{"space":"support"}]}`
	return startServing(ctx, record, func(b *bridge.Bridge) error { return b.Space("support", r) })
}
