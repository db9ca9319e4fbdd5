package client

// The memory of an index of many sessions and, as a benchmark, the time of its
// first rows:
//
//	go test -run '^$' -bench Index -benchtime 1x ./client
//
// The server is a process of its own, so that its memory does not count.

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// FillIndex publishes the notices of n sessions with one run each, which has
// ended, except in every tenth session. Sessions from silent on have an event in
// the log and no notice.
func FillIndex(t testing.TB, url string, n, silent int) {
	t.Helper()
	nc, err := nats.Connect(url)
	bustest.OK(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2048), jetstream.WithPublishAsyncTimeout(time.Minute),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { t.Error(err) }))
	bustest.OK(t, err)
	say := func(subject, text string) {
		if _, err := js.PublishAsync(subject, []byte(text), jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		sid := fmt.Sprintf("s%06d", i)
		say("refold.in."+sid, `{"type":"RunRequested","data":{"input":{"text":"hi"}}}`)
		if i >= silent {
			continue
		}
		say("refold.out."+sid, fmt.Sprintf(`{"v":1,"n":2,"type":"RunStarted","session":%q,"seq":1,"at":1,"data":{"run":1,"seq":1,"provider":"p","model":"m"},`+
			`"summary":{"lifecycle":"running","waits_for":"model","run":1,"provider":"p","model":"m","text":"hi"}}`, sid))
		if i%10 != 0 {
			say("refold.out."+sid, fmt.Sprintf(`{"v":1,"n":3,"type":"RunFinished","session":%q,"seq":1,"at":1,"data":{"run":1,"lifecycle":"completed","output":{"text":"done %d"}},`+
				`"summary":{"lifecycle":"completed","waits_for":"nobody","run":1,"provider":"p","model":"m","text":"done %d"}}`, sid, i, i))
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(2 * time.Minute):
		t.Fatal("not all messages were stored")
	}
}

// live returns the bytes of the process's heap.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// filled returns a client of a server with n sessions.
func filled(t testing.TB, sessions int) *Client {
	t.Helper()
	url := bustest.ServerBeside(t)
	c, err := Connect(t.Context(), Options{URL: url})
	bustest.OK(t, err)
	t.Cleanup(c.Close)
	bustest.OK(t, c.bus.(*bus.Bus).Provision(t.Context(), testbus.Conf(t, ""), 1))
	FillIndex(t, url, sessions, sessions)
	return c
}

// walk reads an index to its end. It returns the number of rows, the largest
// growth of the heap, and the time of the fiftieth row.
func walk(t testing.TB, c *Client) (rows int, held int64, page time.Duration) {
	t.Helper()
	base, begun := live(), time.Now()
	for _, err := range c.Index(t.Context(), IndexOptions{}) {
		bustest.OK(t, err)
		if rows++; rows == 50 {
			page = time.Since(begun)
		}
		if rows%5000 == 0 {
			held = max(held, int64(live())-int64(base))
		}
	}
	return rows, held, page
}

// The memory does not grow with the sessions. A row of each would take five times
// the limit.
func TestIndexHoldsAWindow(t *testing.T) { //nolint:paralleltest // it measures the process's heap
	const sessions, limit = 20_000, 1 << 20
	rows, held, _ := walk(t, filled(t, sessions))
	if rows != sessions || held > limit {
		t.Errorf("%d rows, at most %d bytes are held; want %d rows, at most %d bytes", rows, held, sessions, limit)
	}
}

// BenchmarkIndex reads all of 100,000 sessions.
func BenchmarkIndex(b *testing.B) {
	c := filled(b, 100_000)
	for b.Loop() {
		rows, held, page := walk(b, c)
		b.ReportMetric(float64(rows), "sessions")
		b.ReportMetric(float64(held)/1024, "KiB-held")
		b.ReportMetric(float64(page.Microseconds())/1000, "ms-first-page")
	}
}
