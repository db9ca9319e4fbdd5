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

// ErrNoInstall says that a session can't be folded yet.
var ErrNoInstall = errors.New("the log holds no install record that can be pinned: publish one, or start a session-actor once")

// InstallLog is where install records are. *Journal is one.
type InstallLog interface {
	InstallBefore(ctx context.Context, seq uint64) (e session.Event, found bool, err error)
}

// Installs finds the install records that sessions pin. Each is parsed once
// and shared by all sessions that pinned it. Its methods may be called from
// several goroutines at once.
//
// A record with a fault is logged and never pinned. It is read and parsed once:
// what comes before it is remembered. One whose rules this release doesn't know
// may be pinned, and then the session can't be folded here: that is a
// *session.UnknownRulesError.
type Installs struct {
	log   InstallLog
	warn  *slog.Logger
	fresh func(context.Context, *session.Install) error

	mu     sync.Mutex
	parsed map[codec.Hash]parsedInstall // by payload: sequences may come again after a loss
	byHash map[codec.Hash]*session.Install
	faulty map[codec.Hash]bool // payloads with a fault; at most faultyMax
	// Records that can be pinned, by the leaf of a record with a fault that comes
	// after it, with no other one between them; seq 0: there is none. At most
	// faultyMax.
	behind map[codec.Hash]placed

	list  []placed // every record that can be pinned and that Load found or See took in, ascending
	count uint64   // records that See took in
}

// faultyMax is how many records with a fault are remembered, some 100 bytes each.
// Of more than that, the newest are.
const faultyMax = 1 << 14

// placed is a record at its place in the log.
type placed struct {
	seq  uint64
	seen uint64 // how many See had taken in with it; 0: it was found in the log
	parsedInstall
}

// parsedInstall is a record as it was read: install is nil if it can't be
// pinned, unknown is set if it can't be folded.
type parsedInstall struct {
	install *session.Install
	unknown error
}

// NewInstalls returns a finder of the records of log, and says in warn what is
// wrong with them. fresh, if not nil, is called for each record that can be
// pinned before any session gets it; its error ends the call that came upon
// the record, and the next call tries again. It may be called twice for one.
func NewInstalls(log InstallLog, warn *slog.Logger, fresh func(context.Context, *session.Install) error) *Installs {
	return &Installs{
		log: log, warn: warn, fresh: fresh,
		parsed: map[codec.Hash]parsedInstall{}, byHash: map[codec.Hash]*session.Install{},
		faulty: map[codec.Hash]bool{}, behind: map[codec.Hash]placed{},
	}
}

// Load finds every record that can be pinned and that the log holds now.
func (in *Installs) Load(ctx context.Context) error {
	in.mu.Lock()
	before := in.count
	in.mu.Unlock()
	var list []placed
	_, err := in.walk(ctx, math.MaxUint64, func(p placed) bool {
		list = append(list, p)
		return false
	})
	if err != nil {
		return err
	}
	slices.Reverse(list)
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, p := range in.list { // of the rest, the log may hold it no more
		if p.seen > before {
			list = place(list, p)
		}
	}
	in.list = list
	return nil
}

// See takes in one record, as it was read from the log.
func (in *Installs) See(ctx context.Context, e session.Event) error {
	p, err := in.parse(ctx, e)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.count++
	in.list = place(in.list, placed{seq: e.Seq, seen: in.count, parsedInstall: p})
	return nil
}

// place puts a record in its place, instead of what stood there. One with a fault
// has none.
func place(list []placed, p placed) []placed {
	at, known := slices.BinarySearchFunc(list, p.seq, func(p placed, seq uint64) int { return cmp.Compare(p.seq, seq) })
	if known {
		list = slices.Delete(list, at, at+1)
	}
	if !p.pinnable() {
		return list
	}
	return slices.Insert(list, at, p)
}

// Known is Pinned without a look at the log, for who has taken in every record
// below seq: by Load, and by See what came since.
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

// Pinned returns what a session pins whose first event is at seq: the newest
// record before it that can be pinned, else the oldest there is. ErrNoInstall
// means that there is none.
func (in *Installs) Pinned(ctx context.Context, seq uint64) (*session.Install, error) {
	var pinned placed
	found, err := in.walk(ctx, seq, func(p placed) bool {
		pinned = p
		return true
	})
	if err == nil && !found {
		_, err = in.walk(ctx, math.MaxUint64, func(p placed) bool {
			pinned = p
			return false
		})
	}
	if err != nil {
		return nil, err
	}
	return pinned.pin()
}

// Named returns a function that finds the record that a snapshot names.
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

// walk shows enough every record below seq that can be pinned, the newest first,
// until it has enough; found tells whether it had.
func (in *Installs) walk(ctx context.Context, seq uint64, enough func(placed) bool) (found bool, err error) {
	var passed []codec.Hash // leaves of records with a fault, since the last one that can be pinned
	for {
		e, any, err := in.log.InstallBefore(ctx, seq)
		if err != nil {
			return false, err
		}
		var next placed         // none
		if any && e.Seq < seq { // else none is below: e is the oldest
			p, err := in.parse(ctx, e)
			if err != nil {
				return false, err
			}
			next = placed{seq: e.Seq, parsedInstall: p}
			if !p.pinnable() {
				var known bool
				leaf := session.LeafOf(e)
				if next, known = in.next(leaf); !known {
					passed, seq = append(passed, leaf), e.Seq
					continue
				}
			}
		}
		in.leadTo(passed, next)
		if passed = nil; next.seq == 0 {
			return false, nil
		}
		if enough(next) {
			return true, nil
		}
		seq = next.seq
	}
}

// next returns the record before one with a fault that can be pinned, as it was
// found before. While the log has the one, it has all that was before it.
func (in *Installs) next(leaf codec.Hash) (p placed, known bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p, known = in.behind[leaf]
	return p, known
}

// leadTo takes note that next is the first before each of these that can be pinned.
func (in *Installs) leadTo(passed []codec.Hash, next placed) {
	passed = passed[:min(len(passed), faultyMax)]
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.behind)+len(passed) > faultyMax {
		clear(in.behind)
	}
	for _, leaf := range passed {
		in.behind[leaf] = next
	}
}

// parse reads a record, if it was not read before.
func (in *Installs) parse(ctx context.Context, e session.Event) (parsedInstall, error) {
	payload := codec.Sum(e.Payload)
	in.mu.Lock()
	p, known := in.parsed[payload]
	known = known || in.faulty[payload]
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
		if len(in.faulty) >= faultyMax {
			clear(in.faulty)
		}
		in.faulty[payload] = true
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
