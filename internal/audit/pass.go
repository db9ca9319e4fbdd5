package audit

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Archive is what an audit of all sessions reads: a *bus.Bus.
type Archive interface {
	ReadAll(ctx context.Context, from uint64, fn func(session.Event) error) (journal.Scanned, error)
	ScanEffects(ctx context.Context, fn func(journal.StoredEffect) error) error
	ScanSnapshots(ctx context.Context, fn func(journal.Kept) error) error
	GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error)
}

// Pass is one pass over the whole log.
type Pass struct {
	Scanned journal.Scanned
	Lost    []string // sessions that have stored outputs, but no event in the log

	from    Archive
	pinned  Pinned
	of      fingerprinter
	stored  map[string]*stored // by session
	suspect map[string]bool    // sessions that Session must report
	folders []*folder
	all     []*passed // by first event
}

// stored is what is stored of one session. It is small, since a pass holds it for
// every session.
type stored struct {
	fingerprints fingerprints // of its effects
	seq          uint64       // of its snapshot; 0: it has none that is readable
	hash         codec.Hash   // of the snapshot's state
}

// passed is one session in a pass.
type passed struct {
	fold
	stored     // not compared yet
	of         fingerprinter
	began      uint64 // sequence of its first event
	otherState bool   // the snapshot has another state

	waiting     bool // the current portion has events of it
	first, last int  // positions of these events
}

// All folds the events of all sessions in one pass and compares them. It folds jobs
// sessions at a time; the outcome does not depend on jobs.
func All(ctx context.Context, from Archive, pinned Pinned, jobs int) (*Pass, error) {
	p := &Pass{from: from, pinned: pinned, of: fingerprinter{maphash.MakeSeed()}, stored: map[string]*stored{}, suspect: map[string]bool{}}
	if err := p.readStored(ctx); err != nil {
		return nil, err
	}
	return p, p.run(ctx, max(jobs, 1))
}

// States is All without anything to compare with: its Results have states and no
// differences.
func States(ctx context.Context, from Archive, pinned Pinned) (*Pass, error) {
	p := &Pass{from: from, pinned: pinned, of: fingerprinter{maphash.MakeSeed()}, suspect: map[string]bool{}}
	return p, p.run(ctx, 1)
}

func (p *Pass) run(ctx context.Context, jobs int) (err error) {
	p.folders = make([]*folder, jobs)
	for i := range p.folders {
		p.folders[i] = &folder{pass: p, sessions: map[string]*passed{}}
	}
	if p.Scanned, err = p.fold(ctx); err != nil {
		return err
	}
	for _, w := range p.folders {
		p.all = append(p.all, w.order...)
	}
	p.folders = nil
	for _, sid := range p.Scanned.Erased {
		p.suspect[sid] = true // it was folded in part
	}
	slices.SortFunc(p.all, func(a, b *passed) int { return int(int64(a.began) - int64(b.began)) })
	for _, f := range p.all {
		delete(p.stored, f.result.Session)
	}
	p.Lost = slices.Sorted(maps.Keys(p.stored))
	return nil
}

// Len returns how many sessions the log has.
func (p *Pass) Len() int { return len(p.all) }

// Results yields each session's result, in the order of first events, and whether
// the session differs as far as one pass can see; Session reports how. Hash and
// Chain are set only with hashes. Each result is yielded once, and its memory can
// be freed then.
func (p *Pass) Results(hashes bool) iter.Seq2[*Result, bool] {
	return func(yield func(*Result, bool) bool) {
		for i, f := range p.all {
			p.all[i] = nil
			if f.close(); hashes {
				f.takeHashes()
			}
			if !yield(&f.result, p.differs(f)) {
				return
			}
		}
	}
}

// differs reports whether the fold differs from what was stored.
func (p *Pass) differs(f *passed) bool {
	return p.suspect[f.result.Session] || len(f.result.Differences) > 0 || f.otherState ||
		len(f.fingerprints) > 0 || f.seq != 0 && f.result.SnapshotAt == 0
}

