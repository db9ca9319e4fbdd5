package journal_test

// The contract of every method, checked against one server (R1) and a cluster of three
// with three replicas (R3), where conflicts have other codes and reads may lag. All
// cases of one server share its streams and use sessions of their own.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// cases is the contract; other files have more cases.
var cases = map[string]func(*testing.T, testbus.Env){
	"publish and read":          publishAndRead,
	"publish under one id":      publishUnderOneID,
	"publish over the limit":    publishOverTheLimit,
	"publish bad names":         publishBadNames,
	"publish at once":           publishAtOnce,
	"events by sequence":        eventsBySequence,
	"events from every replica": eventsFromEveryReplica,
	"sessions from the leader":  sessionsFromTheLeader,
	"last events":               lastEvents,
	"ask":                       askContract,
	"ask all":                   askAllContract,
	"ask at once":               askAtOnce,
	"list effects":              listEffects,
	"claim":                     claimContract,
	"claim at once":             claimAtOnce,
	"withdraw":                  withdrawContract,
	"withdraw at later claims":  withdrawNextContract,
	"holder":                    holderContract,
	"notify":                    notifyContract,
	"follow":                    followContract,
	"snapshots":                 snapshotsContract,
	"snapshots, listed":         listSnapshots,
	"count":                     countContract,
	"outputs":                   storedOutputsContract,
	"last summary":              lastSummaryContract,
	"quarantine":                quarantineContract,
	"lane notes":                noteContract,
	"blobs":                     blobsContract,
	"blobs at once":             blobsAtOnce,
}

func TestContractR1(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, []*bustest.Node{bustest.Server(t)}, 1, firstFences, cases)
}

func TestContractR3(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, bustest.Cluster(t, 3), 3, firstFences, cases)
}

// firstFences makes the first fenced publish to each stream while nothing else happens.
// nats-server 2.15.2 creates a map at that time, and reads it without its lock while it
// applies an earlier message (applyStreamMsgOp); the race detector reports that in a
// cluster.
func firstFences(t *testing.T, e testbus.Env) {
	ctx := testbus.Context(t)
	_, _, install := e.B.PublishInstall(ctx, []byte("{}"), true)
	_, blob := e.B.PutBlob(ctx, nil) // no chunks, which are not fenced
	bustest.OK(t, errors.Join(install, blob, ask(ctx, e.B, "first", effect("r1t1", "first"))))
}

// ask stores effects of a session, as its owner does.
func ask(ctx context.Context, b *bus.Bus, sid string, effects ...session.Effect) error {
	outputs := make([]journal.Output, len(effects))
	for i := range effects {
		outputs[i] = journal.Output{Session: sid, Effect: &effects[i]}
	}
	return errors.Join(b.Store(ctx, outputs)...)
}

// storedUnder returns the effect stored under a subject.
func storedUnder(ctx context.Context, b *bus.Bus, subject string) (data []byte, found bool, err error) {
	name, err := b.Names().ParseEffect(subject)
	if err != nil {
		return nil, false, err
	}
	all, err := b.ListEffects(ctx, name.Session)
	for _, one := range all {
		if one.Name == name {
			return one.Payload, true, err
		}
	}
	return nil, false, err
}

func payloads(events []session.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Payload))
	}
	return strings.Join(all, " ")
}

