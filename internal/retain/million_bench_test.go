package retain_test

// What a server that has deleted many sessions takes: memory, its start, and the speed of a lane.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// BenchmarkHalfDeleted stores an event and a snapshot of 2·10⁶ sessions, and then does to every
// second one what retention leaves: the tombstone, two entries in the ledger, the event deleted.
// Before and after it measures the memory of the process, which has the server in it, the
// start of the server, and the rate at which a consumer like a lane gets the log from its first
// event, and 50,000 new events of new sessions.
//
//	REFOLD_DELETED_SESSIONS=2000000 go test ./internal/retain -run xxx -bench HalfDeleted -benchtime 1x -timeout 1h
//
// Without the variable there are 20,000 sessions.
func BenchmarkHalfDeleted(b *testing.B) {
	sessions := 20_000
	if text := os.Getenv("REFOLD_DELETED_SESSIONS"); text != "" {
		var err error
		sessions, err = strconv.Atoi(text)
		bustest.OK(b, err)
	}
	node := bustest.Server(b, bustest.Interval)
	bus := testbus.Provisioned(b, node)
	names := bus.Names()
	_, js := testbus.JS(b, node)
	p := publisher{b: b, js: js}
	name := func(i int) string { return "s" + strconv.Itoa(i) }
	for i := range sessions {
		p.publish(names.SnapshotsSubject("s."+name(i)), strings.Repeat("s", 1000))
		p.publish(publishedOn(names, name(i)), `{"type":"RunRequested","data":{"input":{"text":"hello, what is in your working directory?"}}}`)
	}
	p.wait()
	seqs := firsts(b, js, names)
	measure(b, node, names, "before")
	begun := time.Now()
	for i := 0; i < sessions; i += 2 {
		wake, err := names.Log(session.DoorWake, name(i))
		bustest.OK(b, err)
		p.publish(wake, `{"type":"SessionTombstone","data":`+strings.Repeat(" ", 400)+`{}}`)
		erased, err := names.Erased(name(i))
		bustest.OK(b, err)
		seq := seqs[name(i)]
		entry, err := json.Marshal(journal.Erasure{Session: name(i), Tombstone: seq + 1, Ranges: [][2]uint64{{seq, seq}}, Before: uint64(i), Plain: true})
		bustest.OK(b, err)
		p.publish(erased, string(entry))
		p.publish(erased, string(entry))
	}
	p.wait()
	b.ReportMetric(time.Since(begun).Seconds(), "s_tombstones")
	begun = time.Now()
	log, err := js.Stream(context.Background(), names.LogStream())
	bustest.OK(b, err)
	for i := 0; i < sessions; i += 2 {
		bustest.OK(b, log.DeleteMsg(context.Background(), seqs[name(i)]))
	}
	b.ReportMetric(float64(time.Since(begun).Microseconds())/float64(sessions/2), "us_a_delete")
	measure(b, node, names, "after")
}

func publishedOn(names subjects.Names, sid string) string {
	subject, err := names.Log(session.DoorIn, sid)
	if err != nil {
		panic(err)
	}
	return subject
}

// publisher publishes with many messages outstanding.
type publisher struct {
	b       *testing.B
	js      jetstream.JetStream
	waiting []jetstream.PubAckFuture
}

func (p *publisher) publish(subject, body string) {
	ack, err := p.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: []byte(body)})
	bustest.OK(p.b, err)
	if p.waiting = append(p.waiting, ack); len(p.waiting) == 2000 {
		p.wait()
	}
}

func (p *publisher) wait() {
	for _, ack := range p.waiting {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			p.b.Fatal(err)
		}
	}
	p.waiting = p.waiting[:0]
}

// firsts returns the sequences of the sessions' events.
func firsts(b *testing.B, js jetstream.JetStream, names subjects.Names) map[string]uint64 {
	b.Helper()
	seqs := map[string]uint64{}
	each(b, js, names, jetstream.OrderedConsumerConfig{FilterSubjects: []string{names.StoredAll(session.DoorIn)}, HeadersOnly: true}, func(m jetstream.Msg, at *jetstream.MsgMetadata) {
		_, sid, err := names.ParseStored(m.Subject())
		bustest.OK(b, err)
		seqs[sid] = at.Sequence.Stream
	})
	return seqs
}

// each calls fn with the messages of the log that a consumer gets, up to the last one there is.
func each(b *testing.B, js jetstream.JetStream, names subjects.Names, config jetstream.OrderedConsumerConfig, fn func(jetstream.Msg, *jetstream.MsgMetadata)) (n int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the server counts what matches
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, names.LogStream(), config)
	bustest.OK(b, err)
	got, err := consumer.Messages()
	bustest.OK(b, err)
	defer got.Stop()
	for {
		m, err := got.Next(jetstream.NextMaxWait(time.Minute))
		bustest.OK(b, err)
		at, err := m.Metadata()
		bustest.OK(b, err)
		fn(m, at)
		if n++; at.NumPending == 0 {
			return n
		}
	}
}

// measure reports what the server takes now.
func measure(b *testing.B, node *bustest.Node, names subjects.Names, when string) {
	b.Helper()
	node.Stop()
	begun := time.Now()
	node.Start()
	b.ReportMetric(time.Since(begun).Seconds(), "s_start_"+when)
	debug.FreeOSMemory()
	b.ReportMetric(memory(b), "MiB_"+when)
	_, js := testbus.JS(b, node)
	lane := jetstream.OrderedConsumerConfig{FilterSubjects: names.LaneFilters(0, subjects.LanesDefault)}
	begun = time.Now()
	n := each(b, js, names, lane, func(jetstream.Msg, *jetstream.MsgMetadata) {})
	b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "events/s_all_"+when)
	stream, err := js.Stream(context.Background(), names.LogStream())
	bustest.OK(b, err)
	lane.DeliverPolicy, lane.OptStartSeq = jetstream.DeliverByStartSequencePolicy, stream.CachedInfo().State.LastSeq+1
	p := publisher{b: b, js: js}
	for i := range 50_000 {
		p.publish(publishedOn(names, fmt.Sprintf("new-%s-%d", when, i)), `{"type":"Any"}`)
	}
	p.wait()
	begun = time.Now()
	n = each(b, js, names, lane, func(jetstream.Msg, *jetstream.MsgMetadata) {})
	b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "events/s_new_"+when)
}

// memory returns the memory of this process in MiB.
func memory(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	bustest.OK(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	bustest.OK(b, err)
	return kib / 1024
}