// readStored reads what is stored outside of the log.
func (p *Pass) readStored(ctx context.Context) error {
	of := func(sid string) *stored {
		s := p.stored[sid]
		if s == nil {
			s = new(stored)
			p.stored[sid] = s
		}
		return s
	}
	err := p.from.ScanSnapshots(ctx, func(k journal.Kept) error {
		s, data := of(k.Session), k.Snapshot
		switch {
		case k.Quarantined:
			p.suspect[k.Session] = true
			return nil
		case data == nil:
			var found bool
			var err error
			if data, found, err = p.from.GetSnapshot(ctx, k.Session); err != nil || !found {
				return err
			}
		}
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			p.suspect[k.Session] = true // Session reads it again and reports the error
			return nil                  //nolint:nilerr // as above
		}
		s.seq, s.hash = snap.Seq, snap.Hash
		return nil
	})
	if err != nil {
		return err
	}
	var latest string // session of the previous effect: one event opens several
	var s *stored
	return p.from.ScanEffects(ctx, func(e journal.StoredEffect) error {
		if s == nil || e.Name.Session != latest {
			latest, s = e.Name.Session, of(e.Name.Session)
		}
		p.of.put(&s.fingerprints, e.Name.Effect, e.Payload)
		return nil
	})
}

// portionMax is how many events a folder is handed at a time: some megabytes.
const portionMax = 8192

// portion is a part of the log for one folder, in log order. install is the record
// for sessions whose first event is in it.
type portion struct {
	events  []session.Event
	install *session.Install
	unknown error // why install is not known
}

// fold folds all events of the log. Each partition's sessions are folded by one
// folder.
func (p *Pass) fold(ctx context.Context) (journal.Scanned, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var folding sync.WaitGroup
	queues := make([]chan portion, len(p.folders))
	for i, f := range p.folders {
		queues[i] = make(chan portion, 4)
		folding.Go(func() {
			for part := range queues[i] {
				if err := f.take(part); err != nil {
					cancel(err) // other folders stop where they are
				}
			}
		})
	}
	scanned, err := p.scan(ctx, func(i int, part portion) error {
		select {
		case queues[i] <- part:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	for _, queue := range queues {
		close(queue)
	}
	folding.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return scanned, err
}

// scan reads the log and hands its events to the folders.
func (p *Pass) scan(ctx context.Context, hand func(i int, part portion) error) (journal.Scanned, error) {
	parts := make([]portion, len(p.folders))
	pinned, current := false, portion{}
	flush := func(i int) error {
		if len(parts[i].events) == 0 {
			return nil
		}
		part := portion{events: parts[i].events, install: current.install, unknown: current.unknown}
		parts[i].events = nil
		return hand(i, part)
	}
	flushAll := func() error {
		for i := range parts {
			if err := flush(i); err != nil {
				return err
			}
		}
		return nil
	}
	scanned, err := p.from.ReadAll(ctx, 1, func(e session.Event) error {
		if e.Session == "" {
			// Sessions that begin after this event pin another record.
			pinned = false
			return flushAll()
		}
		if !pinned {
			current.install, current.unknown = p.pinned(ctx, e.Seq)
			pinned = true
		}
		i := subjects.Partition(e.Session) % len(parts)
		if parts[i].events == nil {
			parts[i].events = make([]session.Event, 0, portionMax)
		}
		if parts[i].events = append(parts[i].events, e); len(parts[i].events) < portionMax {
			return nil
		}
		return flush(i)
	})
	if err == nil {
		err = flushAll()
	}
	return scanned, err
}

// folder folds the sessions of some partitions.
type folder struct {
	pass     *Pass
	sessions map[string]*passed
	order    []*passed // by first event
	touched  []*passed // by the portion
	room     []byte    // buffer for the bytes of one effect
	next     []int     // for each event of the portion, the index of its session's next event; 0: none
}

// take folds a portion session by session, so that a state stays in the CPU caches.
func (w *folder) take(part portion) error {
	w.touched, w.next = w.touched[:0], append(w.next[:0], make([]int, len(part.events))...)
	for i := range part.events {
		f, err := w.session(part, &part.events[i])
		if err != nil {
			return err
		}
		if f.waiting {
			w.next[f.last] = i
		} else {
			f.waiting, f.first = true, i
			w.touched = append(w.touched, f)
		}
		f.last = i
	}
	for _, f := range w.touched {
		f.waiting = false
		if _, err := f.next(part.events[f.first]); err != nil {
			return err
		}
		for i := w.next[f.first]; i != 0; i = w.next[i] {
			if _, err := f.next(part.events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *folder) session(part portion, e *session.Event) (*passed, error) {
	f := w.sessions[e.Session]
	if f != nil {
		return f, nil
	}
	if part.unknown != nil {
		return nil, fmt.Errorf("session %s: %w", e.Session, part.unknown)
	}
	f = &passed{of: w.pass.of, began: e.Seq}
	f.fold = fold{pass: f, result: Result{Session: e.Session}, room: &w.room}
	if s := w.pass.stored[e.Session]; s != nil {
		f.stored = *s
	}
	f.open = f.openRoom[:0]
	f.begin(part.install)
	w.sessions[e.Session] = f
	w.order = append(w.order, f)
	return f, nil
}