func publishAndRead(t *testing.T, e testbus.Env) {
	// More than two batches of events, with another session's between them.
	const n = 1100
	var seqs []uint64
	doors := subjects.Doors()
	for i := range n {
		seqs = append(seqs, e.Publish(doors[i%len(doors)], "read", fmt.Sprint(i)))
		if i%100 == 0 {
			e.Publish(session.DoorIn, "read-other", "x")
		}
	}
	got := collect(t, e.Ctx, e.B, "read", 0, 0, true)
	if len(got) != n {
		t.Fatalf("got %d events, want %d", len(got), n)
	}
	last := int64(0)
	for i, ev := range got {
		if ev.Seq != seqs[i] || string(ev.Payload) != fmt.Sprint(i) || ev.Door != doors[i%len(doors)] || ev.Session != "read" {
			t.Fatalf("event %d: got %+v, want seq %d", i, ev, seqs[i])
		}
		if ev.Time < last {
			t.Fatalf("event %d: got time %d after %d", i, ev.Time, last)
		}
		last = ev.Time
	}
	for _, leader := range []bool{true, false} {
		part := collect(t, e.Ctx, e.B, "read", seqs[10], seqs[12], leader)
		if got, want := payloads(part), "10 11 12"; leader && got != want {
			t.Errorf("from %d to %d: got %s, want %s", seqs[10], seqs[12], got, want)
		}
	}
	if got := payloads(collect(t, e.Ctx, e.B, "read", seqs[n-1]+1, 0, true)); got != "" {
		t.Errorf("after the end: got %s, want nothing", got)
	}
	if got := payloads(collect(t, e.Ctx, e.B, "never", 0, 0, true)); got != "" {
		t.Errorf("unknown session: got %s, want nothing", got)
	}
	firstSeqs(e, seqs[0])
	// A reader that stops early is let go.
	for ev, err := range e.B.ReadSession(e.Ctx, "read", 0, 0, true) {
		if err != nil || ev.Seq != seqs[0] {
			t.Errorf("first event: got %+v %v", ev, err)
		}
		break
	}
}

func publishUnderOneID(t *testing.T, e testbus.Env) {
	publish := func(door session.Door, sid, payload, id string) (uint64, error) {
		return e.B.Publish(e.Ctx, door, sid, []byte(payload), id)
	}
	first, err := publish(session.DoorIn, "one-id", "a", "01ONEID")
	bustest.OK(t, err)
	again, err := publish(session.DoorIn, "one-id", "a", "01ONEID")
	if err != nil || again != first {
		t.Errorf("the same again: got %d %v, want %d", again, err, first)
	}
	for what, f := range map[string]func() (uint64, error){
		"another payload": func() (uint64, error) { return publish(session.DoorIn, "one-id", "b", "01ONEID") },
		"another door":    func() (uint64, error) { return publish(session.DoorCtl, "one-id", "a", "01ONEID") },
	} {
		if _, err := f(); !errors.Is(err, journal.ErrIDTaken) {
			t.Errorf("%s: got %v, want ErrIDTaken", what, err)
		}
	}
	if other, err := publish(session.DoorIn, "one-id-2", "a", "01ONEID"); err != nil || other == first {
		t.Errorf("another session: got %d %v, want an event of its own", other, err)
	}
	e.Publish(session.DoorIn, "one-id", "b")
	e.Publish(session.DoorIn, "one-id", "b") // without an id these are two
	if got, want := payloads(collect(t, e.Ctx, e.B, "one-id", 0, 0, true)), "a b b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func publishOverTheLimit(t *testing.T, e testbus.Env) {
	at := bytes.Repeat([]byte("x"), session.EventBytesMax)
	before, err := e.B.LastSeq(e.Ctx)
	bustest.OK(t, err)
	_, err = e.B.Publish(e.Ctx, session.DoorIn, "large", append(at, 'x'), "")
	var large *natsio.MaxPayloadError
	if !errors.As(err, &large) || large.Limit != session.EventBytesMax || large.Bytes != session.EventBytesMax+1 {
		t.Fatalf("got %v, want a MaxPayloadError", err)
	}
	if !strings.Contains(err.Error(), "768 KiB") {
		t.Errorf("the error names the limit: got %v", err)
	}
	seq, err := e.B.Publish(e.Ctx, session.DoorIn, "large", at, "large-1")
	if err != nil || seq <= before {
		t.Fatalf("at the limit: got %d %v", seq, err)
	}
	// The leader's answer holds the payload as text, and is larger than 1 MiB.
	ev, found, err := e.B.LastOf(e.Ctx, session.DoorIn, "large")
	if err != nil || !found || !bytes.Equal(ev.Payload, at) {
		t.Errorf("from the leader: got %d bytes, %v %v", len(ev.Payload), found, err)
	}
	if ev, err = e.B.EventAt(e.Ctx, seq); err != nil || !bytes.Equal(ev.Payload, at) {
		t.Errorf("by sequence: got %d bytes, %v", len(ev.Payload), err)
	}
	err = ask(e.Ctx, e.B, "large", session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "p", Payload: append(at, 'x')})
	if !errors.As(err, &large) {
		t.Errorf("ask: got %v, want a MaxPayloadError", err)
	}
}

