package subjects

// The golden file has every name that Refold uses on the wire, under the default prefix
// and under another. The other tests check that names that are made parse, and that no
// others do.

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/space"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

func mustNames(t *testing.T, prefix string) Names {
	t.Helper()
	n, err := New(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// printer writes "what: name" lines and fails the test on any error.
type printer struct {
	t   *testing.T
	out strings.Builder
}

func (p *printer) section(name string) { fmt.Fprintf(&p.out, "\n# %s\n", name) }

func (p *printer) name(what, name string) { fmt.Fprintf(&p.out, "%-22s %s\n", what, name) }

func (p *printer) made(what string) func(string, error) {
	return func(name string, err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		p.name(what, name)
	}
}

func printNames(t *testing.T, n Names) string {
	p := &printer{t: t}
	fmt.Fprintf(&p.out, "prefix %s\n", n.Prefix())
	p.section("streams, and the subjects that they listen to")
	for _, s := range n.Streams() {
		p.name(s, strings.Join(n.StreamSubjects(s), " "))
	}
	source, destination := n.LogTransform()
	p.name("transform", source+" → "+destination)
	p.section("buckets and keys")
	p.name("snapshots", n.SnapshotsBucket())
	p.name("blobs", n.BlobsBucket())
	p.made("snapshot")(SnapshotKey("s1"))
	p.made("quarantine")(QuarantineKey("s1"))
	p.name("lane's note", GuardKey(7))
	p.name("key filters", SnapshotKeys+" "+QuarantineKeys)
	p.name("key's subject", n.SnapshotsSubject("s.s1"))
	p.name("blob's subject", n.BlobSubject("c2hhMjU2LQ=="))
	p.name("blob's chunks", n.BlobChunks("upload"))
	p.section("events: published, stored")
	for _, d := range append(Doors(), session.DoorInstall) {
		sid := "s1"
		if d == session.DoorInstall {
			sid = ""
		}
		p.made("publish " + string(d))(n.Log(d, sid))
		p.made("store " + string(d))(n.Stored(d, sid))
	}
	p.made("session")(n.Session("s1"))
	p.section("effects and claims")
	for _, c := range Classes() {
		p.made("effect " + string(c))(n.Effect(EffectName{c, "t", "s1", "r1t2"}))
		p.made("filter " + string(c))(n.BridgeFilter(c, "t"))
		p.made("consumer " + string(c))(BridgeName(c, "t"))
	}
	p.made("claim")(n.Claim(ClaimName{EffectName{session.ClassLLM, "t", "s1", "r1t2"}, 1}))
	p.made("claim 2")(n.Claim(ClaimName{EffectName{session.ClassLLM, "t", "s1", "r1t2"}, 2}))
	p.made("effects of a session")(n.SessionEffects("s1"))
	p.section("packs")
	p.made("version")(n.Pack("crm", "1.4.2-rc.1"))
	p.made("versions")(n.PackVersions("crm"))
	p.made("signature")(n.PackSignature("crm", "1.4.2-rc.1", space.Signature{Key: "UAA7GZO7ROYVCNT6PZHJJWWHYXI2XMBUF5AQZL6SRG7WS3MYXL44HTNF", Sig: strings.Repeat("A", 86)}))
	p.name("all", n.PackAll())
	p.name("signatures", n.PackSignatures())
	p.name("everything", n.PackEverything())
	p.section("lanes")
	for lane := range LanesDefault {
		p.name(LaneName(lane), strings.Join(n.LaneFilters(lane, LanesDefault), " "))
	}
	p.name("group", LaneGroup)
	p.section("what is observed")
	p.made("out")(n.Out("s1"))
	p.made("live")(n.Live("s1"))
	p.made("progress")(n.Progress("s1"))
	p.made("cancel")(n.Cancel("s1"))
	p.made("view")(n.View("s1"))
	p.made("readers")(n.Readers("packs"))
	p.made("alive")(n.Alive(KindSessionActor, "i1"))
	p.made("alive")(n.Alive(KindBridge, "i1"))
	p.made("timer")(n.Timer("s1", "w1", 1700000000000))
	p.made("due")(n.Due("s1", "w1"))
	p.name("consumer", DueConsumer)
	p.name("all", strings.Join([]string{n.OutAll(), n.LiveAll(), n.ProgressAll(), n.CancelAll(), n.ViewAll(), n.ReadersAll(), n.AliveAll(KindSessionActor), n.AliveAll(KindBridge), n.DueAll()}, " "))
	p.section("webhooks")
	p.made("consumer")(WebhookConsumer("crm"))
	p.made("dead letter")(n.Dead("crm", "s1"))
	p.made("dead letters")(n.DeadOf("crm"))
	p.made("about a session")(n.DeadAbout("s1"))
	p.section("erasure")
	p.made("ledger")(n.Erased("s1"))
	p.made("redacted")(n.Redacted("s1", 41))
	p.name("all redacted", n.RedactedAll())
	p.name("all", n.ErasedAll())
	claims, err := n.SessionClaims("s1")
	p.made("claims")(strings.Join(claims, " "), err)
	p.section("services")
	p.name("services", n.ServiceName("session-actor")+" "+n.ServiceName("bridge"))
	p.made("stats")(n.ServiceStats("bridge", "i1"))
	p.section("patterns of permissions")
	for _, d := range append(Doors(), session.DoorInstall) {
		p.name("all of "+string(d), n.DoorAll(d))
	}
	p.name("stored", n.StoredAll(session.DoorCtl))
	p.name("effects", n.EffectsAll())
	p.name("claims", strings.Join(n.ClaimsAll(session.ClassTool, "host"), " "))
	p.name("timers", n.TimersAll())
	p.name("API elsewhere", n.API())
	p.name("accounts", n.Account("")+" "+n.Account("client"))
	p.name("services", ServicesAll)
	return p.out.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	got := printNames(t, mustNames(t, "")) + "\n" + printNames(t, mustNames(t, "my-app"))
	p := &printer{t: t}
	p.section("headers")
	for _, h := range []string{
		HeaderContentType, HeaderTraceParent, HeaderMsgID, HeaderExpectLastSubject, HeaderExpectLastOn, HeaderPinID,
		HeaderBatchID, HeaderBatchSequence, HeaderBatchCommit, HeaderSubject, HeaderSequence,
		HeaderTimeStamp, HeaderNumPending, HeaderLastSequence, HeaderRollup, HeaderSchedule, HeaderScheduleTarget, HeaderKVOperation, HeaderServiceError,
		HeaderServiceErrorCode, HeaderStatus, HeaderDescription,
	} {
		fmt.Fprintln(&p.out, h)
	}
	p.name("rollup", RollupSubject)
	p.name("content type", ContentTypeMsgpack)
	p.name("id of notice 3", NoticeID("s1", 3))
	got += p.out.String()
	path := filepath.Join("testdata", "names.golden")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("names changed: a change of the wire; if it is meant, go test -rewrite\ngot:\n%s\nwant:\n%s", got, want)
	}
}

// The server computes the partition; these pairs are what nats-server 2.15
// stored (internal/journal tests it against a running server, too).
func TestPartitionMatchesTheServer(t *testing.T) {
	t.Parallel()
	for sid, want := range map[string]int{"s1": 9, "s2": 16, "airline-1": 11} {
		if got := Partition(sid); got != want {
			t.Errorf("Partition(%q): got %d, want %d", sid, got, want)
		}
	}
}

func TestLanesCoverEachPartitionOnce(t *testing.T) {
	t.Parallel()
	n := mustNames(t, "")
	for _, count := range []int{1, 4, 8, 16, 64} {
		var all []string
		for lane := range count {
			filters := n.LaneFilters(lane, count)
			if last := filters[len(filters)-1]; last != n.Install() {
				t.Errorf("lane %d of %d: got last filter %s, want %s", lane, count, last, n.Install())
			}
			all = append(all, filters[:len(filters)-1]...)
		}
		slices.Sort(all)
		if got := len(slices.Compact(all)); got != Partitions || len(all) != Partitions {
			t.Errorf("%d lanes: got %d filters, %d of them different, want %d", count, len(all), got, Partitions)
		}
	}
	for p := range Partitions {
		subject := fmt.Sprintf("refold.%d.*.*", p)
		if !slices.Contains(n.LaneFilters(Lane(p), LanesDefault), subject) {
			t.Errorf("lane %d does not deliver %s", Lane(p), subject)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"Refold", "1a", "-a", "a.b", "a b", "a>", "a*", "$a", "é", strings.Repeat("a", 33)} {
		if _, err := New(bad); err == nil {
			t.Errorf("New(%q): got no error", bad)
		}
	}
	for _, good := range []string{"", "a", "a-b_2", strings.Repeat("a", 32)} {
		if _, err := New(good); err != nil {
			t.Errorf("New(%q): got %v", good, err)
		}
	}
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	n := mustNames(t, "")
	for _, bad := range []string{"", "a.b", "a b", "*", ">", "a>", "é", "a\n", "a\x00", "a:b", strings.Repeat("a", 65)} {
		for what, err := range map[string]error{
			"session":         ValidSession(bad),
			"log":             second(n.Log(session.DoorIn, bad)),
			"stored":          second(n.Stored(session.DoorIn, bad)),
			"filter":          second(n.Session(bad)),
			"effect session":  second(n.Effect(EffectName{session.ClassTool, "t", bad, "r1t1"})),
			"effect target":   second(n.Effect(EffectName{session.ClassTool, bad, "s1", "r1t1"})),
			"effect name":     second(n.Effect(EffectName{session.ClassTool, "t", "s1", bad})),
			"effect class":    second(n.Effect(EffectName{session.Class(bad), "t", "s1", "r1t1"})),
			"claim session":   second(n.Claim(ClaimName{EffectName{session.ClassTool, "t", bad, "r1t1"}, 1})),
			"claim effect":    second(n.Claim(ClaimName{EffectName{session.ClassTool, "t", "s1", bad}, 1})),
			"claim target":    second(n.Claim(ClaimName{EffectName{session.ClassTool, bad, "s1", "r1t1"}, 1})),
			"claim class":     second(n.Claim(ClaimName{EffectName{session.Class(bad), "t", "s1", "r1t1"}, 1})),
			"out":             second(n.Out(bad)),
			"live":            second(n.Live(bad)),
			"progress":        second(n.Progress(bad)),
			"cancel":          second(n.Cancel(bad)),
			"view":            second(n.View(bad)),
			"readers":         second(n.Readers(bad)),
			"alive":           second(n.Alive(KindBridge, bad)),
			"alive kind":      second(n.Alive(bad, "i1")),
			"stats":           second(n.ServiceStats("bridge", bad)),
			"timer session":   second(n.Timer(bad, "w1", 1)),
			"timer wake":      second(n.Timer("s1", bad, 1)),
			"due":             second(n.Due("s1", bad)),
			"snapshot key":    second(SnapshotKey(bad)),
			"quarantine key":  second(QuarantineKey(bad)),
			"consumer":        second(BridgeName(session.ClassTool, bad)),
			"consumer filter": second(n.BridgeFilter(session.ClassTool, bad)),
		} {
			if err == nil {
				t.Errorf("%s with %q: got no error", what, bad)
			}
		}
	}
	for what, err := range map[string]error{
		"claim 0":              second(n.Claim(ClaimName{EffectName{session.ClassTool, "t", "s1", "r1t1"}, 0})),
		"unknown door":         second(n.Log("door", "s1")),
		"install of a session": second(n.Log(session.DoorInstall, "s1")),
		"in of no session":     second(n.Log(session.DoorIn, "")),
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
}

func second(_ string, err error) error { return err }

// Only subjects that a function made can be parsed.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	n := mustNames(t, "")
	p := Partition("s1")
	for _, subject := range []string{
		"", "refold", "refold.install.s1", "other.install", "refold.in.s1",
		fmt.Sprintf("refold.%d.in.s1", p+1), fmt.Sprintf("refold.0%d.in.s1", p), fmt.Sprintf("refold.%d.door.s1", p),
		fmt.Sprintf("refold.%d.install.s1", p), fmt.Sprintf("refold.%d.in.s1.x", p), fmt.Sprintf("other.%d.in.s1", p),
		fmt.Sprintf("refold.%d.in.s:1", Partition("s:1")),
	} {
		if door, sid, err := n.ParseStored(subject); err == nil {
			t.Errorf("ParseStored(%q): got %s %s, want an error", subject, door, sid)
		}
	}
	beside := "refold.fx.tool.t.s1.r1t1c0-01M8J3VHEQE978P80M1CNA85FM"
	want := EffectName{Class: session.ClassTool, Target: "t", Session: "s1", Effect: "r1t1c0"}
	if name, err := n.ParseEffect(beside); err != nil || name != want {
		t.Errorf("ParseEffect(%q): got %v, %v, want %v", beside, name, err, want)
	}
	if got, err := n.EffectOf(want, "01M8J3VHEQE978P80M1CNA85FM"); err != nil || got != beside {
		t.Errorf("EffectOf: got %q, %v, want %q", got, err, beside)
	}
	for _, subject := range []string{
		"", "refold.fx.tool.t.s1", "refold.fx.claim.x.s1.2", "refold.fx.claim.tool.t.s1.r1t1", "refold.fx.none.t.s1.r1t1", "refold.xx.tool.t.s1.r1t1",
		"other.fx.tool.t.s1.r1t1", "refold.fx.tool.t.s1.r1t1.x", "refold.fx.tool..s1.r1t1",
	} {
		if name, err := n.ParseEffect(subject); err == nil {
			t.Errorf("ParseEffect(%q): got %v, want an error", subject, name)
		}
	}
	for _, subject := range []string{
		"", "refold.fx.claim.tool.t.s1", "refold.fx.claim.tool.t.s1.r1t1.1", "refold.fx.claim.tool.t.s1.r1t1.02", "refold.fx.claim.tool.t.s1.r1t1.x",
		"refold.fx.claim.tool.t.s1.r1t1.-2", "refold.fx.tool.t.s1.r1t1", "other.fx.claim.tool.t.s1.r1t1", "refold.fx.claim.tool.t.s1.r1t1.2.3",
		"refold.fx.claim.s1.r1t1", "refold.fx.claim.s1.r1t1.2", "refold.fx.claim.none.t.s1.r1t1", "refold.fx.claim.tool..s1.r1t1",
	} {
		if name, err := n.ParseClaim(subject); err == nil {
			t.Errorf("ParseClaim(%q): got %v, want an error", subject, name)
		}
	}
	for _, name := range []string{"", "l", "l-1", "l01", "x0", "l1x"} {
		if lane, ok := ParseLaneName(name); ok {
			t.Errorf("ParseLaneName(%q): got %d, want none", name, lane)
		}
	}
	for _, name := range []string{"", "tool-", "none-t", "none", "tool-a.b"} {
		if class, target, ok := ParseBridgeName(name); ok {
			t.Errorf("ParseBridgeName(%q): got %s %s, want none", name, class, target)
		}
	}
	for _, subject := range []string{
		"", "refold.alive.", "refold.alive.a", "refold.alive.a.b", "refold.alive.bridge.", "refold.alive.bridge.a.b", "other.alive.bridge.a", "refold.out.bridge.a",
	} {
		if kind, instance, err := n.ParseAlive(subject); err == nil {
			t.Errorf("ParseAlive(%q): got %s %s, want an error", subject, kind, instance)
		}
	}
	for _, subject := range []string{"", "refold.out.", "refold.out.a.b", "refold.live.s1"} {
		if sid, err := n.ParseOut(subject); err == nil {
			t.Errorf("ParseOut(%q): got %s, want an error", subject, sid)
		}
	}
	for _, subject := range []string{"", "refold.due.s1", "refold.due.s1.w1.x", "refold.timer.s1.w1"} {
		if sid, wake, err := n.ParseDue(subject); err == nil {
			t.Errorf("ParseDue(%q): got %s %s, want an error", subject, sid, wake)
		}
	}
}

// Only an identity of a log is cut off an effect's name, not what is as long.
func TestEffectBesideAnothers(t *testing.T) {
	t.Parallel()
	n, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	const log = "01K5E2XJ5T6RNE2Y9V2S1P7M3Q"
	for _, effect := range []string{"r1t1c0", strings.Repeat("-", 28), "a-" + strings.Repeat("u", 26)} {
		want := EffectName{session.ClassTool, "t", "s1", effect}
		for _, subjectOf := range []func() (string, error){
			func() (string, error) { return n.Effect(want) }, func() (string, error) { return n.EffectOf(want, log) },
		} {
			subject, err := subjectOf()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := n.ParseEffect(subject); err != nil || got != want {
				t.Errorf("%s: got %v %v", subject, got, err)
			}
		}
	}
}

// A subject parses to the parts of which it was made.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
		n, err := New(rapid.StringMatching(`[a-z][a-z0-9_-]{0,31}`).Draw(t, "prefix"))
		if err != nil {
			t.Fatal(err)
		}
		sid, effect, target := token.Draw(t, "sid"), token.Draw(t, "effect"), token.Draw(t, "target")
		door, class := rapid.SampledFrom(Doors()).Draw(t, "door"), rapid.SampledFrom(Classes()).Draw(t, "class")

		subject, err := n.Stored(door, sid)
		if err != nil {
			t.Fatal(err)
		}
		if d, s, err := n.ParseStored(subject); err != nil || d != door || s != sid {
			t.Errorf("%s: got %s %s %v", subject, d, s, err)
		}
		want := EffectName{class, target, sid, effect}
		if subject, err = n.Effect(want); err != nil {
			t.Fatal(err)
		}
		if got, err := n.ParseEffect(subject); err != nil || got != want {
			t.Errorf("%s: got %v %v", subject, got, err)
		}
		claim := ClaimName{want, rapid.IntRange(1, 99).Draw(t, "n")}
		if subject, err = n.Claim(claim); err != nil {
			t.Fatal(err)
		}
		if got, err := n.ParseClaim(subject); err != nil || got != claim {
			t.Errorf("%s: got %v %v", subject, got, err)
		}
		name, err := BridgeName(class, target)
		if err != nil {
			t.Fatal(err)
		}
		if c, tg, ok := ParseBridgeName(name); !ok || c != class || tg != target {
			t.Errorf("%s: got %s %s %v", name, c, tg, ok)
		}
		if subject, err = n.Due(sid, effect); err != nil {
			t.Fatal(err)
		}
		if s, w, err := n.ParseDue(subject); err != nil || s != sid || w != effect {
			t.Errorf("%s: got %s %s %v", subject, s, w, err)
		}
		for _, pair := range []struct {
			make  func(string) (string, error)
			parse func(string) (string, error)
		}{{n.Out, n.ParseOut}, {n.Live, n.ParseLive}, {n.Cancel, n.ParseCancel}, {n.View, n.ParseView}} {
			subject, err := pair.make(sid)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := pair.parse(subject); err != nil || got != sid {
				t.Errorf("%s: got %s %v", subject, got, err)
			}
		}
		kind := rapid.SampledFrom([]string{KindSessionActor, KindBridge}).Draw(t, "kind")
		if subject, err = n.Alive(kind, sid); err != nil {
			t.Fatal(err)
		}
		if k, i, err := n.ParseAlive(subject); err != nil || k != kind || i != sid {
			t.Errorf("%s: got %s %s %v", subject, k, i, err)
		}
		key, err := SnapshotKey(sid)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := ParseSnapshotKey(key); !ok || got != sid {
			t.Errorf("%s: got %s %v", key, got, ok)
		}
		if got, ok := ParseQuarantineKey(key); ok {
			t.Errorf("%s is a quarantine of %s, want none", key, got)
		}
	})
}
