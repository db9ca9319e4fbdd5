package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// StoredEffect is an effect that the stream of effects holds. Effects are kept for about
// an hour.
type StoredEffect struct {
	Name    string // r1t2c0
	Class   session.Class
	Target  string
	Time    int64 // Unix ms, when it was stored
	Payload []byte
}

// Effects returns the effects of a session that are still stored, in the order in which
// they were. Whether one is open, the state says.
func (c *Client) Effects(ctx context.Context, sid string) ([]StoredEffect, error) {
	stored, err := c.bus.ListEffects(ctx, sid)
	if err != nil {
		return nil, err
	}
	all := make([]StoredEffect, len(stored))
	for i, e := range stored {
		all[i] = StoredEffect{Name: e.Name.Effect, Class: e.Name.Class, Target: e.Name.Target, Time: e.Time, Payload: e.Payload}
	}
	return all, nil
}

// Holder returns the instance of the bridge that has claimed an effect. It is empty if
// none has, or has given it back.
func (c *Client) Holder(ctx context.Context, sid string, class session.Class, target, effect string) (instance string, err error) {
	instance, _, err = c.bus.Holder(ctx, subjects.EffectName{Class: class, Target: target, Session: sid, Effect: effect})
	return instance, err
}

// Snapshot returns the stored snapshot of a session; nil if there is none, or if the log
// has another event at its sequence than the one that it was taken after.
func (c *Client) Snapshot(ctx context.Context, sid string) (*session.Snapshot, error) {
	data, found, err := c.bus.GetSnapshot(ctx, sid)
	if err != nil || !found {
		return nil, err
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		return nil, err
	}
	e, err := c.bus.EventAt(ctx, snap.Seq)
	switch {
	case errors.Is(err, natsio.ErrNotFound) || err == nil && (e.Session != sid || session.LeafOf(e) != snap.Leaf):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &snap, nil
}

// PinnedInstall returns the canonical bytes of the install record with a hash, which a
// session pinned whose first event is at first.
func (c *Client) PinnedInstall(ctx context.Context, hash codec.Hash, first uint64) (canonical []byte, err error) {
	_, canonical, err = c.pinnedRecord(ctx, hash, first)
	return canonical, err
}

// pinnedRecord is PinnedInstall, and also returns the record as it is in the log.
func (c *Client) pinnedRecord(ctx context.Context, hash codec.Hash, first uint64) (e session.Event, canonical []byte, err error) {
	for seq := first; ; {
		e, found, err := c.bus.InstallBefore(ctx, seq)
		if err != nil {
			return e, nil, err
		}
		if found {
			if canonical, err := codec.Canonicalize(e.Payload); err == nil && codec.Sum(canonical) == hash {
				return e, canonical, nil
			}
		}
		if !found || e.Seq >= seq { // the oldest one is not below seq
			return e, nil, fmt.Errorf("the log has no install record with the hash %s", hash)
		}
		seq = e.Seq
	}
}

// Stream is a stream of the log as the server has it.
type Stream struct {
	Name     string
	Missing  bool // the server has none: the rest is zero
	Messages uint64
	Bytes    uint64
	BytesMax int64         // -1: no limit
	MaxAge   time.Duration // 0: messages are kept for ever
	Replicas int
	Leader   string // empty: the server is alone, or there is no leader
}

// Storage says how the log is stored.
type Storage struct {
	Durability string // unknown, interval, replicated or always
	Last       uint64 // sequence of the newest event
	Missing    uint64 // events below it that the log has lost; erased ones are not
	Streams    []Stream
	Server     string // version of the NATS server
	Timers     uint64 // wakes that are set, or due and not settled
	Due        uint64 // of these, those that are due
	NoDue      error  // why Due is not known: this user may not ask
}

// Storage asks the server how the log is stored.
func (c *Client) Storage(ctx context.Context) (*Storage, error) {
	states, err := c.bus.States(ctx)
	if err != nil {
		return nil, err
	}
	all := &Storage{Durability: c.bus.Durability().String(), Server: c.bus.ServerVersion()}
	for _, s := range states {
		if s.Name == c.bus.Names().LogStream() {
			all.Last = s.Last
		}
		if s.Name == c.bus.Names().TimersStream() {
			all.Timers = s.Messages
		}
		all.Streams = append(all.Streams, Stream{
			Name: s.Name, Missing: s.Missing, Messages: s.Messages, Bytes: s.Bytes, BytesMax: s.BytesMax, MaxAge: s.MaxAge, Replicas: s.Replicas, Leader: s.Leader,
		})
	}
	if all.Due, err = c.bus.DueWakes(ctx); IsDenied(err) {
		all.NoDue = err
	} else if err != nil {
		return nil, err
	}
	all.Missing, err = c.bus.LogMissing(ctx)
	return all, err
}

// QuarantinedSession is a session that is stopped.
type QuarantinedSession struct {
	Session string
	Quarantined
}

// Quarantines returns the sessions that are quarantined, in no order; at most limit.
func (c *Client) Quarantines(ctx context.Context, limit int) (all []QuarantinedSession, err error) {
	for sid, err := range c.bus.Quarantined(ctx) {
		if err != nil {
			return nil, err
		}
		q, err := c.quarantineOf(ctx, sid)
		if err != nil {
			return nil, err
		}
		if q.Seq != 0 { // else it is released
			all = append(all, QuarantinedSession{sid, q})
		}
		if len(all) == limit {
			break
		}
	}
	return all, nil
}

// InstallRecord is an install record of the log.
type InstallRecord struct {
	Seq      uint64
	Time     int64 // Unix ms
	Install  *session.Install
	Fault    error // why no session pins it here; Install is nil then
	IsPinned bool  // new sessions pin it
}

// Installs returns the install records of the log, the newest first; at most limit.
func (c *Client) Installs(ctx context.Context, limit int) (all []InstallRecord, err error) {
	seq, err := c.bus.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	pinned := false
	for seq++; len(all) < limit; {
		e, found, err := c.bus.InstallBefore(ctx, seq)
		switch {
		case err != nil:
			return nil, err
		case !found || e.Seq >= seq: // the oldest one is not below seq
			return all, nil
		}
		seq = e.Seq
		record := InstallRecord{Seq: e.Seq, Time: e.Time}
		record.Install, record.Fault = session.ParseInstall(e.Payload)
		if record.Fault == nil && !pinned {
			record.IsPinned, pinned = true, true
		}
		all = append(all, record)
	}
	return all, nil
}

// IsDenied reports whether an error says that this user lacks a right on the NATS
// server. The error's text names it.
func IsDenied(err error) bool {
	var denied *natsio.PermissionError
	return errors.As(err, &denied)
}
