package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

const (
	// roomEvery is the interval of KeepRoom's checks.
	roomEvery = 2 * time.Second
	// 1/roomKept of the log's limit is reserved for running sessions: the log also
	// stores the settlements of bridges.
	roomKept = 10
)

// KeepRoom reserves the last tenth of the log for running sessions, until ctx ends.
// While less is left, of the stream's limit or of the account's storage, the door of
// clients is closed: a publish there gets JetStream's error for a full store (10047)
// and what to do. The door opens when there is room again.
//
// Only one process must do so: each check calls leader.
func (s *Streams) KeepRoom(ctx context.Context, leader func() bool) {
	k := keeper{streams: s, door: s.names.DoorAll(session.DoorIn)}
	for {
		err := s.conn.Attempt(ctx, "", func(ctx context.Context) error {
			if !leader() {
				return k.stopRefusing(ctx)
			}
			return k.check(ctx)
		})
		if err != nil && ctx.Err() == nil {
			s.conn.Log.Warn("log_room_unknown", "error", natsio.Typed(err).Error())
		}
		if natsio.Sleep(ctx, roomEvery) != nil {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsio.RequestTimeout)
	defer cancel()
	if err := k.stopRefusing(last); err != nil {
		s.conn.Log.Debug("unsubscribe_failed", "subject", k.door, "error", err.Error())
	}
}

// keeper opens and closes the door of clients.
type keeper struct {
	streams *Streams
	door    string
	refusal *nats.Subscription // answers clients; nil: the log does
}

// check closes the door if the log is short of room, and opens it otherwise.
func (k *keeper) check(ctx context.Context) error {
	account, err := k.streams.conn.JS.AccountInfo(ctx)
	if err != nil {
		return err
	}
	stream, err := k.streams.conn.JS.Stream(ctx, k.streams.names.LogStream())
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	cfg := info.Config
	open := slices.Contains(cfg.Subjects, k.door)
	short := isShort(int64(info.State.Bytes), cfg.MaxBytes) || isShort(int64(account.Store), account.Limits.MaxStore)
	switch {
	case short && open:
		cfg.Subjects = slices.DeleteFunc(slices.Clone(cfg.Subjects), func(s string) bool { return s == k.door })
		if _, err = k.streams.conn.JS.UpdateStream(ctx, cfg); err != nil {
			return err
		}
		k.streams.conn.Log.Warn("log_almost_full", "stream", cfg.Name, "bytes", info.State.Bytes, "max_bytes", cfg.MaxBytes,
			"account_store", account.Store, "account_max_store", account.Limits.MaxStore,
			"do", "raise the limit: requests of clients are refused until then, and active runs go on")
		return k.refuse(ctx)
	case short:
		return k.refuse(ctx)
	case !open:
		// First, so that no client gets a refusal of an event that the log stores.
		if err = k.stopRefusing(ctx); err != nil {
			return err
		}
		cfg.Subjects = append([]string{k.door}, cfg.Subjects...)
		if _, err = k.streams.conn.JS.UpdateStream(ctx, cfg); err == nil {
			k.streams.conn.Log.Info("log_has_room", "stream", cfg.Name, "bytes", info.State.Bytes)
		}
	}
	return err
}

// isShort reports whether less than the reserved part of a limit is left. A limit of
// 0 or below is none.
func isShort(used, limit int64) bool { return limit > 0 && limit-used < limit/roomKept }

// refuse answers every publish to the door with an error.
func (k *keeper) refuse(ctx context.Context) error {
	if k.refusal != nil {
		return nil
	}
	answer, err := json.Marshal(map[string]any{
		"stream": k.streams.names.LogStream(),
		"error": jetstream.APIError{
			Code: 503, ErrorCode: natsio.CodeStorageLimit,
			Description: fmt.Sprintf("%s is almost full: the last tenth is kept for sessions that run. Publish again when an operator has raised its limit", k.streams.names.LogStream()),
		},
	})
	if err != nil {
		return err
	}
	sub, err := k.streams.conn.NC.Subscribe(k.door, func(m *nats.Msg) {
		if m.Reply != "" && !k.streams.conn.IsForeign(m.Header) {
			_ = m.Respond(answer) // after a failure the client publishes again
		}
	})
	if err != nil {
		return err
	}
	k.refusal = sub
	return k.streams.conn.Flush(ctx)
}

// stopRefusing lets the log answer again.
func (k *keeper) stopRefusing(ctx context.Context) error {
	if k.refusal == nil {
		return nil
	}
	if err := k.refusal.Unsubscribe(); err != nil {
		return err
	}
	k.refusal = nil
	return k.streams.conn.Flush(ctx)
}
