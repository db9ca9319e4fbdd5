package retain

import (
	"context"
	"log/slog"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/natsio"
)

// againAfter is how long after a failed pass the next one begins.
const againAfter = time.Minute

// Run makes a pass at once, and then every so often, until ctx ends. It reads the policy
// anew for each pass. A pass that fails is logged, and repeated after a minute.
func Run(ctx context.Context, c *client.Client, policy string, every time.Duration, o Options, log *slog.Logger) {
	o.Each = func(of Outcome) {
		if of.Error != "" {
			log.Warn("session_not_retained", "session", of.Session, "error", of.Error)
		}
	}
	for {
		next := every
		sum, err := once(ctx, c, policy, o)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Error("retention_failed", "error", err.Error())
			next = min(every, againAfter)
		default:
			log.Info("retention_done", "sessions", sum.Sessions, "due", sum.Due, "archived", sum.Archived, "deleted", sum.Deleted, "held", sum.Held, "failed", sum.Failed, "messages", sum.Messages, "took_ms", sum.TookMS)
		}
		if natsio.Sleep(ctx, next) != nil {
			return
		}
	}
}

func once(ctx context.Context, c *client.Client, policy string, o Options) (Sum, error) {
	p, err := Read(policy)
	if err != nil {
		return Sum{}, err
	}
	return p.Pass(ctx, c, o)
}
