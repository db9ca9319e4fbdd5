package journal_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// These benchmarks store events from many concurrent callers, each of which waits for
// its answer, and compare with as many plain callers of nats.go. x_raw is the committer's
// rate as a multiple of theirs, cpu_us the processor time for a message.

func BenchmarkCommitAlways(b *testing.B)   { benchmarkCommit(b, natsio.DurabilityAlways) }
func BenchmarkCommitInterval(b *testing.B) { benchmarkCommit(b, natsio.DurabilityInterval) }

func benchmarkCommit(b *testing.B, mode natsio.Durability) {
	for _, callers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			c, js := benchmarkBus(b, mode)
			ctx, payload := context.Background(), make([]byte, 400)
			raw := rate(b, callers, func(i int) error {
				_, err := js.PublishMsg(ctx, &nats.Msg{Subject: fmt.Sprint("refold.in.raw", i%1000), Data: payload})
				return err
			})
			b.ResetTimer()
			before := processorTime(b)
			own := rate(b, callers, func(i int) error {
				_, err := c.Publish(ctx, session.DoorIn, fmt.Sprint("own", i%1000), payload, "")
				return err
			})
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu_us")
			b.ReportMetric(own, "msgs/s")
			b.ReportMetric(own/raw, "x_raw")
		})
	}
}

// BenchmarkCommitSlices stores what owners do: the effects and notices of 40 sessions in
// one call, with as many concurrent calls as there are lanes.
func BenchmarkCommitSlices(b *testing.B) {
	for name, mode := range map[string]natsio.Durability{"always": natsio.DurabilityAlways, "interval": natsio.DurabilityInterval} {
		b.Run(name, func(b *testing.B) {
			c, _ := benchmarkBus(b, mode)
			const sessions, notices = 40, 5
			slice := func(i int) error {
				var outputs []journal.Output
				for s := range sessions {
					sid := fmt.Sprint("s", i, "of", s)
					outputs = append(append(outputs, asked(sid, effects(notices))...), told(sid, 1, notices)...)
				}
				for _, err := range c.Store(context.Background(), outputs) {
					if err != nil {
						return err
					}
				}
				return nil
			}
			b.ResetTimer()
			before := processorTime(b)
			b.ReportMetric(rate(b, 8, slice)*sessions*2*notices, "msgs/s")
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N*sessions*2*notices), "cpu_us")
		})
	}
}

func benchmarkBus(b *testing.B, mode natsio.Durability) (*bus.Bus, jetstream.JetStream) {
	node := bustest.Server(b, func(o *server.Options) { o.SyncAlways = mode == natsio.DurabilityAlways })
	c := testbus.ConnectWith(b, natsio.Options{URL: node.URL()})
	bustest.OK(b, c.Provision(testbus.Context(b), testbus.Conf(b, ""), 1))
	_, js := testbus.JS(b, node)
	return c, js
}

// rate runs f b.N times and returns how often a second.
func rate(b *testing.B, callers int, f func(i int) error) float64 {
	b.Helper()
	var next atomic.Int64
	var done sync.WaitGroup
	begun := time.Now()
	for range callers {
		done.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(int(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
	return float64(b.N) / time.Since(begun).Seconds()
}
