package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/internal/natsio"
)

// Erase deletes a message of a stream, and overwrites it in the server's files, unless
// plain is set: then its bytes stay there until the server rewrites or removes their block.
// It is no error if there is none. An error that wraps ErrDeleteDenied says what to do.
func (j *Journal) Erase(ctx context.Context, stream string, seq uint64, plain bool) error {
	request := "STREAM.MSG.DELETE." + stream
	err := j.conn.Repeat(ctx, j.conn.API+request, func(ctx context.Context) error {
		return j.conn.Ask(ctx, request, struct {
			Seq     uint64 `json:"seq"`
			NoErase bool   `json:"no_erase,omitempty"`
		}{seq, plain}, &struct{ natsio.Answer }{})
	})
	if err == nil {
		return nil
	}
	if _, gone := j.leaderGet(ctx, stream, getRequest{Seq: seq}); errors.Is(gone, natsio.ErrNotFound) {
		return nil
	}
	if denied, look := j.deniesDelete(ctx, stream); look == nil && denied {
		err = ErrDeleteDenied
	}
	return fmt.Errorf("erase message %d of %s: %w", seq, stream, err)
}

// ErrDeleteDenied says that the stream was created before messages could be erased.
var ErrDeleteDenied = errors.New("the stream has deny_delete true, which can't be changed while it exists: stop all daemons, run `refold streams convert`, and start them again")

func (j *Journal) deniesDelete(ctx context.Context, stream string) (denied bool, err error) {
	err = j.conn.Attempt(ctx, j.conn.API+"STREAM.INFO."+stream, func(ctx context.Context) error {
		s, err := j.conn.JS.Stream(ctx, stream)
		if err == nil {
			denied = s.CachedInfo().Config.DenyDelete
		}
		return err
	})
	return denied, err
}

// SeqsOf returns the sequences of the messages of a stream that match a filter, in order,
// below the sequence before (0: all).
func (j *Journal) SeqsOf(ctx context.Context, stream, filter string, before uint64) (seqs []uint64, err error) {
	if before == 1 {
		return nil, nil
	}
	for m, err := range j.read(ctx, stream, filter, 1, before-min(before, 1), true) {
		if err != nil {
			return nil, fmt.Errorf("list messages of %s: %w", stream, err)
		}
		seqs = append(seqs, m.seq)
	}
	return seqs, nil
}

// TextOf lists what holds text of an erased session beside the log: all messages about it
// in the streams of notices and of dead letters, except for the last notice, from which
// lists read that it is erased.
func (j *Journal) TextOf(ctx context.Context, sid string) (notices, dead []uint64, err error) {
	out, err := j.names.Out(sid)
	if err != nil {
		return nil, nil, err
	}
	if notices, err = j.SeqsOf(ctx, j.names.NoticesStream(), out, 0); err != nil {
		return nil, nil, err
	}
	letters, err := j.names.DeadAbout(sid)
	if err == nil {
		dead, err = j.SeqsOf(ctx, j.names.DeadStream(), letters, 0)
	}
	return notices[:max(len(notices), 1)-1], dead, err
}

// EffectsOf returns the number of messages about a session in the stream of effects, which
// empties by age.
func (j *Journal) EffectsOf(ctx context.Context, sid string) (n uint64, err error) {
	effects, err := j.names.SessionEffects(sid)
	if err != nil {
		return 0, err
	}
	claims, err := j.names.SessionClaims(sid)
	if err != nil {
		return 0, err
	}
	for _, filter := range append([]string{effects}, claims...) {
		state, err := j.state(ctx, j.names.EffectsStream(), filter)
		if err != nil {
			return 0, err
		}
		for _, one := range state.Subjects {
			n += one
		}
	}
	return n, nil
}

// LaneBacklog returns the largest number of events that a lane has not delivered yet.
func (j *Journal) LaneBacklog(ctx context.Context) (most uint64, err error) {
	lanes, err := j.streams.Lanes(ctx)
	for _, lane := range lanes {
		most = max(most, lane.Undelivered)
	}
	return most, err
}
