package e2e_test

// Attacks of users on the streams under the accounts that refold roles writes.
// Nobody but session-actors, erasers and administrators can delete anything, and a user
// reads only what its programs need.

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

const attackRoles = `
tenants:
  refold:
    session-actors: [actor]
    clients: [chat]
    approvers: [approver]
    operators: [operator]
    auditors: [auditor]
    admins: [admin]
    models: {models: [openai]}
    tools: {tools: [host]}
    step-hooks: {steps: [mine]}
    space-readers: {spaces: [files]}
    buckets: {spaces: [FILES]}
    publishers: [ci]
    app-asks: [shop]
    apps: [owner]
    http: {front: [crm]}
`

// attackers are all users whom nobody has trusted with deletions.
var attackers = []string{"chat", "approver", "operator", "auditor", "models", "tools", "steps", "spaces", "ci", "shop", "owner", "front"}

const helloScript = "rules:\n  - shown: {last: tool}\n    say: done\n  - say: hi\n"

// besieged starts a server, a session-actor and a bridge of models on accounts,
// runs one turn and stores a blob.
func besieged(t *testing.T) (g *guarded, s *system, model *daemon, kept codec.Ref) {
	t.Helper()
	g = writeRoles(t, attackRoles)
	g.startServer()
	s = g.start(nil)
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all streams are there
	model = g.hello()
	publish(t, s.nc, "refold.in.s1", helloRun(t))
	s.wantEnd("s1", 1, session.Completed, "")
	content := bytes.Repeat([]byte("private "), 50_000)
	return g, s, model, s.putBlob(content)
}

// hello starts a bridge of models that says hi.
func (g *guarded) hello() *daemon {
	g.t.Helper()
	return startDaemon(g.t, "bridge", g.daemon("models", "--model", "openai=scripted:"+writeFile(g.t, "script.yaml", helloScript))...)
}

func helloRun(t *testing.T) []byte {
	t.Helper()
	return envelope(t, session.TypeRunRequested, object{"input": object{"text": "hi"}, "config": object{"provider": "openai", "model": "m"}})
}

// putBlob stores a blob as docs/bridges.md describes it.
func (s *system) putBlob(content []byte) codec.Ref {
	s.t.Helper()
	ref, upload := codec.RefOf(content), rand.Text()
	chunks := 0
	for rest := content; len(rest) > 0; chunks++ {
		n := min(len(rest), 128<<10)
		publish(s.t, s.nc, "$O.REFOLD_BLOBS.C."+upload, rest[:n])
		rest = rest[n:]
	}
	publish(s.t, s.nc, blobSubject(ref), []byte(jsonText(s.t, object{
		"name": ref.String(), "bucket": "REFOLD_BLOBS", "nuid": upload, "size": len(content), "chunks": chunks, "digest": blobDigest(ref),
	})))
	return ref
}

// held returns how many messages each stream holds.
func (s *system) held() map[string]uint64 {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]uint64{}
	list := js.ListStreams(s.t.Context())
	for info := range list.Info() {
		all[info.Config.Name] = info.State.Msgs
	}
	if err := list.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// TestAttackStreamsOfOthers: every user requests to purge, delete, create, update
