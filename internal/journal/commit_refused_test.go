package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// A refusal by the server is an error of the caller that sent the message, and of no
// other caller in the same batch.

// batchesAgain waits until groups are stored as batches again.
func (s *storing) batchesAgain() {
	s.t.Helper()
	round := 0
	bustest.Until(s.t, "a slice is a batch again", func() bool {
		round++
		before := s.count("REFOLD_FX")
		if err := ask(testbus.Context(s.t), s.b, fmt.Sprint("again", round), effects(8)...); err != nil {
			s.t.Fatal(err)
		}
		return len(batches(s.all("REFOLD_FX")[before:])) == 1
	})
}

// Taken names are looked up, and the other messages are sent as one batch again.
func TestTakenNamesLeaveTheRestInABatch(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		ctx, all := testbus.Context(t), effects(40)
		for _, i := range []int{0, 7, 39} { // the same bytes
			bustest.OK(t, ask(ctx, s.b, "s1", all[i]))
		}
		for _, i := range []int{11, 30} {
			bustest.OK(t, ask(ctx, s.b, "s1", effect(all[i].Name, "other")))
		}
		bridge := []byte(`{"by":"bridge"}`)
		if won, _, err := s.b.Claim(ctx, claimOf("s1", all[2].Name, 1), bridge); err != nil || !won {
			t.Fatalf("claim: got %v %v", won, err)
		}
		outputs := append(asked("s1", all), journal.Output{Session: "s1", Withdraw: withdrawalOf(&all[2])}, journal.Output{Session: "s1", Withdraw: withdrawalOf(&all[3])})
		for i, err := range s.b.Store(ctx, outputs) {
			var violation *journal.ViolationError
			switch {
			case i != 11 && i != 30:
				if err != nil {
					t.Errorf("output %d: %v", i, err)
				}
			case !errors.As(err, &violation) || string(violation.Stored) != "other" || string(violation.Wanted) != string(all[i].Payload):
				t.Errorf("output %d: got %v, want a ViolationError", i, err)
			}
		}
		stored := s.once("REFOLD_FX")
		if got, want := len(stored), 42; got != want {
			t.Errorf("got %d messages, want %d", got, want)
		}
		if won, holder, err := s.b.Claim(ctx, claimOf("s1", all[2].Name, 1), []byte(`{"withdrawn":true}`)); err != nil || won || string(holder) != string(bridge) {
			t.Errorf("withdraw what is claimed: got %v %s %v, want the bridge's claim", won, holder, err)
		}
		if won, _, err := s.b.Claim(ctx, claimOf("s1", all[3].Name, 1), journal.Withdrawn(withdrawalOf(&all[3]))); err != nil || !won {
			t.Errorf("withdraw again: got %v %v, want it won", won, err)
		}
		counts := batches(s.all("REFOLD_FX"))
		if s.mode != natsio.DurabilityAlways {
			if len(counts) != 0 {
				t.Errorf("got batches %v, want none", counts)
			}
			return
		}
		for _, n := range counts {
			if len(counts) != 1 || n != 42-6 {
				t.Errorf("got batches %v, want one of the %d that were free", counts, 42-6)
			}
		}
	})
}

// Another client has opened as many batches as a stream allows.
func TestWithoutABatchSlotSinglesAreSent(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, func(o *server.Options) { o.JetStreamLimits.MaxBatchTimeout = time.Hour })
	s := newStoring(t, node, natsio.DurabilityAlways)
	nc, ctx := s.js.Conn(), testbus.Context(t)
	open := func(i int, commit string) *nats.Msg {
		m := nats.NewMsg(fmt.Sprintf("refold.fx.tool.host.slots.r1t%dc0", i+1))
		m.Header.Set(subjects.HeaderBatchID, fmt.Sprint("slot", i))
		m.Header.Set(subjects.HeaderBatchSequence, "1")
		if commit != "" {
			m.Header.Set(subjects.HeaderBatchSequence, "2")
			m.Header.Set(subjects.HeaderBatchCommit, commit)
		}
		answer, err := nc.RequestMsgWithContext(ctx, m)
		bustest.OK(t, err)
		return answer
	}
	const slots = 50
	for i := range slots {
		if answer := open(i, ""); len(answer.Data) != 0 {
			t.Fatalf("batch %d: got %s, want it open", i, answer.Data)
		}
	}
	if answer := open(slots, ""); !strings.Contains(string(answer.Data), "10210") {
		t.Fatalf("one more: got %s, want it refused", answer.Data)
	}
	for round := range 3 {
		sid := fmt.Sprint("full", round)
		if err := errors.Join(s.b.Store(ctx, asked(sid, effects(30)))...); err != nil {
			t.Error(err)
		}
	}
	if got := s.all("REFOLD_FX"); len(got) != 90 || len(batches(got)) != 0 {
		t.Errorf("got %d messages and the batches %v, want 90 singles", len(got), batches(got))
	}
	open(0, "eob")
	s.batchesAgain()
}