// firstSeqs reads the first events of more sessions than directEach requests at a time,
// of which one exists.
func firstSeqs(e testbus.Env, first uint64) {
	e.T.Helper()
	sids := make([]string, 300)
	for i := range sids {
		sids[i] = fmt.Sprint("never-", i)
	}
	sids[0], sids[299] = "read", "read"
	got, err := e.B.FirstSeqs(e.Ctx, sids)
	for i, seq := range got {
		// A replica that is behind may know of none.
		if want := sids[i] == "read"; seq != 0 && (seq != first || !want) || len(e.Nodes) == 1 && want && seq == 0 {
			e.T.Errorf("first event of %s: got %d, want %d of read alone", sids[i], seq, first)
		}
	}
	if err != nil || len(got) != len(sids) {
		e.T.Errorf("first events: got %d, %v", len(got), err)
	}
	if _, err := e.B.FirstSeqs(e.Ctx, []string{"read", "a.b"}); err == nil {
		e.T.Error("first event of a.b: got no error")
	}
}

func publishBadNames(t *testing.T, e testbus.Env) {
	for _, sid := range []string{"", "a.b", "a b", "*", ">", "é", strings.Repeat("a", 65)} {
		if _, err := e.B.Publish(e.Ctx, session.DoorIn, sid, []byte("{}"), ""); err == nil {
			t.Errorf("publish to %q: got no error", sid)
		}
		for _, err := range e.B.ReadSession(e.Ctx, sid, 0, 0, false) {
			if err == nil {
				t.Errorf("read %q: got no error", sid)
			}
		}
		if err := ask(e.Ctx, e.B, sid, session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "p", Payload: []byte("x")}); err == nil {
			t.Errorf("ask for %q: got no error", sid)
		}
		if _, _, err := e.B.Claim(e.Ctx, claimOf(sid, "r1t1", 1), []byte("x")); err == nil {
			t.Errorf("claim for %q: got no error", sid)
		}
		if err := e.B.Notify(e.Ctx, sid, 1, []byte("x")); err == nil {
			t.Errorf("notify %q: got no error", sid)
		}
		if err := e.B.PutSnapshot(e.Ctx, sid, 1, []byte("x")); err == nil {
			t.Errorf("snapshot of %q: got no error", sid)
		}
	}
	if _, err := e.B.Publish(e.Ctx, "door", "s1", []byte("{}"), ""); err == nil {
		t.Error("publish to an unknown door: got no error")
	}
}

// Concurrent publishers of one id store one event, and all get its sequence.
func publishAtOnce(t *testing.T, e testbus.Env) {
	const n = 12
	seqs := make(chan uint64, n)
	for i := range n {
		b := e.All[i%len(e.All)]
		go func() {
			seq, err := b.Publish(e.Ctx, session.DoorIn, "at-once", []byte("x"), "01ATONCE")
			if err != nil {
				t.Error(err)
			}
			seqs <- seq
		}()
	}
	first := <-seqs
	for range n - 1 {
		if got := <-seqs; got != first {
			t.Errorf("got sequence %d, want %d for all", got, first)
		}
	}
	if got := len(collect(t, e.Ctx, e.B, "at-once", 0, 0, true)); got != 1 {
		t.Errorf("got %d events, want 1", got)
	}
}

func eventsBySequence(t *testing.T, e testbus.Env) {
	var seqs []uint64
	var want []string
	for i := range 300 {
		seqs = append(seqs, e.Publish(session.DoorTool, "by-seq", fmt.Sprint(i)))
		want = append(want, fmt.Sprint(i))
	}
	// Backwards, and one of them twice.
	asked, wants := append([]uint64{seqs[7]}, seqs...), append([]string{"7"}, want...)
	for i, j := 0, len(asked)-1; i < j; i, j = i+1, j-1 {
		asked[i], asked[j] = asked[j], asked[i]
		wants[i], wants[j] = wants[j], wants[i]
	}
	events, err := e.B.EventsAt(e.Ctx, asked)
	bustest.OK(t, err)
	if got, want := payloads(events), strings.Join(wants, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if events, err := e.B.EventsAt(e.Ctx, nil); err != nil || len(events) != 0 {
		t.Errorf("no sequences: got %v %v", events, err)
	}
	_, err = e.B.EventsAt(e.Ctx, []uint64{seqs[0], 1 << 40})
	if !errors.Is(err, natsio.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprint(uint64(1)<<40)) {
		t.Errorf("unknown sequence: got %v, want ErrNotFound that names it", err)
	}
	if _, err = e.B.EventAt(e.Ctx, 0); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("sequence 0: got %v, want ErrNotFound", err)
	}
}