// and seal every stream, deletes messages, and rolls up what it may publish, alone
// and with a time to live. No stream loses a message, and the next run succeeds.
func TestAttackStreamsOfOthers(t *testing.T) {
	t.Parallel()
	g, s, _, kept := besieged(t)
	before := s.held()
	for _, user := range attackers {
		nc := g.connect(user, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		send := func(subject, body string, headers ...string) {
			msg := nats.NewMsg(subject)
			msg.Reply, msg.Data = "_INBOX_"+user+".x", []byte(body)
			for i := 0; i < len(headers); i += 2 {
				msg.Header.Set(headers[i], headers[i+1])
			}
			if err := nc.PublishMsg(msg); err != nil {
				t.Fatal(err)
			}
		}
		for _, api := range []string{"$JS.API.", "refold.api."} {
			for stream := range before {
				config := fmt.Sprintf(`{"name":%q,"subjects":["refold.x"],"max_msgs":1,"discard":"old"}`, stream)
				for verb, body := range map[string]string{
					"STREAM.PURGE": "", "STREAM.DELETE": "", "STREAM.MSG.DELETE": `{"seq":1}`, "STREAM.UPDATE": config, "STREAM.CREATE": config,
					"STREAM.SNAPSHOT": `{"deliver_subject":"refold.ctl.s1"}`, "STREAM.RESTORE": `{}`, "STREAM.LEADER.STEPDOWN": "", "STREAM.PEER.REMOVE": "{}",
				} {
					send(api+verb+"."+stream, body)
				}
			}
			send(api+"STREAM.CREATE.MINE", `{"name":"MINE","subjects":["refold.in.>"]}`)
			send(api+"ACCOUNT.PURGE.REFOLD", "")
		}
		for _, subject := range []string{"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.REFOLD.CONNZ", "$SYS.REQ.CLAIMS.UPDATE", "$JS.API.SERVER.REMOVE", "$JS.API.META.LEADER.STEPDOWN"} {
			send(subject, "{}")
		}
		for _, subject := range []string{
			"refold.in.s1", "refold.ctl.s1", "refold.approve.s1", "refold.llm.s1", "refold.tool.s1", "refold.step.s1", "refold.space.s1", "refold.wake.s1", "refold.install",
			"refold.pack.crm.v1", "refold.out.s1", "refold.dead.crm.s1", "refold.timer.s1.w1.1", "refold.due.s1.w1", "refold.fx.tool.host.s1.r1t1c0", "refold.fx.claim.tool.host.s1.r9t1c0",
			"$O.REFOLD_BLOBS.C.x", blobSubject(kept), "$KV.REFOLD_SNAPSHOTS.s.s1", "$KV.REFOLD_SNAPSHOTS.q.s9",
		} {
			for _, headers := range [][]string{
				{"Nats-Rollup", "all"}, {"Nats-Rollup", "sub"}, {"Nats-TTL", "1s"}, {"Nats-Incr", "1"}, {"Nats-Marker-Reason", "Purge"}, {"KV-Operation", "PURGE", "Nats-Rollup", "all"},
				{"Nats-Schedule", "@at 2030-01-01T00:00:00Z", "Nats-Schedule-Target", "refold.ctl.s1"},
			} {
				if user == "operator" && strings.HasPrefix(subject, "$KV.") && headers[0] != "Nats-TTL" {
					continue // it may stop and release sessions, and so rolls the bucket up: docs/operations.md
				}
				send(subject, "{}", headers...)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	after := s.held()
	for stream, n := range before {
		if after[stream] < n && stream != "REFOLD_TIMERS" { // a schedule that fires is removed
			t.Errorf("%s had %d messages, and has %d", stream, n, after[stream])
		}
	}
	if len(after) != len(before) {
		t.Errorf("there were %d streams, and are %d: %v", len(before), len(after), after)
	}
	s.wantBlob(kept)
	publish(t, s.nc, "refold.in.s2", helloRun(t))
	s.wantEnd("s2", 1, session.Completed, "")
}

// wantBlob wants that an administrator can read a blob.
func (s *system) wantBlob(ref codec.Ref) {
	s.t.Helper()
	c, err := client.Connect(s.t.Context(), client.Options{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if content, err := c.Blob(s.t.Context(), ref); err != nil || codec.RefOf(content) != ref {
		s.t.Errorf("blob %s: got %d bytes, %v", ref, len(content), err)
	}
}

// TestAttackContentOfOthers: users whose programs need no content of blobs can read
// none, by any request of JetStream.
func TestAttackContentOfOthers(t *testing.T) {
	t.Parallel()
	g, _, _, kept := besieged(t)
	for _, user := range []string{"chat", "ci", "shop"} {
		nc := g.connect(user, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		inbox := make(chan *nats.Msg, 1024)
		if _, err := nc.ChanSubscribe("_INBOX_"+user+".>", inbox); err != nil {
			t.Fatal(err)
		}
		const stream = "OBJ_REFOLD_BLOBS"
		for _, api := range []string{"$JS.API.", "refold.api."} {
			for _, subject := range []string{
				"DIRECT.GET." + stream, "STREAM.MSG.GET." + stream, "DIRECT.GET." + stream + ".$O.REFOLD_BLOBS.C.x", "DIRECT.GET." + stream + "." + blobSubject(kept),
				"CONSUMER.CREATE." + stream, "STREAM.SNAPSHOT." + stream,
			} {
				for _, body := range []string{`{"seq":1}`, `{"last_by_subj":"$O.REFOLD_BLOBS.C.>"}`, `{"seq":1,"next_by_subj":"$O.REFOLD_BLOBS.C.>","batch":100}`, `{"multi_last":["$O.REFOLD_BLOBS.>"]}`, ""} {
					if err := nc.PublishRequest(api+subject, "_INBOX_"+user+".x", []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		// The answer to a permitted request comes after all others.
		if err := nc.PublishRequest("refold.view.s1", "_INBOX_"+user+".last", nil); err != nil {
			t.Fatal(err)
		}
		if user == "ci" {
			if err := nc.PublishRequest("refold.api.INFO", "_INBOX_"+user+".last", nil); err != nil {
				t.Fatal(err)
			}
		}
		for last := false; !last; {
			select {
			case m := <-inbox:
				last = strings.HasSuffix(m.Subject, ".last")
				if !last && len(m.Data) > 0 && !bytes.Contains(m.Data, []byte(`"error"`)) && !isDescription(m.Data) {
					t.Errorf("%s read %d bytes: %.60q", user, len(m.Data), m.Data)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: no answer", user)
			}
		}
	}
}

// blobSubject is the subject of a blob's description.
func blobSubject(ref codec.Ref) string {
	return "$O.REFOLD_BLOBS.M." + base64.URLEncoding.EncodeToString([]byte(ref.String()))
}

func blobDigest(ref codec.Ref) string {
	return "SHA-256=" + base64.URLEncoding.EncodeToString(ref.Hash[:])
}

// isDescription reports whether a message only says which blob there is.
func isDescription(data []byte) bool {
	var d struct{ Name, Digest string }
	return json.Unmarshal(data, &d) == nil && strings.HasPrefix(d.Name, "sha256-")
}

// TestAttackLostBlobs: somebody with all rights has purged the blobs, and then only
// their chunks. The next runs succeed, without a restart, in sessions of the install
// record, with a registry of their own, and in one that had it before.
func TestAttackLostBlobs(t *testing.T) {
	t.Parallel()
	g, s, model, _ := besieged(t)
	registry := object{"tools": list{evil()}}
	s.at("old", s.say(session.DoorCtl, "old", session.TypeToolRegistrySet, registry))
	publish(t, s.nc, "refold.in.old", helloRun(t))
	s.wantEnd("old", 1, session.Completed, "")
	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := js.Stream(t.Context(), "OBJ_REFOLD_BLOBS")
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"$O.REFOLD_BLOBS.>", "$O.REFOLD_BLOBS.C.>", "$O.REFOLD_BLOBS.M.>"} {
		model.kill() // it has read the descriptors
		if err := blobs.Purge(t.Context(), jetstream.WithPurgeSubject(what)); err != nil {
			t.Fatal(err)
		}
		model = g.hello()
		own := fmt.Sprintf("own%d", i)
		s.at(own, s.say(session.DoorCtl, own, session.TypeToolRegistrySet, registry))
		for _, sid := range []string{"s1", own, "old"} {
			publish(t, s.nc, "refold.in."+sid, helloRun(t))
			run := uint32(1)
			if sid != own {
				run = uint32(2 + i)
			}
			s.wantEnd(sid, run, session.Completed, "")
		}
	}
}

// TestAttackHeadersOfEvents: a client publishes events with headers that have JetStream
// expire, replace, count or schedule messages. The server refuses them, or stores the
// event as any other, and removes none.
func TestAttackHeadersOfEvents(t *testing.T) {
	t.Parallel()
	g, s, _, _ := besieged(t)
	nc := g.connect("chat", nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	want := len(logOf(t, s.nc, session.DoorIn, "s1"))
	for _, headers := range [][2]string{
		{"Nats-TTL", "1s"}, {"Nats-TTL", "never"}, {"Nats-Rollup", "all"}, {"Nats-Rollup", "sub"}, {"Nats-Incr", "+1"}, {"Nats-Counter-Sources", "{}"},
		{"Nats-Schedule", "@at 2030-01-01T00:00:00Z"}, {"Nats-Schedule-Target", "refold.ctl.s1"}, {"Nats-Schedule-TTL", "1s"}, {"Nats-Scheduler", "refold.timer.s1.w1.1"},
		{"Nats-Marker-Reason", "Remove"},
	} {
		msg := nats.NewMsg("refold.in.s1")
		msg.Header.Set(headers[0], headers[1])
		if headers[0] == "Nats-Schedule" {
			msg.Header.Set("Nats-Schedule-Target", "refold.ctl.s1")
		}
		msg.Data = helloRun(t)
		answer, err := nc.RequestMsg(msg, endWithin)
		if err != nil {
			t.Fatalf("%v: %v", headers, err)
		}
		refused := bytes.Contains(answer.Data, []byte(`"error"`))
		if acts := headers[0] == "Nats-TTL" || headers[0] == "Nats-Rollup" || headers[0] == "Nats-Incr" || headers[0] == "Nats-Schedule"; acts && !refused {
			t.Errorf("%v: the server answers %s, want an error", headers, answer.Data)
		}
		if !refused {
			want++
		}
	}
	if got := len(logOf(t, s.nc, session.DoorIn, "s1")); got != want {
		t.Errorf("the log has %d events of clients, want %d", got, want)
	}
	for _, door := range []session.Door{session.DoorCtl, session.DoorApprove} {
		if events := logOf(t, s.nc, door, "s1"); len(events) > 0 {
			t.Errorf("%d events came through %s, the first: %s", len(events), door, events[0])
		}
	}
}

// TestAttackQueueOfOneSession: a client asks one session for 4,000 runs. A run of
// another session in the same lane waits for none of them, and is as fast as before
// once they are queued.
func TestAttackQueueOfOneSession(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules:\n  - shown: {asked: ^slow}\n    wait: 60s\n    say: hi\n  - say: hi\n", "openai")
	config := object{"provider": "openai", "model": "m"}
	other, number := inLaneOf("flood"), uint32(0)
	run := func() (took time.Duration) {
		began := time.Now()
		number++
		s.run(session.DoorIn, other, "hi", config)
		s.wantEnd(other, number, session.Completed, "")
		return time.Since(began)
	}
	fastest := func() time.Duration { return min(run(), run(), run(), run(), run()) } // others use the machine, too
	run()
	before := fastest()

	const runs = 4000
	payload := envelope(t, session.TypeRunRequested, object{"input": object{"text": "slow"}, "config": config})
	for range runs {
		if err := s.nc.Publish("refold.in.flood", payload); err != nil {
			t.Fatal(err)
		}
	}
	run() // with the requests before it in its lane
	v := s.view("flood", "all requests are folded", func(v session.View) bool { return v.Seq >= runs })
	if v.Run == nil || len(v.Queue) == 0 || len(v.Queue) > session.QueueMax {
		t.Errorf("the flood: runs %+v, and %d wait; want one to run, and 1 to %d to wait", v.Run, len(v.Queue), session.QueueMax)
	}
	if after := fastest(); after > slowerMax*before {
		t.Errorf("a run of %s takes %v beside %d queued ones in its lane, and %v before; want %d times as long at most", other, after, len(v.Queue), before, slowerMax)
	}
}

// slowerMax is how much longer a run may take beside a queue: less than if it
// waited for one of the queued runs, or folded its session for each of them.
const slowerMax = 8
