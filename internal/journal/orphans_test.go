package journal_test

// A blob that anything names stays, whatever happens beside a sweep. The clock of a sweep
// is an argument: no test waits for a grace period.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

const sweepGrace = 24 * time.Hour

// sweeping is a log whose blobs are swept.
type sweeping struct {
	t     testing.TB
	ctx   context.Context
	bus   *bus.Bus
	names subjects.Names
	js    jetstream.JetStream
}

func newSweeping(t testing.TB) sweeping {
	t.Helper()
	s, _ := newSweepingAt(t)
	return s
}

// newSweepingAt returns the server's address, too.
func newSweepingAt(t testing.TB) (s sweeping, url string) {
	t.Helper()
	node := bustest.Server(t, bustest.Interval)
	s = sweeping{t: t, ctx: testbus.Context(t), bus: testbus.Provisioned(t, node), names: testbus.Names(t, "")}
	_, s.js = testbus.JS(t, node)
	return s, node.URL()
}

// sweep sweeps at a time from now, with a grace period of a day.
func (s sweeping) sweep(after time.Duration, dry bool) journal.Swept {
	s.t.Helper()
	swept, err := s.bus.SweepOrphans(s.ctx, time.Now().Add(after), sweepGrace, dry)
	bustest.OK(s.t, err)
	return swept
}

func (s sweeping) publish(door session.Door, payload string) {
	s.t.Helper()
	_, err := s.bus.Publish(s.ctx, door, "s1", []byte(payload), "")
	bustest.OK(s.t, err)
}

func (s sweeping) put(content string) codec.Ref {
	s.t.Helper()
	ref, err := s.bus.PutBlob(s.ctx, []byte(content))
	bustest.OK(s.t, err)
	return ref
}

