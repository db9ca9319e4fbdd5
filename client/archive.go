package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// OpenArchive reads and checks an archive, and returns a client that reads its session
// without a server, as it would read it from the log: Read, Replay, Export, ViewNow,
// VerifySession, Blob. Replay compares the fold with what the archive says of it. What
// needs a server returns ErrArchived. An error names the file and what is wrong with it.
// The caller must call Close.
func OpenArchive(name string) (c *Client, sid string, err error) {
	f, err := archive.Open(name)
	if err != nil {
		return nil, "", err
	}
	return inArchive(f), f.Header.Session, nil
}

func inArchive(f *archive.File) *Client {
	names, _ := subjects.New(f.Header.Prefix) // File has checked it
	view := sync.OnceValues(func() ([]byte, error) {
		v, err := inArchive(f).ViewNow(context.Background(), f.Header.Session)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
	return newClient(&archived{File: f, names: names, view: view}, "refold-client", slog.New(slog.DiscardHandler))
}

// archived is the store of an archive.
type archived struct {
	*archive.File
	names subjects.Names
	view  func() ([]byte, error) // folded once: pages ask for it every five seconds
}

// has returns nil if the archive is of this session.
func (a *archived) has(sid string) error {
	if sid != a.Header.Session {
		return fmt.Errorf("%w: the archive is of session %s, not of %s", ErrNoSession, a.Header.Session, sid)
	}
	return nil
}

func none[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if err != nil {
			yield(zero, err)
		}
	}
}

// missing is natsio.ErrNotFound for what the archive does not have.
func missing(err error) error {
	if errors.Is(err, archive.ErrNotFound) {
		return errors.Join(err, natsio.ErrNotFound)
	}
	return err
}

// expect compares a whole fold with what the archive says of its session.
func (a *archived) expect(r *Replayed) {
	h := &a.Header
	for _, d := range []struct {
		what            string
		expected, found any
	}{
		{"events", h.Count, r.Events},
		{"chain", h.Chain, r.Chain},
		{"state", h.Hash, r.Hash},
	} {
		if d.expected != d.found {
			expected, found := fmt.Sprint(d.expected), fmt.Sprint(d.found)
			r.differ(Difference{Seq: r.Seq, Expected: expected, Found: found, Text: fmt.Sprintf("%s: the archive says %s, the fold of its events gives %s", d.what, expected, found)})
		}
	}
}

func (a *archived) Close() { _ = a.File.Close() }

func (a *archived) ReadSession(_ context.Context, sid string, from, to uint64, _ bool) iter.Seq2[session.Event, error] {
	if err := a.has(sid); err != nil {
		return none[session.Event](err)
	}
	return a.Events(from, to)
}

func (a *archived) ReadAll(_ context.Context, from uint64, fn func(session.Event) error) (s journal.Scanned, err error) {
	for e, err := range a.Events(from, 0) {
		if err == nil {
			err = fn(e)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (a *archived) FollowEvents(ctx context.Context, from uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for e, err := range a.Events(from, 0) {
			if !yield(e, err) {
				return
			}
		}
		<-ctx.Done() // no more come
		yield(session.Event{}, ctx.Err())
	}
}

func (a *archived) EventAt(_ context.Context, seq uint64) (session.Event, error) {
	e, err := a.Event(seq)
	return e, missing(err)
}

func (a *archived) GetBlob(_ context.Context, ref codec.Ref) ([]byte, error) {
	content, err := a.Blob(ref)
	return content, missing(err)
}

func (a *archived) InstallBefore(context.Context, uint64) (session.Event, bool, error) {
	of := &a.Header.Install
	return session.Event{Door: session.DoorInstall, Seq: of.Seq, Time: of.Time, Payload: of.Payload}, true, nil
}

func (a *archived) RequestView(_ context.Context, sid string) ([]byte, error) {
	if err := a.has(sid); err != nil {
		return nil, err
	}
	return a.view()
}

func (a *archived) SessionNames(_ context.Context, partition int) ([]string, error) {
	if subjects.Partition(a.Header.Session) != partition {
		return nil, nil
	}
	return []string{a.Header.Session}, nil
}

func (a *archived) LastSeq(context.Context) (uint64, error) { return a.Header.Last, nil }
func (a *archived) Names() subjects.Names                   { return a.names }
func (a *archived) Durability() natsio.Durability           { return natsio.DurabilityUnknown }
func (a *archived) NewClock(l natsio.LocalClock) *natsio.Clock {
	return natsio.NewClock(l, noTime, slog.New(slog.DiscardHandler))
}
func noTime(context.Context) (time.Time, error)                     { return time.Time{}, ErrArchived }
func (a *archived) LastNotice(context.Context) (uint64, error)      { return 0, nil }
func (a *archived) States(context.Context) ([]streams.State, error) { return nil, ErrArchived }

// What only a server stores besides events is not in an archive.

func (a *archived) GetSnapshot(context.Context, string) ([]byte, bool, error) { return nil, false, nil }
func (a *archived) GetQuarantine(context.Context, string) ([]byte, bool, error) {
	return nil, false, nil
}
func (a *archived) Quarantined(context.Context) iter.Seq2[string, error] { return none[string](nil) }
func (a *archived) StoredOutputs(context.Context, string) (o journal.StoredOutputs, err error) {
	return o, nil
}
func (a *archived) ListEffects(context.Context, string) ([]journal.StoredEffect, error) {
	return nil, nil
}
func (a *archived) ScanEffects(context.Context, func(journal.StoredEffect) error) error { return nil }
func (a *archived) ScanSnapshots(context.Context, func(journal.Kept) error) error       { return nil }
func (a *archived) Holder(context.Context, subjects.EffectName) (string, bool, error) {
	return "", false, nil
}
func (a *archived) TraceParentAt(context.Context, uint64) (string, error) { return "", nil }
func (a *archived) LastNotices(context.Context, []string, uint64) iter.Seq2[journal.Notice, error] {
	return none[journal.Notice](nil)
}
func (a *archived) LastSummary(context.Context, string) (s session.Summary, err error) {
	return s, nil
}
func (a *archived) NoticesKept(context.Context) (first, last uint64, err error) { return 1, 0, nil }
func (a *archived) ReadNotices(context.Context, string, uint64, uint64) iter.Seq2[journal.Notice, error] {
	return none[journal.Notice](nil)
}
func (a *archived) DeadLetters(context.Context, string) iter.Seq2[journal.DeadLetter, error] {
	return none[journal.DeadLetter](nil)
}
func (a *archived) FollowNotices(context.Context, string, uint64) iter.Seq2[journal.Notice, error] {
	return none[journal.Notice](ErrArchived)
}

// Nothing is heard of a file.

func (a *archived) FollowSession(context.Context, string, func(), func([]byte), func([]byte)) error {
	return nil
}
func (a *archived) Subscribe(context.Context, string, func(*nats.Msg)) error { return nil }
func (a *archived) SubscribeLive(context.Context, string, func(string, []byte)) error {
	return nil
}

func (a *archived) Backlog(context.Context) (b streams.Backlog, err error) { return b, ErrArchived }
func (a *archived) DueWakes(context.Context) (uint64, error)               { return 0, ErrArchived }
func (a *archived) LanesAged(context.Context) ([]journal.Lane, error)      { return nil, ErrArchived }
func (a *archived) ServerVersion() string                                  { return "" }
func (a *archived) Discover(context.Context, string) ([]presence.Running, error) {
	return nil, ErrArchived
}
func (a *archived) Stated(context.Context, string) (map[string]json.RawMessage, error) {
	return nil, ErrArchived
}
func (a *archived) Fleet(context.Context, time.Duration, func(*presence.Fleet) bool, func(time.Duration)) (*presence.Fleet, error) {
	return nil, ErrArchived
}
func (a *archived) TrackMembers(context.Context, string) (*presence.Members, error) {
	return nil, ErrArchived
}
func (a *archived) Notify(context.Context, string, uint64, []byte) error { return ErrArchived }
func (a *archived) Publish(context.Context, session.Door, string, []byte, string) (uint64, error) {
	return 0, ErrArchived
}
func (a *archived) PublishAfter(context.Context, session.Door, string, []byte, uint64) (uint64, error) {
	return 0, ErrArchived
}
func (a *archived) KeepBlob(context.Context, codec.Ref) (bool, error) { return false, ErrArchived }
func (a *archived) PutBlob(context.Context, []byte) (codec.Ref, error) {
	return codec.Ref{}, ErrArchived
}
func (a *archived) PutQuarantine(context.Context, string, []byte) error { return ErrArchived }
func (a *archived) Store(_ context.Context, outputs []journal.Output) []error {
	return slices.Repeat([]error{ErrArchived}, len(outputs))
}

// What an archive has is erased with its file.

func (a *archived) EffectsOf(context.Context, string) (uint64, error) { return 0, ErrArchived }
func (a *archived) Erase(context.Context, string, uint64, bool) error { return ErrArchived }
func (a *archived) EraseSnapshot(context.Context, string) error       { return ErrArchived }
func (a *archived) EventSeqs(context.Context, string, uint64) ([]uint64, error) {
	return nil, ErrArchived
}
func (a *archived) ErasedSince(context.Context, uint64, func(string)) (uint64, error) {
	return 0, ErrArchived
}
func (a *archived) LaneBacklog(context.Context) (uint64, error) { return 0, ErrArchived }
func (a *archived) LastErasure(context.Context) (e journal.Erasure, seq uint64, err error) {
	return e, 0, ErrArchived
}
func (a *archived) LastErasureOf(context.Context, string) (e journal.Erasure, seq uint64, err error) {
	return e, 0, ErrArchived
}
func (a *archived) LastEventOf(context.Context, string) (e session.Event, found bool, err error) {
	return e, false, ErrArchived
}
func (a *archived) SessionsIn(context.Context, int) (map[string]journal.InLog, error) {
	return nil, ErrArchived
}
func (a *archived) LogMissing(context.Context) (uint64, error) { return 0, ErrArchived }
func (a *archived) PutErasure(context.Context, journal.Erasure, uint64) (uint64, error) {
	return 0, ErrArchived
}
func (a *archived) RewriteSnapshots(context.Context) (int, error) { return 0, ErrArchived }
func (a *archived) SweepOrphans(context.Context, time.Time, time.Duration, bool) (s journal.Swept, err error) {
	return s, ErrArchived
}
func (a *archived) TextOf(context.Context, string) (notices, dead []uint64, err error) {
	return nil, nil, ErrArchived
}
func (a *archived) TombstoneOf(context.Context, string) (uint64, error) { return 0, ErrArchived }
