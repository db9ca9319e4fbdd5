package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// census counts the messages that the streams hold after a row.
type census struct {
	kinds    map[string]int // by stream and kind
	messages map[string]int // by stream
	commits  map[string]int // by stream: single publishes, and batches
	bytes    int            // of payloads
	first    map[string][]byte
}

// named are the types that the census lists by name. Others are counted by stream.
var named = []string{
	session.TypeRunRequested, session.TypeToolCallsObserved, session.TypeToolCallSettled, session.TypeGenerationSettled,
	session.NoticeSessionOpened, session.NoticeRunFinished,
}

// settleWithin is how long messages that no run waits for may take to be stored
// after the last run's end.
const settleWithin = 10 * time.Second

// readWithin is how long reading a stream may take.
const readWithin = 5 * time.Minute

// count waits until the streams hold what runs of these kinds store, and reads
// all of it. If kinds is nil, it waits until the streams stop growing.
func count(ctx context.Context, s *servers, runs int, kinds map[string]int) (*census, error) {
	nc, err := s.connect(0, "refold-bench")
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	names, err := subjects.New("")
	if err != nil {
		return nil, err
	}
	want := 1 // the install record
	for _, n := range kinds {
		want += n * runs
	}
	if err := settled(ctx, js, names, want, kinds != nil); err != nil {
		return nil, err
	}
	c := &census{kinds: map[string]int{}, messages: map[string]int{}, commits: map[string]int{}, first: map[string][]byte{}}
	for _, stream := range counted(names) {
		if err := c.read(ctx, js, names, stream); err != nil {
			return nil, fmt.Errorf("count %s: %w", stream, err)
		}
	}
	return c, nil
}

// counted returns all streams except the blobs, which hold the tools'
// descriptors, stored once for the install record and not for runs.
func counted(names subjects.Names) []string {
	return slices.DeleteFunc(names.Streams(), func(stream string) bool { return stream == names.BlobsStream() })
}

// settled waits until the streams hold want messages, if known, else stop
// growing.
func settled(ctx context.Context, js jetstream.JetStream, names subjects.Names, want int, known bool) error {
	until := time.Now().Add(settleWithin)
	last, same := 0, 0
	for time.Now().Before(until) {
		total := 0
		for _, name := range counted(names) {
			stream, err := js.Stream(ctx, name)
			if err != nil {
				return err
			}
			total += int(stream.CachedInfo().State.Msgs)
		}
		if same++; total != last {
			last, same = total, 0
		}
		if known && total >= want || !known && same > 25 {
			return nil
		}
		if err := sleep(ctx, readyTick); err != nil {
			return err
		}
	}
	return nil // the census shows what is missing
}

func (c *census) read(ctx context.Context, js jetstream.JetStream, names subjects.Names, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	if stream == names.TimersStream() {
		return c.readWakes(ctx, names, s)
	}
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	for range s.CachedInfo().State.Msgs {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		c.add(names, stream, m.Subject(), m.Headers(), m.Data())
	}
	return nil
}

// readWakes reads the schedules one by one: only a consumer that acknowledges
// may consume a work queue.
func (c *census) readWakes(ctx context.Context, names subjects.Names, s jetstream.Stream) error {
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was replaced, or has fired
		}
		if err != nil {
			return err
		}
		c.add(names, names.TimersStream(), m.Subject, m.Header, m.Data)
	}
	return nil
}

func (c *census) add(names subjects.Names, stream, subject string, header nats.Header, data []byte) {
	kind := kindOf(names, stream, subject, data)
	c.kinds[kind]++
	c.messages[stream]++
	c.bytes += len(data)
	if header.Get(headerBatchID) == "" || header.Get(headerBatchCommit) != "" {
		c.commits[stream]++
	}
	c.first[exact(names, kind, subject)] = data
}

// kindOf returns the kind of a message: its stream, and what it is there.
func kindOf(names subjects.Names, stream, subject string, data []byte) string {
	if subject == names.Install() {
		return kindInstall
	}
	if name, err := names.ParseEffect(subject); err == nil {
		return stream + " " + string(name.Class)
	}
	if _, err := names.ParseClaim(subject); err == nil {
		return stream + " claim"
	}
	if stream == names.TimersStream() {
		return stream + " wake"
	}
	for _, t := range named {
		if bytes.Contains(data, []byte(t)) {
			return stream + " " + t
		}
	}
	return stream + " " + subject
}

const kindInstall = "install"

// exact returns the kind, and for effects and claims also the effect's name.
func exact(names subjects.Names, kind, subject string) string {
	if name, err := names.ParseEffect(subject); err == nil {
		return kind + " " + name.Effect
	}
	return kind
}

// perRun returns the number of messages of each kind that a run stored. It fails if
// that is not a whole number.
func (c *census) perRun(runs int) (map[string]int, error) {
	each := map[string]int{}
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		n := c.kinds[kind]
		if kind == kindInstall {
			continue
		}
		if n%runs != 0 {
			return nil, fmt.Errorf("%d messages %s in %d runs: every run should have stored the same", n, kind, runs)
		}
		each[kind] = n / runs
	}
	return each, nil
}

// template returns the payloads of the one counted run.
func (c *census) template(names subjects.Names) (t template, err error) {
	log, effects, notices := names.LogStream()+" ", names.EffectsStream()+" ", names.NoticesStream()+" "
	take := func(name string) []byte {
		data, ok := c.first[name]
		if !ok {
			err = errors.Join(err, fmt.Errorf("the run stored no %s", name))
		}
		return data
	}
	t.observed = take(log + session.TypeToolCallsObserved)
	t.settled = take(log + session.TypeToolCallSettled)
	t.generated = take(log + session.TypeGenerationSettled)
	t.turns = [2][]byte{take(effects + "llm r1t1"), take(effects + "llm r1t2")}
	t.wake = take(names.TimersStream() + " wake")
	for i := range t.calls {
		t.calls[i] = take(effects + "tool " + callName(i))
	}
	t.claim = take(effects + "claim")
	t.started, t.finished = take(notices+session.NoticeSessionOpened), take(notices+session.NoticeRunFinished)
	return t, err
}

// difference lists the kinds in which two sides differ; "" if there are none.
func difference(a, b map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(a)) {
		if a[kind] != b[kind] {
			all = append(all, fmt.Sprintf("%s: %d and %d", kind, a[kind], b[kind]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[kind]; !ok {
			all = append(all, fmt.Sprintf("%s: 0 and %d", kind, b[kind]))
		}
	}
	return strings.Join(all, ", ")
}