// have returns an error if one of the blobs is not stored with its content.
func (s sweeping) have(refs ...codec.Ref) error {
	for _, ref := range refs {
		if _, err := s.bus.GetBlob(s.ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

func blobSubject(n subjects.Names, ref codec.Ref) string {
	return n.BlobSubject(base64.URLEncoding.EncodeToString([]byte(ref.String())))
}

// describe stores a description of a blob.
func (s sweeping) describe(ref codec.Ref, info jetstream.ObjectInfo) {
	s.t.Helper()
	data, err := json.Marshal(info)
	bustest.OK(s.t, err)
	_, err = s.js.Publish(s.ctx, blobSubject(s.names, ref), data)
	bustest.OK(s.t, err)
}

// TestOrphanIsDeletedByTheSecondSweep: the first one marks it, within the grace period it
// waits, and the second one deletes it with its chunks. A dry one changes nothing.
func TestOrphanIsDeletedByTheSecondSweep(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	named, orphan := s.put("named"), s.put("an orphan")
	s.publish(session.DoorIn, `{"blob":"`+named.String()+`"}`)
	all := journal.BlobCount{Blobs: 2, Bytes: 14}
	one, other := journal.BlobCount{Blobs: 1, Bytes: 5}, journal.BlobCount{Blobs: 1, Bytes: 9}
	for _, step := range []struct {
		what  string
		after time.Duration
		dry   bool
		want  journal.Swept
	}{
		{"a new blob", 0, false, journal.Swept{All: all, Named: one, New: other}},
		{"a dry sweep a day later", sweepGrace + time.Hour, true, journal.Swept{All: all, Named: one, Marked: other}},
		{"the first sweep a day later", sweepGrace + time.Hour, false, journal.Swept{All: all, Named: one, Marked: other}},
		{"within the grace period", time.Hour, false, journal.Swept{All: all, Named: one, Waiting: other}},
		{"a dry sweep after it", sweepGrace + time.Hour, true, journal.Swept{All: all, Named: one, Deleted: other}},
		{"a sweep after it", 2*sweepGrace + time.Hour, false, journal.Swept{All: all, Named: one, Deleted: other}},
		{"another one", 2*sweepGrace + time.Hour, false, journal.Swept{All: one, Named: one}},
	} {
		got := s.sweep(step.after, step.dry)
		if next := time.UnixMilli(got.Next); (got.Next > 0) != (got.Marked.Blobs+got.Waiting.Blobs > 0) || got.Next > 0 && (next.Before(time.Now().Add(sweepGrace-time.Hour)) || next.After(time.Now().Add(sweepGrace+time.Hour))) {
			t.Errorf("%s: the next one can be deleted at %v, want a day from now if one is marked", step.what, next)
		}
		if got.Next = 0; got != step.want {
			t.Errorf("%s: got %+v, want %+v", step.what, got, step.want)
		}
	}
	if err := s.have(named); err != nil {
		t.Error(err)
	}
	if _, err := s.bus.GetBlob(s.ctx, orphan); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("the orphan: got %v, want it deleted", err)
	}
	stream, err := s.js.Stream(s.ctx, s.names.BlobsStream())
	bustest.OK(t, err)
	if n := stream.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d messages are left, want a chunk and a description", n)
	}
}

// TestDeletionOfABlobIsFenced: a writer that takes the mark off after a sweep has read it, and
// before the sweep deletes the blob, keeps it.
func TestDeletionOfABlobIsFenced(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	ref := s.put("an orphan")
	s.sweep(sweepGrace+time.Hour, false)
	stream, err := s.js.Stream(s.ctx, s.names.BlobsStream())
	bustest.OK(t, err)
	mark, err := stream.GetLastMsgForSubject(s.ctx, blobSubject(s.names, ref))
	bustest.OK(t, err)
	s.put("an orphan")
	if err := s.bus.DescribeDeleted(s.ctx, ref, mark.Sequence); err == nil {
		t.Error("the blob was deleted after a writer had taken the mark off")
	}
	if err := s.have(ref); err != nil {
		t.Error(err)
	}
}

// TestOrphanThatIsUsedAgainStays: whoever stores it again, or looks whether it is stored,
// has a day to name it, and after that it stays.
func TestOrphanThatIsUsedAgainStays(t *testing.T) {
	t.Parallel()
	for what, use := range map[string]func(sweeping, string) error{
		"PutBlob": func(s sweeping, content string) error {
			_, err := s.bus.PutBlob(s.ctx, []byte(content))
			return err
		},
		"PutBlobs": func(s sweeping, content string) error {
			return s.bus.PutBlobs(s.ctx, [][]byte{[]byte(content)})
		},
		"KeepBlob": func(s sweeping, content string) error {
			there, err := s.bus.KeepBlob(s.ctx, codec.RefOf([]byte(content)))
			if err == nil && !there {
				err = errors.New("it is not stored")
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSweeping(t)
			ref := s.put("content")
			if got := s.sweep(sweepGrace+time.Hour, false); got.Marked.Blobs != 1 {
				t.Fatalf("the first sweep: %+v", got)
			}
			bustest.OK(t, use(s, "content"))
			if got := s.sweep(time.Hour, false); got.New.Blobs != 1 {
				t.Errorf("used again: %+v, want it to count as new", got)
			}
			if got := s.sweep(2*sweepGrace, false); got.Marked.Blobs != 1 {
				t.Errorf("a day later: %+v, want it marked once more", got)
			}
			bustest.OK(t, use(s, "content"))
			s.publish(session.DoorIn, ref.String())
			for range 2 {
				if got := s.sweep(2*sweepGrace, false); got.Named.Blobs != 1 {
					t.Errorf("named: %+v", got)
				}
			}
			if err := s.have(ref); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("named by who looked before", func(t *testing.T) {
		t.Parallel()
		s := newSweeping(t)
		ref := s.put("content")
		s.sweep(2*sweepGrace, false)
		s.publish(session.DoorIn, ref.String())
		if got := s.sweep(2*sweepGrace, false); got.Named.Blobs != 1 || got.Unmarked.Blobs != 1 {
			t.Errorf("got %+v, want the mark taken off", got)
		}
		if got := s.sweep(2*sweepGrace, false); got.Unmarked.Blobs != 0 || s.have(ref) != nil {
			t.Errorf("a later sweep: %+v, %v", got, s.have(ref))
		}
	})
}

// TestSweepGoesOnAfterAKill: one that was killed between saying that a blob is deleted and
// deleting it. Who stores it meanwhile stores it anew, and that stays.
func TestSweepGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	orphan, again := s.put("an orphan"), s.put("stored again")
	for _, ref := range []codec.Ref{orphan, again} {
		s.describe(ref, jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: ref.String()}, Bucket: s.names.BlobsBucket(), Deleted: true})
	}
	if got := s.sweep(time.Hour, false); got.Waiting.Blobs != 2 {
		t.Errorf("at once: %+v", got)
	}
	if there, err := s.bus.KeepBlob(s.ctx, again); err != nil || there {
		t.Errorf("a deleted blob is there (%v, %v)", there, err)
	}
	s.put("stored again")
	s.publish(session.DoorIn, again.String())
	if got := s.sweep(3*sweepGrace, false); got.Deleted.Blobs != 1 || got.Named.Blobs != 1 {
		t.Errorf("a day later: %+v", got)
	}
	if err := s.have(again); err != nil {
		t.Error(err)
	}
	if _, err := s.bus.GetBlob(s.ctx, orphan); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("the orphan: got %v, want it deleted", err)
	}
}

