package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
)

// installs holds the install records of the log, parsed once and shared by
// every session that pinned one.
type installs struct {
	bus *bus.Bus
	log *slog.Logger

	mu     sync.Mutex
	bySeq  map[uint64]*session.Install // nil: a record that can't be pinned
	byHash map[codec.Hash]*session.Install
	order  []uint64 // sequences of all records known, ascending
}

func newInstalls(b *bus.Bus, log *slog.Logger) *installs {
	return &installs{bus: b, log: log, bySeq: map[uint64]*session.Install{}, byHash: map[codec.Hash]*session.Install{}}
}

// errNoInstall says that a session can't be folded yet.
var errNoInstall = errors.New("the log holds no install record that can be pinned")

// load reads every record that the log holds now, newest first.
func (in *installs) load(ctx context.Context) error {
	for before := uint64(math.MaxUint64); ; {
		e, found, err := in.bus.InstallBefore(ctx, before)
		if err != nil || !found {
			return err
		}
		if err := in.see(ctx, e); err != nil {
			return err
		}
		if e.Seq >= before { // none is before it: this is the oldest
			return nil
		}
		before = e.Seq
	}
}

// see takes in one record. A record with a fault is logged and never pinned;
// one whose rules this release doesn't know is remembered as such.
func (in *installs) see(ctx context.Context, e session.Event) error {
	in.mu.Lock()
	_, known := in.bySeq[e.Seq]
	in.mu.Unlock()
	if known {
		return nil
	}
	install, err := session.ParseInstall(e.Payload)
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("install record at %d: %w", e.Seq, err)
	case err != nil:
		in.log.Warn("install record ignored", "seq", e.Seq, "error", err)
		install = nil
	default:
		// Model bridges fetch descriptors by hash.
		for _, blob := range install.Registry.Blobs() {
			if _, err := in.bus.PutBlob(ctx, blob.Content); err != nil {
				return fmt.Errorf("store descriptor %s: %w", blob.Ref, err)
			}
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.add(e.Seq, install)
	return nil
}

// add remembers a record. The lock is held.
func (in *installs) add(seq uint64, install *session.Install) {
	if _, known := in.bySeq[seq]; known {
		return
	}
	if install != nil {
		if same := in.byHash[install.Hash]; same != nil {
			install = same
		}
		in.byHash[install.Hash] = install
	}
	in.bySeq[seq] = install
	at := len(in.order)
	for at > 0 && in.order[at-1] > seq {
		at--
	}
	in.order = append(in.order, 0)
	copy(in.order[at+1:], in.order[at:])
	in.order[at] = seq
}

// pinned returns what a session pins whose first event is at seq: the newest
// record before it that can be pinned, else the oldest there is.
func (in *installs) pinned(ctx context.Context, seq uint64) (*session.Install, error) {
	for before := seq; ; {
		e, found, err := in.bus.InstallBefore(ctx, before)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, errNoInstall
		}
		if err := in.see(ctx, e); err != nil {
			return nil, err
		}
		if install := in.at(e.Seq); install != nil {
			return install, nil
		}
		if e.Seq >= before {
			break
		}
		before = e.Seq
	}
	// None before its first event: the oldest after it.
	if err := in.load(ctx); err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, seq := range in.order {
		if install := in.bySeq[seq]; install != nil {
			return install, nil
		}
	}
	return nil, errNoInstall
}

// at returns the record at seq, nil if it can't be pinned.
func (in *installs) at(seq uint64) *session.Install {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.bySeq[seq]
}

// named returns a function that finds the record that a snapshot names.
func (in *installs) named(ctx context.Context) func(codec.Hash) (*session.Install, error) {
	return func(hash codec.Hash) (*session.Install, error) {
		if install := in.byHashOf(hash); install != nil {
			return install, nil
		}
		if err := in.load(ctx); err != nil {
			return nil, err
		}
		if install := in.byHashOf(hash); install != nil {
			return install, nil
		}
		return nil, errNoInstall
	}
}

func (in *installs) byHashOf(hash codec.Hash) *session.Install {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.byHash[hash]
}

// EnsureInstall publishes record as the log's first install record if the log
// has none, and reports whether it did. It refuses a record with a fault.
func EnsureInstall(ctx context.Context, b *bus.Bus, record []byte) (bool, error) {
	if _, err := session.ParseInstall(record); err != nil {
		return false, err
	}
	_, stored, err := b.PublishInstall(ctx, record, true)
	return stored, err
}
