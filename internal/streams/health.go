package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// Troubles says what keeps the streams from taking or delivering messages, as the
// server reports it, and what to do: a missing stream, also because a stream of
// somebody else has its subjects; a stream without a leader; a paused consumer; a
// limit of the account that is reached. It is empty if all is well.
func (s *Streams) Troubles(ctx context.Context) (all []string, err error) {
	err = s.conn.Attempt(ctx, "", func(ctx context.Context) error {
		all = nil
		account, err := s.conn.JS.AccountInfo(ctx)
		if err != nil {
			return err
		}
		all = append(all, reached(account)...)
		for _, name := range s.names.Streams() {
			some, err := s.troublesOf(ctx, name)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask how the streams are: %w", natsio.Typed(err))
	}
	return all, nil
}

// reached says which limits of the account are reached.
func reached(a *jetstream.AccountInfo) (all []string) {
	for _, l := range []struct {
		what        string
		used, limit int64
	}{
		{"bytes of storage", int64(a.Store), a.Limits.MaxStore}, {"streams", int64(a.Streams), int64(a.Limits.MaxStreams)},
		{"consumers", int64(a.Consumers), int64(a.Limits.MaxConsumers)},
	} {
		// Of storage the last messages don't fit: what is left is less than a message.
		if l.limit > 0 && (l.used >= l.limit || l.what == "bytes of storage" && l.limit-l.used < l.limit/100) {
			all = append(all, fmt.Sprintf("the account has %d of at most %d %s: raise this limit of its JetStream (the server's disk is not the cause)", l.used, l.limit, l.what))
		}
	}
	return all
}

func (s *Streams) troublesOf(ctx context.Context, name string) (all []string, err error) {
	stream, err := s.conn.JS.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if taken := s.overlap(ctx, name, s.names.StreamSubjects(name)); taken != "" {
			return []string{taken}, nil
		}
		return []string{fmt.Sprintf("stream %s does not exist: start a session-actor, which creates it", name)}, nil
	}
	if err != nil {
		return nil, err
	}
	if cluster := stream.CachedInfo().Cluster; cluster != nil && cluster.Name != "" && cluster.Leader == "" {
		all = append(all, fmt.Sprintf("stream %s has no leader: more than half of its servers are gone, or are choosing one: start them", name))
	}
	if name != s.names.LogStream() && name != s.names.EffectsStream() && name != s.names.TimersStream() {
		return all, nil
	}
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		if c.Paused {
			all = append(all, fmt.Sprintf("consumer %s of %s is paused for %v more: nothing is delivered to those who pull from it: nats consumer resume %s %s",
				c.Name, name, c.PauseRemaining.Round(time.Second), name, c.Name))
		}
	}
	if err := consumers.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return nil, err
	}
	return all, nil
}

// overlap says which stream of somebody else has subjects of a stream, empty if none.
func (s *Streams) overlap(ctx context.Context, name string, subjects []string) string {
	for _, subject := range subjects {
		names := s.conn.JS.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for other := range names.Name() {
			if other != name {
				return fmt.Sprintf("stream %s of somebody else takes messages of %s, so that %s can't exist: take these subjects from it (nats stream edit %s), or use another --prefix", other, subject, name, other)
			}
		}
	}
	return ""
}

// WatchTroubles logs troubles of the streams until ctx ends: when they begin, and each
// minute.
func (s *Streams) WatchTroubles(ctx context.Context) {
	told, at := "", time.Time{}
	for {
		all, err := s.Troubles(ctx)
		now := fmt.Sprint(all)
		switch {
		case err != nil && ctx.Err() == nil:
			s.conn.Log.Debug("troubles_not_read", "error", err.Error())
		case err == nil && len(all) == 0 && told != "":
			s.conn.Log.Info("streams_well")
			told = ""
		case err == nil && len(all) > 0 && (now != told || time.Since(at) >= time.Minute):
			for _, t := range all {
				s.conn.Log.Warn("streams_trouble", "trouble", t)
			}
			told, at = now, time.Now()
		}
		if natsio.Sleep(ctx, troublesEvery) != nil {
			return
		}
	}
}

// troublesEvery is how often the server is asked for troubles.
const troublesEvery = 15 * time.Second
