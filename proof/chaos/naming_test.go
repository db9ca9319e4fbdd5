package chaos

// Names of messages and points: a message has the same name in every trial, and
// one that depends on the clock alone has none.

import (
	"slices"
	"testing"

	"github.com/refold/refold/subjects"
)

func TestMessageNames(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	n := namer{names}
	for _, c := range []struct{ subject, payload, want string }{
		{"$JS.ACK.REFOLD_LOG.l6.1.7.3.1763740000000000000.0", "", "ack.l6"},
		{"$JS.ACK._.hash.REFOLD_FX.tool-host.1.7.3.1763740000000000000.0", "+ACK", "ack.tool-host"},
		{"$JS.ACK._.hash.REFOLD_FX.tool-host.1.7.3.1763740000000000000.0.token", "", "ack.tool-host"},
		{"$JS.ACK.REFOLD_FX.tool-host.1.7.3.1763740000000000000.0", "+WPI", ""},
		{"$JS.ACK.REFOLD_FX.tool-host.1.7.3.1763740000000000000.0", `-NAK {"delay":1}`, "nak.tool-host"},
		{"$JS.API.STREAM.CREATE.REFOLD_LOG", "{}", "create.REFOLD_LOG"},
		{"$JS.API.STREAM.INFO.REFOLD_LOG", "", ""},
		{"$JS.API.CONSUMER.CREATE.REFOLD_LOG.l3", "{}", "create.l3"},
		{"$JS.API.CONSUMER.CREATE.REFOLD_FX.tool-host.refold.fx.tool.host.*.*", "{}", "create.tool-host"},
		{"$JS.API.CONSUMER.CREATE.REFOLD_LOG.x8f3_1.refold.*.*.s1", "{}", ""},
		{"$JS.API.CONSUMER.RESET.REFOLD_LOG.l3", "", "reset.l3"},
		{"$JS.API.CONSUMER.MSG.NEXT.REFOLD_LOG.l3", "{}", ""},
		{"$JS.API.DIRECT.GET.REFOLD_LOG", "{}", ""},
		{"$KV.REFOLD_SNAPSHOTS.s.s1", "x", "snapshot"},
		{"$KV.REFOLD_SNAPSHOTS.q.s1", "x", "quarantine"},
		{"$KV.REFOLD_SNAPSHOTS.l.07", "x", "key"},
		{"$KV.REFOLD_SNAPSHOTS.z.1", "x", "key"},
		{"$O.REFOLD_BLOBS.C.abc", "x", "chunk"},
		{"$O.REFOLD_BLOBS.M.abc", "x", "blob"},
		{"refold.install", "{}", "install"},
		{"refold.fx.tool.host.s1.r1t2c0", "x", "ask.r1t2c0"},
		{"refold.fx.claim.llm.p.s1.r1t2c0", `{"by":"i"}`, "claim.r1t2c0"},
		{"refold.fx.claim.llm.p.s1.r1t2.2", `{"by":"i"}`, "claim.r1t2"},
		{"refold.fx.claim.llm.p.s1.r1t2c0", `{"withdrawn":true}`, "withdraw.r1t2c0"},
		{"refold.out.s1", `{"n":1,"type":"RunStarted"}`, "notice.RunStarted"},
		{"refold.cancel.s1", `{"effects":["r1t1"]}`, "cancel"},
		{"refold.timer.s1.w1.1700000000000", "", "schedule.w1"},
		{"refold.tool.s1", `{"type":"ToolCallSettled","data":{"effect":"r1t2c0","status":"succeeded"}}`, "settle.r1t2c0"},
		{"refold.llm.s1", "{", "event.llm"},
		{"refold.alive.bridge.01J", "{}", ""},
		{"refold.live.s1", "{}", ""},
		{"_INBOX.x.y", "{}", ""},
		{"$SRV.PING", "", ""},
	} {
		got, ok := n.what(&frame{op: "PUB", subject: c.subject, payload: []byte(c.payload)})
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s %s: got %q, %v, want %q", c.subject, c.payload, got, ok, c.want)
		}
	}
}

// TestRepeatedMessageKeepsItsIdentity: a repeated message is the same; another
// quarantine is not.
func TestRepeatedMessageKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	n := namer{names}
	for _, c := range []struct {
		subject, payload string
		other, says      string
		same             bool
	}{
		{"$KV.REFOLD_SNAPSHOTS.q.s1", "x", "$KV.REFOLD_SNAPSHOTS.q.s1", "x", true},
		{"$KV.REFOLD_SNAPSHOTS.q.s1", "x", "$KV.REFOLD_SNAPSHOTS.q.s2", "x", false},
		{"$KV.REFOLD_SNAPSHOTS.s.s1", "x", "$KV.REFOLD_SNAPSHOTS.s.s1", "y", false},
	} {
		identity := func(subject, payload string) string {
			f := &frame{op: "PUB", subject: subject, payload: []byte(payload)}
			what, _ := n.what(f)
			return n.identity(what, f)
		}
		if same := identity(c.subject, c.payload) == identity(c.other, c.says); same != c.same {
			t.Errorf("%s %q and %s %q: the same %v, want %v", c.subject, c.payload, c.other, c.says, same, c.same)
		}
	}
}

func TestPointNames(t *testing.T) {
	t.Parallel()
	want := Point{Part: Bridge, Side: After, What: "claim.r1t2c0", N: 3}
	if name := want.String(); name != "bridge/after/claim.r1t2c0/3" {
		t.Errorf("got %s", name)
	}
	if got, err := ParsePoint(want.String()); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, name := range []string{"", "bridge/after/x", "nats/after/x/1", "bridge/beside/x/1", "bridge/after//1", "bridge/after/x/0", "bridge/after/x/one"} {
		if got, err := ParsePoint(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, got)
		}
	}
}

// TestSampleTakesEachKind: a sample has all kinds before it repeats one, and repeats
// all before it has one three times. It is the same for one seed.
func TestSampleTakesEachKind(t *testing.T) {
	t.Parallel()
	var all []Point
	for _, what := range []string{"create.l1", "create.l2", "chunk.1", "chunk.2", "chunk.3", "chunk.4", "ack.l0", "ack.l6", "ask.r1t1", "ask.r1t2"} {
		all = append(all, Point{SessionActor, Before, what, 1}, Point{SessionActor, After, what, 1})
	}
	var courses []Course
	for _, p := range all {
		courses = append(courses, Course{{At: p, Whom: Sender}}, Course{{At: p, Whom: NATSServer}})
	}
	some := Sample(courses, 16, 7)
	for n, most := range map[int]int{16: 1, 32: 2} {
		kinds := map[string]int{}
		for _, c := range Sample(courses, n, 7) {
			kinds[c.kind()]++
		}
		for kind, got := range kinds {
			if len(kinds) != 16 || got > most {
				t.Errorf("a sample of %d has %d courses of %s, of %d kinds", n, got, kind, len(kinds))
			}
		}
	}
	if again := Sample(courses, 16, 7); !slices.EqualFunc(again, some, slices.Equal) {
		t.Errorf("the same seed gave %v, then %v", some, again)
	}
	if most := Sample(courses, 100, 7); !slices.EqualFunc(most, courses, slices.Equal) {
		t.Errorf("a sample of more than there are: got %v, want all", most)
	}
}
