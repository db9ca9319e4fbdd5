package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// TestBucketIsRecreatedByItsProvisioner: every request to a deleted bucket of snapshots
// recreates it, empty and with as many copies as the log has. Only the process that
// provisioned it does so, and only with this stream.
func TestBucketIsRecreatedByItsProvisioner(t *testing.T) {
	t.Parallel()
	asked := map[string]func(ctx context.Context, b *bus.Bus) error{
		"get a snapshot": func(ctx context.Context, b *bus.Bus) error { return nothing(b.GetSnapshot(ctx, "s1")) },
		"put a snapshot": func(ctx context.Context, b *bus.Bus) error { return b.PutSnapshot(ctx, "s2", 1, []byte("\x80")) },
		"get a stop":     func(ctx context.Context, b *bus.Bus) error { return nothing(b.GetQuarantine(ctx, "s1")) },
		"put a stop":     func(ctx context.Context, b *bus.Bus) error { return b.PutQuarantine(ctx, "s2", []byte("{}")) },
		"end a stop":     func(ctx context.Context, b *bus.Bus) error { return b.PutQuarantine(ctx, "s1", nil) },
		"list the stops": func(ctx context.Context, b *bus.Bus) error {
			for sid, err := range b.Quarantined(ctx) {
				return nothing([]byte(sid), true, err)
			}
			return nil
		},
		"get a note": func(ctx context.Context, b *bus.Bus) error {
			note, rev, err := b.LaneNote(ctx, subjects.GuardKey(1))
			return nothing(note, rev != 0, err)
		},
		"put a note": func(ctx context.Context, b *bus.Bus) error {
			_, err := b.PutLaneNote(ctx, subjects.GuardKey(1), []byte("{}"), 0)
			return err
		},
	}
	for servers, nodes := range map[int][]*bustest.Node{1: {bustest.Server(t)}, 3: bustest.Cluster(t, 3)} {
		b, other := testbus.Connect(t, nodes[0], ""), testbus.Connect(t, nodes[0], "")
		ctx := testbus.Context(t)
		bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), servers))
		_, js := testbus.JS(t, nodes[0])
		for what, ask := range asked {
			bustest.OK(t, errors.Join(b.PutSnapshot(ctx, "s1", 1, []byte("\x80")), b.PutQuarantine(ctx, "s1", []byte("{}"))))
			bucketIs(ctx, t, js, servers)
			deleteStream(ctx, t, js, "KV_REFOLD_SNAPSHOTS")
			if err := ask(ctx, b); err != nil {
				t.Errorf("%d servers: %s of a bucket that is gone: %v", servers, what, err)
			}
			bucketIs(ctx, t, js, servers)
		}
		deleteStream(ctx, t, js, "KV_REFOLD_SNAPSHOTS")
		if _, _, err := other.GetSnapshot(ctx, "s1"); !errors.Is(err, natsio.ErrNoStream) {
			t.Errorf("%d servers: who did not provision: got %v, want ErrNoStream", servers, err)
		}
		deleteStream(ctx, t, js, "REFOLD_LOG")
		if _, err := b.Publish(ctx, "in", "s1", []byte("{}"), ""); !errors.Is(err, natsio.ErrNoStream) {
			t.Errorf("%d servers: a log that is gone: got %v, want ErrNoStream", servers, err)
		}
	}
}

// nothing fails if there is a value.
func nothing(value []byte, found bool, err error) error {
	if err == nil && found {
		return errors.New("there is " + string(value))
	}
	return err
}

// bucketIs fails unless the bucket exists with this many copies.
func bucketIs(ctx context.Context, t *testing.T, js jetstream.JetStream, copies int) {
	t.Helper()
	stream, err := js.Stream(ctx, "KV_REFOLD_SNAPSHOTS")
	bustest.OK(t, err)
	if got := stream.CachedInfo().Config.Replicas; got != copies {
		t.Errorf("the bucket has %d copies, want %d", got, copies)
	}
}

func deleteStream(ctx context.Context, t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	bustest.OK(t, js.DeleteStream(ctx, name))
}
