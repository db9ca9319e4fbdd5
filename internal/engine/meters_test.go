package engine

// What a host counts, against a census of what the same events say: the notices,
// effects and lines of progress that they store, and the spans of their runs.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/planner"
)

// census is how often something was counted, by metric and labels.
type census map[string]int64

func (c census) add(n int64, metric string, labels ...string) {
	key := metric + "{" + strings.Join(labels, ",") + "}"
	if c[key] += n; c[key] == 0 {
		delete(c, key)
	}
}

// counted is what a registry has counted; of histograms, how many values.
func counted(r *meter.Registry, metrics ...string) census {
	c := census{}
	for _, m := range r.Collect() {
		if !slices.Contains(metrics, m.Desc.Name) {
			continue
		}
		for _, p := range m.Points {
			if p.Dist != nil {
				c.add(int64(p.Dist.Count), m.Desc.Name, p.Labels...)
			} else {
				c.add(int64(p.Value), m.Desc.Name, p.Labels...)
			}
		}
	}
	return c
}

// play folds the events of a scenario in a host, as if all were stored at once,
// and adds what they say to the census.
func play(t *testing.T, h *Host, path string, c census) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var s *actor
	var twin *session.State
	spans := timeline.NewTracker(0, nil)
	install, now, seq := (*session.Install)(nil), int64(1_000_000), uint64(2)
	for _, step := range file.Steps {
		var action scenario.Action
		if s == nil {
			action, err = scenario.Read(step.Input, nil)
		} else {
			action, err = scenario.Read(step.Input, install.Registry, s.state.View())
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", path, step.Input, err)
		}
		switch action.Kind {
		case scenario.KindInstall:
			payload := action.Payload
			if payload == nil {
				payload = session.BuiltinInstall()
			}
			if install, err = session.ParseInstall(payload); err != nil {
				return // the scenario is about records that are refused
			}
			s, twin = &actor{sid: "s1", state: session.New(install, "s1")}, session.New(install, "s1")
		case scenario.KindClock:
			now += action.Clock
		case scenario.KindShow:
		default:
			e := session.Event{Session: "s1", Door: action.Door, Seq: seq, Time: now, Payload: action.Payload}
			seq++
			playOne(t, h, s, twin, e, &spans, c)
		}
	}
	if s != nil {
		c.add(s.state.Usage.InputTokens, "tokens", "input")
		c.add(s.state.Usage.OutputTokens, "tokens", "output")
		c.add(s.state.Cost, "cost")
	}
}

// playOne folds one event in the host, and again beside it for the spans.
func playOne(t *testing.T, h *Host, s *actor, twin *session.State, e session.Event, spans *timeline.Tracker, c census) {
	t.Helper()
	o, before, cost := &outputs{arrival: &Delivered{Event: e}}, s.state.Usage, s.state.Cost
	if err := h.next(s, o); err != nil {
		t.Fatal(err)
	}
	if s.state.LastType() == session.TypeChildSettled { // the child counts what it used
		c.add(before.InputTokens-s.state.Usage.InputTokens, "tokens", "input")
		c.add(before.OutputTokens-s.state.Usage.OutputTokens, "tokens", "output")
		c.add(cost-s.state.Cost, "cost")
	}
	h.meters.effects(o.tally, o.pending)
	h.meters.finished([]*outputs{o}, time.UnixMilli(e.Time))
	tallyOf(t, e, o, c)
	said, _ := twin.Evolve(e)
	for _, span := range spans.Follow(twin, said, twin.Progress(), "") {
		switch span.Kind {
		case timeline.KindAttempt, timeline.KindCompaction:
			c.add(1, "refold.turn.duration")
		case timeline.KindCall:
			class := string(session.ClassTool)
			if span.Call.Kind != "" && span.Call.Kind != planner.ExecutorHostLoop {
				class = span.Call.Kind
			}
			c.add(1, "refold.call.duration", class)
		case timeline.KindApproval:
			decision := span.Decision
			if span.Call.Edited && decision == timeline.Approved {
				decision = "edit"
			}
			c.add(1, "refold.approvals", decision)
		}
	}
}

