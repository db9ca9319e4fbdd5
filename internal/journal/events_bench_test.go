package journal_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
)

// BenchmarkEventsAt reads what a bridge does for a model turn: four events of the log by
// their sequences, from several concurrent callers. cpu_us is the processor time for a
// call of this process, which includes the server.
func BenchmarkEventsAt(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			c, _ := benchmarkBus(b, natsio.DurabilityInterval)
			const events = 1000
			for i := range events {
				if _, err := c.Publish(b.Context(), session.DoorIn, fmt.Sprint("s", i%50), make([]byte, 400), ""); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			before := processorTime(b)
			calls := rate(b, callers, func(i int) error {
				first := uint64(i*7%(events-200)) + 1
				_, err := c.EventsAt(context.Background(), []uint64{first, first + 50, first + 100, first + 150})
				return err
			})
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu_us")
			b.ReportMetric(calls, "calls/s")
		})
	}
}

// processorTime returns the processor time of this process, in microseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	bustest.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano()/1000 + used.Stime.Nano()/1000
}

// BenchmarkReadSession reads sessions of two events among 100,000 whole, as a load without
// a snapshot, a deletion or an archive does. cpu_us is the processor time for a session of
// this process, which includes the server.
func BenchmarkReadSession(b *testing.B) {
	const sessions = 100_000
	c, _ := benchmarkBus(b, natsio.DurabilityInterval)
	var all sync.WaitGroup
	for from := range 64 {
		all.Go(func() {
			for i := from; i < sessions; i += 64 {
				for range 2 {
					_, err := c.Publish(b.Context(), session.DoorIn, fmt.Sprint("s", i), make([]byte, 200), "")
					bustest.OK(b, err)
				}
			}
		})
	}
	all.Wait()
	before := processorTime(b)
	n := 0
	for b.Loop() {
		n++
		for _, err := range c.ReadSession(b.Context(), fmt.Sprint("s", n*7919%sessions), 0, 0, true) {
			bustest.OK(b, err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(n), "cpu_us")
}
