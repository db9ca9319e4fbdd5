package journal_test

// Hard edges of storing: a stream or the server's store is full, or another client has
// opened every batch.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// outputs returns an effect and a notice of each of n sessions.
func outputs(from, n int, payload []byte) (all []journal.Output) {
	for i := from; i < from+n; i++ {
		sid := fmt.Sprintf("s%d", i)
		all = append(all,
			journal.Output{Session: sid, Effect: &session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "p", Payload: payload}},
			journal.Output{Session: sid, Notice: []byte(`{"n":1}`), N: 1})
	}
	return all
}

// stored returns how many messages a stream has.
func stored(ctx context.Context, t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	s, err := js.Stream(ctx, stream)
	bustest.OK(t, err)
	return s.CachedInfo().State.Msgs
}

// codeSlotsTaken is the server's error code for one more open batch.
const codeSlotsTaken = 10210

// openBatch begins a batch and leaves it open. It returns the server's error
// code, 0 if the batch is open.
func openBatch(ctx context.Context, t *testing.T, nc *nats.Conn, subject, id string) int {
	t.Helper()
	msg := &nats.Msg{Subject: subject, Data: []byte("x"), Header: nats.Header{
		subjects.HeaderBatchID: {id}, subjects.HeaderBatchSequence: {strconv.Itoa(1)},
	}}
	answer, err := nc.RequestMsgWithContext(ctx, msg)
	bustest.OK(t, err)
	if len(answer.Data) == 0 {
		return 0
	}
	var ack struct {
		Error struct {
			Code int `json:"err_code"`
		} `json:"error"`
	}
	bustest.OK(t, json.Unmarshal(answer.Data, &ack))
	return ack.Error.Code
}

// A client that may publish to a stream can open all its batches. Messages are sent one
// by one then.
func TestEdgeBatchSlotsTaken(t *testing.T) {
	t.Parallel()
	// Two slots, since a server in this process counts those of all others too.
	node := bustest.Server(t, func(o *server.Options) { o.JetStreamLimits.MaxBatchInflightPerStream = 2 })
	ctx := testbus.Context(t)
	b := testbus.ConnectWith(t, natsio.Options{InProcess: node})
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
	b.Groups(true)
	nc, js := testbus.JS(t, node)
	for i := range 2 {
		for stream, subject := range map[string]string{"fx": "refold.fx.claim.tool.t.h.r1t1", "out": "refold.out.h"} {
			if code := openBatch(ctx, t, nc, subject, fmt.Sprintf("hostile-%s-%d", stream, i)); code != 0 {
				t.Fatalf("batch %d of %s is not open: %d", i, stream, code)
			}
		}
	}
	const sessions = 40 // groups of many times what a batch is worth
	for round := range 3 {
		for i, err := range b.Store(ctx, outputs(round*sessions, sessions, []byte("x"))) {
			if err != nil {
				t.Errorf("round %d, output %d: %v", round, i, err)
			}
		}
	}
	for _, subject := range []string{"refold.fx.claim.tool.t.h.r1t2", "refold.out.h"} {
		if code := openBatch(ctx, t, nc, subject, "one-more"); code != codeSlotsTaken {
			t.Errorf("%s: a batch was free (%d): this proves nothing", subject, code)
		}
	}
	for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT"} {
		if got, want := stored(ctx, t, js, stream), uint64(3*sessions); got != want {
			t.Errorf("%s: %d messages are stored, want %d", stream, got, want)
		}
	}
}

// A stream that becomes full stores the messages of a group that fit, and refuses the
// rest. With room the same group is stored, and nothing twice.
func TestEdgeStreamFull(t *testing.T) {
	t.Parallel()
	for _, durability := range []natsio.Durability{natsio.DurabilityAlways, natsio.DurabilityInterval} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t, func(o *server.Options) { o.SyncAlways = durability == natsio.DurabilityAlways })
			ctx := testbus.Context(t)
			b := testbus.ConnectWith(t, natsio.Options{InProcess: node, Durability: durability})
			b.Groups(durability == natsio.DurabilityAlways)
			bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
			_, js := testbus.JS(t, node)
			const sessions, room = 30, 10
			payload := bytes.Repeat([]byte("x"), 10_000)
			testbus.Reconfigure(t, js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxBytes = room * 11_000 })
			all := outputs(0, sessions, payload)
			full := 0
			for i, err := range b.Store(ctx, all) {
				switch {
				case all[i].Effect != nil && errors.Is(err, natsio.ErrStreamFull):
					full++
				case all[i].Effect != nil && err != nil:
					t.Errorf("effect %d: got %v, want ErrStreamFull or none", i, err)
				}
			}
			held := stored(ctx, t, js, "REFOLD_FX")
			if full != sessions-int(held) || held == 0 || held > room {
				t.Errorf("%d of %d effects are stored, %d are told to be too many", held, sessions, full)
			}
			// What a notice says is so: none is said of an effect that is not stored.
			if got := stored(ctx, t, js, "REFOLD_OUT"); got != held {
				t.Errorf("%d notices are stored, want %d", got, held)
			}
			testbus.Reconfigure(t, js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxBytes = -1 })
			for i, err := range b.Store(ctx, all) {
				if err != nil {
					t.Errorf("with room, output %d: %v", i, err)
				}
			}
			if got, want := stored(ctx, t, js, "REFOLD_FX"), uint64(sessions); got != want {
				t.Errorf("with room: %d effects are stored, want %d", got, want)
			}
		})
	}
}

