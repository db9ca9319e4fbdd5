package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/tools/service"
)

// openServices opens --tools [NAME=]services[:SERVICE,SERVICE].
func (o *offers) openServices(of offer, f *flags, log *slog.Logger) (executor.Executor, error) {
	options := service.Options{Target: of.name, Prefix: f.Prefix, Logger: log.With("target", of.name), Headers: map[string]string{}, Secrets: o.secrets}
	for at, name := range f.ServiceSecret {
		if target, header, _ := strings.Cut(at, "/"); target == of.name {
			options.Headers[header] = name
		}
	}
	if of.file != "" {
		options.Only = strings.Split(of.file, ",")
	}
	tools, err := service.New(options)
	if err != nil {
		return nil, err
	}
	o.services = append(o.services, tools)
	return tools, nil
}

// startServices starts to discover services, on a connection of its own: their
// answers do not delay effects. The returned context ends with ctx, or if that
// connection is closed for good. stop ends all.
func (o *offers) startServices(ctx context.Context, f *flags, log *slog.Logger) (open context.Context, stop func(), err error) {
	if len(o.services) == 0 {
		return ctx, func() {}, nil
	}
	nc, err := bus.Connect(ctx, natsio.Options{
		URL: f.NATS, Creds: f.Creds, Context: f.Context, Prefix: f.Prefix, InboxPrefix: f.Inbox,
		Name: f.Name + " services", Logger: log,
	})
	if err != nil {
		return nil, nil, err
	}
	open, closing := nc.WhileOpen(ctx)
	stops := []func(){nc.Close, closing}
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	for _, tools := range o.services {
		// Calls continue within --grace after ctx ends: only stop ends this.
		end, err := tools.Start(context.WithoutCancel(ctx), nc)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("--tools services: %w", err)
		}
		stops = append(stops, end)
		if len(tools.Known()) == 0 {
			log.Warn("no_service_is_a_tool", "do", "start a service whose endpoint has the metadata "+service.MetadataKey+": the bridge finds it then")
		}
	}
	return open, stop, nil
}
