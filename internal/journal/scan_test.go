package journal_test

// Scans of a whole stream, by messages that the server pushes and by requests.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// ReadAll reports erased events at any position of the log.
func TestErasedEventsAreReported(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	log, err := js.Stream(ctx, "REFOLD_LOG")
	bustest.OK(t, err)
	for i := range 20 {
		if _, err := b.Publish(ctx, session.DoorIn, fmt.Sprintf("s%d", i%3), []byte("{}"), ""); err != nil {
			t.Fatal(err)
		}
	}
	look := func(want ...journal.Hole) {
		t.Helper()
		var got []uint64
		scanned, err := b.ReadAll(ctx, 1, func(e session.Event) error {
			got = append(got, e.Seq)
			return nil
		})
		if err != nil || !slices.Equal(scanned.Holes, want) {
			t.Errorf("got %v (%v), want %v", scanned.Holes, err, want)
		}
		lost := 0
		for _, h := range want {
			lost += int(h.Last - h.First + 1)
		}
		if missing, err := b.LogMissing(ctx); err != nil || int(missing) != lost || len(got) != 20-lost {
			t.Errorf("%d missing (%v), %d read, want %d and %d", missing, err, len(got), lost, 20-lost)
		}
	}
	erase := func(seqs ...uint64) {
		t.Helper()
		for _, seq := range seqs {
			bustest.OK(t, log.SecureDeleteMsg(ctx, seq))
		}
	}
	look()
	erase(7, 8, 12)
	look(journal.Hole{First: 7, Last: 8}, journal.Hole{First: 12, Last: 12})
	erase(1, 2, 20)
	look(journal.Hole{First: 1, Last: 2}, journal.Hole{First: 7, Last: 8}, journal.Hole{First: 12, Last: 12}, journal.Hole{First: 20, Last: 20})
	erase(3, 4, 5, 6, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19)
	look(journal.Hole{First: 1, Last: 20})
}

// A user without permission for a consumer reads the same by requests, and so does one
// whose consumer is deleted during the scan.
func TestScanWithoutAConsumerReadsByRequests(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: DIR }
		authorization { users: [
			{ user: all, password: x }
			{ user: few, password: x, permissions: {
				publish: { allow: [">"], deny: ["$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.DURABLE.>"] }, subscribe: [">"] } }
		] }`)
	as := func(user string) *bus.Bus {
		t.Helper()
		b := testbus.ConnectWith(t, natsio.Options{URL: strings.Replace(node.URL(), "nats://", "nats://"+user+":x@", 1)})
		return b
	}
	all, few, ctx := as("all"), as("few"), testbus.Context(t)
	bustest.OK(t, all.Provision(ctx, testbus.Conf(t, ""), 0))
	const events = 1500 // more than a batch
	for i := range events {
		if _, err := all.Publish(ctx, session.DoorIn, "s1", fmt.Appendf(nil, "%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	next := 0
	count := func(e session.Event) error {
		if string(e.Payload) != fmt.Sprint(next) {
			return fmt.Errorf("got event %q, want %d", e.Payload, next)
		}
		next++
		return nil
	}
	if _, err := few.ReadAll(ctx, 1, count); err != nil || next != events {
		t.Errorf("without a consumer: %d events (%v), want %d", next, err, events)
	}
	nc, err := nats.Connect(node.URL(), nats.UserInfo("all", "x"))
	bustest.OK(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	bustest.OK(t, err)
	next = 0
	_, err = all.ReadAll(ctx, 1, func(e session.Event) error {
		if e.Seq == 10 {
			stream, err := js.Stream(ctx, "REFOLD_LOG")
			if err != nil {
				return err
			}
			for name := range stream.ConsumerNames(ctx).Name() {
				if _, lane := subjects.ParseLaneName(name); !lane {
					if err := stream.DeleteConsumer(ctx, name); err != nil {
						return err
					}
				}
			}
		}
		return count(e)
	})
	if err != nil || next != events {
		t.Errorf("with a consumer that was deleted: %d events (%v), want %d", next, err, events)
	}
}

// The bucket's snapshots and quarantines are read in one pass, and so are the effects;
// deleted entries are left out.
func TestScansReadSnapshotsQuarantinesAndEffects(t *testing.T) {
	t.Parallel()
	b, ctx := testbus.Provisioned(t, bustest.Server(t)), testbus.Context(t)
	large := append([]byte{0x81}, make([]byte, 600<<10)...)
	must := func(err error) {
		t.Helper()
		bustest.OK(t, err)
	}
	must(b.PutSnapshot(ctx, "s1", 5, []byte{0x81, 1}))
	must(b.PutSnapshot(ctx, "s1", 6, []byte{0x81, 2}))
	must(b.PutSnapshot(ctx, "big", 7, large))
	must(b.PutQuarantine(ctx, "s2", []byte(`{"seq":1}`)))
	must(b.PutQuarantine(ctx, "s3", []byte(`{"seq":1}`)))
	must(b.PutQuarantine(ctx, "s3", nil))
	for i := range 3 {
		must(ask(ctx, b, "s1", session.Effect{Name: fmt.Sprintf("r1t%d", i), Class: session.ClassLLM, Target: "p", Payload: fmt.Append(nil, i)}))
	}
	if _, _, err := b.Claim(ctx, claimOf("s1", "r1t1", 1), []byte(`{"withdrawn":true}`)); err != nil { // a claim is no effect
		t.Fatal(err)
	}
	var got []string
	must(b.ScanSnapshots(ctx, func(k journal.Kept) error {
		got = append(got, fmt.Sprintf("%s %x %v", k.Session, k.Snapshot, k.Quarantined))
		return nil
	}))
	if want := []string{"s1 8102 false", "big  false", "s2  true"}; !slices.Equal(got, want) {
		t.Errorf("snapshots: got %q, want %q", got, want)
	}
	got = nil
	must(b.ScanEffects(ctx, func(e journal.StoredEffect) error {
		got = append(got, e.Name.Session+" "+e.Name.Effect+" "+string(e.Payload))
		return nil
	}))
	if want := []string{"s1 r1t0 0", "s1 r1t1 1", "s1 r1t2 2"}; !slices.Equal(got, want) {
		t.Errorf("effects: got %q, want %q", got, want)
	}
	enough := errors.New("enough")
	if err := b.ScanEffects(ctx, func(journal.StoredEffect) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want the caller's error", err)
	}
}
