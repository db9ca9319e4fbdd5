package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/webhook"
)

// checkUsers refuses credentials that would count for several users.
func (h httpServeCommand) checkUsers(conn connection) error {
	if h.Operator+h.Approver+h.Eraser != "" && conn.Creds != "" {
		return errors.New("--operator, --approver and --eraser are contexts, and --creds (NATS_CREDS) would count for them, too: name the server's own user by --context")
	}
	return nil
}

// open opens a runtime, with a connection for each user. closeAll closes all of it.
func (h httpServeCommand) open(ctx context.Context, conn connection, log *slog.Logger) (rt *refold.Runtime, closeAll func(), err error) {
	var users []*client.Client
	closeAll = func() {
		if rt != nil {
			_ = rt.Close()
		}
		for _, c := range users {
			c.Close()
		}
	}
	as := func(flag, context string) *client.Client {
		if context == "" || err != nil {
			return nil
		}
		c, failed := client.Connect(ctx, client.Options{URL: conn.NATS, Context: context, Prefix: conn.Prefix, Name: "refold", Logger: log})
		if failed != nil {
			err = fmt.Errorf("serve: %s %s: %w", flag, context, failed)
			return nil
		}
		users = append(users, c)
		return c
	}
	operator, approver, eraser := as("--operator", h.Operator), as("--approver", h.Approver), as("--eraser", h.Eraser)
	if err == nil {
		rt, err = refold.Open(ctx, flagged(conn), refold.Prefix(conn.Prefix), refold.Logger(log))
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	inside.Of(rt).Act(operator, approver, eraser)
	return rt, closeAll, nil
}

// deliver starts to export metrics, and to deliver webhooks if there are some. The
// returned context ends when webhooks fail; end waits for them, and says why.
func (h httpServeCommand) deliver(ctx context.Context, conn connection, full *Full, hooks []webhook.Hook, rt *refold.Runtime, log *slog.Logger) (_ context.Context, end func() error, err error) {
	telemetry, err := startTelemetry(ctx, full, h.HTTP, h.HTTPHosts, "refold-serve", conn.Prefix, log)
	if err != nil {
		return nil, nil, err
	}
	telemetry.Reads(nil, func(ctx context.Context) []string {
		if _, err := inside.Of(rt).Client().LastEvent(ctx); err != nil {
			return []string{"the log can't be read: " + err.Error()}
		}
		return nil
	})
	if len(hooks) == 0 {
		return ctx, telemetry.Close, nil
	}
	b, err := bus.Connect(ctx, natsio.Options{URL: conn.NATS, Creds: conn.Creds, Context: conn.Context, Prefix: conn.Prefix, Name: "refold-webhooks", Logger: log})
	if err != nil {
		return nil, nil, errors.Join(err, telemetry.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- webhook.Run(ctx, b, hooks, webhook.Options{Logger: log, Meters: webhook.Register(telemetry.Registry)})
	}()
	return ctx, func() error {
		cancel()
		err := <-done
		b.Close()
		return errors.Join(err, telemetry.Close())
	}, nil
}
