package trial_test

// Attacks on the separation of accounts. In each, a user of the table does
// something that its programs never do.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/roles"
)

// attacker connects as a user whom the server may refuse anything.
func (s *stage) attacker(name string) *nats.Conn {
	s.t.Helper()
	return s.as("refold", name, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

// forged is an event that an operator may say.
const forged = `{"type":"FactsSet","data":{"facts":{"role":"admin"}}}`

// TestAttackReplySubject: every user sends every request that it may, with each
// subject to which it may not publish as the reply subject. The requested
// message is an event, and so are the answers to requests for views. No stream
// stores any of them.
func TestAttackReplySubject(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	admin := s.as("refold", "admin")
	if _, err := admin.Request("refold.in.s1", []byte(forged), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Subscribe("refold.view.*", func(m *nats.Msg) { _ = m.Respond([]byte(forged)) }); err != nil {
		t.Fatal(err)
	}
	if err := admin.Flush(); err != nil {
		t.Fatal(err)
	}
	all, err := roles.Subjects(s.users)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, u := range s.users {
		if u.Role == roles.Admin || u.Role == roles.SessionActor || u.Prefix != "refold" {
			continue // they are in the account that has the streams, and trusted
		}
		as, err := s.file.Trying(u)
		if err != nil {
			t.Fatal(err)
		}
		nc := s.attacker(u.Name)
		for _, to := range all {
			if to.Prefix != "refold" || streamOf(t, to) == "" || as.May(to)&roles.Publish != 0 {
				continue
			}
			before := mark(t, admin, to)
			for _, api := range []string{"$JS.API.", "refold.api."} {
				for _, subject := range []string{api + "DIRECT.GET.REFOLD_LOG", api + "STREAM.MSG.GET.REFOLD_LOG", api + "INFO", "refold.view.s1", "refold.in.s2", "$SRV.PING"} {
					asked++
					if err := nc.PublishRequest(subject, to.Name, []byte(`{"seq":1}`)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := admin.Flush(); err != nil { // its answers
				t.Fatal(err)
			}
			wants := before + 1
			if u.Role == roles.Client || u.Role == roles.Operator || u.Role == roles.App || u.Role == roles.AppAsk || u.Role == roles.HTTP || u.Role == roles.Loopback {
				continue // it may fill the log itself, and does so here: what else is stored the next test tells
			}
			if got := mark(t, admin, to); got != wants {
				t.Errorf("%s (%s) had %d answers stored by way of %s", u, u.Role, got-wants, to.Name)
			}
		}
	}
	if asked < 1000 {
		t.Errorf("%d requests were made", asked)
	}
	s.wantLogHasOnly("refold.in.s1", "refold.in.s2")
}

// wantLogHasOnly wants that the forged event is in the log under no other
// subject than those: marks are empty.
func (s *stage) wantLogHasOnly(subjects ...string) {
	s.t.Helper()
	admin := s.as("refold", "admin")
	for seq := uint64(1); ; seq++ {
		m, err := admin.Request("$JS.API.DIRECT.GET.REFOLD_LOG", fmt.Appendf(nil, `{"seq":%d}`, seq), 20*time.Second)
		if err != nil {
			s.t.Fatal(err)
		}
		if m.Header.Get("Status") == "404" {
			return
		}
		if subject := m.Header.Get("Nats-Subject"); len(m.Data) > 0 && !slices.Contains(subjects, subject) {
			s.t.Errorf("the log has at %d, on %s: %s", seq, subject, m.Data)
		}
	}
}

// TestAttackOnAnotherClient: a client receives nothing of another one except
// what all clients may receive. It can send it nothing, neither directly nor by
// replies that it redirects.
func TestAttackOnAnotherClient(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	victim, evil, admin := s.attacker("chat1"), s.attacker("chat2"), s.as("refold", "admin")
	if _, err := admin.Subscribe("refold.view.*", func(m *nats.Msg) { _ = m.Respond([]byte(forged)) }); err != nil {
		t.Fatal(err)
	}
	if err := admin.Flush(); err != nil {
		t.Fatal(err)
	}
	heard, read := make(chan *nats.Msg, 64), make(chan *nats.Msg, 64)
	for _, of := range []struct {
		nc       *nats.Conn
		subjects []string
		into     chan *nats.Msg
	}{
		{victim, []string{"refold.out.*", "refold.live.*", "refold.progress.*", "_INBOX_chat1.x"}, heard},
		{evil, []string{"refold.in.*", "refold.view.*", "_INBOX_chat1.>", ">"}, read},
	} {
		for _, subject := range of.subjects {
			if _, err := of.nc.ChanSubscribe(subject, of.into); err != nil {
				t.Fatal(err)
			}
		}
		if err := of.nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"refold.out.s1", "refold.live.s1", "refold.progress.s1", "_INBOX_chat1.x"} {
		if err := evil.Publish(to, []byte(forged)); err != nil {
			t.Fatal(err)
		}
		for _, ask := range []string{"refold.view.s1", "refold.in.s1"} {
			if err := evil.PublishRequest(ask, to, []byte(forged)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := evil.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Publish("refold.in.s1", []byte("private")); err != nil {
		t.Fatal(err)
	}
	if _, err := victim.Request("refold.view.s1", []byte("private"), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	// The last word is the session-actor's, and both may hear it.
	if err := admin.Publish("refold.out.s1", []byte("last")); err != nil {
		t.Fatal(err)
	}
	if m := next(t, heard); string(m.Data) != "last" {
		t.Errorf("the victim heard on %s: %s", m.Subject, m.Data)
	}
	if err := evil.Flush(); err != nil {
		t.Fatal(err)
	}
	for len(read) > 0 {
		if m := <-read; string(m.Data) != "last" {
			t.Errorf("the other client read on %s: %s", m.Subject, m.Data)
		}
	}
}

func next(t *testing.T, from chan *nats.Msg) *nats.Msg {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-t.Context().Done():
	case <-time.After(20 * time.Second):
	}
	t.Fatal("nothing is heard")
	return nil
}

// TestAttackConsumerThatPushes: a bridge and an auditor can't create a consumer
// that pushes stored messages to a door, or to the key that stops a session.
func TestAttackConsumerThatPushes(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	admin := s.as("refold", "admin")
	for _, subject := range []string{"refold.fx.llm.openai.s1.r1t1", "refold.out.s1", "refold.timer.s1.w1.1", "$O.REFOLD_BLOBS.C.x"} {
		if _, err := admin.Request(subject, []byte(forged), 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"models", "tools", "steps", "spaces", "shop", "page", "auditor", "approver", "chat1"} {
		nc := s.attacker(name)
		for _, api := range []string{"$JS.API.", "refold.api."} {
			for _, of := range []struct{ stream, consumer, filter string }{
				{"REFOLD_FX", "llm-openai", "refold.fx.llm.openai.*.*"}, {"REFOLD_OUT", "x", "refold.out.*"},
				{"REFOLD_TIMERS", "due", "refold.timer.*.*.*"}, {"OBJ_REFOLD_BLOBS", "x", "$O.REFOLD_BLOBS.C.>"},
			} {
				for _, to := range []string{"refold.ctl.s1", "$KV.REFOLD_SNAPSHOTS.q.s1"} {
					body := fmt.Sprintf(`{"stream_name":%q,"config":{"name":%q,"durable_name":%q,"filter_subject":%q,"deliver_subject":%q,"ack_policy":"none","deliver_policy":"all"}}`, of.stream, of.consumer, of.consumer, of.filter, to)
					for _, subject := range []string{"CONSUMER.CREATE." + of.stream + "." + of.consumer + "." + of.filter, "CONSUMER.CREATE." + of.stream + "." + of.consumer, "CONSUMER.DURABLE.CREATE." + of.stream + "." + of.consumer} {
						if err := nc.Publish(api+subject, []byte(body)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT", "REFOLD_TIMERS", "OBJ_REFOLD_BLOBS"} {
		m, err := admin.Request("$JS.API.CONSUMER.NAMES."+stream, nil, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(m.Data), `"consumers":[]`; !strings.Contains(got, want) {
			t.Errorf("%s has consumers: %s", stream, got)
		}
	}
	for _, stream := range []string{"REFOLD_LOG", "KV_REFOLD_SNAPSHOTS"} {
		if got := s.stored("refold")[stream]; got != [2]uint64{} {
			t.Errorf("%s holds and took %v messages", stream, got)
		}
	}
}

// TestAttackOnClaimsOfOthers: a bridge of models can neither claim nor withdraw
// effects of others.
func TestAttackOnClaimsOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	for name, theirs := range map[string][]string{
		"models": {"tool.host.s1.r1t1c0", "tool.mail.s1.r1t1c0", "llm.other.s1.r1t1", "llm.other.s1.r1t1.2"},
		"mail":   {"tool.host.s1.r1t1c0", "tool.host-w1.s1.r1t1c0", "llm.openai.s1.r1t1"},
		"chat1":  {"tool.host.s1.r1t1c0"}, "auditor": {"tool.host.s1.r1t1c0"}, "page": {"tool.shop.s1.r1t1c0"},
		"shop": {"tool.mail.s1.r1t1c0", "llm.openai.s1.r1t1", "step.mine.s1.r1t1", "space.git.s1.r1"},
	} {
		nc := s.attacker(name)
		for _, effect := range theirs {
			if err := nc.Publish("refold.fx.claim."+effect, []byte(`{"by":"evil","withdrawn":true}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	admin := s.as("refold", "admin")
	m, err := admin.Request("refold.fx.claim.llm.openai.s9.r1t1", nil, 20*time.Second)
	if err != nil || !strings.Contains(string(m.Data), `"seq":1`) {
		t.Errorf("the stream of claims answers %s, %v: want that this is its first", m.Data, err)
	}
}

// TestAttackAppReachesOthers: a program that owns an agent reaches no door, stream or
// target that is not its own, neither directly nor through JetStream.
func TestAttackAppReachesOthers(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	admin := s.as("refold", "admin")
	for _, subject := range []string{"refold.in.s1", "refold.fx.tool.mail.s1.r1t1c0"} {
		if _, err := admin.Request(subject, []byte(forged), 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	before := s.stored("refold")
	for _, name := range []string{"shop", "page"} {
		s.reachesOthers(admin, name, []string{
			"refold.install", "refold.space.s1", "refold.wake.s1", "refold.out.s1", "refold.timer.s1.w1.1", "refold.pack.crm.v1", "$KV.REFOLD_SNAPSHOTS.q.s1", "$KV.REFOLD_SNAPSHOTS.s.s1",
			"refold.fx.tool.shop.s1.r1t1c0", "refold.fx.claim.tool.mail.s1.r1t1c0", "refold.fx.claim.llm.openai.s1.r1t1", "refold.fx.claim.step.mine.s1.r1t1",
		}, "REFOLD_FX.tool-mail", "REFOLD_FX.tool-host", "REFOLD_FX.llm-openai", "REFOLD_FX.step-mine", "REFOLD_FX.space-git")
	}
	s.wantStored(admin, before, 2)
}

// TestAttackServerOfHTTPReachesOthers: a program with the role http can configure no
// session and decide over no call, writes dead letters of its own webhooks alone, and has
// no stored message pushed, or delivered by its webhook, to another door.
func TestAttackServerOfHTTPReachesOthers(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	admin := s.as("refold", "admin")
	for subject, body := range map[string]string{
		"refold.in.s1": forged, "refold.out.s1": forged, "refold.dead.crm.s1": forged,
		"$JS.API.CONSUMER.CREATE.REFOLD_OUT.webhook-crm": `{"stream_name":"REFOLD_OUT","config":{"durable_name":"webhook-crm","ack_policy":"explicit","filter_subject":"refold.out.*"}}`,
		"$JS.API.CONSUMER.CREATE.REFOLD_OUT.webhook-erp": `{"stream_name":"REFOLD_OUT","config":{"durable_name":"webhook-erp","ack_policy":"explicit","filter_subject":"refold.out.*"}}`,
	} {
		if _, err := admin.Request(subject, []byte(body), 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	before := s.stored("refold")
	nc := s.attacker("front")
	for _, door := range []string{"refold.ctl.s1", "refold.approve.s1", "refold.install"} { // what its webhook delivers
		for _, api := range []string{"$JS.API.", "refold.api."} {
			if err := nc.PublishRequest(api+"CONSUMER.MSG.NEXT.REFOLD_OUT.webhook-crm", door, []byte("1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.reachesOthers(admin, "front", []string{
		"refold.ctl.s1", "refold.approve.s1", "refold.install", "refold.llm.s1", "refold.tool.s1", "refold.step.s1", "refold.space.s1", "refold.wake.s1", "refold.out.s1", "refold.timer.s1.w1.1",
		"refold.pack.crm.v1", "refold.dead.erp.s1", "$KV.REFOLD_SNAPSHOTS.q.s1", "$KV.REFOLD_SNAPSHOTS.s.s1", "refold.fx.tool.shop.s1.r1t1c0", "refold.fx.claim.llm.openai.s1.r1t1",
	}, "REFOLD_OUT.webhook-erp", "REFOLD_FX.tool-mail", "REFOLD_FX.llm-openai")
	s.wantStored(admin, before, 1)
	m, err := admin.Request("$JS.API.CONSUMER.NAMES.REFOLD_OUT", nil, 20*time.Second)
	if err != nil || !strings.Contains(string(m.Data), `"total":2`) {
		t.Errorf("the webhooks' consumers: %s (%v), want both", m.Data, err)
	}
}

// reachesOthers publishes to subjects, has stored messages pushed to them, pulls from and
// deletes consumers, and subscribes to what is not the user's.
func (s *stage) reachesOthers(admin *nats.Conn, name string, subjects []string, consumers ...string) {
	s.t.Helper()
	nc := s.attacker(name)
	send := func(subject, body string) {
		if err := nc.PublishRequest(subject, "_INBOX_"+name+".x", []byte(body)); err != nil {
			s.t.Fatal(err)
		}
	}
	heard := make(chan *nats.Msg, 64)
	if _, err := nc.ChanSubscribe("_INBOX_"+name+".>", heard); err != nil {
		s.t.Fatal(err)
	}
	for _, to := range subjects {
		send(to, forged)
		for _, api := range []string{"$JS.API.", "refold.api."} { // by a consumer that pushes a stored message there
			config := fmt.Sprintf(`{"stream_name":"REFOLD_LOG","config":{"name":"x","deliver_subject":%q,"ack_policy":"none","deliver_policy":"all"}}`, to)
			send(api+"CONSUMER.CREATE.REFOLD_LOG.x", config)
			send(api+"CONSUMER.CREATE.REFOLD_LOG.x.refold.log.>", config)
			send(api+"CONSUMER.DURABLE.CREATE.REFOLD_LOG.x", config)
		}
	}
	for _, api := range []string{"$JS.API.", "refold.api."} {
		for _, consumer := range consumers {
			send(api+"CONSUMER.MSG.NEXT."+consumer, "1")
			send(api+"CONSUMER.DELETE."+consumer, "")
		}
		send(api+"STREAM.MSG.DELETE.REFOLD_LOG", `{"seq":1}`)
		send(api+"STREAM.PURGE.REFOLD_LOG", "")
	}
	for _, pattern := range []string{"refold.in.*", "refold.ctl.*", "refold.approve.*", "refold.llm.*", "_INBOX_chat1.>", ">"} {
		if _, err := nc.ChanSubscribe(pattern, heard); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := admin.Request("refold.in.s2", []byte("private"), 20*time.Second); err != nil {
		s.t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		s.t.Fatal(err)
	}
	for len(heard) > 0 {
		m := <-heard
		s.t.Errorf("%s received on %s: %.80s", name, m.Subject, m.Data)
	}
}

// wantStored wants that no stream has changed, but for the administrator's events in the
// log, and that the log has no consumer.
func (s *stage) wantStored(admin *nats.Conn, before map[string][2]uint64, own uint64) {
	s.t.Helper()
	after := s.stored("refold")
	for stream, held := range before {
		want := held
		if stream == "REFOLD_LOG" {
			want[0], want[1] = want[0]+own, want[1]+own
		}
		if after[stream] != want {
			s.t.Errorf("%s holds and took %v messages, want %v", stream, after[stream], want)
		}
	}
	m, err := admin.Request("$JS.API.CONSUMER.NAMES.REFOLD_LOG", nil, 20*time.Second)
	if err != nil || !strings.Contains(string(m.Data), `"consumers":[]`) {
		s.t.Errorf("the log has consumers: %s (%v)", m.Data, err)
	}
}
