package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

func notifyContract(t *testing.T, e testbus.Env) {
	for n := range uint64(3) {
		for range 2 {
			bustest.OK(t, e.B.Notify(e.Ctx, "notify", n+1, fmt.Appendf(nil, "n%d", n+1)))
		}
	}
	for _, text := range []string{"q", "q", "r"} { // without a number, the same bytes are a repeat
		bustest.OK(t, e.B.Notify(e.Ctx, "notify", 0, []byte(text)))
	}
	var got []string
	for n, err := range e.B.FollowNotices(e.Ctx, "notify", 0) {
		bustest.OK(t, err)
		if n.Session != "notify" || n.Time == 0 {
			t.Errorf("got %+v", n)
		}
		if got = append(got, string(n.Payload)); len(got) == 5 {
			break
		}
	}
	if got, want := strings.Join(got, " "), "n1 n2 n3 q r"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func followContract(t *testing.T, e testbus.Env) {
	notify := func(sid string, n uint64) {
		t.Helper()
		bustest.OK(t, e.B.Notify(e.Ctx, sid, n, fmt.Appendf(nil, "%s%d", sid, n)))
	}
	notify("follow", 1)
	last, err := e.B.LastNotice(e.Ctx)
	bustest.OK(t, err)
	ctx, cancel := context.WithCancel(e.Ctx)
	defer cancel()
	notify("follow", 2)
	var got []string
	var ended error
	for n, err := range e.B.FollowNotices(ctx, "follow", last+1) {
		if err != nil {
			ended = err
			break
		}
		got = append(got, string(n.Payload))
		switch len(got) {
		case 1: // one that comes while following, after another session's
			notify("follow-2", 1)
			notify("follow", 3)
		case 2:
			cancel()
		}
	}
	if got, want := strings.Join(got, " "), "follow2 follow3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !errors.Is(ended, context.Canceled) {
		t.Errorf("ended with %v, want context.Canceled", ended)
	}
	for n, err := range e.B.FollowNotices(e.Ctx, "", last+1) {
		bustest.OK(t, err)
		if n.Session == "follow-2" {
			break // all sessions are followed
		}
	}
	first := e.Publish("in", "follow", "a")
	for ev, err := range e.B.FollowEvents(e.Ctx, first) {
		bustest.OK(t, err)
		if ev.Session != "follow" {
			continue // another test's
		}
		if string(ev.Payload) == "b" {
			if ev.Door != "ctl" || ev.Seq <= first {
				t.Errorf("got %+v", ev)
			}
			break
		}
		e.Publish("ctl", "follow", "b")
	}
}

func snapshotsContract(t *testing.T, e testbus.Env) {
	get := func(sid string) ([]byte, bool) {
		t.Helper()
		data, found, err := e.B.GetSnapshot(e.Ctx, sid)
		bustest.OK(t, err)
		return data, found
	}
	put := func(sid string, seq uint64, data []byte) {
		t.Helper()
		bustest.OK(t, e.B.PutSnapshot(e.Ctx, sid, seq, data))
		// A replica may answer that is behind, but not for long.
		bustest.Until(t, "the snapshot is there", func() bool {
			got, found := get(sid)
			return found && bytes.Equal(got, data)
		})
	}
	if _, found := get("snap"); found {
		t.Error("before: got a snapshot")
	}
	small := []byte("\x81\xa1a\x01")
	put("snap", 1, small)
	large := append([]byte("\x81\xa1b"), bytes.Repeat([]byte("l"), 1<<20)...)
	put("snap", 2, large)
	larger := append(slices.Clone(large), 'x')
	put("snap", 3, larger)
	put("snap", 3, larger) // the same again keeps its blob
	if _, err := e.B.GetBlob(e.Ctx, codec.RefOf(large)); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("the former snapshot's blob: got %v, want ErrNotFound", err)
	}
	put("snap", 4, small)
	put("snap-2", 1, small)
	var got []string
	err := e.B.ScanSnapshots(e.Ctx, func(kept journal.Kept) error {
		if strings.HasPrefix(kept.Session, "snap") { // else it is another case's
			got = append(got, kept.Session)
		}
		return nil
	})
	bustest.OK(t, err)
	slices.Sort(got)
	if got, want := strings.Join(got, " "), "snap snap-2"; got != want {
		t.Errorf("sessions with snapshots: got %s, want %s", got, want)
	}
}

