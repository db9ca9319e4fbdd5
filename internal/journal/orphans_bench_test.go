package journal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
)

// Of BenchmarkSweep.
const (
	benchBlobs   = 100_000
	benchOrphans = benchBlobs / 10
	benchEvents  = 1_000_000
)

// BenchmarkSweep is the measurement behind docs/adr/0112: sweeps of 10⁵ blobs of 1 KiB, a
// tenth of them orphans, and a log of 10⁶ events of 450 bytes. mib is the most memory of
// refold blobs sweep --dry-run, in a process of its own.
//
//	go test ./internal/journal -run xxx -bench Sweep -benchtime 1x -timeout 30m
func BenchmarkSweep(b *testing.B) {
	s, url := newSweepingAt(b)
	s.ctx = context.Background()
	begun := time.Now()
	s.fill()
	b.Logf("filled in %v", time.Since(begun).Round(time.Second))
	for _, sweep := range []string{"mark", "delete", "nothing to do"} {
		begun = time.Now()
		swept := s.sweep(2*sweepGrace, false)
		b.Logf("%s: %v, %+v", sweep, time.Since(begun).Round(time.Millisecond), swept)
	}
	program := filepath.Join(b.TempDir(), "refold")
	if out, err := exec.CommandContext(s.ctx, "go", "build", "-o", program, "../../cmd/refold").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(s.ctx, program, "blobs", "sweep", "--dry-run", "--nats", url)
	begun = time.Now()
	bustest.OK(b, cmd.Start())
	most := 0
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		_, after, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found {
			break
		}
		_, _ = fmt.Sscan(after, &most)
		<-time.After(50 * time.Millisecond)
	}
	bustest.OK(b, cmd.Wait())
	b.Logf("a dry sweep in a process of its own: %v", time.Since(begun).Round(time.Millisecond))
	b.ReportMetric(float64(most>>10), "mib")
}

// fill stores blobs, and events of which most name one.
func (s sweeping) fill() {
	s.t.Helper()
	var next, failed atomic.Int64
	var all sync.WaitGroup
	names := make([]string, benchBlobs)
	for range 64 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < benchBlobs; i = next.Add(1) - 1 {
				ref, err := s.bus.PutBlob(s.ctx, fmt.Appendf(nil, "%01024d", i))
				if err != nil {
					failed.Add(1)
				}
				names[i] = ref.String()
			}
		})
	}
	all.Wait()
	js, err := jetstream.New(s.js.Conn(), jetstream.WithPublishAsyncMaxPending(4096))
	bustest.OK(s.t, err)
	text := strings.Repeat("hello, what is in your working directory? ", 8)
	for i := range benchEvents {
		name := names[i%(benchBlobs-benchOrphans)]
		_, err := js.PublishAsync(fmt.Sprint("refold.in.s", i%1000), fmt.Appendf(nil, `{"type":"Any","data":{"blob":"%s","text":"%s"}}`, name, text), jetstream.WithRetryAttempts(100), jetstream.WithStallWait(time.Minute))
		bustest.OK(s.t, err)
	}
	<-js.PublishAsyncComplete()
	if failed.Load() > 0 {
		s.t.Fatalf("%d blobs were not stored", failed.Load())
	}
}
