package client_test

// Damaged logs: events erased from the server's store, or read with other bytes
// than they were written, and the differences that Verify reports.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
)

// erase removes events from the log and overwrites their bytes.
func (w *world) erase(seqs ...uint64) {
	w.t.Helper()
	_, js := testbus.JS(w.t, w.node)
	log, err := js.Stream(w.ctx, w.bus.Names().LogStream())
	bustest.OK(w.t, err)
	for _, seq := range seqs {
		bustest.OK(w.t, log.SecureDeleteMsg(w.ctx, seq))
	}
}

// altered returns the address of a server that sends other bytes than it stores:
// of each pair of texts, which have one length, the second in place of the first.
func (w *world) altered(pairs ...string) (url string) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(w.t, err)
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(w.node.URL(), "nats://"))
			if err != nil {
				near.Close()
				w.t.Error(err)
				return
			}
			running.Go(func() {
				defer far.Close()
				_, _ = io.Copy(far, near) // until either side is closed
			})
			running.Go(func() {
				defer near.Close()
				alter(near, far, pairs)
			})
		}
	})
	return "nats://" + l.Addr().String()
}

// alter copies with replacements. A prefix of a text to replace waits for its
// rest, since a server never ends with one.
func alter(to io.Writer, from io.Reader, pairs []string) {
	room := make([]byte, 64<<10)
	var held []byte
	replacer := strings.NewReplacer(pairs...)
	for {
		n, err := from.Read(room)
		if err != nil {
			return
		}
		held = append(held, room[:n]...)
		ready := len(held)
		for i := 0; i < len(pairs); i += 2 {
			for short := 1; short < len(pairs[i]); short++ {
				if bytes.HasSuffix(held, []byte(pairs[i][:short])) {
					ready = min(ready, len(held)-short)
				}
			}
		}
		if _, err := io.WriteString(to, replacer.Replace(string(held[:ready]))); err != nil {
			return
		}
		held = append(held[:0], held[ready:]...)
	}
}

// through returns a client of another address.
func (w *world) through(url string) *client.Client {
	w.t.Helper()
	c, err := client.Connect(w.ctx, client.Options{URL: url, Name: "other"})
	bustest.OK(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// hosted runs a host until stop is called.
func (w *world) hosted(snapshotEach uint64) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	h := engine.New(w.bus, slog.New(slog.DiscardHandler), engine.Options{SnapshotEach: snapshotEach})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("host: %v", err)
		}
	})
	w.t.Cleanup(stop)
	select {
	case <-h.Ready():
	case <-w.ctx.Done():
		w.t.Fatal("the host is not ready")
	}
	return stop
}

// story lets sessions have two runs each, interleaved, and returns the sequences
// of each session's events. No host runs when it returns, and every session has a
// snapshot of its last event.
func (w *world) story(sids ...string) map[string][]uint64 {
	w.t.Helper()
	stop := w.hosted(1)
	of := map[string][]uint64{}
	for run := 1; run <= 2; run++ {
		for _, sid := range sids {
			of[sid] = append(of[sid], w.ask(sid, fmt.Sprintf("question %d of %s", run, sid)))
		}
		for _, sid := range sids {
			w.stored(sid, fmt.Sprintf("r%dt1", run))
			of[sid] = append(of[sid], w.answer(sid, run, fmt.Sprintf("answer %d to %s", run, sid)))
			w.end(sid, of[sid][2*run-2])
		}
	}
	for _, sid := range sids {
		bustest.Until(w.t, "the snapshot of "+sid, func() bool {
			data, found, err := w.bus.GetSnapshot(w.ctx, sid)
			if err != nil || !found {
				return false
			}
			snap, err := session.ParseSnapshot(data)
			return err == nil && snap.Seq == of[sid][3]
		})
	}
	stop()
	return of
}