func quarantineContract(t *testing.T, e testbus.Env) {
	get := func() (string, bool) {
		t.Helper()
		body, found, err := e.All[len(e.All)-1].GetQuarantine(e.Ctx, "quar")
		bustest.OK(t, err)
		return string(body), found
	}
	for round := range 2 {
		if body, found := get(); found {
			t.Errorf("round %d: got %s, want none", round, body)
		}
		bustest.OK(t, e.B.PutQuarantine(e.Ctx, "quar", fmt.Appendf(nil, `{"round":%d}`, round)))
		if body, found := get(); !found || body != fmt.Sprintf(`{"round":%d}`, round) {
			t.Errorf("round %d: got %s %v", round, body, found)
		}
		bustest.Until(t, "the quarantine is listed", func() bool {
			var all []string
			for sid, err := range e.B.Quarantined(e.Ctx) {
				bustest.OK(t, err)
				all = append(all, sid)
			}
			return slices.Equal(all, []string{"quar"})
		})
		bustest.OK(t, e.B.PutQuarantine(e.Ctx, "quar", nil))
	}
	if err := e.B.PutQuarantine(e.Ctx, "quar-never", nil); err != nil {
		t.Errorf("deleting none: got %v", err)
	}
}

// noteContract: only a caller with the latest revision can put the next.
func noteContract(t *testing.T, e testbus.Env) {
	put := func(b *bus.Bus, note string, after uint64, want error) (rev uint64) {
		t.Helper()
		rev, err := b.PutLaneNote(e.Ctx, subjects.GuardKey(7), []byte(note), after)
		if !errors.Is(err, want) {
			t.Fatalf("put %q after %d: got %v, want %v", note, after, err, want)
		}
		return rev
	}
	other := e.All[len(e.All)-1]
	wantNote := func(want string, wantRev uint64) {
		t.Helper()
		note, rev, err := other.LaneNote(e.Ctx, subjects.GuardKey(7))
		if err != nil || string(note) != want || rev != wantRev || (note == nil) != (want == "") {
			t.Errorf("got %q at %d (%v), want %q at %d", note, rev, err, want, wantRev)
		}
	}
	wantNote("", 0)
	one := put(e.B, "one", 0, nil)
	wantNote("one", one)
	put(other, "another", 0, journal.ErrOvertaken)
	two := put(other, "two", one, nil)
	put(e.B, "", one, journal.ErrOvertaken)
	wantNote("two", two)
	gone := put(other, "", two, nil)
	wantNote("", gone)
	put(e.B, "three", 0, journal.ErrOvertaken)
	wantNote("three", put(e.B, "three", gone, nil))
	if note, _, err := e.B.LaneNote(e.Ctx, subjects.GuardKey(6)); err != nil || note != nil {
		t.Errorf("of another lane: got %q, %v", note, err)
	}
	err := e.B.ScanSnapshots(e.Ctx, func(kept journal.Kept) error {
		if kept.Session == "7" {
			t.Error("a note is among the snapshots")
		}
		return nil
	})
	bustest.OK(t, err)
}

func blobsContract(t *testing.T, e testbus.Env) {
	for _, size := range []int{0, 1, 3 << 20} {
		content := bytes.Repeat([]byte{byte(size), 'b'}, (size+1)/2)[:size]
		want := codec.RefOf(content)
		for range 2 {
			ref, err := e.B.PutBlob(e.Ctx, content)
			if err != nil || ref != want {
				t.Fatalf("%d bytes: got %s %v, want %s", size, ref, err, want)
			}
		}
		for _, b := range e.All {
			if got, err := b.GetBlob(e.Ctx, want); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes: got %d %v", size, len(got), err)
			}
		}
	}
	if _, err := e.B.GetBlob(e.Ctx, codec.RefOf([]byte("never stored"))); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("unknown: got %v, want ErrNotFound", err)
	}
	// Other clients read them as objects, and write them too.
	_, js := testbus.JS(t, e.Nodes[0])
	objects, err := js.ObjectStore(e.Ctx, e.Names.BlobsBucket())
	bustest.OK(t, err)
	content := bytes.Repeat([]byte("object"), 100_000)
	ref, err := e.B.PutBlob(e.Ctx, content)
	bustest.OK(t, err)
	bustest.Until(t, "the blob is an object", func() bool {
		got, err := objects.GetBytes(e.Ctx, ref.String())
		return err == nil && bytes.Equal(got, content)
	})
	p := poison{t, e.B, js}
	describe := func(content, as string) codec.Ref {
		ref := codec.RefOf([]byte(as))
		upload := nuid.Next()
		p.chunks(upload, 1, []byte(content))
		p.describes(ref, jetstream.ObjectInfo{NUID: upload, Size: uint64(len(content)), Chunks: 1, Digest: digest(ref)})
		return ref
	}
	theirs := describe("theirs", "theirs")
	if got, err := e.B.GetBlob(e.Ctx, theirs); err != nil || string(got) != "theirs" {
		t.Errorf("written by another client: got %q %v", got, err)
	}
	if _, err := objects.PutBytes(e.Ctx, theirs.String(), []byte("other")); err == nil {
		t.Error("another client has replaced a blob")
	}
	describe("false", "theirs")
	if got, err := e.B.GetBlob(e.Ctx, theirs); err != nil || string(got) != "theirs" {
		t.Errorf("described again by an attacker: got %q %v", got, err)
	}
	// Bytes under a name that is not theirs are never handed out, and the right
	// ones are found behind them.
	forged := describe("false", "true")
	got, err := e.B.GetBlob(e.Ctx, forged)
	if err == nil || errors.Is(err, natsio.ErrNotFound) || got != nil {
		t.Errorf("forged: got %q %v, want an error", got, err)
	}
	for range 2 {
		if err := e.B.RestoreBlob(e.Ctx, []byte("true")); err != nil {
			t.Error(err)
		}
	}
	if got, err := e.B.GetBlob(e.Ctx, forged); err != nil || string(got) != "true" {
		t.Errorf("put right: got %q %v", got, err)
	}
}

