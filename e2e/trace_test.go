package e2e_test

// Traces, with a collector inside the test: what live daemons export, what
// `refold trace` later computes from the log, and what never leaves a process.

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/refold/refold/actors/session"
)

// collector takes OTLP over HTTP, as an OpenTelemetry Collector does.
type collector struct {
	t     testing.TB
	url   string
	mu    sync.Mutex
	spans map[string]*tracepb.Span // by id
	bytes []byte                   // of all bodies
	again int                      // spans that came more than once
}

func startCollector(t testing.TB) *collector {
	t.Helper()
	c := &collector{t: t, spans: map[string]*tracepb.Span{}}
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/traces" {
		return // metrics
	}
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		from = unzipped
	}
	body, err := io.ReadAll(from)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = append(c.bytes, body...)
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				id := hex.EncodeToString(s.SpanId)
				if have := c.spans[id]; have != nil {
					c.again++
					if !proto.Equal(have, s) {
						c.t.Errorf("span %s has two contents:\n%s", id, cmp.Diff(have, s, protocmp.Transform()))
					}
				}
				c.spans[id] = s
			}
		}
	}
	_, _ = w.Write(nil)
}

// all returns the spans, by id: those that follow from the log, and those of
// bridges.
func (c *collector) all() (logged, starts map[string]*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	logged, starts = map[string]*tracepb.Span{}, map[string]*tracepb.Span{}
	for id, s := range c.spans {
		if strings.HasPrefix(s.Name, "chat") || strings.HasPrefix(s.Name, "execute_tool") {
			starts[id] = s
		} else {
			logged[id] = s
		}
	}
	return logged, starts
}

// idInHex is an id in OTLP's JSON, which protobuf's has in base64.
var idInHex = regexp.MustCompile(`"(?:traceId|spanId|parentSpanId)":"[0-9a-f]*"`)

func base64Of(member string) string {
	key, text, _ := strings.Cut(member, ":")
	id, err := hex.DecodeString(strings.Trim(text, `"`))
	if err != nil {
		return member
	}
	return key + `:"` + base64.StdEncoding.EncodeToString(id) + `"`
}

// tracesOf returns the spans that `refold trace` makes of sessions.
func tracesOf(t testing.TB, url string, sids ...string) map[string]*tracepb.Span {
	t.Helper()
	spans := map[string]*tracepb.Span{}
	for _, sid := range sids {
		out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", url, "trace", sid, "--json")
		if status != 0 {
			t.Fatalf("refold trace %s: status %d\n%s", sid, status, errOut)
		}
		for line := range strings.Lines(out) {
			data := &tracepb.TracesData{}
			if err := protojson.Unmarshal([]byte(idInHex.ReplaceAllStringFunc(line, base64Of)), data); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
				spans[hex.EncodeToString(s.SpanId)] = s
			}
		}
	}
	return spans
}

// spanNames counts spans by their names.
func spanNames(spans map[string]*tracepb.Span) map[string]int {
	counts := map[string]int{}
	for _, s := range spans {
		counts[s.Name]++
	}
	return counts
}

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

// marker stands in inputs, arguments, outputs and answers of the runs below.
const marker = "xyzzy-4711"

