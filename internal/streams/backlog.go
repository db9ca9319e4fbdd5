package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Backlog is what the server says of the log and of effects that wait.
type Backlog struct {
	LogBytes    uint64
	LogBytesMax int64  // -1: no limit
	LogMissing  uint64 // events that the log has lost
	Targets     []TargetBacklog
}

// TargetBacklog is how many effects of a target wait.
type TargetBacklog struct {
	Class   session.Class
	Target  string
	Untaken uint64 // no bridge has taken them
	Waiting uint64 // those, and what bridges have taken and not acknowledged
}

// Backlog asks the server what waits. Targets that no bridge has ever served have
// no consumer and are not in it.
func (s *Streams) Backlog(ctx context.Context) (all Backlog, err error) {
	err = s.conn.Attempt(ctx, "", func(ctx context.Context) error {
		all = Backlog{}
		log, err := s.conn.JS.Stream(ctx, s.names.LogStream())
		if err != nil {
			return err
		}
		info := log.CachedInfo()
		all.LogBytes, all.LogBytesMax = info.State.Bytes, info.Config.MaxBytes
		all.LogMissing = info.State.LastSeq - min(info.State.LastSeq, info.State.Msgs)
		effects, err := s.conn.JS.Stream(ctx, s.names.EffectsStream())
		if err != nil {
			return err
		}
		consumers := effects.ListConsumers(ctx)
		for c := range consumers.Info() {
			if class, target, ok := subjects.ParseBridgeName(c.Name); ok {
				all.Targets = append(all.Targets, TargetBacklog{
					Class: class, Target: target, Untaken: c.NumPending, Waiting: c.NumPending + uint64(c.NumAckPending),
				})
			}
		}
		if err := consumers.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
			return err
		}
		return nil
	})
	if err != nil {
		return Backlog{}, fmt.Errorf("ask what waits: %w", err)
	}
	return all, nil
}

// BridgeTargets returns the targets of a class that some bridge has ever served: each
// has a consumer, whether a bridge lives now or not.
func (s *Streams) BridgeTargets(ctx context.Context, class session.Class) (targets []string, err error) {
	names, err := s.consumers(ctx, s.names.EffectsStream())
	for _, name := range names {
		if of, target, ok := subjects.ParseBridgeName(name); ok && of == class {
			targets = append(targets, target)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list who served %s: %w", class, err)
	}
	return targets, nil
}

// consumers returns the names of a stream's consumers.
func (s *Streams) consumers(ctx context.Context, name string) (all []string, err error) {
	err = s.conn.Retry(ctx, func(ctx context.Context) error {
		all = nil
		stream, err := s.conn.JS.Stream(ctx, name)
		if err != nil {
			return err
		}
		names := stream.ConsumerNames(ctx)
		for consumer := range names.Name() {
			all = append(all, consumer)
		}
		return names.Err()
	})
	return all, err
}
