package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	fillAckEvery = 500    // messages of which one is answered
	fillAhead    = 20_000 // messages that the server has not stored yet; it buffers 100,000
	fillTick     = 10 * time.Millisecond
)

// filler stores messages in one stream, each behind the one before, as fast as
// the server takes them: it waits for one answer in fillAckEvery messages, and
// looks whether the stream's sequence is what it must be if all are stored. No
// other publisher may be active meanwhile.
type filler struct {
	g      *stage
	stream string
	nc     *nats.Conn
	inbox  string
	sub    *nats.Subscription
	last   uint64   // the stream's sequence when all that was put is stored
	due    []uint64 // sequences of which the answers are to come, in order
}

func (g *stage) newFiller(ctx context.Context, stream string) (f *filler, err error) {
	f = &filler{g: g, stream: stream}
	if f.last, err = g.lastSeq(ctx, stream); err != nil {
		return nil, err
	}
	if f.nc, err = nats.Connect("", nats.InProcessServer(g.servers.of(0))); err != nil {
		return nil, err
	}
	f.inbox = f.nc.NewInbox()
	if f.sub, err = f.nc.SubscribeSync(f.inbox); err != nil {
		f.nc.Close()
		return nil, err
	}
	return f, nil
}

func (f *filler) close() { f.nc.Close() }

// put stores a message. It waits when too many are not stored yet.
func (f *filler) put(ctx context.Context, m message) error {
	msg := m.msg()
	f.last++
	if f.last%fillAckEvery == 0 {
		msg.Reply = f.inbox
		f.due = append(f.due, f.last)
	}
	if err := f.nc.PublishMsg(msg); err != nil {
		return err
	}
	for len(f.due) > fillAhead/fillAckEvery {
		if err := f.answered(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for the next answer.
func (f *filler) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	msg, err := f.sub.NextMsgWithContext(ctx)
	if err != nil {
		return fmt.Errorf("%s stores nothing: %w", f.stream, err)
	}
	var answer struct {
		Seq   uint64          `json:"seq"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return err
	}
	if answer.Seq != f.due[0] {
		return fmt.Errorf("%s stored message %d as %d: %s", f.stream, f.due[0], answer.Seq, answer.Error)
	}
	f.due = f.due[1:]
	return nil
}

// end waits until all that was put is stored.
func (f *filler) end(ctx context.Context) error {
	for len(f.due) > 0 {
		if err := f.answered(ctx); err != nil {
			return err
		}
	}
	if err := f.nc.FlushTimeout(answerWithin); err != nil {
		return err
	}
	for until := time.Now().Add(answerWithin); ; {
		last, err := f.g.lastSeq(ctx, f.stream)
		if err != nil || last == f.last {
			return err
		}
		if last > f.last || time.Now().After(until) {
			return fmt.Errorf("%s has %d messages and should have %d", f.stream, last, f.last)
		}
		if err := pass(ctx, fillTick); err != nil {
			return err
		}
	}
}

// lastSeq returns the sequence of the last message of a stream.
func (g *stage) lastSeq(ctx context.Context, stream string) (uint64, error) {
	s, err := g.js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("look at stream %s: %w", stream, err)
	}
	return s.CachedInfo().State.LastSeq, nil
}