// An acknowledged event can be read at once from every server.
func eventsFromEveryReplica(t *testing.T, e testbus.Env) {
	for i := range 100 {
		seq := e.Publish(session.DoorIn, "replicas", fmt.Sprint(i))
		for n, b := range e.All {
			ev, err := b.EventAt(e.Ctx, seq)
			if err != nil || string(ev.Payload) != fmt.Sprint(i) {
				t.Fatalf("server %d, event %d: got %+v %v", n, seq, ev, err)
			}
		}
	}
}

func sessionsFromTheLeader(t *testing.T, e testbus.Env) {
	for i := range 60 {
		seq := e.Publish(session.DoorIn, "leader", fmt.Sprint(i))
		for n, b := range e.All {
			got := collect(t, e.Ctx, b, "leader", 0, seq, true)
			if len(got) != i+1 || got[i].Seq != seq {
				t.Fatalf("server %d: got %d events, want %d", n, len(got), i+1)
			}
		}
	}
}

func lastEvents(t *testing.T, e testbus.Env) {
	if _, found, err := e.B.LastOf(e.Ctx, session.DoorLLM, "last"); err != nil || found {
		t.Errorf("before any: got %v %v, want none", found, err)
	}
	e.Publish(session.DoorLLM, "last", "a")
	want := e.Publish(session.DoorLLM, "last", "b")
	e.Publish(session.DoorTool, "last", "c")
	for _, b := range e.All {
		got, found, err := b.LastOf(e.Ctx, session.DoorLLM, "last")
		if err != nil || !found || got.Seq != want || string(got.Payload) != "b" {
			t.Errorf("got %+v %v %v, want sequence %d", got, found, err, want)
		}
	}
	last, err := e.B.LastSeq(e.Ctx)
	if err != nil || last < want+1 {
		t.Errorf("LastSeq: got %d %v, want at least %d", last, err, want+1)
	}
}

func TestInstallBeforeFindsTheNewestRecord(t *testing.T) {
	t.Parallel()
	b, ctx := testbus.Provisioned(t, bustest.Server(t)), testbus.Context(t)
	if e, found, err := b.InstallBefore(ctx, 10); err != nil || found {
		t.Errorf("without a record: got %+v %v %v, want none", e, found, err)
	}
	if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("early"), ""); err != nil { // sequence 1
		t.Fatal(err)
	}
	seq, stored, err := b.PublishInstall(ctx, []byte("A"), true)
	if err != nil || !stored || seq != 2 {
		t.Fatalf("first record: got %d %v %v, want 2, stored", seq, stored, err)
	}
	seq, stored, err = b.PublishInstall(ctx, []byte("other"), true)
	if err != nil || stored || seq != 2 {
		t.Fatalf("only if none: got %d %v %v, want 2, not stored", seq, stored, err)
	}
	for i := range 6 { // sequences 3 to 8, the even ones are records
		if i%2 == 0 {
			_, err = b.Publish(ctx, session.DoorIn, "s1", []byte("x"), "")
		} else {
			_, _, err = b.PublishInstall(ctx, []byte{byte('B' + i/2)}, false)
		}
		bustest.OK(t, err)
	}
	for before, want := range map[uint64]string{0: "A", 1: "A", 2: "A", 3: "A", 4: "A", 5: "B", 6: "B", 7: "C", 8: "C", 9: "D", 100: "D"} {
		e, found, err := b.InstallBefore(ctx, before)
		if err != nil || !found || string(e.Payload) != want || e.Door != session.DoorInstall || e.Session != "" {
			t.Errorf("before %d: got %q %+v %v %v, want %s", before, e.Payload, e, found, err, want)
		}
	}
}

