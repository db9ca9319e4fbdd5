package sessiontools

import (
	"context"
	"errors"
	"log/slog"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/natsio"
)

// Serve makes a bridge serve the tools that every session has. A bridge without the
// permission runs without them, and logs that: where each role has its own permissions,
// other bridges serve them.
func Serve(ctx context.Context, b *bridge.Bridge, log *slog.Logger, options ...bridge.ServeOption) error {
	tools := New(b.BlobOf)
	tools.Packs, tools.Results = b, b
	err := b.SessionTools(ctx, tools, options...)
	var denied *natsio.PermissionError
	if errors.As(err, &denied) {
		log.Info("serves_no_session_tools", "error", err.Error(), "do", "give --no-session-tools, or grant it as docs/operations.md describes")
		return nil
	}
	return err
}
