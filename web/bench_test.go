package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// FD-08: runs a second, and memory, with 1,000 readers of 1,000 sessions of which one reads
// nothing, and without readers:
//
//	go test ./web -run NONE -bench Readers -benchtime 1000x
func BenchmarkReaders(b *testing.B) {
	for _, readers := range []int{0, 1000} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) { benchReaders(b, readers) })
	}
}

func benchReaders(b *testing.B, readers int) {
	const sessions = 1000
	rt := refoldtest.Open(b)
	turns := make([]refoldtest.Turn, 100)
	for i := range turns {
		turns[i] = refoldtest.Say("An answer of some words, which is neither long nor short.")
	}
	if _, err := rt.Agent("helper", refold.Model(refoldtest.Model(turns...))); err != nil {
		b.Fatal(err)
	}
	h := web.Handler(rt, web.Options{Auth: auth, Limits: web.Limits{Streams: sessions, PerSecond: 1_000_000}})
	w := &world{t: b, ctx: b.Context(), rt: rt, url: newServer(b, h)}
	var ended atomic.Int64
	var reading sync.WaitGroup
	for i := range readers {
		s := w.follow("all", fmt.Sprintf("/v1/sessions/s%d/updates", i))
		if i == 0 {
			continue // the slow one
		}
		reading.Go(func() {
			for {
				e, err := s.next()
				if err != nil {
					return
				}
				var u web.Update
				if json.Unmarshal([]byte(e.data), &u) == nil && u.Type == "run_ended" {
					ended.Add(1)
				}
			}
		})
	}
	next := atomic.Int64{}
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			w.want(http.StatusOK, nil, "all", "POST", fmt.Sprintf("/v1/sessions/s%d/runs", next.Add(1)%sessions), `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
		}
	})
	b.StopTimer()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/(1<<20), "MiB")
}
