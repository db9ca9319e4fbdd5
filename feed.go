package refold

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// feed reads one session for all its readers in this process: it takes the session's steps
// once, and keeps the latest updates. Each reader takes them at its own pace, and
// blocks nobody. A reader that is slower than all that is kept, or begins before it,
// reads the log by itself until it has caught up.
type feed struct {
	session *Session
	stop    context.CancelFunc
	running sync.WaitGroup
	ready   chan struct{} // closed when it takes steps, or has failed
	readers int           // guarded by the runtime's lock of feeds

	mu    sync.Mutex
	from  uint64        // readers of events from this sequence on find all that they need
	first int           // number of the first update that is kept
	kept  []Update      // with turnOver in between
	bytes int           // of them
	head  Text          // the open turn's text before them
	came  chan struct{} // closed when there is more
	err   error         // why there is no more
	waits map[string]Waiting
}

var errClosed = errors.New("the runtime is closed")

// Limits of what a feed keeps: the latest updates, and their bytes.
const (
	keptMax      = 4096
	keptBytesMax = 4 << 20
)

// join returns the feed of a session, for a reader of events from a sequence on; nil if
// the feed does not go back that far. The reader must leave it.
func (rt *Runtime) join(ctx context.Context, s *Session, from uint64) *feed {
	rt.feedsMu.Lock()
	defer rt.feedsMu.Unlock()
	f := rt.feeds[s.id]
	if f == nil {
		f = &feed{session: &Session{rt: rt, id: s.id}, from: from, ready: make(chan struct{}), came: make(chan struct{})}
		inner, stop := context.WithCancel(context.WithoutCancel(ctx))
		f.stop = stop
		rt.feeds[s.id] = f
		f.running.Go(func() { f.read(inner, from) })
	}
	if rt.unread == nil && !f.reaches(from) {
		return nil
	}
	f.readers++
	return f
}

// joins reports whether join would succeed.
func (rt *Runtime) joins(sid string, from uint64) bool {
	rt.feedsMu.Lock()
	defer rt.feedsMu.Unlock()
	f := rt.feeds[sid]
	return f == nil || f.reaches(from)
}

func (f *feed) reaches(from uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return from >= f.from
}

// leave ends the feed with its last reader.
func (rt *Runtime) leave(f *feed) {
	rt.feedsMu.Lock()
	f.readers--
	last := f.readers == 0
	if last && rt.feeds[f.session.id] == f {
		delete(rt.feeds, f.session.id)
	}
	rt.feedsMu.Unlock()
	if last {
		f.stop()
		f.running.Wait()
	}
}

// endFeeds ends all feeds: their readers get an error.
func (rt *Runtime) endFeeds() {
	rt.feedsMu.Lock()
	all := slices.Collect(maps.Values(rt.feeds))
	rt.feedsMu.Unlock()
	for _, f := range all {
		f.stop()
		f.running.Wait()
	}
}

// read follows the session from a sequence on, until ctx ends or it fails.
func (f *feed) read(ctx context.Context, from uint64) {
	err := f.follow(ctx, from)
	rt := f.session.rt
	rt.mu.Lock()
	if rt.closed {
		err = errClosed
	}
	rt.mu.Unlock()
	rt.feedsMu.Lock()
	if rt.feeds[f.session.id] == f {
		delete(rt.feeds, f.session.id)
	}
	rt.feedsMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	close(f.came)
}

func (f *feed) follow(ctx context.Context, from uint64) error {
	v, err := f.session.steps(ctx)
	close(f.ready)
	if err != nil {
		return err
	}
	defer v.Close()
	inner, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	q := &quiet{session: f.session}
	watching.Go(func() { q.watch(inner, f.putWaits) })
	fold := newFollowing(from)
	for shown, err := range v.Shown(ctx, from) {
		if err != nil {
			return err
		}
		q.heard.Store(time.Now().UnixNano())
		if shown.Event != nil {
			q.idle.Store(shown.Event.State != nil && shown.Event.State.Run == nil)
		}
		f.put(fold.take(&shown))
	}
	return ctx.Err()
}

// put adds updates.
func (f *feed) put(all []Update) {
	if len(all) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range all {
		f.kept = append(f.kept, u)
		f.bytes += sizeOf(u)
	}
	if len(f.kept) > f.session.rt.keptMax || f.bytes > keptBytesMax {
		f.drop()
	}
	close(f.came)
	f.came = make(chan struct{})
}

// drop drops the older part of the updates. The slice is a new one: readers have the
// former.
func (f *feed) drop() {
	n := 0
	for bytes := f.bytes; n < len(f.kept)-1 && (len(f.kept)-n > f.session.rt.keptMax*3/4 || bytes > keptBytesMax*3/4); n++ {
		bytes -= sizeOf(f.kept[n])
	}
	f.head = textBefore(f.head, f.kept[:n])
	for _, u := range f.kept[:n] {
		f.bytes -= sizeOf(u)
		f.from = max(f.from, u.place().at.seq+1)
	}
	f.first += n
	f.kept = append([]Update(nil), f.kept[n:]...)
}