// verified folds all sessions again, one at a time and several, and returns the
// differences, a line each.
func verified(t *testing.T, c *client.Client) (*client.Verified, []string) {
	t.Helper()
	var sum *client.Verified
	var lines []string
	for _, jobs := range []int{1, 3} {
		var now []string
		v, err := c.Verify(t.Context(), client.VerifyOptions{Jobs: jobs, Differs: func(r *client.Replayed) error {
			for _, d := range r.Details() {
				now = append(now, fmt.Sprintf("%s at %d: %s", r.Session, d.Seq, d.Text))
			}
			return nil
		}})
		bustest.OK(t, err)
		v.Took, v.SessionBytes = 0, 0
		if jobs > 1 && (!slices.Equal(now, lines) || fmt.Sprint(v) != fmt.Sprint(sum)) {
			t.Errorf("%d at a time: got %q and %v, want %q and %v", jobs, now, v, lines, sum)
		}
		sum, lines = v, now
	}
	return sum, lines
}

// tells checks that there is one line for each want, in order, which contains it.
func tells(t *testing.T, lines []string, wants ...[]string) {
	t.Helper()
	if len(lines) != len(wants) {
		t.Errorf("got %d lines %q, want %d", len(lines), lines, len(wants))
		return
	}
	for i, want := range wants {
		rest := lines[i]
		for _, part := range want {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("line %d: got %q, want one with %q", i, lines[i], want)
				break
			}
			rest = after
		}
	}
}

func TestVerifyFindsNothingInIntactLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if v, lines := verified(t, w.Client); !v.Identical() || v.Sessions != 0 || len(lines) != 0 {
		t.Errorf("no session: got %+v, %q", v, lines)
	}
	w.story("s1", "s2", "s3")
	v, lines := verified(t, w.Client)
	if !v.Identical() || len(lines) != 0 || v.Sessions != 3 || v.Events != 12 || v.Snapshots != 3 || v.Effects < 6 || v.Gone != 0 {
		t.Errorf("got %+v, %q, want 3 sessions, 12 events, 3 snapshots and all effects", v, lines)
	}
}

// The log's hole shows a lost event, and the snapshot, which has counted it,
// shows its session; the others do not differ. Only that session is quarantined,
// and it keeps all of its data.
func TestVerifyFindsLostEvent(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, record)
	of := w.story("s1", "s2", "s3")
	lost, last := of["s2"][1], of["s2"][3]
	w.erase(lost)
	v, lines := verified(t, w.Client)
	if v.Identical() || v.Differ != 1 || !slices.Equal(v.Holes, []client.Hole{{First: lost, Last: lost}}) {
		t.Errorf("got %+v, want one session that differs, and a hole at %d", v, lost)
	}
	if len(lines) == 0 {
		t.Fatal("nothing is told")
	}
	tells(t, lines[len(lines)-1:], []string{fmt.Sprintf("s2 at %d: snapshot at %d:", last, last), "expected 4 events up to there, found 3"})
	r, err := w.VerifySession(w.ctx, "s2")
	if err != nil || r.Identical() {
		t.Fatalf("by itself: got %+v (%v), want a difference", r, err)
	}
	for _, want := range []bool{true, false} {
		if stopped, err := w.Quarantine(w.ctx, r); err != nil || stopped != want {
			t.Errorf("quarantine: got %v (%v), want %v", stopped, err, want)
		}
	}
	body, found, err := w.bus.GetQuarantine(w.ctx, "s2")
	var stop struct {
		Seq    uint64
		Reason string
	}
	if err := json.Unmarshal(body, &stop); err != nil || !found || stop.Seq != last+1 || !strings.Contains(stop.Reason, "refold verify: ") {
		t.Errorf("quarantine: got %s (%v), want one from %d on", body, err, last+1)
	}
	if err != nil {
		t.Error(err)
	}
	good := w.replay("s1", 0)
	if _, err := w.Quarantine(w.ctx, good); err == nil {
		t.Error("a session that is as it was can be quarantined")
	}
	w.hosted(1)
	seq := w.ask("s2", "are you there?")
	w.asksOn("s1", 3)
	if again := w.replay("s2", 0); again.Seq != seq || again.Events != 4 {
		t.Errorf("the stopped session: %d events up to %d, want 4 up to %d", again.Events, again.Seq, seq)
	}
	if effects, err := w.bus.ListEffects(w.ctx, "s2"); err != nil || slices.ContainsFunc(effects, func(e journal.StoredEffect) bool { return e.Name.Effect == "r3t1" }) {
		t.Errorf("the stopped session asks for what comes next (%v)", err)
	}
}