// TestForeignDescriptionDeletesNoOtherBlob: a description of an orphan that names the
// chunks of another blob, and text that is no description.
func TestForeignDescriptionDeletesNoOtherBlob(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	named, orphan := s.put("named"), s.put("an orphan")
	s.publish(session.DoorIn, named.String())
	info := jetstream.ObjectInfo{}
	m, err := s.js.Stream(s.ctx, s.names.BlobsStream())
	bustest.OK(t, err)
	last, err := m.GetLastMsgForSubject(s.ctx, blobSubject(s.names, named))
	bustest.OK(t, err)
	bustest.OK(t, json.Unmarshal(last.Data, &info))
	info.Name = orphan.String()
	s.describe(orphan, info)
	_, err = s.js.Publish(s.ctx, blobSubject(s.names, orphan), []byte("no description"))
	bustest.OK(t, err)
	s.sweep(2*sweepGrace, false)
	if got := s.sweep(3*sweepGrace, false); got.Deleted.Blobs != 1 {
		t.Errorf("the second sweep: %+v", got)
	}
	if err := s.have(named); err != nil {
		t.Error(err)
	}
}

// TestEverythingThatNamesABlobKeepsIt: each way to name one, as the streams have it.
func TestEverythingThatNamesABlobKeepsIt(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	var kept []codec.Ref
	keep := func(content string) codec.Ref {
		ref := s.put(content)
		kept = append(kept, ref)
		return ref
	}
	event := func(format string, args ...any) { s.publish(session.DoorCtl, fmt.Sprintf(format, args...)) }

	event(`{"blob":"%s"}`, keep("in JSON"))
	escaped := keep("in JSON, escaped").String()
	event(`{"blob":"sha256-\u00%x%s"}`, escaped[7], escaped[8:])
	ref := keep("a hash alone")
	event(`{"hash":"%s"}`, ref.Hash)
	packed, err := codec.Marshal(map[string]any{"a": keep("text in msgpack"), "b": keep("a binary in msgpack").Hash})
	bustest.OK(t, err)
	event("%s", packed)

	m := &space.Manifest{V: 1, Kind: space.Workspace, Space: "a", Files: []space.File{{Path: "a.md", Ref: keep("a file"), Size: 6, MediaType: "text/markdown"}}, Context: []space.Group{{Group: "a", Files: []int{0}}}}
	text, err := codec.ToJSON(m.Bytes())
	bustest.OK(t, err)
	s.publish(session.DoorSpace, `{"v":1,"id":"1","type":"WorkspaceSnapshotReady","data":{"effect":"y1","manifest":`+string(text)+`}}`)
	keep(string(m.Bytes()))

	content := keep("{\"content\":{\"blob\":\"" + keep("an imported image").String() + "\"}}")
	event(`{"v":1,"id":"2","type":"TranscriptImported","data":{"blob":"%s"}}`, content)

	m.Space = "b"
	text, err = codec.ToJSON(m.Bytes())
	bustest.OK(t, err)
	_, _, err = s.bus.PublishInstall(s.ctx, fmt.Appendf(nil, `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"},"spaces":[{"space":"b","kind":"workspace","manifest":%s}]}`, text), false)
	bustest.OK(t, err)
	keep(string(m.Bytes()))

	pack := manifest("crm", "1.0.0", keep("a pack").String())
	publish(t, s.bus, "crm", "1.0.0", pack)
	keep(string(pack))

	bustest.OK(t, ask(s.ctx, s.bus, "s1", session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "p", Payload: append([]byte{0xc4, 32}, hashOf(keep("of an effect"))...)}))
	bustest.OK(t, s.bus.PutSnapshot(s.ctx, "s1", 1, append([]byte{0x81, 0xa1, 'a', 0xc4, 32}, hashOf(keep("of a snapshot"))...)))
	large := append([]byte{0x81, 0xa1, 'a'}, strings.Repeat("x", 600<<10)...)
	bustest.OK(t, s.bus.PutSnapshot(s.ctx, "s2", 1, large))
	kept = append(kept, codec.RefOf(large))

	keep(`{"args_schema":{"type":"object"},"description":"Reads a file.","tool_name":"read_file"}`)
	orphan := s.put(`{"args_schema":"no descriptor"}`)

	for range 2 {
		if got := s.sweep(2*sweepGrace, false); got.Named.Blobs != len(kept)-1 || got.Descriptors.Blobs != 1 || got.All.Blobs > len(kept)+1 {
			t.Errorf("got %+v, want %d named blobs, a descriptor and an orphan", got, len(kept)-1)
		}
	}
	for i, ref := range kept {
		if err := s.have(ref); err != nil {
			t.Errorf("blob %d: %v", i, err)
		}
	}
	if s.have(orphan) == nil {
		t.Error("the orphan is still there")
	}
}