// sizeOf returns about how many bytes an update takes.
func sizeOf(u Update) int {
	const fixed = 128
	switch u := u.(type) {
	case Text:
		return fixed + len(u.Text)
	case ToolAsked:
		return fixed + len(u.Call.Arguments)
	case ToolEnded:
		return fixed + len(u.Call.Arguments) + len(u.Call.Detail)
	case ApprovalAsked:
		return fixed + len(u.Call.Arguments)
	case ReplyAsked:
		return fixed + len(u.Call.Arguments)
	case ApprovalDecided:
		return fixed + len(u.Call.Arguments) + len(u.Reason)
	}
	return fixed
}

// textBefore returns the text of the turn that is open after some updates, if head was
// that before them.
func textBefore(head Text, all []Update) Text {
	for _, u := range all {
		switch u := u.(type) {
		case Text:
			u.Text = head.Text + u.Text
			head = u
		case TextRestarted, turnOver:
			head = Text{}
		}
	}
	return head
}

// putWaits tells readers what the session waits for. now is all that it waits for.
func (f *feed) putWaits(changes []Waiting, now map[string]Waiting) {
	f.mu.Lock()
	f.waits = now
	f.mu.Unlock()
	all := make([]Update, len(changes))
	for i := range changes {
		all[i] = changes[i]
	}
	f.put(all)
}

// begin places a reader before all updates that are kept: it is given what the session
// waits for now.
func (f *feed) begin(r *reader) (out []Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.void = nil
	headVoid := false
	if r.after.text == 0 {
		r.void, headVoid = f.void()
	}
	if f.head.Text != "" && !headVoid {
		out = r.take(f.head)
	}
	for _, w := range f.waits {
		out = append(out, r.waits(w))
	}
	r.next, r.joined = f.first, f.first+len(f.kept)
	return out
}

// void returns the numbers of the updates that a reader need not see who has nothing of
// the open turn's text: texts that became void, and what made them void. head says that
// the text before them became void.
func (f *feed) void() (void map[int]bool, head bool) {
	type turn struct{ run, turn uint32 }
	again := map[turn]bool{}
	for i := len(f.kept) - 1; i >= 0; i-- {
		switch u := f.kept[i].(type) {
		case TextRestarted:
			again[turn{u.Run, u.Turn}] = true
		case Text:
			if !again[turn{u.Run, u.Turn}] {
				continue
			}
		default:
			continue
		}
		if void == nil {
			void = map[int]bool{}
		}
		void[f.first+i] = true
	}
	return void, again[turn{f.head.Run, f.head.Turn}]
}

// more returns the reader's next updates, or what tells it of them; behind means that
// some of them are not kept any more.
func (f *feed) more(r *reader) (all []Update, came <-chan struct{}, behind bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.next < f.first {
		return nil, nil, true, nil
	}
	if all = f.kept[r.next-f.first:]; len(all) == 0 {
		err = f.err
	}
	return all, f.came, false, err
}

// deliver yields a reader's updates until the reader stops or it is behind. It returns
// false if the reader stopped, or got the error.
func (f *feed) deliver(ctx context.Context, r *reader, yield func(Update, error) bool) bool {
	for _, u := range f.begin(r) {
		if !yield(u, nil) {
			return false
		}
	}
	for {
		all, came, behind, err := f.more(r)
		switch {
		case behind:
			return true
		case err != nil:
			yield(nil, err)
			return false
		}
		for _, u := range all {
			r.next++
			if r.void[r.next-1] {
				continue
			}
			if w, is := u.(Waiting); is {
				if r.next > r.joined && !yield(r.waits(w), nil) {
					return false
				}
				continue
			}
			for _, u := range r.take(u) {
				if !yield(u, nil) {
					return false
				}
			}
			if ctx.Err() != nil {
				break
			}
		}
		if len(all) > 0 && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			yield(nil, ctx.Err())
			return false
		case <-came:
		}
	}
}

// catchUp yields a reader's updates by a viewer of its own, until the session's feed has
// the rest. It returns false if the reader stopped, or got the error.
func (s *Session) catchUp(ctx context.Context, r *reader, yield func(Update, error) bool) bool {
	v, err := s.rt.client.EventViewer(ctx, s.id)
	if err != nil {
		yield(nil, err)
		return false
	}
	defer v.Close()
	fold := newFollowing(r.after.seq)
	for shown, err := range v.Shown(ctx, r.after.seq) {
		if err != nil {
			yield(nil, err)
			return false
		}
		for _, u := range fold.take(&shown) {
			for _, u := range r.take(u) {
				if !yield(u, nil) {
					return false
				}
			}
		}
		if shown.Event != nil && s.rt.joins(s.id, r.at.seq) {
			return true
		}
	}
	return false
}
