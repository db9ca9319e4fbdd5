package journal_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// BenchmarkErase is the measurement behind docs/adr/0107. It deletes messages of a stream
// of that many messages, 450 bytes each, while 16 callers publish: plainly, erasing at full
// pace, and erasing with pauses 19 times as long. x_ is the callers' rate as a multiple of
// theirs without deletes, p99_ their 99th percentile, ms_ the time of a delete.
//
//	go test ./internal/journal -run xxx -bench Erase -benchtime 1x -timeout 30m
func BenchmarkErase(b *testing.B) {
	for _, messages := range []int{60_000, 500_000} {
		for name, mode := range map[string]natsio.Durability{"always": natsio.DurabilityAlways, "interval": natsio.DurabilityInterval} {
			b.Run(fmt.Sprintf("%d/%s", messages, name), func(b *testing.B) {
				node := bustest.Server(b, func(o *server.Options) { o.SyncAlways = mode == natsio.DurabilityAlways })
				_, js := testbus.JS(b, node)
				ctx := context.Background()
				stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "E", Subjects: []string{"e.*"}, AllowDirect: true, AllowAtomicPublish: mode != natsio.DurabilityAlways})
				bustest.OK(b, err)
				fill(b, js, messages)
				next := uint64(1)
				deleting := func(f func(context.Context, uint64) error, rest int) func(stop <-chan struct{}) time.Duration {
					return func(stop <-chan struct{}) time.Duration {
						var spent time.Duration
						for n := 1; ; n++ {
							begun := time.Now()
							bustest.OK(b, f(ctx, next))
							next += 97 // messages of a session lie apart
							if next > uint64(messages) {
								next = next%97 + 1
							}
							took := time.Since(begun)
							spent += took
							select {
							case <-stop:
								return spent / time.Duration(n)
							case <-time.After(time.Duration(rest) * took):
							}
						}
					}
				}
				base, p99, _ := beside(b, js, func(stop <-chan struct{}) time.Duration { <-stop; return 0 })
				b.ReportMetric(base, "msgs/s")
				b.ReportMetric(p99, "p99_ms")
				for _, c := range []struct {
					name   string
					delete func(context.Context, uint64) error
					rest   int
				}{
					{"plain", func(ctx context.Context, seq uint64) error { return stream.DeleteMsg(ctx, seq) }, 0},
					{"full", func(ctx context.Context, seq uint64) error { return stream.SecureDeleteMsg(ctx, seq) }, 0},
					{"budget", func(ctx context.Context, seq uint64) error { return stream.SecureDeleteMsg(ctx, seq) }, 19},
				} {
					rate, p99, took := beside(b, js, deleting(c.delete, c.rest))
					b.ReportMetric(rate/base, "x_"+c.name)
					b.ReportMetric(p99, "p99_"+c.name)
					b.ReportMetric(float64(took.Microseconds())/1000, "ms_"+c.name)
				}
			})
		}
	}
}

// fill stores messages of 1,000 subjects in turn.
func fill(b *testing.B, js jetstream.JetStream, messages int) {
	b.Helper()
	payload := make([]byte, 450)
	for i := range messages {
		_, _ = rand.Read(payload[:64])
		_, err := js.PublishAsync(fmt.Sprint("e.s", i%1000), slices.Clone(payload))
		bustest.OK(b, err)
		if i%4000 == 3999 {
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
}

// beside publishes from 16 callers for five seconds while f runs, and returns their rate,
// their 99th percentile in ms, and what f returns.
func beside(b *testing.B, js jetstream.JetStream, f func(stop <-chan struct{}) time.Duration) (perSecond, p99 float64, took time.Duration) {
	b.Helper()
	const span = 5 * time.Second
	stop, result := make(chan struct{}), make(chan time.Duration, 1)
	go func() { result <- f(stop) }()
	var count atomic.Int64
	var times [16][]time.Duration
	var done sync.WaitGroup
	begun := time.Now()
	for i := range times {
		done.Go(func() {
			payload := make([]byte, 450)
			for time.Since(begun) < span {
				at := time.Now()
				if _, err := js.Publish(context.Background(), fmt.Sprint("e.p", count.Add(1)%1000), payload); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(at))
			}
		})
	}
	done.Wait()
	whole := time.Since(begun).Seconds()
	close(stop)
	took = <-result
	all := slices.Sorted(slices.Values(slices.Concat(times[:]...)))
	return float64(len(all)) / whole, float64(all[len(all)*99/100].Microseconds()) / 1000, took
}

// BenchmarkSeal seals and opens what a run of 15 messages stores, each with the key of its
// session: the other choice in docs/adr/0107. cpu_us is the processor time for a run.
func BenchmarkSeal(b *testing.B) {
	ciphers := map[string]func(key []byte) (cipher.AEAD, error){
		"AES-GCM": func(key []byte) (cipher.AEAD, error) {
			block, err := aes.NewCipher(key)
			if err != nil {
				return nil, err
			}
			return cipher.NewGCMWithRandomNonce(block)
		},
		"XChaCha20": chacha20poly1305.NewX,
	}
	for name, of := range ciphers {
		b.Run(name, func(b *testing.B) {
			key, payload, before := make([]byte, 32), make([]byte, 450), processorTime(b)
			for b.Loop() {
				for range 15 {
					sealer, err := of(key)
					bustest.OK(b, err)
					nonce := make([]byte, sealer.NonceSize())
					_, _ = rand.Read(nonce)
					sealed := sealer.Seal(nil, nonce, payload, nil)
					_, err = sealer.Open(nil, nonce, sealed, nil)
					bustest.OK(b, err)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu_us")
		})
	}
}
