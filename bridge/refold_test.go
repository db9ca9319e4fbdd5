package bridge_test

import (
	"context"
	"os"

	"github.com/refold/refold/internal/devserver"
)

// startRefold runs a server and a session-actor in this process, for examples: a
// user of the package can't import devserver.
func startRefold(ctx context.Context, install string) (url string, stop func()) {
	dir, err := os.MkdirTemp("", "refold-example-")
	if err != nil {
		panic(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: dir, Install: []byte(install)})
	if err != nil {
		panic(err)
	}
	return server.URL(), func() {
		server.Stop()
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}
}
