package session_test

// Random histories, and the laws of the fold checked after every event. A
// history is made while it is folded: what comes next is drawn from what the
// state has open, so that runs really go on, mixed with what nobody asked for.
// accounts_test.go keeps the books: which effects, calls and runs there are,
// and what became of each.

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func builtin(t testing.TB) *session.Install {
	t.Helper()
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	return install
}

// builtinBefore returns the built-in record of logs that began before it had a
// config.
func builtinBefore(t testing.TB) []byte {
	t.Helper()
	var rec session.InstallRecord
	if err := codec.Decode(session.BuiltinInstall(), &rec); err != nil {
		t.Fatal(err)
	}
	rec.Config = nil
	record, err := codec.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// withoutContext returns the built-in record without a config.
func withoutContext(t testing.TB) *session.Install {
	t.Helper()
	install, err := session.ParseInstall(builtinBefore(t))
	if err != nil {
		t.Fatal(err)
	}
	return install
}

func TestLawsOnRandomHistories(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := newLaws(rt, install, builtinTools())
		l.sleeps = rapid.Bool().Draw(rt, "sleeps")
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			l.fold(l.draw())
		}
		l.replay()
	})
}

// Tools may or may not run concurrently, read or write, under overlapping or
// separate keys, and are offered under rules and facts.
func TestLawsOnRandomRegistries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		install, tools := drawInstall(rt)
		l := newLaws(rt, install, tools)
		l.sleeps = rapid.Bool().Draw(rt, "sleeps")
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			l.fold(l.draw())
		}
		l.replay()
	})
}

// longHistories is how many of them are enough: each is as good as five short
// ones, and as slow.
const longHistories = 15

// Long histories reach full queues, forgotten ids, transcripts of hundreds of
// items, and wakes of earlier runs.
func TestLawsOnLongHistories(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	passed, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if passed >= longHistories && !failed {
			return
		}
		before := failed // a failure is shrunk by trying it again, which must not stop
		failed = true
		l := newLaws(rt, install, builtinTools())
		if rapid.Bool().Draw(rt, "own registry") {
			install, tools := drawInstall(rt)
			l = newLaws(rt, install, tools)
		}
		l.sparse = true
		for range 300 {
			l.fold(l.draw())
		}
		l.replay()
		passed, failed = passed+1, before
	})
}

// laws folds events and watches over what the fold promises.
type laws struct {
	t       *rapid.T
	install *session.Install
	tools   toolDraws
	state   *session.State
	history []session.Event
	time    int64
	summary session.Summary // of the latest notice
	sparse  bool            // compare whole states only now and then
	sleeps  bool            // go on from a snapshot now and then
	accounts
}

func newLaws(t *rapid.T, install *session.Install, tools toolDraws) *laws {
	return &laws{
		t: t, install: install, tools: tools, state: session.New(install, "s1"), time: 1_000_000, accounts: newAccounts(install.Registry),
	}
}

// source is what the session's snapshots are restored from.
func (l *laws) source() shelf { return shelf{install: l.install, registries: l.registries} }

// sleep goes on from a snapshot of the state, as a host does that unloaded the
// session. What the books say of open effects holds for what comes of it.
func (l *laws) sleep() {
	snap, err := session.ParseSnapshot(l.state.Snapshot().Bytes())
	if err != nil {
		l.t.Fatal(err)
	}
	restored, err := session.Restore(snap, l.source())
	if err != nil {
		l.t.Fatalf("after event %d: %v", l.state.Seq, err)
	}
	if !bytes.Equal(restored.Bytes(), l.state.Bytes()) {
		l.t.Fatalf("after event %d: restored to other bytes", l.state.Seq)
	}
	same := func(a, b session.Effect) bool {
		return a.Name == b.Name && bytes.Equal(a.Payload, b.Payload) && a.Deadline == b.Deadline && a.StartBy == b.StartBy
	}
	if !slices.EqualFunc(restored.Open(), l.state.Open(), same) {
		l.t.Fatalf("after event %d: restored, it asks for something else", l.state.Seq)
	}
	if was, is := shown(l.t, l.state), shown(l.t, restored); was != is {
		l.t.Fatalf("after event %d: restored, it shows %s, not %s", l.state.Seq, is, was)
	}
	l.state = restored
}

