package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Backlog is the size of the log and of the queues of effects.
type Backlog struct {
	LogBytes    uint64
	LogBytesMax int64 // -1: no limit
	Targets     []TargetBacklog
}

// TargetBacklog is the queue of a target.
type TargetBacklog struct {
	Class   session.Class
	Target  string
	Untaken uint64 // effects not delivered to a bridge
	Waiting uint64 // Untaken, and effects delivered and not acknowledged
}

// Backlog asks the server for the backlog. A target that no bridge has ever served
// has no consumer and is left out.
func (s *Streams) Backlog(ctx context.Context) (all Backlog, err error) {
	err = s.conn.Attempt(ctx, "", func(ctx context.Context) error {
		all = Backlog{}
		log, err := s.conn.JS.Stream(ctx, s.names.LogStream())
		if err != nil {
			return err
		}
		info := log.CachedInfo()
		all.LogBytes, all.LogBytesMax = info.State.Bytes, info.Config.MaxBytes
		effects, err := s.conn.JS.Stream(ctx, s.names.EffectsStream())
		if err != nil {
			return err
		}
		return eachConsumer(ctx, effects, func(c *jetstream.ConsumerInfo) {
			if class, target, ok := subjects.ParseBridgeName(c.Name); ok {
				all.Targets = append(all.Targets, TargetBacklog{
					Class: class, Target: target, Untaken: c.NumPending, Waiting: c.NumPending + uint64(c.NumAckPending),
				})
			}
		})
	})
	if err != nil {
		return Backlog{}, fmt.Errorf("read the backlog: %w", err)
	}
	return all, nil
}

// LaneBacklog is what the server has for a lane.
type LaneBacklog struct {
	Lane        int
	Pinned      bool   // a session-actor owns it
	Floor       uint64 // all its events up to this sequence are acknowledged
	Undelivered uint64 // events not delivered to a session-actor
	Unacked     uint64 // events delivered and not acknowledged
}

// Lanes asks the server for the backlogs of the lanes, in their order.
func (s *Streams) Lanes(ctx context.Context) (all []LaneBacklog, err error) {
	err = s.conn.Retry(ctx, func(ctx context.Context) error {
		all = nil
		log, err := s.conn.JS.Stream(ctx, s.names.LogStream())
		if err != nil {
			return err
		}
		return eachConsumer(ctx, log, func(c *jetstream.ConsumerInfo) {
			if lane, ok := subjects.ParseLaneName(c.Name); ok {
				pinned := slices.ContainsFunc(c.PriorityGroups, func(g jetstream.PriorityGroupState) bool {
					return g.Group == subjects.LaneGroup && g.PinnedClientID != ""
				})
				all = append(all, LaneBacklog{Lane: lane, Pinned: pinned, Floor: c.AckFloor.Stream, Undelivered: c.NumPending, Unacked: uint64(c.NumAckPending)})
			}
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the backlog of the lanes: %w", err)
	}
	slices.SortFunc(all, func(a, b LaneBacklog) int { return cmp.Compare(a.Lane, b.Lane) })
	return all, nil
}

// DueWakes asks the server how many wakes are due and not settled.
func (s *Streams) DueWakes(ctx context.Context) (n uint64, err error) {
	err = s.conn.Attempt(ctx, "", func(ctx context.Context) error {
		n = 0
		timers, err := s.conn.JS.Stream(ctx, s.names.TimersStream())
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return eachConsumer(ctx, timers, func(c *jetstream.ConsumerInfo) {
			if c.Name == subjects.DueConsumer {
				n = c.NumPending + uint64(c.NumAckPending)
			}
		})
	})
	if err != nil {
		return 0, fmt.Errorf("count the due wakes: %w", err)
	}
	return n, nil
}

// eachConsumer calls f for each consumer of a stream.
func eachConsumer(ctx context.Context, stream jetstream.Stream, f func(*jetstream.ConsumerInfo)) error {
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		f(c)
	}
	if err := consumers.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return err
	}
	return nil
}

// BridgeTargets returns the targets of a class that a bridge has ever served: each
// has a consumer, whether or not a bridge runs now.
func (s *Streams) BridgeTargets(ctx context.Context, class session.Class) (targets []string, err error) {
	names, err := s.consumers(ctx, s.names.EffectsStream())
	for _, name := range names {
		if of, target, ok := subjects.ParseBridgeName(name); ok && of == class {
			targets = append(targets, target)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the targets of class %s: %w", class, err)
	}
	return targets, nil
}

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