// The limit of a server's store simulates a full disk: publishers get an error, every
// acknowledged message is stored, and with room the refused ones are stored too.
func TestEdgeStoreFull(t *testing.T) {
	t.Parallel()
	var opts *server.Options
	node := bustest.Server(t, func(o *server.Options) { o.JetStreamMaxStore, opts = 4<<20, o })
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	payload := bytes.Repeat([]byte("x"), session.EventBytesMax)
	var err error
	taken := uint64(0)
	for err == nil && taken < 100 {
		if _, err = b.Publish(ctx, session.DoorIn, "s1", payload, ""); err == nil {
			taken++
		}
	}
	if !errors.Is(err, natsio.ErrStreamFull) || taken == 0 {
		t.Fatalf("after %d events: got %v, want ErrStreamFull", taken, err)
	}
	if got := stored(ctx, t, js, "REFOLD_LOG"); got != taken {
		t.Errorf("%d events are stored, %d were acknowledged", got, taken)
	}
	all := outputs(0, 10, payload) // none of them fits where an event of as many bytes does not
	for i, err := range b.Store(ctx, all) {
		switch {
		case all[i].Effect != nil && !errors.Is(err, natsio.ErrStreamFull):
			t.Errorf("effect %d: got %v, want ErrStreamFull", i, err)
		case all[i].Notice != nil && err == nil:
			t.Errorf("notice %d is told to be stored, of an effect that is not", i)
		}
	}
	for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT"} {
		if got := stored(ctx, t, js, stream); got != 0 {
			t.Errorf("%s has %d messages, of outputs that were refused", stream, got)
		}
	}
	if _, err := b.PutBlob(ctx, payload); !errors.Is(err, natsio.ErrStreamFull) {
		t.Errorf("blob: got %v, want ErrStreamFull", err)
	}
	if err := b.PutSnapshot(ctx, "s1", 1, payload[:100_000]); err != nil && !errors.Is(err, natsio.ErrStreamFull) {
		t.Errorf("snapshot: got %v, want ErrStreamFull or none", err)
	}

	opts.JetStreamMaxStore = 256 << 20
	node.Stop()
	node.Start()
	storeAll(ctx, t, b, payload, all)
	for stream, want := range map[string]uint64{"REFOLD_LOG": taken + 1, "REFOLD_FX": 10, "REFOLD_OUT": 10} {
		if got := stored(ctx, t, js, stream); got != want {
			t.Errorf("with room, %s has %d messages, want %d", stream, got, want)
		}
	}
}

// storeAll stores with room what was refused before: an event, outputs, a blob and a
// snapshot.
func storeAll(ctx context.Context, t *testing.T, b *bus.Bus, payload []byte, outputs []journal.Output) {
	t.Helper()
	if _, err := b.Publish(ctx, session.DoorIn, "s1", payload, ""); err != nil {
		t.Errorf("with room, the event: %v", err)
	}
	for i, err := range b.Store(ctx, outputs) {
		if err != nil {
			t.Errorf("with room, output %d: %v", i, err)
		}
	}
	ref, err := b.PutBlob(ctx, payload)
	if err != nil {
		t.Fatalf("with room, the blob: %v", err)
	}
	if got, err := b.GetBlob(ctx, ref); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("with room, the blob: got %d bytes and %v, want %d", len(got), err, len(payload))
	}
	if err := b.PutSnapshot(ctx, "s1", 2, payload[:100_000]); err != nil {
		t.Errorf("with room, the snapshot: %v", err)
	}
}
