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

// BenchmarkRunsBesideErasure measures what a deletion costs those beside it: runs_s is the
// runs a second of 16 sessions whose model answers at once, x_erasing what part of it is
// left while a session of many events is deleted, with the default share of the time.
//
//	go test ./internal/erase -run xxx -bench Beside -benchtime 1x -timeout 10m
func BenchmarkRunsBesideErasure(b *testing.B) {
	w := newWorld(b, bustest.Server(b))
	const events = 20_000 // some blocks of the log
	for i := range events {
		_, err := w.Publish(w.ctx, session.DoorIn, "large", fmt.Appendf(nil, `{"type":"Any","data":{"text":"%0450d"}}`, i), "")
		bustest.OK(b, err)
	}
	w.folded("large")
	alone := w.runs(b, "alone")
	after := w.erased("large")
	eraser := erase.New(w.bus, erase.Options{})
	ctx, stop := context.WithCancel(w.ctx)
	deleted := make(chan erase.Counts)
	go func() {
		c, _ := eraser.Session(ctx, "large", after) // it is stopped
		deleted <- c
	}()
	beside := w.runs(b, "beside")
	stop()
	c := <-deleted
	b.ReportMetric(alone, "runs_s")
	b.ReportMetric(beside/alone, "x_erasing")
	b.ReportMetric(float64(c.Events), "deleted")
}

// runs returns the runs a second of 16 sessions within ten seconds.
func (w *world) runs(b *testing.B, name string) float64 {
	b.Helper()
	const span = 10 * time.Second
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
