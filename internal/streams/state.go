package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State is a stream as the server has it.
type State struct {
	Name     string
	Messages uint64
	Bytes    uint64
	BytesMax int64 // -1: no limit
	First    uint64
	Last     uint64
	MaxAge   time.Duration // 0: messages are kept for ever
	Replicas int
	Leader   string // empty: it has none, or the server is alone
	Missing  bool   // there is no such stream: the rest is zero
}

// States asks for the states of all streams of the log.
func (s *Streams) States(ctx context.Context) ([]State, error) {
	var all []State
	for _, name := range s.names.Streams() {
		state := State{Name: name}
		err := s.conn.Attempt(ctx, "", func(ctx context.Context) error {
			stream, err := s.conn.JS.Stream(ctx, name)
			if err == nil {
				state.fill(stream.CachedInfo())
			}
			return err
		})
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			state.Missing = true
		case err != nil:
			return nil, fmt.Errorf("ask about stream %s: %w", name, err)
		}
		all = append(all, state)
	}
	return all, nil
}

func (s *State) fill(info *jetstream.StreamInfo) {
	s.Messages, s.Bytes, s.First, s.Last = info.State.Msgs, info.State.Bytes, info.State.FirstSeq, info.State.LastSeq
	s.BytesMax, s.MaxAge, s.Replicas = info.Config.MaxBytes, info.Config.MaxAge, info.Config.Replicas
	if info.Cluster != nil {
		s.Leader = info.Cluster.Leader
	}
}
