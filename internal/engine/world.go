package engine

import (
	"context"
	"iter"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
)

// World is what a session's owner reads and writes: a *bus.Bus, which documents
// each method. Tests have other Worlds, which fail on demand.
type World interface {
	journal.InstallLog
	ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error]
	FirstSeqs(ctx context.Context, sids []string) ([]uint64, error)
	CountEvents(ctx context.Context, sid string, have uint64) (uint64, error)
	ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error]
	LastSeq(ctx context.Context) (uint64, error)
	LogMissing(ctx context.Context) (uint64, error)
	EventAt(ctx context.Context, seq uint64) (session.Event, error)
	Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error)
	PublishAfter(ctx context.Context, door session.Door, sid string, payload []byte, after uint64) (uint64, error)

	NewestOutputs(ctx context.Context) ([3]journal.Newest, error)
	Probe(ctx context.Context) [4]error
	Store(ctx context.Context, outputs []journal.Output) []error
	BeginStore(ctx context.Context, outputs []journal.Output, then func(errs []error))
	PublishProgress(sid string, payload []byte) error
	PublishCancel(ctx context.Context, sid string, payload []byte) error

	GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error)
	PutSnapshot(ctx context.Context, sid string, seq uint64, data []byte) error
	ListSnapshots(ctx context.Context, from uint64) iter.Seq2[journal.SnapshotAt, error]
	StoredOutputs(ctx context.Context, sid string) (journal.StoredOutputs, error)
	LastSummary(ctx context.Context, sid string) (session.Summary, error)
	GetQuarantine(ctx context.Context, sid string) (body []byte, found bool, err error)
	PutQuarantine(ctx context.Context, sid string, body []byte) error
	DeleteQuarantine(ctx context.Context, sid string, body []byte) error
	Quarantined(ctx context.Context) iter.Seq2[string, error]
	LaneNote(ctx context.Context, key string) (note []byte, rev uint64, err error)
	PutLaneNote(ctx context.Context, key string, note []byte, after uint64) (rev uint64, err error)
	PutBlob(ctx context.Context, content []byte) (codec.Ref, error)
	PutBlobs(ctx context.Context, contents [][]byte) error
	SweepBlobs(ctx context.Context, before time.Time) (n int, err error)
}

// lane feeds a driver: a *delivery.Lane.
type lane interface {
	Number() int
	Owned() bool
	Left() uint64
	Run(ctx context.Context, owner delivery.LaneOwner) error
	Drain(ctx context.Context) error
}
