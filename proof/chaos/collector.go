package chaos

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/internal/telemetry/traces"
)

// traceForm is the daemons' form of spans in trials: the defaults.
var traceForm traces.Form

// collector receives the spans that a trial's daemons export by OTLP. It runs in
// the process that kills the daemons, and outlives each of them.
type collector struct {
	url    string
	server *http.Server

	mu     sync.Mutex
	spans  map[string]*tracepb.Span // by id, in hexadecimal
	faults []string                 // what should not have arrived
}

// spansBytesMax bounds one request to the collector.
const spansBytesMax = 16 << 20

func newCollector() (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{url: fmt.Sprintf("http://%s/v1/traces", listener.Addr()), spans: map[string]*tracepb.Span{}}
	c.server = &http.Server{Handler: http.HandlerFunc(c.receive), ReadHeaderTimeout: time.Minute}
	go c.server.Serve(listener) //nolint:errcheck // it ends when the collector is closed
	return c, nil
}

// environ returns the variable that makes a process export its spans here.
func (c *collector) environ() string { return traces.Variables[0] + "=" + c.url }

func (c *collector) close() { c.server.Close() } // no sender is left

// receive handles one export. A request that ends early comes from a process that
// was killed while sending, and counts as not sent.
func (c *collector) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, spansBytesMax))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var request coltracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		c.fault(fmt.Sprintf("an export could not be decoded: %v", err))
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.take(span)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) fault(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, text)
}

// take stores a span. It may arrive again with the same content.
func (c *collector) take(span *tracepb.Span) {
	id := hex.EncodeToString(span.SpanId)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch before, again := c.spans[id]; {
	case !again:
		c.spans[id] = span
	case !proto.Equal(before, span):
		c.faults = append(c.faults, fmt.Sprintf("the span %s was exported with two contents: %v, and %v", id, before, span))
	}
}

// differences compares the received spans with those that the log gives. Each
// span of the log must have arrived with the same content. Any other must be a
// start of a bridge, with a parent from the log. logged are the spans by session.
func (c *collector) differences(logged map[string][]*timeline.Span) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := slices.Clone(c.faults)
	ids := map[string]bool{}
	for sid, spans := range logged {
		for _, s := range spans {
			want := traceForm.Render(sid, s)
			id := hex.EncodeToString(want.SpanId)
			ids[id] = true
			switch got, ok := c.spans[id]; {
			case !ok:
				faults = append(faults, fmt.Sprintf("the span %s was not exported", s.Place))
			case !proto.Equal(got, want):
				faults = append(faults, fmt.Sprintf("the span %s was exported as %v, the log gives %v", s.Place, got, want))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.spans)) {
		if span := c.spans[id]; !ids[id] && !ids[hex.EncodeToString(span.ParentSpanId)] {
			faults = append(faults, fmt.Sprintf("the span %s %q was exported, and the log has neither it nor its parent", id, span.Name))
		}
	}
	return faults
}

// exporting sends a session-actor's spans before it continues, so that none is
// lost with a killed process. Every run is traced.
type exporting struct {
	to       traces.Uploader
	resource *resourcepb.Resource
	log      *slog.Logger
}

func newExporting(log *slog.Logger) exporting {
	return exporting{traces.HTTP(""), traces.Resource(string(SessionActor), "", ""), log}
}

func (exporting) Sampled(string, uint32, *session.Origin) bool { return true }

func (exporting) Traceparent(sid, effect string, origin *session.Origin) string {
	return traceForm.Traceparent(sid, effect, origin)
}

func (e exporting) Ended(sid string, spans []*timeline.Span) {
	if len(spans) == 0 {
		return
	}
	rendered := make([]*tracepb.Span, len(spans))
	for i, s := range spans {
		rendered[i] = traceForm.Render(sid, s)
	}
	if err := e.to.UploadTraces(context.Background(), []*tracepb.ResourceSpans{traces.Group(e.resource, rendered)}); err != nil {
		e.log.Error("spans_not_exported", "error", err.Error()) // the end of the trial reports what is missing
	}
}
