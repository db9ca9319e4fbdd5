package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// checkAround returns what else keeps messages from being stored or delivered: streams
// of somebody else that have the subjects of a missing one, paused consumers, limits of
// the account.
func (s *Streams) checkAround(ctx context.Context, found []Finding) (more []Finding, err error) {
	missing := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return !f.Missing })
	for _, f := range missing {
		if taken := s.overlap(ctx, f.Stream, s.names.StreamSubjects(f.Stream)); taken != "" {
			more = append(more, Finding{Stream: f.Stream, Trouble: taken})
		}
	}
	err = s.conn.Attempt(ctx, "", func(ctx context.Context) error {
		account, err := s.conn.JS.AccountInfo(ctx)
		if err != nil {
			return err
		}
		more = append(more, reached(account, len(missing) > 0)...)
		for _, name := range []string{s.names.LogStream(), s.names.EffectsStream(), s.names.TimersStream()} {
			paused, err := s.paused(ctx, name)
			if err != nil {
				return err
			}
			more = append(more, paused...)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("ask for consumers and limits: %w", natsio.Typed(err))
	}
	return more, err
}

// reached says which limits of the account are reached. All the streams that it may
// have are too few only if one is missing.
func reached(a *jetstream.AccountInfo, missing bool) (all []Finding) {
	for _, l := range []struct {
		what        string
		used, limit int64
		counts      bool
	}{
		// The last messages don't fit: what is left of storage is less than a message.
		{"bytes of storage", int64(a.Store) + a.Limits.MaxStore/100, a.Limits.MaxStore, true},
		{"streams", int64(a.Streams), int64(a.Limits.MaxStreams), missing},
		{"consumers", int64(a.Consumers), int64(a.Limits.MaxConsumers), true},
	} {
		if l.counts && l.limit > 0 && l.used >= l.limit {
			all = append(all, Finding{Trouble: fmt.Sprintf("the account has all of its %d %s: raise this limit of its JetStream (the server's disk is not the cause)", l.limit, l.what)})
		}
	}
	return all
}

// paused returns the paused consumers of a stream.
func (s *Streams) paused(ctx context.Context, name string) (all []Finding, err error) {
	stream, err := s.conn.JS.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = eachConsumer(ctx, stream, func(c *jetstream.ConsumerInfo) {
		if c.Paused {
			all = append(all, Finding{Stream: name, Paused: c.Name, Trouble: fmt.Sprintf("consumer %s of %s is paused until %s: nothing is delivered to those who pull from it: nats consumer resume %s %s",
				c.Name, name, c.Config.PauseUntil.UTC().Format(time.RFC3339), name, c.Name)})
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// overlap says which stream of somebody else has subjects of a stream, empty if none.
func (s *Streams) overlap(ctx context.Context, name string, subjects []string) (taken string) {
	for _, subject := range subjects {
		err := s.conn.Attempt(ctx, s.conn.API+"STREAM.NAMES", func(ctx context.Context) error {
			names := s.conn.JS.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
			for other := range names.Name() {
				if other != name {
					taken = fmt.Sprintf("stream %s of somebody else takes messages of %s, so that %s can't exist: take these subjects from it (nats stream edit %s), or use another --prefix", other, subject, name, other)
				}
			}
			return names.Err()
		})
		if err != nil || taken != "" {
			return taken
		}
	}
	return ""
}
