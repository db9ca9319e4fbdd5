package jetmodel_test

// The same random calls on the model and on a server, by seed: results,
// contents, sequences and floors must be equal. Effects of time are left out:
// the model's clock stands still, and the server's windows are long.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/proof/jetmodel"
)

const (
	sameSeeds = 6
	sameSteps = 250

	pendingMax = 5 // unacked messages of the consumer some
)

func TestSameAsServer(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, func(o *server.Options) { o.SyncAlways = false })
	nc, err := nats.Connect("", nats.InProcessServer(node))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(sameSeeds) {
		p := newPair(t, nc, js, seed)
		for range sameSteps {
			op, want, got := p.step()
			if want != got {
				t.Fatalf("seed %d: after\n\t%s\n%s: the model answers\n\t%s\nthe server\n\t%s", seed, strings.Join(p.done[max(0, len(p.done)-25):], "\n\t"), op, want, got)
			}
			p.done = append(p.done, op+": "+want)
		}
	}
}

// pair is a stream of the model beside one of a server.
type pair struct {
	t      *testing.T
	nc     *nats.Conn
	js     jetstream.JetStream
	rand   *rand.Rand
	name   string
	kind   jetmodel.Config
	model  *jetmodel.Stream
	mine   map[string]*jetmodel.Consumer
	filter map[string][]string
	former map[string]*former           // of consumers that were reset to their very beginning
	held   map[string]map[uint64]string // reply of the latest delivery, by consumer and sequence
	pins   map[string][]pins            // all that there were; the last one is held
	done   []string
	sent   int
}

// pins are what the two call the same pin.
type pins struct{ model, server string }

var kinds = []jetmodel.Config{
	{Window: time.Hour},
	{OnePerSubject: true, Window: time.Hour},
	{LastOnly: true},
	{Window: time.Hour, Transform: func(s string) string {
		at := strings.LastIndexByte(s, '.')
		return s[:at] + ".x" + s[at:]
	}},
}

func newPair(t *testing.T, nc *nats.Conn, js jetstream.JetStream, seed uint64) *pair {
	t.Helper()
	cfg := kinds[seed%uint64(len(kinds))]
	name := fmt.Sprintf("S%d", seed)
	// As the daemons make streams: by the API's own JSON, atomic batches allowed.
	want := jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".*"}, Discard: jetstream.DiscardNew, AllowDirect: true, AllowAtomicPublish: true,
		Duplicates: time.Hour, Storage: jetstream.FileStorage,
	}
	if cfg.OnePerSubject {
		want.MaxMsgsPerSubject, want.DiscardNewPerSubject = 1, true
	}
	if cfg.LastOnly {
		want.MaxMsgsPerSubject, want.AllowRollup = 1, true
	}
	if cfg.Transform != nil {
		want.SubjectTransform = &jetstream.SubjectTransformConfig{Source: name + ".*", Destination: name + ".x.{{wildcard(1)}}"}
	}
	if _, err := js.CreateStream(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p := &pair{
		t: t, nc: nc, js: js, rand: rand.New(rand.NewPCG(seed, 1)), name: name, kind: cfg,
		model: jetmodel.NewStream(cfg, func() time.Time { return start }),
		mine:  map[string]*jetmodel.Consumer{}, former: map[string]*former{}, filter: map[string][]string{}, held: map[string]map[uint64]string{}, pins: map[string][]pins{},
	}
	p.consumer("all", nil, 0, 0)
	p.consumer("some", []string{p.stored("a"), p.stored("c")}, pendingMax, 0)
	p.consumer("one", []string{p.stored("b")}, 0, 0)
	p.consumer("lane", []string{p.stored("a"), p.stored("b")}, 0, time.Hour)
	return p
}

// stored returns the subject that a name is stored under.
func (p *pair) stored(name string) string {
	subject := p.name + "." + name
	if p.kind.Transform != nil {
		return p.kind.Transform(subject)
	}
	return subject
}

func (p *pair) consumer(name string, filters []string, pending int, ttl time.Duration) {
	p.t.Helper()
	p.mine[name] = p.model.Consumer(jetmodel.ConsumerConfig{Filters: filters, AckWait: time.Hour, AckPending: pending, Pinned: ttl})
	p.filter[name], p.held[name] = filters, map[uint64]string{}
	want := jetstream.ConsumerConfig{
		Durable: name, FilterSubjects: filters, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour, MaxDeliver: -1, MaxAckPending: cmp.Or(pending, -1),
	}
	if ttl > 0 {
		want.PriorityPolicy, want.PinnedTTL, want.PriorityGroups = jetstream.PriorityPolicyPinned, ttl, []string{"owner"}
	}
	if _, err := p.js.CreateConsumer(p.t.Context(), p.name, want); err != nil {
		p.t.Fatal(err)
	}
}

// step makes one call on both, and returns what each answers.
func (p *pair) step() (op, model, server string) {
	name := []string{"all", "some", "one", "lane"}[p.rand.IntN(4)]
	most := 16
	if p.kind.LastOnly {
		most = 5 // a bucket has no consumers but those of the client library
	}
	switch p.rand.IntN(most) {
	case 0, 1, 2:
		return p.publish()
	case 3:
		return p.batch()
	case 4:
		return p.get()
	case 5:
		return p.reset(name)
	case 6, 7:
		return p.info(name)
	case 8:
		return p.answer(name, true)
	case 9, 10, 11:
		return p.answer(name, false)
	case 12:
		return p.unpin()
	default:
		return p.pull(name)
	}
}

