package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// ErrNoInstall means that no install record can be pinned, so that no session can be
// folded yet.
var ErrNoInstall = errors.New("the log holds no install record that can be pinned: publish one, or start a session-actor once")

// InstallLog is a log with install records, such as *Journal.
type InstallLog interface {
	InstallBefore(ctx context.Context, seq uint64) (e session.Event, found bool, err error)
}

// Installs finds the install records that sessions pin. Each is parsed once and shared
// by all sessions that pin it. Installs is safe for concurrent use.
//
// An invalid record is logged and never pinned. It is parsed once, and so is the search
// for the valid record before it: a replay over invalid records made 403 requests where
// it makes 22 now. A record with rules that this release doesn't know may be pinned, but
// its sessions can't be folded here: the error is a *session.UnknownRulesError.
type Installs struct {
	log   InstallLog
	warn  *slog.Logger
	fresh func(context.Context, *session.Install) error

	mu      sync.Mutex
	parsed  map[codec.Hash]parsedInstall // by payload: a log that lost its end reuses sequences
	byHash  map[codec.Hash]*session.Install
	invalid map[codec.Hash]bool // by payload; at most invalidMax
	// The nearest valid record before an invalid one, by the leaf of the invalid one;
	// seq 0: there is none. At most invalidMax.
	previous map[codec.Hash]logged

	list  []logged // the valid records that Load found or See added, ascending
	count uint64   // records that See added
}

// invalidMax is how many invalid records are remembered, some 100 bytes each. When it
// is reached, the older ones are forgotten.
const invalidMax = 1 << 14

// logged is a record and its position in the log.
type logged struct {
	seq  uint64
	seen uint64 // number of the See call that added it; 0: found in the log
	parsedInstall
}

// parsedInstall is a parsed record. unknown is set if it can't be folded here. If both
// fields are nil the record is invalid.
type parsedInstall struct {
	install *session.Install
	unknown error
}

// NewInstalls returns a finder of the records of log, which logs invalid records to
// warn. If fresh is not nil, it is called for each valid record before any session gets
// the record. Its error fails the call that found the record; the next call retries. It
// may be called twice for one record.
func NewInstalls(log InstallLog, warn *slog.Logger, fresh func(context.Context, *session.Install) error) *Installs {
	return &Installs{
		log: log, warn: warn, fresh: fresh,
		parsed: map[codec.Hash]parsedInstall{}, byHash: map[codec.Hash]*session.Install{},
		invalid: map[codec.Hash]bool{}, previous: map[codec.Hash]logged{},
	}
}

// Load finds every valid record that the log holds now.
func (in *Installs) Load(ctx context.Context) error {
	in.mu.Lock()
	before := in.count
	in.mu.Unlock()
	var list []logged
	_, err := in.walk(ctx, math.MaxUint64, func(p logged) bool {
		list = append(list, p)
		return false
	})
	if err != nil {
		return err
	}
	slices.Reverse(list)
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, p := range in.list { // the log may have lost the other records
		if p.seen > before {
			list = insert(list, p)
		}
	}
	in.list = list
	return nil
}

// See adds one record that the caller read from the log.
func (in *Installs) See(ctx context.Context, e session.Event) error {
	p, err := in.parse(ctx, e)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.count++
	in.list = insert(in.list, logged{seq: e.Seq, seen: in.count, parsedInstall: p})
	return nil
}

// insert inserts a record into list, or replaces the one of its sequence. An invalid
// record is only removed.
func insert(list []logged, p logged) []logged {
	at, known := slices.BinarySearchFunc(list, p.seq, func(p logged, seq uint64) int { return cmp.Compare(p.seq, seq) })
	if known {
		list = slices.Delete(list, at, at+1)
	}
	if !p.pinnable() {
		return list
	}
	return slices.Insert(list, at, p)
}

// Known is Pinned without reading the log. The caller must have added every record
// below seq: with Load, and later ones with See.
func (in *Installs) Known(seq uint64) (*session.Install, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	var pinned parsedInstall
	for _, p := range in.list {
		if p.seq < seq || !pinned.pinnable() {
			pinned = p.parsedInstall
		}
	}
	return pinned.pin()
}

func (p parsedInstall) pinnable() bool { return p.install != nil || p.unknown != nil }

