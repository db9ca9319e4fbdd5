package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/bridge/executor"
)

var form = Form{Prefix: "refold"}

// sink is an uploader that keeps the spans, or fails.
type sink struct {
	mu     sync.Mutex
	spans  []*tracepb.Span
	fail   error
	held   chan struct{} // nil: it answers at once
	starts int
}

func (s *sink) Start(context.Context) error { s.starts++; return nil }
func (s *sink) Stop(context.Context) error  { return nil }

func (s *sink) UploadTraces(ctx context.Context, all []*tracepb.ResourceSpans) error {
	if s.held != nil {
		select {
		case <-s.held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, r := range all {
		s.spans = append(s.spans, r.ScopeSpans[0].Spans...)
	}
	return nil
}

func newTracer(t testing.TB, to Uploader) *Tracer {
	t.Helper()
	tracer, err := New(t.Context(), Options{Form: form, Ratio: 1, Service: "test", To: to, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// count returns how many spans were uploaded.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spans)
}

func queued(n int) []*timeline.Span {
	spans := make([]*timeline.Span, n)
	for i := range spans {
		spans[i] = &timeline.Span{Kind: timeline.KindQueue, Place: fmt.Sprintf("r%dq", i+1), Parent: fmt.Sprintf("r%d", i+1), Run: uint32(i + 1)}
	}
	return spans
}

func TestPendingSpansAreExportedWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &sink{}
		tracer := newTracer(t, to)
		tracer.Ended("s1", queued(3))
		synctest.Wait()
		if to.count() != 0 {
			t.Errorf("%d spans were sent one by one", to.count())
		}
		<-time.After(sendEach)
		synctest.Wait()
		if to.count() != 3 {
			t.Errorf("after %v %d spans were sent, want 3", sendEach, to.count())
		}
		tracer.Ended("s1", queued(2*batchMax+1))
		if err := tracer.Close(); err != nil || to.count() != 3+2*batchMax+1 {
			t.Errorf("at the end %d spans were sent (%v), want %d", to.count(), err, 3+2*batchMax+1)
		}
	})
}

// A hanging collector costs the spans beyond the queue's limit, and nothing else:
// memory is bounded, and no caller waits.
func TestHangingCollectorOnlyDropsSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &sink{held: make(chan struct{})}
		tracer := newTracer(t, to)
		const told = 3 * queueMax
		began := time.Now()
		for span := range slices.Chunk(queued(told), 1) {
			tracer.Ended("s1", span)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("whoever hands spans over waited for %v", waited)
		}
		synctest.Wait()
		if got := tracer.Dropped(); got < told-queueMax-batchMax {
			t.Errorf("%d of %d spans were dropped; the queue has room for %d", got, told, queueMax)
		}
		close(to.held)
		if err := tracer.Close(); err != nil {
			t.Fatal(err)
		}
		if got := uint64(to.count()) + tracer.Dropped(); got != told {
			t.Errorf("%d spans were sent or counted as dropped, want %d", got, told)
		}
	})
}

func TestRefusingCollectorIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		to := &sink{fail: errors.New("401")}
		tracer, err := New(t.Context(), Options{Form: form, Ratio: 1, To: to, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			tracer.Ended("s1", queued(1))
			<-time.After(sendEach)
		}
		synctest.Wait()
		to.mu.Lock()
		to.fail = nil
		to.mu.Unlock()
		tracer.Ended("s1", queued(1))
		if err := tracer.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "spans_not_exported"); got != 1 {
			t.Errorf("it is told of %d times:\n%s", got, log.String())
		}
		if !strings.Contains(log.String(), "spans_exported_again dropped=5") {
			t.Errorf("that it takes spans again is not told:\n%s", log.String())
		}
	})
}

