package full

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/cmd/refold/cli"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/telemetry/metrics"
	"github.com/refold/refold/internal/telemetry/traces"
)

// exportMax is the number of spans that are sent at a time.
const exportMax = 512

// messages returns the spans in OTLP form.
func messages(of cli.SpanForm, spans []*timeline.Span) []*tracepb.Span {
	form, all := traces.Form{Prefix: of.Prefix, Unit: traces.Unit(of.Unit), Latest: metrics.Latest(os.Getenv(metrics.OptInVariable))}, make([]*tracepb.Span, len(spans))
	for i, s := range spans {
		all[i] = form.Render(of.Session, s)
	}
	return all
}

func printSpans(out io.Writer, of cli.SpanForm, spans []*timeline.Span) error {
	byTrace, order := map[string][]*tracepb.Span{}, []string{}
	for _, m := range messages(of, spans) {
		id := string(m.TraceId)
		if byTrace[id] == nil {
			order = append(order, id)
		}
		byTrace[id] = append(byTrace[id], m)
	}
	for _, id := range order {
		line, err := traces.JSON(resource(), byTrace[id])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", line)
	}
	return nil
}

// resource names session-actors as the source of the spans, as in an export.
func resource() *resourcepb.Resource {
	return traces.Resource("refold-session-actor", settings.Version(), "")
}

// sendSpans exports the spans. It may be repeated: they keep their ids and content.
func sendSpans(ctx context.Context, collector string, of cli.SpanForm, spans []*timeline.Span) error {
	to := traces.HTTP(collector)
	if err := to.Start(ctx); err != nil {
		return err
	}
	for batch := range slices.Chunk(messages(of, spans), exportMax) {
		if err := to.UploadTraces(ctx, []*tracepb.ResourceSpans{traces.Group(resource(), batch)}); err != nil {
			return err
		}
	}
	return to.Stop(ctx)
}