// pin returns the record, or why it can't be pinned.
func (p parsedInstall) pin() (*session.Install, error) {
	switch {
	case p.unknown != nil:
		return nil, p.unknown
	case p.install == nil:
		return nil, ErrNoInstall
	}
	return p.install, nil
}

// Pinned returns the record that a session pins whose first event is at seq: the
// newest valid record before seq, or else the oldest one. ErrNoInstall means that there
// is none.
func (in *Installs) Pinned(ctx context.Context, seq uint64) (*session.Install, error) {
	var pinned logged
	found, err := in.walk(ctx, seq, func(p logged) bool {
		pinned = p
		return true
	})
	if err == nil && !found {
		_, err = in.walk(ctx, math.MaxUint64, func(p logged) bool {
			pinned = p
			return false
		})
	}
	if err != nil {
		return nil, err
	}
	return pinned.pin()
}

// Named returns a function that finds a record by its hash, as snapshots name it.
func (in *Installs) Named(ctx context.Context) func(codec.Hash) (*session.Install, error) {
	return func(hash codec.Hash) (*session.Install, error) {
		if install := in.named(hash); install != nil {
			return install, nil
		}
		if err := in.Load(ctx); err != nil {
			return nil, err
		}
		if install := in.named(hash); install != nil {
			return install, nil
		}
		return nil, fmt.Errorf("%w: none has the hash %s", ErrNoInstall, hash)
	}
}

func (in *Installs) named(hash codec.Hash) *session.Install {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.byHash[hash]
}

// walk calls enough for every valid record below seq, newest first, until enough
// returns true; found reports whether it did.
func (in *Installs) walk(ctx context.Context, seq uint64, enough func(logged) bool) (found bool, err error) {
	var passed []codec.Hash // leaves of the invalid records since the last valid one
	for {
		e, any, err := in.log.InstallBefore(ctx, seq)
		if err != nil {
			return false, err
		}
		var next logged         // none
		if any && e.Seq < seq { // else e is the oldest, and none is below seq
			p, err := in.parse(ctx, e)
			if err != nil {
				return false, err
			}
			next = logged{seq: e.Seq, parsedInstall: p}
			if !p.pinnable() {
				var known bool
				leaf := session.LeafOf(e)
				if next, known = in.previousOf(leaf); !known {
					passed, seq = append(passed, leaf), e.Seq
					continue
				}
			}
		}
		in.rememberPrevious(passed, next)
		if passed = nil; next.seq == 0 {
			return false, nil
		}
		if enough(next) {
			return true, nil
		}
		seq = next.seq
	}
}

// previousOf returns the remembered valid record before an invalid one. It is still
// right: a log that has an event has every earlier event.
func (in *Installs) previousOf(leaf codec.Hash) (p logged, known bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p, known = in.previous[leaf]
	return p, known
}

// rememberPrevious records that next is the nearest valid record before each of passed.
func (in *Installs) rememberPrevious(passed []codec.Hash, next logged) {
	passed = passed[:min(len(passed), invalidMax)]
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.previous)+len(passed) > invalidMax {
		clear(in.previous)
	}
	for _, leaf := range passed {
		in.previous[leaf] = next
	}
}

// parse parses a record, or returns the result of an earlier parse.
func (in *Installs) parse(ctx context.Context, e session.Event) (parsedInstall, error) {
	payload := codec.Sum(e.Payload)
	in.mu.Lock()
	p, known := in.parsed[payload]
	known = known || in.invalid[payload]
	in.mu.Unlock()
	if known {
		return p, nil
	}
	install, err := session.ParseInstall(e.Payload)
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown):
		p.unknown = fmt.Errorf("install record at %d: %w", e.Seq, err)
		in.warn.Warn("install record not understood: sessions that pin it are not run here", "seq", e.Seq, "error", err)
	case err != nil:
		in.warn.Warn("install record ignored", "seq", e.Seq, "error", err)
	default:
		p.install = install
		if in.fresh != nil {
			if err := in.fresh(ctx, install); err != nil {
				return p, fmt.Errorf("install record at %d: %w", e.Seq, err)
			}
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !p.pinnable() {
		if len(in.invalid) >= invalidMax {
			clear(in.invalid)
		}
		in.invalid[payload] = true
		return p, nil
	}
	if p.install != nil {
		if same := in.byHash[p.install.Hash]; same != nil {
			p.install = same
		}
		in.byHash[p.install.Hash] = p.install
	}
	in.parsed[payload] = p
	return p, nil
}