// Anybody may publish; a message without a valid session name is skipped and counted.
func TestReadAllSkipsInvalidSubjects(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	read := func(from uint64) (got []string, skipped int) {
		scanned, err := b.ReadAll(ctx, from, func(e session.Event) error {
			got = append(got, fmt.Sprintf("%d:%s:%s", e.Seq, e.Session, e.Door))
			return nil
		})
		if err != nil || len(scanned.Holes) != 0 {
			t.Fatalf("holes %v: %v", scanned.Holes, err)
		}
		return got, scanned.Skipped
	}
	if got, skipped := read(0); len(got) != 0 || skipped != 0 {
		t.Errorf("an empty log: got %v, %d skipped", got, skipped)
	}
	_, js := testbus.JS(t, node)
	for _, subject := range []string{
		"refold.install", "refold.in.s1", "refold.in." + strings.Repeat("a", 65), "refold.ctl.s2", "refold.in.a:b",
	} {
		if _, err := js.Publish(ctx, subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for range 600 { // more than a batch
		if _, err := js.PublishAsync("refold.tool.s3", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	got, skipped := read(0)
	if want := "1::install 2:s1:in 4:s2:ctl 6:s3:tool"; strings.Join(got[:4], " ") != want || len(got) != 603 || skipped != 2 {
		t.Errorf("got %v (%d), %d skipped, want %s … (603), 2", got[:4], len(got), skipped, want)
	}
	if got, skipped := read(4); len(got) != 601 || skipped != 1 {
		t.Errorf("from 4: got %d, %d skipped, want 601, 1", len(got), skipped)
	}
	enough := errors.New("enough")
	if _, err := b.ReadAll(ctx, 0, func(session.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the caller's error", err)
	}
}

// A full or missing stream is neither a conflict nor a timeout.
func TestFullAndMissingStreamsAreDistinguished(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "")
	ctx := testbus.Context(t)
	effect := session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "p", Payload: []byte("x")}
	if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("publish without streams: got %v, want ErrNoStream", err)
	}
	if err := ask(ctx, b, "s1", effect); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("ask without streams: got %v, want ErrNoStream", err)
	}
	for _, err := range b.ReadSession(ctx, "s1", 0, 0, false) {
		if !errors.Is(err, natsio.ErrNoStream) {
			t.Errorf("read without streams: got %v, want ErrNoStream", err)
		}
	}
	if _, err := b.FirstSeqs(ctx, []string{"s1"}); err == nil {
		t.Error("first event without streams: got no error")
	}
	if _, _, err := b.GetSnapshot(ctx, "s1"); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("snapshot without streams: got %v, want ErrNoStream", err)
	}
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
	_, js := testbus.JS(t, node)
	for _, name := range []string{"REFOLD_LOG", "REFOLD_FX"} {
		stream, err := js.Stream(ctx, name)
		bustest.OK(t, err)
		cfg := stream.CachedInfo().Config
		cfg.MaxMsgs = 1
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); !errors.Is(err, natsio.ErrStreamFull) {
		t.Errorf("publish to a full log: got %v, want ErrStreamFull", err)
	}
	bustest.OK(t, ask(ctx, b, "s1", effect))
	if err := ask(ctx, b, "s1", effect); err != nil {
		t.Errorf("ask again what is stored, on a full stream: got %v", err)
	}
	effect.Name = "r1t2"
	if err := ask(ctx, b, "s1", effect); !errors.Is(err, natsio.ErrStreamFull) {
		t.Errorf("ask on a full stream: got %v, want ErrStreamFull", err)
	}
	var api *jetstream.APIError
	if err := ask(ctx, b, "s1", effect); !errors.As(err, &api) {
		t.Errorf("got %v, want JetStream's own error inside", err)
	}
}

// collect reads a session to its end.
func collect(t *testing.T, ctx context.Context, b *bus.Bus, sid string, from, to uint64, leader bool) []session.Event {
	t.Helper()
	var all []session.Event
	for e, err := range b.ReadSession(ctx, sid, from, to, leader) {
		bustest.OK(t, err)
		all = append(all, e)
	}
	return all
}