// shown is a state's view as people see it.
func shown(t *rapid.T, s *session.State) string {
	text, err := json.Marshal(s.View())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (l *laws) fold(door session.Door, payload []byte) {
	l.time += int64(rapid.SampledFrom([]int{0, 1, 1000, 400_000}).Draw(l.t, "passed"))
	e := session.Event{Session: "s1", Door: door, Seq: uint64(2 + 3*len(l.history)), Time: l.time, Payload: payload}
	whole := !l.sparse || len(l.history)%16 == 0
	var before []byte
	if whole {
		before = l.state.Bytes()
	}
	l.history = append(l.history, e)
	notices, rejected := l.state.Evolve(e)
	if whole {
		after := l.state.Bytes()
		if rejected != nil {
			if what := moreThanHead(l.t, before, after); what != "" {
				l.t.Fatalf("rejected %v, and %s", rejected, what)
			}
		}
		if bytes.Equal(before, after) {
			l.t.Fatalf("an event left the head as it was")
		}
		if len(after) > session.StateBytesMax {
			l.t.Fatalf("the state has %d bytes", len(after))
		}
	}
	if l.state.Seq != e.Seq || l.state.Clock < l.time || l.state.Count != uint64(len(l.history)) {
		l.t.Fatalf("the head is at %d, clock %d, count %d", l.state.Seq, l.state.Clock, l.state.Count)
	}
	l.numbered(notices, rejected)
	if err := l.state.Check(); err != nil {
		l.t.Fatalf("invariant: %v", err)
	}
	if err := windowFault(l.state, func(seq uint64) session.Event { return l.history[(seq-2)/3] }); whole && err != nil {
		l.t.Fatalf("window: %v", err)
	}
	l.account(e, notices, rejected)
	if l.sleeps && rapid.IntRange(0, 7).Draw(l.t, "sleep") == 0 {
		l.sleep()
	}
	if whole {
		_ = l.state.View()
	}
}

// numbered: notices are numbered without gaps, about the event, and JSON. A
// rejected event has its notice, as the last.
func (l *laws) numbered(notices []session.Notice, rejected error) {
	said := false
	for i, n := range notices {
		want := uint64(0) // of a notice that is alone and has no number
		if n.Type != session.NoticeSessionChanged || len(notices) > 1 {
			l.notices++
			want = l.notices
		}
		if n.N != want {
			l.t.Fatalf("notice %s has number %d, want %d", n.Type, n.N, want)
		}
		l.summarized(n, i == len(notices)-1)
		if n.Seq != l.state.Seq || n.At != l.state.Clock || n.Session != "s1" {
			l.t.Fatalf("notice %s is about %s at %d, %d", n.Type, n.Session, n.Seq, n.At)
		}
		if text := n.JSON(); !json.Valid(text) || len(text) > session.NoticeBytesMax {
			l.t.Fatalf("notice %s has %d bytes: %.200s", n.Type, len(text), text)
		}
		if body, is := n.Data.(session.EventRejected); is {
			said = true
			if i != len(notices)-1 || !errors.Is(rejected, body.Code) || body.Seq != n.Seq || body.Detail == "" || len(body.Detail) > session.DetailBytesMax {
				l.t.Fatalf("rejected %v, and said %+v", rejected, body)
			}
		}
	}
	if said != (rejected != nil) {
		l.t.Fatalf("rejected %v, said so: %v", rejected, said)
	}
	v, last := l.state.View(), l.summary
	isPersons := func(waits string) bool { return waits == "approval" || waits == "input" || waits == "resume" }
	if v.Lifecycle != last.Lifecycle || (v.Status != "open") != last.Closed || (v.Status == "erased") != last.Erased || isPersons(v.WaitsFor) && v.WaitsFor != last.WaitsFor || !isPersons(v.WaitsFor) && isPersons(last.WaitsFor) {
		l.t.Fatalf("the latest summary is %+v, and the session is %s, %s, waits for %s", last, v.Status, v.Lifecycle, v.WaitsFor)
	}
}

// summarized: the last notice of an event has the summary, which is small.
func (l *laws) summarized(n session.Notice, last bool) {
	if (n.Summary != nil) != last {
		l.t.Fatalf("notice %s has a summary: %v; it is the event's last: %v", n.Type, n.Summary != nil, last)
	}
	if !last {
		return
	}
	l.summary = *n.Summary
	text, err := json.Marshal(n.Summary)
	if err != nil || len(text) > session.SummaryBytesMax {
		l.t.Fatalf("a summary has %d bytes, %v: %s", len(text), err, text)
	}
}

// replay: the same events leave the same bytes, whole or from a snapshot.
func (l *laws) replay() {
	again := session.Fold(l.install, "s1", slices.Values(l.history))
	if again.Hash() != l.state.Hash() {
		l.t.Fatalf("folded again: another state")
	}
	half := rapid.IntRange(0, len(l.history)).Draw(l.t, "snapshot after")
	first := session.Fold(l.install, "s1", slices.Values(l.history[:half]))
	snap, err := session.ParseSnapshot(first.Snapshot().Bytes())
	if err != nil {
		l.t.Fatal(err)
	}
	if half == 0 {
		return // nobody stores a state without an event
	}
	restored, err := session.Restore(snap, l.source())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range l.history[half:] {
		want, rejected := first.Evolve(e)
		got, alsoRejected := restored.Evolve(e)
		if !errors.Is(alsoRejected, rejected) || !slices.EqualFunc(want, got, func(a, b session.Notice) bool { return bytes.Equal(a.JSON(), b.JSON()) }) {
			l.t.Fatalf("event %d from a snapshot: got %v and %d notices, want %v and %d", e.Seq, alsoRejected, len(got), rejected, len(want))
		}
		if !slices.Equal(first.Withdrawals(), restored.Withdrawals()) {
			l.t.Fatalf("event %d from a snapshot: other withdrawals", e.Seq)
		}
	}
	if restored.Hash() != l.state.Hash() {
		l.t.Fatalf("from a snapshot: another state")
	}
}