func hashOf(ref codec.Ref) []byte { return slices.Clone(ref.Hash[:]) }

// TestSweepNeedsToKnowTheRules: an install record of a later release may name what this
// one can't read.
func TestSweepNeedsToKnowTheRules(t *testing.T) {
	t.Parallel()
	s := newSweeping(t)
	_, _, err := s.bus.PublishInstall(s.ctx, []byte(`{"v":1,"rules":1000}`), false)
	bustest.OK(t, err)
	if _, err := s.bus.SweepOrphans(s.ctx, time.Now(), sweepGrace, false); err == nil || !strings.Contains(err.Error(), "sweep with the latest release that runs") {
		t.Errorf("got %v", err)
	}
}

// Of TestSweepBesideWriters.
const (
	sweepDraws   = 1_000 // make nightly-long: 10,000
	sweepWriters = 12
	sweepPool    = 96 // contents, so that most are used again
)

// TestSweepBesideWriters: writers store blobs, name them, and delete what names them, while
// sweeps that mark everything at once run one after another. The grace period is what it
// promises, and no more: who looks at a blob before a sweep has ended names it before the
// next one begins.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	draws := sweepDraws
	if n := os.Getenv("REFOLD_SWEEP_DRAWS"); n != "" {
		var err error
		draws, err = strconv.Atoi(n)
		bustest.OK(t, err)
	}
	w := &besides{sweeping: newSweeping(t), open: map[int]int{}, named: map[uint64]codec.Ref{}, left: draws}
	w.changed.L = &w.mu
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var group sync.WaitGroup
	for i := range sweepWriters {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for w.begin() {
				w.draw(rng)
			}
		})
	}
	sum := w.sweeps()
	group.Wait()
	t.Logf("%d draws beside %d sweeps: %d marked, %d deleted, %d marks taken off", draws, w.done, sum.Marked.Blobs, sum.Deleted.Blobs, sum.Unmarked.Blobs)
	if sum.Marked.Blobs == 0 || sum.Deleted.Blobs == 0 {
		t.Error("the sweeps have marked or deleted nothing")
	}
}

