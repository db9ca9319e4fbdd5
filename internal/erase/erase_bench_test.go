package erase_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/erase"
)

// BenchmarkRunsBesideErasure measures what the deletion of a session of 10⁵ events costs
// those beside it: runs_s is the runs a second of 16 sessions whose model answers at once,
// x_erasing what part of it is left while events are deleted from the log, with the default
// share of the time. Its runs without a deletion are before and after it.
//
//	go test ./internal/erase -run xxx -bench Beside -benchtime 1x -timeout 20m
func BenchmarkRunsBesideErasure(b *testing.B) {
	for name, options := range map[string][]bustest.Option{"always": nil, "interval": {bustest.Interval}} {
		b.Run(name, func(b *testing.B) { besideErasure(b, bustest.Server(b, options...)) })
	}
}

func besideErasure(b *testing.B, node *bustest.Node) {
	w := newWorld(b, node)
	const events = 100_000 // some blocks of the log
	w.fill("large", events)
	w.folded("large")
	after := w.erased("large")
	notices, _, err := w.bus.TextOf(w.ctx, "large")
	bustest.OK(b, err)
	for _, seq := range notices { // they would be the first that the eraser overwrites
		bustest.OK(b, w.bus.Erase(w.ctx, w.bus.Names().NoticesStream(), seq, true))
	}
	begun := make(chan struct{})
	eraser := erase.New(w.bus, erase.Options{Told: func(n int) {
		if n == 1 {
			close(begun)
		}
	}})
	alone := w.runs(b, "before")
	ctx, stop := context.WithCancel(w.ctx)
	deleted := make(chan erase.Counts)
	go func() {
		c, _ := eraser.Session(ctx, "large", after) // it is stopped
		deleted <- c
	}()
	<-begun
	beside := w.runs(b, "beside")
	stop()
	c := <-deleted
	alone = (alone + w.runs(b, "after")) / 2
	b.ReportMetric(alone, "runs_s")
	b.ReportMetric(beside/alone, "x_erasing")
	b.ReportMetric(float64(c.Events), "deleted")
}

// fill publishes events of a type that the fold rejects.
func (w *world) fill(sid string, events int) {
	w.t.Helper()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := i; n < events; n += 32 {
				_, err := w.Publish(w.ctx, session.DoorIn, sid, fmt.Appendf(nil, `{"type":"Any","data":{"text":"%0450d"}}`, n), "")
				if err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// runs returns the runs a second of 16 sessions within half a minute.
func (w *world) runs(b *testing.B, name string) float64 {
	b.Helper()
	const span = 30 * time.Second
	var count atomic.Int64
	var workers sync.WaitGroup
	begun := time.Now()
	for i := range 16 {
		workers.Go(func() {
			sid := fmt.Sprint(name, i)
			for run := 1; time.Since(begun) < span; run++ {
				seq, err := w.Run(w.ctx, sid, "hi", client.RunOptions{})
				if err == nil {
					settlement := fmt.Appendf(nil, `{"type":"GenerationSettled","data":{"effect":"r%dt1","status":"ok","text":{"text":"hello"}}}`, run)
					_, err = w.Publish(w.ctx, session.DoorLLM, sid, settlement, "")
				}
				if err == nil {
					_, err = w.End(w.ctx, sid, seq, 0, func(client.Notice) {})
				}
				if err != nil {
					b.Error(err)
					return
				}
				count.Add(1)
			}
		})
	}
	workers.Wait()
	return float64(count.Load()) / time.Since(begun).Seconds()
}