func TestCommitToAStreamWithoutBatches(t *testing.T) {
	t.Parallel()
	s := newStoring(t, bustest.Server(t), natsio.DurabilityAlways)
	for _, stream := range []string{"REFOLD_FX", "REFOLD_OUT"} {
		testbus.Reconfigure(s.t, s.js, stream, func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false })
	}
	outputs := slices.Concat(asked("s1", effects(30)), told("s1", 1, 20), told("s2", 1, 20))
	if err := errors.Join(s.b.Store(testbus.Context(t), outputs)...); err != nil {
		t.Error(err)
	}
	if got := s.all("REFOLD_FX"); len(got) != 30 || len(batches(got)) != 0 {
		t.Errorf("got %d messages and the batches %v, want 30 singles", len(got), batches(got))
	}
	inTurn(t, s.all("REFOLD_OUT"), 2, 20)
	testbus.Reconfigure(s.t, s.js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true })
	s.batchesAgain()
}

// One payload exceeds the limit of this package, or only the stream's.
func TestCommitTooLarge(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		for i, size := range []int{session.EventBytesMax + 1, 8 << 10} {
			testbus.Reconfigure(s.t, s.js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 4 << 10 })
			testbus.Reconfigure(s.t, s.js, "REFOLD_OUT", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 4 << 10 })
			large, sid, other := strings.Repeat("x", size), fmt.Sprint("s", i), fmt.Sprint("other", i)
			all := effects(20)
			all[9].Payload = []byte(large)
			outputs := slices.Concat(asked("fx"+sid, all), told(sid, 1, 5), told(other, 1, 5))
			outputs[22].Notice = []byte(large)
			for j, err := range s.b.Store(testbus.Context(t), outputs) {
				var over *natsio.MaxPayloadError
				switch {
				case j == 9 || j == 22:
					if !errors.As(err, &over) || over.Bytes != size {
						t.Errorf("%d bytes: output %d: got %v, want a MaxPayloadError", size, j, err)
					}
				case j == 23 || j == 24: // its session's next notices
					if err == nil || errors.As(err, &over) {
						t.Errorf("%d bytes: output %d: got %v, want that it was not tried", size, j, err)
					}
				case err != nil:
					t.Errorf("%d bytes: output %d: %v", size, j, err)
				}
			}
			if got, want := len(s.once("REFOLD_FX")), 19*(i+1); got != want {
				t.Errorf("got %d effects, want %d", got, want)
			}
		}
		var got []string
		for _, k := range s.all("REFOLD_OUT") {
			got = append(got, strings.TrimPrefix(k.subject, "refold.out.")+":"+k.text)
		}
		slices.Sort(got)
		if got, want := strings.Join(got, " "),
			"other0:1 other0:2 other0:3 other0:4 other0:5 other1:1 other1:2 other1:3 other1:4 other1:5 s0:1 s0:2 s1:1 s1:2"; got != want {
			t.Errorf("got notices %s, want %s", got, want)
		}
	})
}