func TestTracesAgreeWithTheLog(t *testing.T) {
	t.Parallel()
	c, url := startCollector(t), startNATS(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url}
	actor := startDaemonWith(t, env, "session-actor", "--nats", url, "--trace-ratio", "1")
	bridge := startDaemonWith(t, env, "bridge", "--nats", url, "--trace-ratio", "0.000001", "--model", "scripted:echo", "--tools", "host", "--workdir", t.TempDir())
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	request := nats.NewMsg("refold.in.s1")
	request.Data = runRequested(t, "hello "+marker)
	request.Header.Set("traceparent", "00-"+callerTrace+"-"+callerSpan+"-01")
	publishMsg(t, nc, request)
	waitFinished(t, heard, 1)
	publish(t, nc, "refold.in.s1", runRequested(t, "run echo "+marker))
	waitFinished(t, heard, 2)
	for _, d := range []*daemon{bridge, actor} {
		if err := d.drain(30 * time.Second); err != nil {
			t.Fatalf("%s after SIGTERM: %v", d.name, err)
		}
	}
	logged, starts := c.all()
	if diff := cmp.Diff(tracesOf(t, url, "s1"), logged, protocmp.Transform()); diff != "" {
		t.Errorf("what was exported live is not what refold trace says (-trace +live):\n%s", diff)
	}
	if got := spanNames(starts); got["chat echo"] < 3 || got["execute_tool shell"] != 1 {
		t.Errorf("the bridge exported %v; want a chat for each turn and one execution of shell", got)
	}
	for id, s := range starts {
		parent := logged[hex.EncodeToString(s.ParentSpanId)]
		if parent == nil || string(parent.TraceId) != string(s.TraceId) {
			t.Errorf("%s (%s) has no parent in its trace", s.Name, id)
		}
	}
	for id, s := range logged {
		if parent := hex.EncodeToString(s.ParentSpanId); parent != "" && logged[parent] == nil {
			t.Errorf("%s (%s) has the parent %s, which was not exported", s.Name, id, parent)
		}
	}
	if got := linksOf(logged); !slices.Equal(got, []string{"caller " + callerTrace + " " + callerSpan, "previous"}) {
		t.Errorf("the runs are linked to %q", got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(string(c.bytes), marker) {
		t.Error("a text of the conversation was exported without --trace-content")
	}
}

// linksOf returns the links of runs: callers with their ids.
func linksOf(spans map[string]*tracepb.Span) (links []string) {
	for _, s := range spans {
		for _, l := range s.Links {
			what := l.Attributes[0].Value.GetStringValue()
			if what == "caller" {
				what += fmt.Sprintf(" %x %x", l.TraceId, l.SpanId)
			}
			links = append(links, what)
		}
	}
	slices.Sort(links)
	return links
}

// publishMsg publishes a message with headers through JetStream.
func publishMsg(t testing.TB, nc *nats.Conn, m *nats.Msg) {
	t.Helper()
	until(t, endWithin, "an acknowledgement on "+m.Subject, func() bool {
		_, err := nc.RequestMsg(m, 5*time.Second)
		return err == nil
	})
}

// TestDevTracesAndAnswersOverHTTP: dev traces every run if a collector is
// named, in its session-actor and its bridge, and serves HTTP.
func TestDevTracesAndAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	d, _, admin := startDevWith(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url}, "--http", "127.0.0.1:0")
	metrics := regexp.MustCompile(`Metrics: (\S+)`).FindStringSubmatch(d.out.String())
	if metrics == nil {
		t.Fatalf("dev does not say where its metrics are:\n%s", d.out.String())
	}
	runOnce(t, 0, nil, "--context", admin, "run", "s1", "hello")
	for path, want := range map[string]string{"/metrics": "refold_runs_total{", "/readyz": `"ready":true`} {
		answer, err := http.Get(strings.Replace(metrics[1], "/metrics", path, 1))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s has no %s (%v):\n%s", path, want, err, body)
		}
	}
	if err := d.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	logged, starts := c.all()
	if want := map[string]int{"invoke_agent echo": 1, "turn": 1, "attempt": 1}; !maps.Equal(spanNames(logged), want) && len(logged) != 3 {
		t.Errorf("dev exported %v of the run, want %v", spanNames(logged), want)
	}
	if got, want := spanNames(starts), map[string]int{"chat scripted": 1}; !maps.Equal(got, want) {
		t.Errorf("dev exported %v of its bridge, want %v", got, want)
	}
}