// Nothing of a malformed header is exported, and a well-formed one only becomes a
// link.
func TestInvalidTraceparentsAreIgnored(t *testing.T) {
	t.Parallel()
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	span := timeline.Span{Kind: timeline.KindRun, Place: "r1", Run: 1, Outcome: &timeline.Outcome{}}
	plain := form.Render("s1", &span)
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 10_000 {
		text := []byte(good)
		switch random.IntN(4) {
		case 0:
			text[random.IntN(len(text))] = byte(random.IntN(256))
		case 1:
			text = text[:random.IntN(len(text))]
		case 2:
			text = append(text, byte(random.IntN(256)))
		default:
			for i := range text {
				text[i] = byte(random.IntN(256))
			}
		}
		c, ok := ParseTraceparent(string(text))
		if ok && c.String() != string(text) {
			t.Fatalf("%q is read as %s", text, c)
		}
		span.Caller = string(text)
		got := form.Render("s1", &span)
		if string(got.TraceId) != string(plain.TraceId) || string(got.SpanId) != string(plain.SpanId) || got.ParentSpanId != nil {
			t.Fatalf("%q changes the ids of a run", text)
		}
		if !ok {
			refused++
		}
		if (len(got.Links) == 1) != ok {
			t.Fatalf("%q makes %d links", text, len(got.Links))
		}
	}
	if refused < 5_000 {
		t.Errorf("only %d of 10,000 were refused: the test draws too little that is wrong", refused)
	}
	for _, text := range []string{
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		if _, ok := ParseTraceparent(text); ok {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestSampleIsAFractionOfRuns(t *testing.T) {
	t.Parallel()
	const runs = 20_000
	for _, ratio := range []float64{0, 0.01, 0.1, 0.5, 1} {
		n := 0
		for i := range runs {
			if form.Sampled(fmt.Sprint("s", i), 1, nil, ratio) {
				n++
			}
		}
		if got := float64(n) / runs; got < ratio*0.8-0.001 || got > ratio*1.2+0.001 {
			t.Errorf("of %v of the runs %v are sampled", ratio, got)
		}
	}
}

func TestPlaceOfEffectRoundTrips(t *testing.T) {
	t.Parallel()
	for effect, place := range map[string]string{"r1t2": "r1t2a1", "r1t2a2": "r1t2a2", "r12t30c4": "r12t30c4", "r1t2s": "r1t2s"} {
		if got := timeline.PlaceOf(effect); got != place {
			t.Errorf("%s is carried out in %s, want %s", effect, got, place)
		}
		if got := timeline.EffectOf(place); got != effect {
			t.Errorf("%s asks for %s, want %s", place, got, effect)
		}
	}
	for effect, want := range map[string]uint32{"r1t2": 1, "r12t30c4": 12, "w3": 0, "y1": 0, "": 0, "r": 0, "r99999999999t1": 0} {
		if got := runNumber(effect); got != want {
			t.Errorf("%q is of run %d, want %d", effect, got, want)
		}
	}
}

func TestTextsAreMaskedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	masks, err := ParseMasks("# cards\n\\d{16}\n\n")
	if err != nil || len(masks) != 1 {
		t.Fatalf("%d masks, %v", len(masks), err)
	}
	c := &Content{Mask: masks}
	secret := "4111111111111111"
	text := c.show(strings.Repeat("é", contentMax/2-5) + secret + strings.Repeat("b", contentMax))
	if strings.Contains(text, "411") || len(text) > contentMax || !strings.HasSuffix(text, cutMark) {
		t.Errorf("shown are %d bytes that end in %q", len(text), text[len(text)-20:])
	}
	if _, err := ParseMasks("ok\n("); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a pattern that does not parse: %v; want its line", err)
	}
	for _, s := range []executor.Start{
		{Class: "llm", Messages: []executor.Message{{Role: "user", Text: "my card is " + secret}}},
		{Class: "tool", Arguments: `{"card":"` + secret + `"}`},
	} {
		tracer := &Tracer{opts: Options{Form: form, Ratio: 1, Content: c}}
		s.Session, s.Effect = "s1", "r1t1"
		end := executor.End{Text: secret, Calls: []executor.AnswerCall{{Name: "pay", Arguments: secret}}}
		if got := tracer.renderStart(&s, &end, [8]byte{1}).String(); strings.Contains(got, secret) || !strings.Contains(got, masked) {
			t.Errorf("exported: %s", got)
		}
	}
}

// Users of back ends rely on the names and attributes of spans.
func TestNamesAndAttributesOfSpans(t *testing.T) {
	t.Parallel()
	usage := session.UsageTotal{InputTokens: 10, OutputTokens: 5, CachedTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 2}
	call := &timeline.Call{ToolID: "host.exec", ToolName: "shell", Kind: "session", Status: session.CallFailed}
	spans := []timeline.Span{
		{Kind: timeline.KindRun, Place: "r2", Run: 2, Profile: "openai", Provider: "openai", Model: "m1", Install: "abc", Failed: true, Code: "turns_max",
			Caller:  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			Of:      &timeline.Of{Session: "p1", Call: "r1t1c0"},
			Outcome: &timeline.Outcome{Lifecycle: session.Failed, Usage: usage, Cost: 7, Turns: 3}},
		{Kind: timeline.KindQueue, Place: "r2q", Parent: "r2", Run: 2},
		{Kind: timeline.KindPause, Place: "r2p41", Parent: "r2", Run: 2, Budget: true},
		{Kind: timeline.KindTurn, Place: "r2t1", Parent: "r2", Run: 2, Turn: &timeline.Turn{
			Toolset: "ts", Base: "profile", Rule: "run:1", Tools: 4, Refused: []timeline.Refused{{Call: "r2t1c1", Tool: "nosuch", Code: "tool_unknown", At: 5}},
		}},
		{Kind: timeline.KindStep, Place: "r2t1s", Parent: "r2t1", Run: 2, Hook: "router", From: "hook"},
		{Kind: timeline.KindAttempt, Place: "r2t1a1", Parent: "r2t1", Run: 2, Attempt: 1, Provider: "openai", Model: "m1", Outcome: &timeline.Outcome{}},
		{Kind: timeline.KindRetry, Place: "r2t1w1", Parent: "r2t1", Run: 2, Attempt: 1},
		{Kind: timeline.KindGroup, Place: "r2t1g0", Parent: "r2t1", Run: 2, Calls: 2, Plan: "ph"},
		{Kind: timeline.KindCall, Place: "r2t1c0", Parent: "r2t1g0", Run: 2, Call: call, Failed: true, Code: "executor_error"},
		{Kind: timeline.KindApproval, Place: "r2t1c0p", Parent: "r2t1", Run: 2, Call: call, Decision: "approve"},
	}
	var b strings.Builder
	for i := range spans {
		draw(&b, form.Render("s1", &spans[i]))
	}
	tracer := &Tracer{opts: Options{Form: form, Ratio: 1}}
	at := time.UnixMilli(1000)
	draw(&b, tracer.renderStart(&executor.Start{Class: "llm", Target: "openai", Session: "s1", Effect: "r2t1", ID: "01", Model: "m1", At: at},
		&executor.End{At: at.Add(time.Second), Status: "succeeded", Usage: executor.Usage{InputTokens: 1, OutputTokens: 2}, Model: "m1-0824", Finish: "stop", FirstText: at.Add(time.Second / 2)}, [8]byte{1}))
	draw(&b, tracer.renderStart(&executor.Start{Class: "tool", Target: "host", Session: "s1", Effect: "r2t1c0", ID: "02", ToolID: "host.exec", ToolName: "shell", CallID: "call_1", At: at},
		&executor.End{At: at.Add(time.Second), Status: "failed", Code: "executor_error"}, [8]byte{2}))
	turns := Form{Prefix: "refold", Unit: UnitTurn}
	b.WriteString("\na turn is a trace:\n")
	for _, i := range []int{0, 3, 5} {
		draw(&b, turns.Render("s1", &spans[i]))
	}
	second := spans[3]
	second.Place = "r2t2"
	draw(&b, turns.Render("s1", &second))
	draw(&b, (&Tracer{opts: Options{Form: turns}}).renderStart(&executor.Start{Class: "llm", Session: "s1", Effect: "r2t2", At: at}, &executor.End{At: at}, [8]byte{3}))
	tree := &Tracer{opts: Options{Form: Form{Prefix: "refold", Unit: UnitTree}, Ratio: 1}}
	b.WriteString("\na tree is a trace:\n")
	origin := &session.Origin{Run: 4, Session: "s0"}
	child := spans[0]
	child.Origin, child.Of = origin, &timeline.Of{Session: "s9", Call: "r4t1c0"}
	draw(&b, tree.opts.Render("s0", &timeline.Span{Kind: timeline.KindGroup, Place: "r4t1g0", Parent: "r4t1", Run: 4}))
	draw(&b, tree.opts.Render("s1", &child))
	start := executor.Start{Class: "llm", Session: "s1", Effect: "r2t2", At: at}
	if tree.Started(start) != "" {
		t.Error("a bridge traces a start whose tree it does not know")
	}
	start.Traceparent = tree.Traceparent("s1", "r2t2", origin)
	draw(&b, tree.renderStart(&start, &executor.End{At: at}, [8]byte{4}))
	fmt.Fprintf(&b, "a tool of it has the parent %s\n", tree.Started(start))
	const golden = "testdata/names.golden"
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// valueOf returns an attribute's value as text. The result of protobuf's String
// differs between builds.
func valueOf(v *commonpb.AnyValue) string {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return fmt.Sprintf("%q", v.StringValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *commonpb.AnyValue_ArrayValue:
		var all []string
		for _, one := range v.ArrayValue.Values {
			all = append(all, valueOf(one))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return "?"
}

// draw writes one line for each span, and one for each attribute.
func draw(b *strings.Builder, s *tracepb.Span) {
	fmt.Fprintf(b, "%s %s trace=%x span=%x parent=%x", s.Name, strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), s.TraceId[:4], s.SpanId[:4], s.ParentSpanId)
	if s.Status != nil {
		fmt.Fprintf(b, " %s %q", strings.TrimPrefix(s.Status.Code.String(), "STATUS_CODE_"), s.Status.Message)
	}
	b.WriteByte('\n')
	for _, a := range s.Attributes {
		fmt.Fprintf(b, "  %s %s\n", a.Key, valueOf(a.Value))
	}
	for _, e := range s.Events {
		fmt.Fprintf(b, "  event %s at %d: %d attributes\n", e.Name, e.TimeUnixNano, len(e.Attributes))
	}
	for _, l := range s.Links {
		fmt.Fprintf(b, "  link %s %x\n", l.Attributes[0].Value.GetStringValue(), l.TraceId[:4])
	}
}

func TestDroppedSpansAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dropped := 0
		tracer, err := New(t.Context(), Options{Form: form, Ratio: 1, To: &sink{fail: errors.New("401")}, Logger: slog.New(slog.DiscardHandler), Dropped: func(n int) { dropped += n }})
		if err != nil {
			t.Fatal(err)
		}
		tracer.Ended("s1", queued(3))
		if err := tracer.Close(); err != nil || dropped != 3 {
			t.Errorf("%d spans were told to be dropped (%v), want 3", dropped, err)
		}
	})
}
