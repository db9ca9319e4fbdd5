package prompt

// A log and blobs in memory, for tests.

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLog is a Store in memory.
type fakeLog struct {
	mu       sync.Mutex
	events   []session.Event // sequence n at n-1
	blobs    map[codec.Ref][]byte
	requests []int // events in each
	epoch    uint64
}

func newLog() *fakeLog { return &fakeLog{blobs: make(map[codec.Ref][]byte)} }

func (l *fakeLog) Events(_ context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, len(seqs))
	events := make([]session.Event, len(seqs))
	for i, seq := range seqs {
		if seq < 1 || seq > uint64(len(l.events)) || l.events[seq-1].Session != sid {
			return nil, natsio.ErrNotFound
		}
		events[i] = l.events[seq-1]
	}
	return events, nil
}

func (l *fakeLog) Blob(_ context.Context, ref codec.Ref) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, ok := l.blobs[ref]
	switch {
	case !ok:
		return nil, natsio.ErrNotFound
	case len(content) > BlobBytesMax:
		return nil, journal.ErrTooLarge
	case codec.RefOf(content) != ref:
		return nil, journal.ErrOtherBytes
	}
	return content, nil
}

func (l *fakeLog) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}

func (l *fakeLog) Incarnation() uint64 { return l.epoch }

func (l *fakeLog) NextOf(_ context.Context, door session.Door, sid string, from, n uint64) iter.Seq2[session.Event, error] {
	return l.find(int(n), func(e session.Event) bool { return e.Door == door && e.Session == sid && e.Seq >= from })
}

func (l *fakeLog) ReadSession(_ context.Context, sid string, from, _ uint64, _ bool) iter.Seq2[session.Event, error] {
	return l.find(len(l.events), func(e session.Event) bool { return e.Session == sid && e.Seq >= from })
}

func (l *fakeLog) LastSeq(context.Context) (uint64, error) { return uint64(len(l.events)), nil }

// find yields at most n events that match, and counts each as one request.
func (l *fakeLog) find(n int, matches func(session.Event) bool) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		l.mu.Lock()
		events := slices.Clone(l.events)
		l.mu.Unlock()
		for _, e := range events {
			if n == 0 {
				return
			}
			if !matches(e) {
				continue
			}
			n--
			l.mu.Lock()
			l.requests = append(l.requests, 1)
			l.mu.Unlock()
			if !yield(e, nil) {
				return
			}
		}
	}
}

// add appends an event and returns its sequence.
func (l *fakeLog) add(door session.Door, sid string, payload []byte) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq := uint64(len(l.events) + 1)
	l.events = append(l.events, session.Event{Session: sid, Door: door, Seq: seq, Payload: payload})
	return seq
}

// say appends an event with this body.
func (l *fakeLog) say(t *testing.T, door session.Door, sid, typ string, data any) uint64 {
	t.Helper()
	payload, err := session.Envelope{V: session.Version, Type: typ}.With(data)
	if err != nil {
		t.Fatal(err)
	}
	return l.add(door, sid, payload)
}

// put stores content.
func (l *fakeLog) put(content string) codec.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := codec.RefOf([]byte(content))
	l.blobs[ref] = []byte(content)
	return ref
}

// lose removes everything.
func (l *fakeLog) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events, l.blobs = nil, nil
}

func text(s string) *session.Content { return &session.Content{Text: s} }

func blob(l *fakeLog, s string) *session.Content {
	ref := l.put(s)
	return &session.Content{Blob: &ref, Size: int64(len(s))}
}

func raw(t *testing.T, text string) codec.Raw {
	t.Helper()
	r, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// generation returns a generation of the session s1.
func generation(name string, items ...session.Item) session.Generation {
	return session.Generation{
		At: time.Now().UnixMilli(), Class: session.ClassLLM, Effect: name, Items: session.ListItems(items...), Model: "m", Provider: "p", Session: "s1", V: session.Version,
	}
}

// listed returns the items of a list.
func listed(t *testing.T, list session.ItemList) []session.Item {
	t.Helper()
	items, err := list.Items()
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// also returns a list with more items.
func also(t *testing.T, list session.ItemList, more ...session.Item) session.ItemList {
	t.Helper()
	return session.ListItems(append(listed(t, list), more...)...)
}

// first changes the sequence of a generation's first item.
func first(t *testing.T, g *session.Generation, seq uint64) {
	t.Helper()
	items := listed(t, g.Items)
	items[0].Seq = seq
	g.Items = session.ListItems(items...)
}
