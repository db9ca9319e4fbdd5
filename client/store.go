package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/erase"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// store is what a client reads and writes: a *bus.Bus, or the file of an archive.
type store interface {
	audit.Log
	audit.Wakes
	journal.InstallLog
	erase.Store
	reads
	writes
	hears
	Close()
}

// reads is what else a client reads.
type reads interface {
	GetBlob(ctx context.Context, ref codec.Ref) ([]byte, error)
	GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error)
	Quarantined(ctx context.Context) iter.Seq2[string, error]
	ListEffects(ctx context.Context, sid string) ([]journal.StoredEffect, error)
	Holder(ctx context.Context, name subjects.EffectName) (instance string, found bool, err error)
	TraceParentAt(ctx context.Context, seq uint64) (string, error)
	SessionNames(ctx context.Context, partition int) ([]string, error)
	SessionsIn(ctx context.Context, partition int) (map[string]journal.InLog, error)
	LastEventOf(ctx context.Context, sid string) (e session.Event, found bool, err error)
	LastErasureOf(ctx context.Context, sid string) (e journal.Erasure, seq uint64, err error)

	LogMissing(ctx context.Context) (uint64, error)
	ErasedSince(ctx context.Context, from uint64, fn func(sid string)) (next uint64, err error)

	LastNotice(ctx context.Context) (uint64, error)
	LastNotices(ctx context.Context, sids []string, upTo uint64) iter.Seq2[journal.Notice, error]
	LastSummary(ctx context.Context, sid string) (session.Summary, error)
	NoticesKept(ctx context.Context) (first, last uint64, err error)
	DeadLetters(ctx context.Context, webhook string) iter.Seq2[journal.DeadLetter, error]
	ReadNotices(ctx context.Context, sid string, from, to uint64) iter.Seq2[journal.Notice, error]

	Backlog(ctx context.Context) (streams.Backlog, error)
	DueWakes(ctx context.Context) (uint64, error)
	LanesAged(ctx context.Context) ([]journal.Lane, error)
	ServerVersion() string
	Durability() natsio.Durability
	Names() subjects.Names
	States(ctx context.Context) ([]streams.State, error)
}

// writes is what a client writes, or asks of others.
type writes interface {
	Notify(ctx context.Context, sid string, n uint64, payload []byte) error
	Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error)
	PublishAfter(ctx context.Context, door session.Door, sid string, payload []byte, after uint64) (uint64, error)
	KeepBlob(ctx context.Context, ref codec.Ref) (there bool, err error)
	PutBlob(ctx context.Context, content []byte) (codec.Ref, error)
	PutQuarantine(ctx context.Context, sid string, body []byte) error
	RequestView(ctx context.Context, sid string) ([]byte, error)
	SweepOrphans(ctx context.Context, now time.Time, grace time.Duration, dry bool) (journal.Swept, error)
}

// hears is what a client listens to.
type hears interface {
	Discover(ctx context.Context, kind string) ([]presence.Running, error)
	Fleet(ctx context.Context, within time.Duration, enough func(*presence.Fleet) bool, told func(took time.Duration)) (*presence.Fleet, error)
	FollowEvents(ctx context.Context, from uint64) iter.Seq2[session.Event, error]
	FollowNotices(ctx context.Context, sid string, from uint64) iter.Seq2[journal.Notice, error]
	FollowSession(ctx context.Context, sid string, lost func(), notice, live func(payload []byte)) error
	Stated(ctx context.Context, kind string) (map[string]json.RawMessage, error)
	NewClock(local natsio.LocalClock) *natsio.Clock
	Subscribe(ctx context.Context, subject string, fn func(*nats.Msg)) error
	SubscribeLive(ctx context.Context, sid string, fn func(sid string, payload []byte)) error
	TrackMembers(ctx context.Context, kind string) (*presence.Members, error)
}

var _ store = (*bus.Bus)(nil)

// ErrArchived says that a client has an archive open, not a server: it reads one
// session, and nothing else.
var ErrArchived = errors.New("this is the archive of a session: it can be read, and nothing more; refold import makes a session of it")