// asksOn lets a session have another run.
func (w *world) asksOn(sid string, run int) {
	w.t.Helper()
	seq := w.ask(sid, "once more")
	w.stored(sid, fmt.Sprintf("r%dt1", run))
	w.answer(sid, run, "yes")
	w.end(sid, seq)
}

// The chain shows altered events: the count is right, and all effects may be. It
// does not show which event it was.
func TestVerifyFindsAlteredEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := w.story("s1", "s2", "s3")["s2"][3]
	for name, pairs := range map[string][]string{
		"one byte":     {"answer 1 to s2", "answer 1 to z2"},
		"the order":    {"answer 1 to s2", "answer 2 to s2", "answer 2 to s2", "answer 1 to s2"},
		"the last one": {"answer 2 to s2", "answer 2 to z2"},
	} {
		v, lines := verified(t, w.through(w.altered(pairs...)))
		if v.Differ != 1 || len(v.Holes) != 0 {
			t.Errorf("%s: got %+v, want one session that differs, and no hole", name, v)
		}
		tells(t, lines, []string{fmt.Sprintf("s2 at %d: snapshot at %d:", last, last), "expected the chain ", " of 4 events, found "})
	}
	if v, lines := verified(t, w.through(w.altered("nobody says this", "nobody says that"))); !v.Identical() {
		t.Errorf("nothing altered: got %+v, %q", v, lines)
	}
}

// The rest of a session's data shows that it existed.
func TestVerifyFindsLostSession(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, record)
	of := w.story("s1", "s2", "s3")
	w.erase(of["s2"]...)
	v, lines := verified(t, w.Client)
	if v.Sessions != 3 || v.Differ != 1 || v.Events != 8 || len(v.Holes) != 4 {
		t.Errorf("got %+v, want 2 sessions as they were and one that is lost", v)
	}
	effects, _ := w.bus.ListEffects(w.ctx, "s2")
	if len(lines) != len(effects)+2 {
		t.Errorf("got %q, want a line for each of %d effects, the last notice and the snapshot", lines, len(effects))
	}
	tells(t, lines[len(lines)-1:], []string{fmt.Sprintf("s2 at %d: snapshot at %d: the session has no event there; expected one with the leaf ", of["s2"][3], of["s2"][3]), "found none"})
	// The newest event, without which the snapshot is of something else.
	w.erase(of["s3"][3])
	if v, _ := verified(t, w.Client); v.Differ != 2 || v.Holes[len(v.Holes)-1].Last != of["s3"][3] {
		t.Errorf("got %+v, want two sessions that differ, and a hole at the end", v)
	}
}

// A host that loads a session whose log has a hole compares the fold with the
// session's stored data, and finds that the notices are of another run: it
// quarantines only this session.
func TestHostQuarantinesSessionWithOtherNotices(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, record)
	stop := w.hosted(1 << 40)
	first, second := w.ask("s1", "first"), w.ask("s1", "second")
	w.ask("s2", "first")
	w.stored("s1", "r1t1")
	w.stored("s2", "r1t1")
	stop()
	w.erase(first)
	w.hosted(1 << 40)
	third := w.ask("s1", "third")
	var body []byte
	bustest.Until(t, "s1 is quarantined", func() bool {
		var found bool
		var err error
		body, found, err = w.bus.GetQuarantine(w.ctx, "s1")
		return err == nil && found
	})
	if !strings.Contains(string(body), "expected number 3") || !strings.Contains(string(body), "found numbers 1 to 2") {
		t.Errorf("got %s, want a reason that says which notices are there and what the log would say", body)
	}
	w.answer("s2", 1, "hello")
	w.asksOn("s2", 2)
	if r := w.replay("s1", 0); r.Events != 2 || r.Seq != third || r.Identical() {
		t.Errorf("got %+v, want the events %d and %d, and a difference", r, second, third)
	}
}

// A snapshot whose event is lost is not used: the session is folded from the log.
func TestVerifyFindsSnapshotWithoutItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, record)
	of := w.story("s1", "s2")
	w.erase(of["s1"][3])
	w.hosted(1)
	// It would be run 3, had the end of run 2 not been lost.
	seq := w.ask("s1", "again")
	bustest.Until(t, "s1 takes the request", func() bool {
		v, err := w.View(w.ctx, "s1")
		return err == nil && v.Seq == seq && v.Count == 4
	})
}
