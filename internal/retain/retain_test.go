package retain_test

// Passes over sessions that a host runs, on a server with files. Their clock is that of the
// log, set forward: nothing waits for a session to grow old.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/retain"
)

const day = 24 * time.Hour

type world struct {
	*client.Client
	t   testing.TB
	ctx context.Context
	bus *bus.Bus
	url string
	dir string // of archives
}

func newWorld(t testing.TB, ctx context.Context, each uint64) *world {
	t.Helper()
	node := bustest.Server(t)
	w := &world{t: t, ctx: ctx, bus: testbus.Provisioned(t, node), url: node.URL(), dir: t.TempDir()}
	_, err := engine.EnsureInstall(w.ctx, w.bus, []byte(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`))
	bustest.OK(t, err)
	w.Client, err = client.Connect(w.ctx, client.Options{URL: node.URL(), Name: "test"})
	bustest.OK(t, err)
	t.Cleanup(w.Close)
	running, cancel := context.WithCancel(ctx)
	h := engine.New(w.bus, slog.New(slog.DiscardHandler), engine.Options{SnapshotEach: each})
	done := make(chan error, 1)
	go func() { done <- h.Run(running) }()
	t.Cleanup(func() {
		cancel()
		bustest.OK(t, <-done)
	})
	<-h.Ready()
	return w
}

// run gives a session a run, which nobody carries out.
func (w *world) run(sid string) {
	w.t.Helper()
	_, err := w.Run(w.ctx, sid, "hello", client.RunOptions{})
	bustest.OK(w.t, err)
	_, err = w.View(w.ctx, sid)
	bustest.OK(w.t, err)
}

// idle gives a session a run that has ended.
func (w *world) idle(sid string) {
	w.t.Helper()
	w.run(sid)
	_, err := w.Cancel(w.ctx, sid, client.ControlOptions{})
	bustest.OK(w.t, err)
	w.settled(sid)
}

// settled waits until the session's last notice has its last event.
func (w *world) settled(sid string) {
	w.t.Helper()
	bustest.Until(w.t, "the last notice of "+sid, func() bool {
		state, err := w.StateNow(w.ctx, sid)
		bustest.OK(w.t, err)
		for n, err := range w.bus.LastNotices(w.ctx, []string{sid}, 0) {
			bustest.OK(w.t, err)
			var notice struct {
				Seq uint64 `json:"seq"`
			}
			last := n.Payload[bytes.LastIndexByte(n.Payload, '\n')+1:]
			bustest.OK(w.t, json.Unmarshal(last, &notice))
			return notice.Seq == state.Seq
		}
		return false
	})
}

// policy reads a policy; DIR in its text is the directory of archives.
func (w *world) policy(text string) *retain.Policy {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "retain.yaml")
	bustest.OK(w.t, os.WriteFile(name, []byte(strings.ReplaceAll(text, "DIR", w.dir)), 0o600))
	p, err := retain.Read(name)
	bustest.OK(w.t, err)
	return p
}

func in(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }

// pass makes a pass in the future, and returns what it did with each session.
func (w *world) pass(p *retain.Policy, o retain.Options) (retain.Sum, map[string]retain.Outcome) {
	w.t.Helper()
	all := map[string]retain.Outcome{}
	o.Each = func(of retain.Outcome) {
		if of.Error != "" {
			w.t.Errorf("session %s: %s", of.Session, of.Error)
		}
		all[of.Session] = of
	}
	sum, err := p.Pass(w.ctx, w.Client, o)
	bustest.OK(w.t, err)
	return sum, all
}

// wantDeleted checks that the log has nothing of a session but its tombstone, and that it
// has lost nothing.
func (w *world) wantDeleted(sid string) {
	w.t.Helper()
	left, err := w.Deletable(w.ctx, sid, client.DeleteOptions{})
	if err != nil || left.All() != 0 {
		w.t.Errorf("%s: %+v are left (%v), want nothing", sid, left, err)
	}
	if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 0 {
		w.t.Errorf("%d events count as lost (%v), want none", missing, err)
	}
	if plain, err := w.DeletedPlainly(w.ctx, sid); err != nil || !plain {
		w.t.Errorf("%s: deleted plainly: %v (%v), want true", sid, plain, err)
	}
	r, err := w.Replay(w.ctx, sid, 0, nil)
	if err != nil || !r.Identical() || !r.State.IsErased() {
		w.t.Errorf("replay of %s: %+v, %v: want an erased session, identical", sid, r, err)
	}
}

// wantArchived checks that the archive of a session has all its events.
func (w *world) wantArchived(sid string, last uint64) {
	w.t.Helper()
	c, of, err := client.OpenArchive(archive.Name(w.dir, sid))
	if err != nil || of != sid {
		w.t.Fatalf("the archive of %s: %q, %v", sid, of, err)
	}
	defer c.Close()
	if r, err := c.Replay(w.ctx, sid, 0, nil); err != nil || !r.Identical() || r.Seq != last {
		w.t.Errorf("the archive of %s: %+v, %v: want events up to %d", sid, r, err, last)
	}
}

const policy = `
archive_to: DIR
rules:
  - {prefix: "", closed_after: 30d, idle_after: 90d, delete_after: 60d}
  - {prefix: keep-}
`

// TestPass: each session gets what the policy says, at its time, and only then.
func TestPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	p := w.policy(policy)
	for _, sid := range []string{"closed", "held", "idle", "keep-1"} {
		w.idle(sid)
	}
	w.run("busy")
	w.idle("daily")
	_, err := w.SetSchedule(w.ctx, "daily", client.Schedule{Name: "daily", Cron: "@daily", Text: "what is new?"})
	bustest.OK(t, err)
	for _, sid := range []string{"closed", "held"} {
		_, err := w.CloseSession(w.ctx, sid, "")
		bustest.OK(t, err)
	}
	w.settled("held")
	_, err = w.Hold(w.ctx, "held", true, "case 4711", "")
	bustest.OK(t, err)
	last := map[string]uint64{}
	for _, sid := range []string{"closed", "held", "idle"} {
		if sid != "held" { // no notice tells of a hold
			w.settled(sid)
		}
		state, err := w.StateNow(w.ctx, sid)
		bustest.OK(t, err)
		last[sid] = state.Seq
	}
	for _, c := range []struct {
		after time.Duration
		dry   bool
		want  retain.Sum
		names []string // due
	}{
		{29 * day, false, retain.Sum{Sessions: 5}, nil},
		{31 * day, true, retain.Sum{Sessions: 5, Due: 2, Archived: 2}, []string{"closed", "held"}},
		{31 * day, false, retain.Sum{Sessions: 5, Due: 2, Archived: 2}, []string{"closed", "held"}},
		{32 * day, false, retain.Sum{Sessions: 5}, nil},
		{91 * day, true, retain.Sum{Sessions: 5, Due: 3, Archived: 1, Deleted: 1, Held: 1}, []string{"closed", "held", "idle"}},
		{91 * day, false, retain.Sum{Sessions: 5, Due: 3, Archived: 1, Deleted: 1, Held: 1}, []string{"closed", "held", "idle"}},
		{151 * day, false, retain.Sum{Sessions: 4, Due: 2, Deleted: 1, Held: 1}, []string{"held", "idle"}},
		{152 * day, false, retain.Sum{Sessions: 3, Due: 1, Held: 1}, []string{"held"}},
	} {
		got, outcomes := w.pass(p, retain.Options{Now: in(c.after), DryRun: c.dry})
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(retain.Sum{}, "TookMS", "Bytes", "Messages")); diff != "" {
			t.Errorf("in %v, dry %v (-want +got):\n%s", c.after, c.dry, diff)
		}
		if len(outcomes) != len(c.names) {
			t.Errorf("in %v: due are %+v, want %v", c.after, outcomes, c.names)
		}
		for _, sid := range c.names {
			if _, ok := outcomes[sid]; !ok {
				t.Errorf("in %v: %s is not due", c.after, sid)
			}
		}
	}
	for sid, seq := range last {
		w.wantArchived(sid, seq)
	}
	w.wantDeleted("closed")
	w.wantDeleted("idle")
	for _, sid := range []string{"busy", "daily", "keep-1", "held"} {
		if state, err := w.StateNow(w.ctx, sid); err != nil || state.IsErased() {
			t.Errorf("%s: %v, want it as it was", sid, err)
		}
	}
}

// TestTextAfterTheDeletion: text that is published to a deleted session goes with the next
// pass, also if no rule has the session.
func TestTextAfterTheDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	w.idle("s1")
	if sum, _ := w.pass(w.policy("rules: [{idle_after: 1h, delete_after: 0s}]"), retain.Options{Now: in(2 * time.Hour)}); sum.Deleted != 1 || sum.Messages < 3 {
		t.Fatalf("got %+v, want one session deleted", sum)
	}
	w.wantDeleted("s1")
	_, err := w.Run(w.ctx, "s1", "more text", client.RunOptions{})
	bustest.OK(t, err)
	w.settled("s1")
	nothing := w.policy("rules: [{prefix: keep-}]")
	if sum, _ := w.pass(nothing, retain.Options{Now: time.Now}); sum.Due != 0 {
		t.Errorf("at once: got %+v, want nothing: who erased it may be at work", sum)
	}
	if sum, _ := w.pass(nothing, retain.Options{Now: in(2 * time.Hour)}); sum.Deleted != 1 {
		t.Errorf("later: got %+v, want one session deleted", sum)
	}
	w.wantDeleted("s1")
	if sum, _ := w.pass(nothing, retain.Options{Now: in(4 * time.Hour)}); sum.Sessions != 0 {
		t.Errorf("at last: got %+v, want no session", sum)
	}
}

// TestErasedOverHTTPIsOverwritten: a session that somebody erased, and nobody deleted, is
// deleted by a pass, not plainly.
func TestErasedOverHTTPIsOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	w.idle("s1")
	_, err := w.Erase(w.ctx, "s1", "they asked", "")
	bustest.OK(t, err)
	bustest.Until(t, "a tombstone", func() bool {
		seq, err := w.bus.TombstoneOf(w.ctx, "s1")
		return err == nil && seq > 0
	})
	if sum, _ := w.pass(w.policy("rules: [{prefix: keep-}]"), retain.Options{Now: in(2 * time.Hour)}); sum.Deleted != 1 {
		t.Errorf("got %+v, want one session deleted", sum)
	}
	if plain, err := w.DeletedPlainly(w.ctx, "s1"); err != nil || plain {
		t.Errorf("deleted plainly: %v (%v), want false", plain, err)
	}
}

// TestChangedSessionIsKept: a session that got an event after its last one was read is not
// deleted.
func TestChangedSessionIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	w.idle("s1")
	before, err := w.StateNow(w.ctx, "s1")
	bustest.OK(t, err)
	last := before.Seq
	w.run("s1")
	if d, err := w.Deleter(client.DeleteOptions{Plain: true}).DeleteAfter(w.ctx, "s1", "", last); !errors.Is(err, client.ErrChanged) || d.All() != 0 {
		t.Errorf("got %+v, %v, want ErrChanged", d, err)
	}
	if now, err := w.StateNow(w.ctx, "s1"); err != nil || now.IsErased() || now.Run == nil {
		t.Errorf("the session: %v, want it with its run", err)
	}
}

// TestDeployedPolicyDoesNothing: the file that docker-compose.yml mounts has no rule that
// archives or deletes.
func TestDeployedPolicyDoesNothing(t *testing.T) {
	t.Parallel()
	p, err := retain.Read("../../deploy/retain.yaml")
	bustest.OK(t, err)
	for _, r := range p.Rules {
		if r != (retain.Rule{Prefix: r.Prefix}) {
			t.Errorf("a rule says %+v", r)
		}
	}
}

// dying is a context that ends at a call of Done.
type dying struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func (d *dying) Done() <-chan struct{} {
	if d.left.Add(-1) == 0 {
		d.end()
	}
	return d.Context.Done()
}

// TestPassKilledAnywhere: a pass that ends at any of its requests, and another one, leave
// the session archived and deleted.
func TestPassKilledAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	p := w.policy(`{archive_to: DIR, rules: [{idle_after: 1h, delete_after: 0s}]}`)
	killed := 0
	for after := int64(5); ; after += after/8 + 1 {
		sid := fmt.Sprint("s", after)
		w.idle(sid)
		state, err := w.StateNow(w.ctx, sid)
		bustest.OK(t, err)
		ctx, cancel := context.WithCancel(w.ctx)
		d := &dying{Context: ctx, end: cancel}
		d.left.Store(after)
		_, err = p.Pass(d, w.Client, retain.Options{Now: in(2 * time.Hour)})
		cancel()
		if _, found := os.Stat(archive.Name(w.dir, sid)); found != nil {
			if now, err := w.StateNow(w.ctx, sid); err != nil || now.IsErased() {
				t.Fatalf("killed after %d calls: it is erased (%v) and not archived", after, err)
			}
		}
		w.pass(p, retain.Options{Now: in(4 * time.Hour)})
		w.wantArchived(sid, state.Seq)
		if left, err := w.Deletable(w.ctx, sid, client.DeleteOptions{}); err != nil || left.All() != 0 {
			t.Errorf("killed after %d calls: %+v are left (%v)", after, left, err)
		}
		if err == nil {
			break
		}
		killed++
	}
	if killed < 10 {
		t.Errorf("killed %d passes, want at least 10", killed)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("the directory has %v (%v), want no temporary files", left, err)
	}
	if v, err := w.Verify(w.ctx, client.VerifyOptions{}); err != nil || !v.Identical() {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// TestMetersTellWhatWaits: after a pass the held session waits, and the time of the pass is
// known.
func TestMetersTellWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testbus.Context(t), 1)
	w.idle("s1")
	w.idle("s2")
	_, err := w.Hold(w.ctx, "s1", true, "", "")
	bustest.OK(t, err)
	r := meter.New()
	begun := time.Now()
	w.pass(w.policy("rules: [{idle_after: 1h, delete_after: 0s}]"), retain.Options{Now: in(2 * time.Hour), Meters: retain.Register(r)})
	got := map[string]float64{}
	for _, m := range r.Collect() {
		for _, p := range m.Points {
			got[strings.Join(append([]string{m.Desc.Name}, p.Labels...), " ")] = p.Value
		}
	}
	if got["refold.retain.waiting"] != 1 || got["refold.retain.sessions held"] != 1 || got["refold.retain.sessions deleted"] != 1 || got["refold.retain.last"] < float64(begun.UnixMilli())/1000 {
		t.Errorf("got %v", got)
	}
}

// TestPoliciesAreChecked: what is wrong is named.
func TestPoliciesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"rules: [{prefx: a}]": `did you mean "prefix"?`,
		"rulse: []":           `did you mean "rules"?`,
		"rules: []":           "0 rules",
		"":                    "0 rules",
		"rules: [{idle_after: 90x, delete_after: 1d}]":              `"90x" is no duration such as 90d or 36h`,
		"rules: [{idle_after: -1h, delete_after: 1d}]":              "is no duration",
		"rules: [{idle_after: 90d}]":                                "not what to do",
		"rules: [{prefix: a, delete_after: 90d}]":                   `prefix "a": it says what to do and not when`,
		"rules: [{idle_after: 1d, archive_to: /no/such/dir}]":       "create it, or mount it",
		"rules: [{prefix: a}, {prefix: a}]":                         "same prefix",
		"{archive_to: " + dir + ", rules: [{closed_after: 1d12h}]}": "is no duration",
	} {
		name := filepath.Join(dir, "policy.yaml")
		bustest.OK(t, os.WriteFile(name, []byte(text), 0o600))
		if _, err := retain.Read(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error with %q and the file", text, err, want)
		}
	}
}