// put draws a message.
func (p *pair) put() (jetmodel.Put, *nats.Msg) {
	p.sent++
	names := 4
	if len(p.model.All(">", 1, 0)) >= 4 {
		names = 12 // some of them fresh, where a subject takes one message
	}
	name := string(rune('a' + p.rand.IntN(names)))
	put := jetmodel.Put{Subject: p.name + "." + name, Data: fmt.Appendf(nil, "%d", p.sent)}
	m := &nats.Msg{Subject: put.Subject, Data: put.Data, Header: nats.Header{}}
	if p.rand.IntN(3) == 0 && p.kind.Window > 0 {
		put.ID = fmt.Sprintf("id%d", p.rand.IntN(12))
		m.Header.Set("Nats-Msg-Id", put.ID)
	}
	if p.rand.IntN(2) == 0 {
		put.Fenced = true
		if last, err := p.model.Last(p.stored(name), 0); err == nil && p.rand.IntN(2) == 0 {
			put.Last = last.Seq
		}
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(put.Last, 10))
	}
	return put, m
}

func (p *pair) publish() (op, model, server string) {
	put, m := p.put()
	ack, err := p.model.Publish(put)
	op = fmt.Sprintf("publish %s id %q fenced %v %d", put.Subject, put.ID, put.Fenced, put.Last)
	model = ackText(ack.Seq, ack.Duplicate, err)
	pub, err := p.js.PublishMsg(p.t.Context(), m)
	if err != nil {
		return op, model, ackText(0, false, err)
	}
	return op, model, ackText(pub.Sequence, pub.Duplicate, nil)
}

func ackText(seq uint64, duplicate bool, err error) string {
	if err != nil {
		return errText(err)
	}
	return fmt.Sprintf("stored at %d, duplicate %v", seq, duplicate)
}

func errText(err error) string {
	var mine *jetmodel.Error
	var api *jetstream.APIError
	var js jetstream.JetStreamError
	switch {
	case errors.As(err, &mine):
		return fmt.Sprint("error ", mine.Code)
	case errors.As(err, &api):
		return fmt.Sprint("error ", api.ErrorCode)
	case errors.As(err, &js) && js.APIError() != nil:
		return fmt.Sprint("error ", js.APIError().ErrorCode)
	}
	return err.Error()
}

// batch stores two or three messages, or none.
func (p *pair) batch() (op, model, server string) {
	var puts []jetmodel.Put
	var msgs []*nats.Msg
	id := fmt.Sprintf("%s-%d", p.name, p.sent)
	for range 2 + p.rand.IntN(2) {
		put, m := p.put()
		op += fmt.Sprintf(" %s id %q fenced %v %d", put.Subject, put.ID, put.Fenced, put.Last)
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(len(msgs)+1))
		puts, msgs = append(puts, put), append(msgs, m)
	}
	ack, err := p.model.PublishBatch(puts)
	model = ackText(ack.Seq, false, err)
	last := len(msgs) - 1
	for _, m := range msgs[:last] {
		if err := p.nc.PublishMsg(m); err != nil {
			p.t.Fatal(err)
		}
	}
	msgs[last].Header.Set("Nats-Batch-Commit", "1")
	answer, err := p.nc.RequestMsg(msgs[last], time.Minute)
	if err != nil {
		p.t.Fatal(err)
	}
	var said struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil {
		p.t.Fatal(err)
	}
	if said.Error != nil {
		return "batch" + op, model, errText(said.Error)
	}
	return "batch" + op, model, ackText(said.Seq, false, nil)
}

// get reads a message, from the leader.
func (p *pair) get() (op, model, server string) {
	var m jetmodel.Message
	var err error
	body := map[string]any{}
	seq := 1 + uint64(p.rand.IntN(int(p.model.LastSeq())+2))
	subject := p.stored(string(rune('a' + p.rand.IntN(6))))
	switch p.rand.IntN(3) {
	case 0:
		op, body["seq"] = fmt.Sprint("at ", seq), seq
		m, err = p.model.At(seq, 0)
	case 1:
		op, body["last_by_subj"] = "last of "+subject, subject
		m, err = p.model.Last(subject, 0)
	default:
		filter := []string{subject, p.name + ".>"}[p.rand.IntN(2)]
		op, body["seq"], body["next_by_subj"] = fmt.Sprintf("next of %s from %d", filter, seq), seq, filter
		m, err = p.model.Next(filter, seq, 0)
	}
	if model = fmt.Sprintf("%d %s %s", m.Seq, m.Subject, m.Data); err != nil {
		model = errText(err)
	}
	var said struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	p.request("STREAM.MSG.GET."+p.name, body, &said)
	if said.Error != nil {
		return op, model, errText(said.Error)
	}
	return op, model, fmt.Sprintf("%d %s %s", said.Message.Seq, said.Message.Subject, said.Message.Data)
}

// request asks the API.
func (p *pair) request(subject string, body, answer any) {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	said, err := p.nc.Request("$JS.API."+subject, data, time.Minute)
	if err == nil {
		err = json.Unmarshal(said.Data, answer)
	}
	if err != nil {
		p.t.Fatal(subject, err)
	}
}