func TestTracesWithContentAreMasked(t *testing.T) {
	t.Parallel()
	c, url := startCollector(t), startNATS(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url}
	masks := writeFile(t, "masks", "# what customers call theirs\n"+marker+"\n")
	startDaemonWith(t, env, "session-actor", "--nats", url, "--trace-ratio", "1")
	bridge := startDaemonWith(t, env, "bridge", "--nats", url, "--trace-content", "--trace-redact", masks,
		"--model", "scripted:echo", "--tools", "host", "--workdir", t.TempDir())
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	publish(t, nc, "refold.in.s1", runRequested(t, "run echo shown and "+marker))
	waitFinished(t, heard, 1)
	if err := bridge.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	_, starts := c.all()
	texts := ""
	for _, s := range starts {
		for _, a := range s.Attributes {
			texts += a.Key + "=" + a.Value.GetStringValue() + "\n"
		}
	}
	for _, want := range []string{"gen_ai.input.messages=", "gen_ai.output.messages=", "gen_ai.tool.call.arguments=", "gen_ai.tool.call.result=", "shown and", "[masked]"} {
		if !strings.Contains(texts, want) {
			t.Errorf("the bridge exported no %q:\n%s", want, texts)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(string(c.bytes), marker) {
		t.Error("what --trace-redact names was exported")
	}
}

// TestTracesOutliveACollector: a collector that hangs, refuses or is gone
// changes nothing else.
func TestTracesOutliveACollector(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(func() { close(hang); hangs.Close() })
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refuses.Close)
	for name, collector := range map[string]string{"hangs": hangs.URL, "refuses": refuses.URL, "is gone": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, env := startNATS(t), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector}
			actor := startDaemonWith(t, env, "session-actor", "--nats", url, "--trace-ratio", "1")
			startDaemonWith(t, env, "bridge", "--nats", url, "--model", "scripted:echo")
			nc := connect(t, url)
			heard := listen(t, nc, "refold.out.s1")
			for n := range 5 {
				publish(t, nc, "refold.in.s1", runRequested(t, "again"))
				if got := waitFinished(t, heard, n+1); got.Lifecycle != "completed" {
					t.Errorf("run %d: %+v", n+1, got)
				}
			}
			if err := actor.drain(30 * time.Second); err != nil {
				t.Errorf("after SIGTERM: %v", err)
			}
			if spans := tracesOf(t, url, "s1"); spanNames(spans)["invoke_agent"] != 5 {
				t.Errorf("refold trace has the runs %v, want 5", slices.Sorted(maps.Keys(spanNames(spans))))
			}
		})
	}
}

// TestTracesOfARunThatChangesHands: the session-actor is killed during an
// approval. The next one exports the spans of the whole run, also those that
// had ended before.
func TestTracesOfARunThatChangesHands(t *testing.T) {
	t.Parallel()
	c, url := startCollector(t), startNATS(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url}
	args := []string{"--nats", url, "--trace-ratio", "1", "--install", writeFile(t, "install.json", jsonText(t, approvalRecord()))}
	actor := startDaemonWith(t, env, "session-actor", args...)
	nc := connect(t, url)
	s := &system{t: t, url: url, nc: nc}
	s.models(approvalScript, "scripted")
	s.tools(&lab{})
	heard := listen(t, nc, "refold.out.s1")
	publish(t, nc, "refold.in.s1", envelope(t, session.TypeRunRequested, object{"input": object{"text": "go"}}))
	asked := heard.approvals(t, 3)
	actor.kill()
	next := startDaemonWith(t, env, "session-actor", args...)
	for _, what := range []object{decision(asked[0], "approve", nil), decision(asked[1], "approve", object{"arguments": `{"to":"bob"}`}), decision(asked[2], "deny", object{"reason": "not today"})} {
		publish(t, nc, "refold.approve.s1", envelope(t, session.TypeApprovalDecided, what))
	}
	if got := waitFinished(t, heard, 1); got.Lifecycle != "completed" {
		t.Fatalf("the run: %+v", got)
	}
	if err := next.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	logged, _ := c.all()
	if diff := cmp.Diff(tracesOf(t, url, "s1"), logged, protocmp.Transform()); diff != "" {
		t.Errorf("what two session-actors exported is not what refold trace says (-trace +live):\n%s", diff)
	}
	if got := spanNames(logged); got["approval"] != 3 || got["invoke_agent"] != 1 || got["turn"] != 2 {
		t.Errorf("exported: %v", got)
	}
}
