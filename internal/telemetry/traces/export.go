package traces

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Uploader sends spans to a collector: an otlptrace.Client.
type Uploader interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error
}

// Limits of the queue and of batches.
const (
	queueMax = 8192 // pending spans; more are dropped
	batchMax = 512
	sendEach = time.Second      // the interval of sends
	sendFor  = 10 * time.Second // for one batch
	stopFor  = 5 * time.Second  // for the queue when the process ends
)

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/refold/refold"

// exporter sends spans in batches from a goroutine of its own.
type exporter struct {
	to       Uploader
	log      *slog.Logger
	resource *resourcepb.Resource
	dropped  atomic.Uint64
	onDrop   func(spans int)
	full     chan struct{} // a full batch is pending
	stop     chan struct{}
	sending  context.Context // ends stopFor after close is called
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	failed   bool // the last batch was not accepted

	mu      sync.Mutex
	queue   []pending
	waiting int // spans in the queue and in batches being sent
}

// pending holds n pending spans, which are rendered when they are sent.
type pending struct {
	n    int
	span func(i int) *tracepb.Span
}

func newExporter(o Options, resource *resourcepb.Resource) *exporter {
	e := &exporter{
		to: o.To, log: o.Logger, resource: resource, onDrop: o.Dropped,
		full: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	e.sending, e.cancel = context.WithCancel(context.Background())
	e.ended.Go(e.run)
	return e
}

// put adds n spans to the queue. It never waits for the collector, and wakes the
// goroutine only for a full batch: waking it for each event costs more than the
// spans.
func (e *exporter) put(n int, span func(i int) *tracepb.Span) {
	e.mu.Lock()
	fits := e.waiting+n <= queueMax
	if fits {
		e.queue = append(e.queue, pending{n, span})
		e.waiting += n
	}
	enough := e.waiting >= batchMax
	e.mu.Unlock()
	if !fits {
		e.drop(n)
	}
	if enough {
		select {
		case e.full <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (e *exporter) drop(n int) {
	e.dropped.Add(uint64(n))
	if e.onDrop != nil {
		e.onDrop(n)
	}
}

// run sends the queue, every second and when a batch is full, until close is
// called.
func (e *exporter) run() {
	tick := time.NewTicker(sendEach)
	defer tick.Stop()
	for {
		select {
		case <-e.full:
			e.send()
		case <-tick.C:
			e.send()
		case <-e.stop:
			e.send()
			return
		}
	}
}

func (e *exporter) send() {
	e.mu.Lock()
	queue := e.queue
	e.queue = nil
	e.mu.Unlock()
	batch := make([]*tracepb.Span, 0, batchMax)
	for _, p := range queue {
		for i := range p.n {
			if batch = append(batch, p.span(i)); len(batch) == batchMax {
				e.upload(batch)
				batch = batch[:0]
			}
		}
	}
	if len(batch) > 0 {
		e.upload(batch)
	}
}

// upload sends a batch. A batch that the collector does not accept is dropped;
// the first failure in a row is logged.
func (e *exporter) upload(batch []*tracepb.Span) {
	ctx, cancel := context.WithTimeout(e.sending, sendFor)
	defer cancel()
	err := e.to.UploadTraces(ctx, []*tracepb.ResourceSpans{Group(e.resource, batch)})
	e.mu.Lock()
	e.waiting -= len(batch)
	e.mu.Unlock()
	if err != nil {
		e.drop(len(batch))
	}
	switch {
	case err != nil && !e.failed:
		e.log.Warn("spans_not_exported", "error", err.Error())
	case err == nil && e.failed:
		e.log.Info("spans_exported_again", "dropped", e.dropped.Load())
	}
	e.failed = err != nil
}

// close sends the queue, for at most a few seconds.
func (e *exporter) close() {
	defer e.cancel()
	defer time.AfterFunc(stopFor, e.cancel).Stop()
	close(e.stop)
	e.ended.Wait()
}

// Group groups spans of one process, as OTLP requires.
func Group(resource *resourcepb.Resource, spans []*tracepb.Span) *tracepb.ResourceSpans {
	return &tracepb.ResourceSpans{
		Resource:   resource,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: Scope}, Spans: spans}},
	}
}

// Resource describes the program that made the spans.
func Resource(service, version, instance string) *resourcepb.Resource {
	r := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", service), text("service.version", version)}}
	if instance != "" {
		r.Attributes = append(r.Attributes, text("service.instance.id", instance))
	}
	return r
}