// besides is what writers and sweeps share.
type besides struct {
	sweeping
	mu      sync.Mutex
	changed sync.Cond
	done    int                  // sweeps
	open    map[int]int          // draws under way, by the number of sweeps at their beginning
	named   map[uint64]codec.Ref // what the log names, by the event's sequence
	left    int                  // draws
}

// begin takes one of the draws; false if none is left.
func (w *besides) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	return w.left >= 0
}

// draw stores a blob, names it after a while, and may delete an event of before.
func (w *besides) draw(rng *rand.Rand) {
	w.mu.Lock()
	at := w.done
	w.open[at]++
	w.mu.Unlock()
	content := fmt.Appendf(nil, "content %d", rng.IntN(sweepPool))
	ref, err := codec.RefOf(content), error(nil)
	there := false
	switch rng.IntN(3) {
	case 0:
		there, err = w.bus.KeepBlob(w.ctx, ref)
	case 1:
		err = w.bus.PutBlobs(w.ctx, [][]byte{content})
		there = true
	}
	if err == nil && !there {
		_, err = w.bus.PutBlob(w.ctx, content)
	}
	if err != nil {
		w.t.Error(err)
	}
	if rng.IntN(8) == 0 { // over the end of a sweep
		w.mu.Lock()
		for w.done == at && w.left > 0 {
			w.changed.Wait()
		}
		w.mu.Unlock()
	}
	seq, err := w.bus.Publish(w.ctx, session.DoorIn, fmt.Sprint("s", rng.IntN(8)), []byte(`{"blob":"`+ref.String()+`"}`), "")
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	w.named[seq] = ref
	w.open[at]--
	var gone []uint64
	for seq := range w.named { // most blobs have one event that names them, or none
		if len(w.named)-len(gone) > sweepPool/4 {
			gone = append(gone, seq)
		}
	}
	for _, seq := range gone {
		delete(w.named, seq)
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	for _, seq := range gone {
		if err := w.bus.Erase(w.ctx, w.names.LogStream(), seq, true); err != nil {
			w.t.Error(err)
		}
	}
}

// sweeps sweeps until no draw is left, and compares after each sweep.
func (w *besides) sweeps() (sum journal.Swept) {
	for {
		w.mu.Lock()
		for w.before(w.done) > 0 {
			w.changed.Wait()
		}
		last := w.left <= 0
		w.mu.Unlock()
		swept, err := w.bus.SweepOrphans(w.ctx, time.Now().Add(2*time.Hour), time.Hour, false)
		if err != nil {
			w.t.Error(err)
		}
		sum.Marked.Blobs += swept.Marked.Blobs
		sum.Deleted.Blobs += swept.Deleted.Blobs
		sum.Unmarked.Blobs += swept.Unmarked.Blobs
		w.mu.Lock()
		w.done++
		w.changed.Broadcast()
		refs := make(map[codec.Ref]bool)
		for _, ref := range w.named {
			refs[ref] = true
		}
		w.mu.Unlock()
		for ref := range refs {
			if err := w.have(ref); err != nil {
				w.t.Errorf("sweep %d: the log names it: %v", w.done, err)
			}
		}
		if last || w.t.Failed() {
			w.mu.Lock()
			w.left = 0 // nobody waits for another sweep
			w.changed.Broadcast()
			w.mu.Unlock()
			return sum
		}
	}
}

// before returns the draws under way that began before a sweep had ended.
func (w *besides) before(sweep int) (n int) {
	for at, open := range w.open {
		if at < sweep {
			n += open
		}
	}
	return n
}