func TestCommitStreamFull(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, s *storing) {
		ctx := testbus.Context(t)
		bustest.OK(t, ask(ctx, s.b, "s1", effects(10)...))
		if _, err := s.b.Publish(ctx, session.DoorIn, "s1", []byte("first"), ""); err != nil {
			t.Fatal(err)
		}
		for stream, most := range map[string]int64{"REFOLD_FX": 10, "REFOLD_LOG": 1} {
			testbus.Reconfigure(s.t, s.js, stream, func(c *jetstream.StreamConfig) { c.MaxMsgs = most })
		}
		// Those that are there already are asked, whatever else fails.
		for i, err := range s.b.Store(ctx, asked("s1", effects(30))) {
			if full := errors.Is(err, natsio.ErrStreamFull); full != (i >= 10) || !full && err != nil {
				t.Errorf("output %d: got %v, want ErrStreamFull for those from 10 on only", i, err)
			}
		}
		var calls sync.WaitGroup
		for i := range 100 {
			calls.Go(func() {
				if _, err := s.b.Publish(ctx, session.DoorIn, "s1", fmt.Append(nil, i), ""); !errors.Is(err, natsio.ErrStreamFull) {
					t.Errorf("publish %d: got %v, want ErrStreamFull", i, err)
				}
			})
		}
		calls.Wait()
		for stream, most := range map[string]int64{"REFOLD_FX": 30, "REFOLD_LOG": 2} {
			testbus.Reconfigure(s.t, s.js, stream, func(c *jetstream.StreamConfig) { c.MaxMsgs = most })
		}
		if err := ask(ctx, s.b, "s1", effects(30)...); err != nil {
			t.Errorf("with room again: %v", err)
		}
		if seq, err := s.b.Publish(ctx, session.DoorIn, "s1", []byte("second"), ""); err != nil || seq != 2 {
			t.Errorf("with room again: got %d %v, want 2", seq, err)
		}
		if got := len(s.once("REFOLD_FX")); got != 30 {
			t.Errorf("got %d effects, want 30", got)
		}
	})
}

func TestCommitToAMissingStreamFails(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, ctx := bustest.Server(t), testbus.Context(t)
			b := connectAs(t, node.URL(), mode)
			outputs := slices.Concat(asked("s1", effects(20)), told("s2", 1, 20), told("s3", 1, 1))
			for i, err := range b.Store(ctx, outputs) {
				// What follows in its order may not have been tried.
				if first := i <= 20 || i == 40; err == nil || first && !errors.Is(err, natsio.ErrNoStream) {
					t.Errorf("output %d: got %v, want ErrNoStream", i, err)
				}
			}
			if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("x"), ""); !errors.Is(err, natsio.ErrNoStream) {
				t.Errorf("publish: got %v, want ErrNoStream", err)
			}
			bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 1))
			if err := errors.Join(b.Store(ctx, outputs)...); err != nil {
				t.Errorf("once they are there: %v", err)
			}
		})
	}
}

// A publish without permission fails at once; the other messages of its batch are
// stored.
func TestDenialFailsOnlyItsWrite(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR", sync_interval: always }
		authorization { users: [
			{ user: op, password: p },
			{ user: u, password: p, permissions {
				publish: { allow: ">", deny: [ "refold.fx.tool.host.*.r1t1c0", "refold.fx.tool.host.*.r1t9c0", "refold.fx.tool.host.*.r1t20c0", "refold.out.denied" ] }, subscribe: ">" } }
		] }`)
	as := func(user string) string { return strings.Replace(node.URL(), "nats://", "nats://"+user+":p@", 1) }
	bustest.OK(t, connectAs(t, as("op"), natsio.DurabilityUnknown).Provision(testbus.Context(t), testbus.Conf(t, ""), 1))
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := connectAs(t, as("u"), mode), testbus.Context(t)
			for _, bad := range []int{1, 9, 20} { // the first, one between, the last
				sid := fmt.Sprint(name, bad)
				all := slices.DeleteFunc(effects(20), func(e session.Effect) bool {
					return e.Name != fmt.Sprintf("r1t%dc0", bad) && slices.Contains([]string{"r1t1c0", "r1t9c0", "r1t20c0"}, e.Name)
				})
				outputs := slices.Concat(asked(sid, all), told(sid+"x", 1, 4), told("denied", 1, 4), told(sid+"y", 1, 4))
				for i, err := range b.Store(ctx, outputs) {
					var denied *natsio.PermissionError
					switch o := outputs[i]; {
					case o.Effect != nil && o.Effect.Name == fmt.Sprintf("r1t%dc0", bad), o.Session == "denied" && o.N == 1:
						if !errors.As(err, &denied) {
							t.Errorf("output %d: got %v, want a PermissionError", i, err)
						}
					case o.Session == "denied":
						if err == nil {
							t.Errorf("output %d: got no error behind one that is not stored", i)
						}
					case err != nil:
						t.Errorf("output %d: %v", i, err)
					}
				}
				if got, err := b.ListEffects(ctx, sid); err != nil || len(got) != len(all)-1 {
					t.Errorf("got %d effects, %v, want %d", len(got), err, len(all)-1)
				}
			}
		})
	}
}
