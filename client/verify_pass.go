package client

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// archive is what a pass reads: everything that is stored.
type archive interface {
	ReadAll(ctx context.Context, from uint64, fn func(session.Event) error) (journal.Scanned, error)
	ScanEffects(ctx context.Context, fn func(journal.StoredEffect) error) error
	ScanSnapshots(ctx context.Context, fn func(journal.Kept) error) error
	GetSnapshot(ctx context.Context, sid string) (data []byte, found bool, err error)
}

// pass is one pass over the whole log.
type pass struct {
	from          archive
	pinned        func(ctx context.Context, seq uint64) (*session.Install, error)
	stored        map[string]*standing // by session: what none of the folders has taken yet
	suspect       map[string]bool      // sessions whose report needs more than standing holds
	folders       []*folder
	fingerprinter *fingerprinter // of stored effects
}

// readStored reads what is stored besides the log.
func (p *pass) readStored(ctx context.Context) error {
	p.stored, p.suspect, p.fingerprinter = map[string]*standing{}, map[string]bool{}, newFingerprinter()
	var slab []standing
	of := func(sid string) *standing {
		s := p.stored[sid]
		if s == nil {
			if len(slab) == 0 {
				slab = make([]standing, slabLen)
			}
			s, slab = &slab[0], slab[1:]
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
			p.suspect[k.Session] = true // it will be read again, and told
			return nil                  //nolint:nilerr // as said
		}
		s.seq, s.hash = snap.Seq, snap.Hash
		return nil
	})
	if err != nil {
		return err
	}
	var latest string // session: one event opens several effects
	var s *standing
	return p.from.ScanEffects(ctx, func(e journal.StoredEffect) error {
		if s == nil || e.Name.Session != latest {
			latest, s = e.Name.Session, of(e.Name.Session)
		}
		p.fingerprinter.put(&s.fingerprints, e.Name.Effect, e.Payload)
		return nil
	})
}

// slabLen is how many of what every session has one of are allocated at a time.
const slabLen = 32

// portionMax is how many events a folder is handed at a time: some megabytes.
const portionMax = 8192

// portion is events of some sessions, in the order of the log, and what a
// session pins whose first event is among them.
type portion struct {
	events  []session.Event
	install *session.Install
	unknown error // why that is not known
}

// fold folds all events of the log, the sessions of one partition by one
// folder.
func (p *pass) fold(ctx context.Context, jobs int) (journal.Scanned, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.folders = make([]*folder, jobs)
	for i := range p.folders {
		p.folders[i] = &folder{pass: p, sessions: map[string]*folding{}}
	}
	if jobs == 1 {
		return p.scan(ctx, func(_ int, part portion) error { return p.folders[0].take(part) })
	}
	var folding sync.WaitGroup
	queues := make([]chan portion, jobs)
	for i, f := range p.folders {
		queues[i] = make(chan portion, 4)
		folding.Go(func() {
			for part := range queues[i] {
				if err := f.take(part); err != nil {
					cancel(err) // and the rest is left where it is
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
func (p *pass) scan(ctx context.Context, hand func(i int, part portion) error) (journal.Scanned, error) {
	parts := make([]portion, len(p.folders))
	pinned, current := false, portion{}
	flush := func(i int) error {
		if len(parts[i].events) == 0 {
			return nil
		}
		part := portion{events: parts[i].events, install: current.install, unknown: current.unknown}
		parts[i].events = nil
		if len(parts) == 1 {
			parts[i].events = part.events[:0] // it is folded when hand returns
		}
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
			// Sessions that begin from here on pin another record.
			pinned = false
			return flushAll()
		}
		if !pinned {
			current.install, current.unknown = p.pinned(ctx, e.Seq)
			pinned = true
		}
		i := 0
		if len(parts) > 1 {
			i = subjects.Partition(e.Session) % len(parts)
		}
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
	pass     *pass
	sessions map[string]*folding
	order    []*folding // as they began
	touched  []*folding // by the portion
	room     []byte     // for an effect's bytes
	next     []int      // of each event in the portion, the next one of its session; 0: none
}

// take folds a portion, session by session: what is at hand is fast.
func (w *folder) take(part portion) error {
	w.touched, w.next = w.touched[:0], append(w.next[:0], make([]int, len(part.events))...)
	for i := range part.events {
		f, err := w.session(part, i)
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
		f.fold(part.events[f.first])
		for i := w.next[f.first]; i != 0; i = w.next[i] {
			f.fold(part.events[i])
		}
	}
	return nil
}

// session returns the session of an event.
func (w *folder) session(part portion, i int) (*folding, error) {
	e := &part.events[i]
	f := w.sessions[e.Session]
	if f != nil {
		return f, nil
	}
	if part.unknown != nil {
		return nil, fmt.Errorf("session %s: %w", e.Session, part.unknown)
	}
	var left standing
	if s := w.pass.stored[e.Session]; s != nil {
		left = *s
	}
	f = newFolding(part.install, e.Session, left)
	f.began, f.fingerprinter, f.room = e.Seq, w.pass.fingerprinter, &w.room
	w.sessions[e.Session] = f
	w.order = append(w.order, f)
	return f, nil
}

// sessions returns all sessions in the order in which they began, and leaves in
// stored those that have none in the log.
func (p *pass) sessions() []*folding {
	var all []*folding
	for _, w := range p.folders {
		all = append(all, w.order...)
		w.sessions, w.order = nil, nil
	}
	slices.SortFunc(all, func(a, b *folding) int { return int(int64(a.began) - int64(b.began)) })
	for _, f := range all {
		delete(p.stored, f.result.Session)
	}
	return all
}

// differs reports whether the fold differs from what was stored, as far as one
// pass can see.
func (p *pass) differs(f *folding) bool {
	return p.suspect[f.result.Session] || len(f.result.Differences) > 0 || f.otherAt != nil ||
		len(f.left.fingerprints) > 0 || f.left.seq != 0 && f.result.SnapshotAt == 0
}