// Concurrent writers of one content leave one description. The chunks of those who lost
// are swept.
func blobsAtOnce(t *testing.T, e testbus.Env) {
	content := bytes.Repeat([]byte("at once "), 60_000)
	const writers = 6
	done := make(chan error, writers)
	for i := range writers {
		b := e.All[i%len(e.All)]
		go func() {
			ref, err := b.PutBlob(e.Ctx, content)
			if err == nil {
				var got []byte
				if got, err = b.GetBlob(e.Ctx, ref); err == nil && !bytes.Equal(got, content) {
					err = errors.New("read other bytes")
				}
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	_, js := testbus.JS(t, e.Nodes[0])
	stream, err := js.Stream(e.Ctx, e.Names.BlobsStream())
	bustest.OK(t, err)
	if n, err := e.B.SweepBlobs(e.Ctx, time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Errorf("new chunks: %d swept, %v", n, err)
	}
	_, err = e.B.SweepBlobs(e.Ctx, time.Now().Add(time.Hour))
	bustest.OK(t, err)
	info, err := stream.Info(e.Ctx, jetstream.WithSubjectFilter(e.Names.BlobChunks("*")))
	bustest.OK(t, err)
	left, described := info.State.Subjects, 0
	for seq := uint64(1); ; {
		m, err := stream.GetMsg(e.Ctx, seq, jetstream.WithGetMsgSubject(e.Names.BlobSubject("*")))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		bustest.OK(t, err)
		var object jetstream.ObjectInfo
		bustest.OK(t, json.Unmarshal(m.Data, &object))
		subject := e.Names.BlobChunks(object.NUID)
		if object.Name == codec.RefOf(content).String() {
			if described++; left[subject] != uint64(object.Chunks) {
				t.Errorf("the blob has %d chunks, want %d", left[subject], object.Chunks)
			}
		}
		delete(left, subject)
		seq = m.Sequence + 1
	}
	if described != 1 || len(left) > 0 {
		t.Errorf("the blob has %d descriptions, want 1; no description names the chunks %v", described, left)
	}
}

// listSnapshots: each session that has a snapshot is listed once, at the position of its
// latest put.
func listSnapshots(t *testing.T, e testbus.Env) {
	mine := []string{"listed", "listed-large", "listed-again"}
	list := func(from uint64) (all []journal.SnapshotAt) {
		t.Helper()
		for at, err := range e.B.ListSnapshots(e.Ctx, from) {
			bustest.OK(t, err)
			if slices.Contains(mine, at.Session) {
				all = append(all, at)
			}
		}
		return all
	}
	small, large := []byte("\x81\xa1a\x01"), bytes.Repeat([]byte("l"), 1<<20)
	for _, put := range []struct {
		sid  string
		data []byte
	}{{"listed-again", small}, {"listed", small}, {"listed-large", large}, {"listed-again", small}} {
		bustest.OK(t, e.B.PutSnapshot(e.Ctx, put.sid, 1, put.data))
	}
	var got []journal.SnapshotAt
	bustest.Until(t, "the snapshots are listed", func() bool {
		got = list(0)
		return len(got) == 3 && got[0].Session == "listed" && got[1].Session == "listed-large" && got[2].Session == "listed-again"
	})
	if rest := list(got[0].Seq + 1); !slices.Equal(rest, got[1:]) {
		t.Errorf("from behind the first on: got %v, want %v", rest, got[1:])
	}
	if none := list(got[2].Seq + 1<<20); len(none) != 0 {
		t.Errorf("from behind the end on: got %v", none)
	}
}
