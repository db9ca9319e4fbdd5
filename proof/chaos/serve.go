package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/sessionactor"
	"github.com/refold/refold/internal/telemetry/traces"
)

// snapshotEach is low enough for short sessions to have snapshots.
const snapshotEach = 4

// Serve runs a process of a trial until ctx ends or it is killed: the daemon of
// that name, with the source's model and tools, in the trial's directory.
func Serve(ctx context.Context, part Part, url, dir string, s Source, stdout, stderr io.Writer) error {
	if part == Server {
		return serveNATS(ctx, dir, stdout)
	}
	cast, err := Open(s)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	switch part {
	case SessionActor:
		err = serveSessions(ctx, url, cast.Install, log)
	case Bridge:
		err = serveEffects(ctx, url, dir, cast, log)
	default:
		return fmt.Errorf("no process %q", part)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was stopped while it started
	}
	return err
}

// serveSessions runs a session-actor.
func serveSessions(ctx context.Context, url string, install []byte, log *slog.Logger) error {
	return sessionactor.New(sessionactor.Options{
		Connect: natsio.Options{URL: url, Name: string(SessionActor), Logger: log, Durability: natsio.DurabilityAlways}, Replicas: 1, Install: install,
		Engine: engine.Options{SnapshotEach: snapshotEach, Traces: newExporting(log)},
	}).Run(ctx)
}

// serveEffects runs a bridge.
func serveEffects(ctx context.Context, url, dir string, cast *Cast, log *slog.Logger) error {
	tracer, err := traces.New(ctx, traces.Options{Form: traceForm, Ratio: 1, Service: string(Bridge), To: traces.HTTP(""), Logger: log})
	if err != nil {
		return err
	}
	defer tracer.Close()
	b, err := bridge.Connect(ctx, bridge.Options{
		URL: url, Name: string(Bridge), Provision: true, Durability: natsio.DurabilityAlways.String(), Logger: log, Observe: tracer.Observer(),
	})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := cast.serve(b, dir); err != nil {
		return err
	}
	return b.Run(ctx)
}