// tallyOf adds what an event stores to the census.
func tallyOf(t *testing.T, e session.Event, o *outputs, c census) {
	t.Helper()
	typ, outcome := meter.Other, "accepted"
	if env, err := session.ReadEnvelope(e.Payload); err == nil && slices.Contains(eventTypes, env.Type) {
		typ = env.Type
	}
	var lines []byte
	for _, out := range o.pending {
		if out.Effect != nil {
			c.add(1, "refold.effects.asked", string(out.Effect.Class), out.Effect.Target)
		}
		if out.Notice != nil {
			lines = append(append(lines, out.Notice...), '\n')
		}
	}
	for line := range bytes.Lines(lines) {
		var n struct {
			Type string `json:"type"`
			Data struct {
				Code      string `json:"code"`
				Lifecycle string `json:"lifecycle"`
			} `json:"data"`
		}
		if err := json.Unmarshal(line, &n); err != nil {
			t.Fatal(err)
		}
		c.add(1, "refold.notices", n.Type)
		switch n.Type {
		case session.NoticeEventRejected:
			outcome = "rejected"
			c.add(1, "refold.rejections", n.Data.Code)
		case session.NoticeRunFinished:
			code := n.Data.Code
			if !slices.Contains(endCodes, code) {
				code = meter.Other
			}
			c.add(1, "refold.runs", n.Data.Lifecycle, code)
			c.add(1, "refold.run.duration", n.Data.Lifecycle)
		case session.NoticeToolRejected:
			c.add(1, "refold.calls.refused", n.Data.Code)
		}
	}
	c.add(1, "refold.events", typ, string(e.Door), outcome)
	for line := range strings.Lines(string(o.progress)) {
		var said struct {
			Type string              `json:"type"`
			Data session.CallSettled `json:"data"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatal(err)
		}
		if said.Type == session.ProgressCallSettled {
			c.add(1, "refold.calls", string(said.Data.Status))
		}
	}
}

func TestCountersEqualACensus(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../actors/session/testdata/scenarios/*.txt")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d scenarios: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			r, want := meter.New(), census{}
			h := newHost(newMemory(t), slog.New(slog.DiscardHandler), Options{Meters: Register(r, 0)})
			play(t, h, path, want)
			got := counted(r, "refold.events", "refold.notices", "refold.rejections", "refold.runs", "refold.calls.refused", "refold.effects.asked", "refold.approvals", "refold.run.duration")
			for _, m := range r.Collect() {
				for _, p := range m.Points {
					switch m.Desc.Name {
					case "refold.tokens":
						if kind := p.Labels[1]; kind == "input" || kind == "output" {
							got.add(int64(p.Value), "tokens", kind)
						}
					case "refold.cost":
						got.add(int64(p.Value), "cost")
					case "refold.turn.duration":
						got.add(int64(p.Dist.Count), m.Desc.Name)
					case "refold.call.duration":
						got.add(int64(p.Dist.Count), m.Desc.Name, p.Labels[0])
					case "refold.calls":
						got.add(int64(p.Value), m.Desc.Name, p.Labels[1])
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("census, counters (-want +got):\n%s", diff)
			}
		})
	}
}

// A folded event counts when its outputs are stored, not before.
func TestCountsWhatIsStored(t *testing.T) {
	t.Parallel()
	r := meter.New()
	onStage(t, Options{Meters: Register(r, 0)}, func(t *testing.T, s *stage) {
		s.mem.plan = on(fails, func(c call) bool { return c.op == "Ask" || c.op == "Notify" })
		s.begin()
		s.deliver(s.run("s1"))
		if got := counted(r, "refold.events"); len(got) > 0 {
			t.Errorf("before anything is stored: got %v", got)
		}
		s.mem.planned(nil)
		s.pass(time.Minute)
		want := census{"refold.events{RunRequested,in,accepted}": 1}
		if diff := cmp.Diff(want, counted(r, "refold.events")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A lost lane is not owned any more, and reports nothing about its waiting events,
// although the process still runs it.
func TestLostLaneIsNotOwned(t *testing.T) {
	t.Parallel()
	r := meter.New()
	onStage(t, Options{Meters: Register(r, 0)}, func(t *testing.T, s *stage) {
		s.begin()
		s.deliver(s.run("s1"))
		s.host.meters.delivered(0, 7)
		for _, want := range []census{{"refold.lane.owned{0}": 1, "refold.lane.pending{0}": 7}, {}} {
			s.lane.unowned.Store(len(want) == 0)
			r.Collect()
			if diff := cmp.Diff(want, counted(r, "refold.lane.owned", "refold.lane.pending")); diff != "" {
				t.Errorf("owned: %v (-want +got):\n%s", s.lane.Owned(), diff)
			}
		}
		s.lane.unowned.Store(false)
	})
}

// After the death of a process its events may count again, and none is missing.
func TestCountsAtLeastAllAfterAKill(t *testing.T) {
	t.Parallel()
	r := meter.New()
	onStage(t, Options{Meters: Register(r, 0)}, func(t *testing.T, s *stage) {
		s.begin()
		first := s.run("s1")
		s.deliver(first)
		s.kill()
		second := meter.New()
		next := newStage(t, &memory{depot: s.mem.depot}, Options{Meters: Register(second, 0)})
		next.begin()
		last := s.answer("s1", "r1t1", "done")
		next.deliver(first, last) // the first comes again: it was not acknowledged
		both := counted(r, "refold.events", "refold.runs")
		for key, n := range counted(second, "refold.events", "refold.runs") {
			both[key] += n
		}
		for _, want := range []string{"refold.events{RunRequested,in,accepted}", "refold.events{GenerationSettled,llm,accepted}", "refold.runs{completed,}"} {
			if both[want] < 1 {
				t.Errorf("%s: got %d, want 1 at least; all: %v", want, both[want], both)
			}
		}
		next.end()
	})
}

// The label sets have every constant of their kind.
func TestLabelsAreComplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, prefix string
		set         []string
	}{
		{"../../actors/session", "Type", eventTypes},
		{"../../actors/session", "Code", endCodes},
		{"../../actors/session", "Door", append(slices.Clone(doors), "install")},
	} {
		found := constants(t, c.dir, c.prefix)
		if len(found) < 5 {
			t.Errorf("%s*: found %v", c.prefix, found)
		}
		for _, text := range found {
			if !slices.Contains(c.set, text) {
				t.Errorf("%s*: %q is not in the set", c.prefix, text)
			}
		}
	}
}

// constants returns the texts of a package's constants whose names begin so.
func constants(t *testing.T, dir, prefix string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			gen, is := d.(*ast.GenDecl)
			if !is || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					name := strings.TrimPrefix(v.Names[i].Name, prefix)
					lit, is := value.(*ast.BasicLit)
					if !is || lit.Kind != token.STRING || name == v.Names[i].Name || name == "" || name[0] < 'A' || name[0] > 'Z' {
						continue
					}
					text, _ := strconv.Unquote(lit.Value)
					all = append(all, text)
				}
			}
		}
	}
	return all
}

// Clients choose models, and registries choose tools: the number of series stays
// bounded.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	r := meter.New()
	h := newHost(newMemory(t), slog.New(slog.DiscardHandler), Options{Meters: Register(r, 0)})
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		s := &actor{sid: fmt.Sprintf("s%d", i), state: session.New(install, fmt.Sprintf("s%d", i))}
		for n, payload := range []string{
			fmt.Sprintf(`{"type":"RunRequested","data":{"input":{"text":"x"},"config":{"provider":"p%d","model":"m%d"}}}`, i%8, i%1000),
			`{"type":"GenerationSettled","data":{"effect":"r1t1","status":"ok","text":{"text":"x"},"usage":{"input_tokens":1,"output_tokens":1}}}`,
		} {
			o := &outputs{arrival: &Delivered{Event: session.Event{Session: s.sid, Door: []session.Door{session.DoorIn, session.DoorLLM}[n], Seq: uint64(2*i + n + 2), Time: 1, Payload: []byte(payload)}}}
			if err := h.next(s, o); err != nil {
				t.Fatal(err)
			}
			h.meters.effects(o.tally, o.pending)
			h.meters.finished([]*outputs{o}, time.UnixMilli(1))
		}
		h.meters.calls.Add(1, fmt.Sprintf("tool%d", i%1000), callStatuses[i%5])
		h.meters.callDuration.Record(1, "tool", fmt.Sprintf("t%d", i%8))
	}
	if n := counted(r, "refold.tokens")["refold.tokens{other,input}"]; n < 90_000 {
		t.Errorf("other models: %d tokens, want most of 100000", n)
	}
	series := 0
	for _, m := range r.Collect() {
		for _, p := range m.Points {
			series++
			if p.Dist != nil {
				series += len(p.Dist.Buckets) + 1
			}
		}
	}
	t.Logf("%d series", series)
	if series > 6000 {
		t.Errorf("got %d series, want 6000 at most", series)
	}
}

// TestAttackInventedProviders: a client names 2,000 providers that nobody serves. The
// metric of effects has a series for each of the first 64, and one for all others.
func TestAttackInventedProviders(t *testing.T) {
	t.Parallel()
	r := meter.New()
	h := newHost(newMemory(t), slog.New(slog.DiscardHandler), Options{Meters: Register(r, 0)})
	const invented = 2000
	for i := range invented {
		s := &actor{sid: fmt.Sprintf("s%d", i), state: session.New(builtin(), fmt.Sprintf("s%d", i))}
		payload := fmt.Sprintf(`{"type":"RunRequested","data":{"input":{"text":"x"},"config":{"provider":"p%d","model":"m"}}}`, i)
		o := &outputs{arrival: &Delivered{Event: session.Event{Session: s.sid, Door: session.DoorIn, Seq: uint64(i + 2), Time: 1, Payload: []byte(payload)}}}
		if err := h.next(s, o); err != nil {
			t.Fatal(err)
		}
		h.meters.effects(o.tally, o.pending)
		h.meters.finished([]*outputs{o}, time.UnixMilli(1))
	}
	series, total := counted(r, "refold.effects.asked"), int64(0)
	for _, n := range series {
		total += n
	}
	if len(series) != targetsMax+1 || total != invented {
		t.Errorf("%d series count %d effects, want %d and %d", len(series), total, targetsMax+1, invented)
	}
}

// BenchmarkRunMetrics folds a run of one turn with and without metrics. The
// difference is their cost.
func BenchmarkRunMetrics(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("metrics=%v", on), func(b *testing.B) {
			var opts Options
			if on {
				opts.Meters = Register(meter.New(), 0)
			}
			h := newHost(nil, slog.New(slog.DiscardHandler), opts)
			install, err := session.ParseInstall(session.BuiltinInstall())
			if err != nil {
				b.Fatal(err)
			}
			payloads := []string{
				`{"type":"RunRequested","data":{"input":{"text":"x"},"config":{"provider":"p","model":"m"}}}`,
				`{"type":"GenerationSettled","data":{"effect":"r1t1","status":"ok","text":{"text":"x"},"usage":{"input_tokens":1,"output_tokens":1}}}`,
			}
			b.ReportAllocs()
			for b.Loop() {
				s := &actor{sid: "s1", state: session.New(install, "s1")}
				for n, payload := range payloads {
					o := &outputs{arrival: &Delivered{Event: session.Event{Session: "s1", Door: []session.Door{session.DoorIn, session.DoorLLM}[n], Seq: uint64(n + 1), Time: 1, Payload: []byte(payload)}}}
					if err := h.next(s, o); err != nil {
						b.Fatal(err)
					}
					h.meters.effects(o.tally, o.pending)
					h.meters.finished([]*outputs{o}, time.UnixMilli(2))
				}
			}
		})
	}
}

// Causes arrive wrapped; a failure that only one session has is isolated, whatever
// fails.
func TestReasonsOfWrappedCauses(t *testing.T) {
	t.Parallel()
	tooLarge := &natsio.MaxPayloadError{Subject: "s", Bytes: 2, Limit: 1}
	for want, cause := range map[string]error{
		"payload_differs": &journal.ViolationError{Subject: "s"}, "too_large": tooLarge, "panic": &panicError{}, "kills": &killedError{},
		"log_damaged": &damageError{}, "isolated": &isolatedError{"its load", tooLarge}, meter.Other: errFlaky,
	} {
		if got := reasonOf(fmt.Errorf("store s: %w", cause)); got != want {
			t.Errorf("%T: got %q, want %q", cause, got, want)
		}
	}
}
