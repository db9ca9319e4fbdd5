package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// clusterStreams are all streams of Refold.
var clusterStreams = []string{"REFOLD_LOG", "REFOLD_FX", "REFOLD_OUT", "REFOLD_TIMERS", "KV_REFOLD_SNAPSHOTS", "OBJ_REFOLD_BLOBS", "REFOLD_PACKS", "REFOLD_DEAD", "REFOLD_ERASED"}

// extent is how far a copy of a stream goes.
type extent struct {
	Messages uint64 `json:"messages"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Deleted  int    `json:"num_deleted"`
}

// extents returns how far a server's own copies go, by stream.
func (s *clusterServer) extents() (map[string]extent, error) {
	var jsz struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State extent `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := s.monitoring("/jsz?streams=true", &jsz); err != nil {
		return nil, err
	}
	all := map[string]extent{}
	for _, account := range jsz.Accounts {
		for _, stream := range account.Streams {
			all[stream.Name] = stream.State
		}
	}
	return all, nil
}

// agreed waits until the copies of every stream go equally far.
func (c *cluster) agreed() {
	c.t.Helper()
	var differs string
	agree := eventually(c.t, time.Minute, func() bool {
		differs = c.apartBy()
		return differs == ""
	})
	if !agree {
		c.t.Fatalf("the copies of the streams are not alike after a minute: %s", differs)
	}
}

// apartBy says how far the copies of the streams go, if not equally far.
func (c *cluster) apartBy() string {
	var all []map[string]extent
	for _, s := range c.servers {
		have, err := s.extents()
		if err != nil || len(have) != len(clusterStreams) {
			return fmt.Sprintf("%s tells of %d streams (%v)", s.name, len(have), err)
		}
		if all = append(all, have); !maps.Equal(all[0], have) {
			return fmt.Sprint(all)
		}
	}
	return ""
}

// each calls fn for every message of a stream, in order.
func (l *load) each(stream string, fn func(m jetstream.Msg)) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		l.t.Fatal(err)
	}
	consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		l.t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		l.t.Fatal(err)
	}
	defer messages.Stop()
	for range s.CachedInfo().State.Msgs {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			l.t.Fatalf("read %s: %v", stream, err)
		}
		fn(m)
	}
}

// eventually waits until something holds, for at most a time, and reports
// whether it did.
func eventually(t testing.TB, within time.Duration, holds func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(within); ; <-time.After(100 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
