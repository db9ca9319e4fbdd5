package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session/timeline"
)

// traceCommand shows or exports the spans of runs.
type traceCommand struct {
	Session string `arg:"" help:"The session."`
	Number  uint32 `name:"run" placeholder:"N" xor:"runs" help:"Only this run. Default: the latest one; with --otlp and --json all."`
	All     bool   `xor:"runs" help:"All runs."`
	OTLP    string `name:"otlp" placeholder:"URL" help:"Send the spans to a collector, such as http://127.0.0.1:4318/v1/traces."`
	Unit    string `enum:"run,turn,tree" default:"run" help:"The unit of a trace: a run, each turn, or a run with those of its sub-agents; as --trace-unit of the daemons."`
	JSON    bool   `name:"json" help:"Print OTLP JSON, a trace a line, as the Collector reads it from files."`
}

// Run folds the session and draws or exports its spans.
func (t traceCommand) Run(ctx context.Context, s streams, conn connection, full *Full) error {
	if t.JSON && t.OTLP != "" {
		return &statusError{statusUsage, "trace: --json prints the spans and --otlp sends them: give one of them"}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	spans, open, err := c.Spans(ctx, t.Session, t.Number)
	if err != nil {
		return err
	}
	for _, run := range open {
		fmt.Fprintf(s.err, "run %d is active: its spans are exported as they end, the run's own last\n", run)
	}
	form := SpanForm{Session: t.Session, Prefix: conn.Prefix, Unit: t.Unit}
	switch {
	case t.JSON:
		return full.PrintSpans(s.out, form, spans)
	case t.OTLP != "":
		if err := full.SendSpans(ctx, t.OTLP, form, spans); err != nil {
			return fmt.Errorf("--otlp %s: %w", t.OTLP, err)
		}
		fmt.Fprintf(s.err, "%d spans sent to %s\n", len(spans), t.OTLP)
		return nil
	}
	if t.Number == 0 && !t.All {
		spans = latestRun(spans, open)
	}
	drawRuns(s.out, spans)
	return nil
}

// latestRun returns the spans of a session's latest run, open or ended.
func latestRun(spans []*timeline.Span, open []uint32) (latest []*timeline.Span) {
	number := slices.Max(append([]uint32{0}, open...))
	for _, s := range spans {
		number = max(number, s.Run)
	}
	for _, s := range spans {
		if s.Run == number {
			latest = append(latest, s)
		}
	}
	return latest
}

// barWidth is the width of a run's time, in columns.
const barWidth = 40

// drawRuns draws each run as a waterfall: a line a span, children below their
// parents, with a bar for the span's time in the run.
func drawRuns(out io.Writer, spans []*timeline.Span) {
	children := map[string][]*timeline.Span{}
	first, last := map[uint32]int64{}, map[uint32]int64{}
	var runs []uint32
	ended := map[string]bool{}
	for _, s := range spans {
		ended[s.Place] = true
		if at, known := first[s.Run]; !known {
			runs, first[s.Run] = append(runs, s.Run), s.Begin
		} else {
			first[s.Run] = min(at, s.Begin)
		}
		last[s.Run] = max(last[s.Run], s.End)
	}
	for _, s := range spans {
		parent := s.Parent
		if parent != "" && !ended[parent] { // still open: put the child below the run
			parent = timeline.RunPlace(s.Run)
			if !ended[parent] {
				parent = ""
			}
		}
		at := fmt.Sprint(s.Run, parent)
		children[at] = append(children[at], s)
	}
	slices.Sort(runs)
	for _, run := range runs {
		w := waterfall{out: out, children: children, from: first[run], to: max(last[run], first[run]+1)}
		w.draw(fmt.Sprint(run), 0)
	}
}

type waterfall struct {
	out      io.Writer
	children map[string][]*timeline.Span
	from, to int64 // Unix ms
}

func (w *waterfall) draw(at string, depth int) {
	lines := w.children[at]
	slices.SortStableFunc(lines, func(a, b *timeline.Span) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Place, b.Place))
	})
	for _, s := range lines {
		name := strings.Repeat("  ", depth) + s.Place + " " + wordsOf(s)
		fmt.Fprintf(w.out, "%-44s %9s  %s\n", name, time.Duration(s.End-s.Begin)*time.Millisecond, w.bar(s))
		w.draw(fmt.Sprint(s.Run, s.Place), depth+1)
	}
}

// bar draws a span's time, at least one column wide.
func (w *waterfall) bar(s *timeline.Span) string {
	column := func(ms int64) int { return int((ms - w.from) * barWidth / (w.to - w.from)) }
	begin := min(column(s.Begin), barWidth-1)
	length := max(column(s.End)-begin, 1)
	mark := "="
	if s.Failed {
		mark = "x"
	}
	return strings.Repeat(" ", begin) + strings.Repeat(mark, length)
}

// wordsOf describes a span, and its outcome if it failed.
func wordsOf(s *timeline.Span) string {
	var words []string
	add := func(w string) {
		if w != "" {
			words = append(words, w)
		}
	}
	switch s.Kind {
	case timeline.KindRun:
		add("run")
		add(s.Model)
		add(string(s.Outcome.Lifecycle))
	case timeline.KindCall:
		add(s.Call.ToolName)
		if s.Failed {
			add(string(s.Call.Status))
		}
	case timeline.KindApproval:
		add("approval")
		add(s.Decision)
	case timeline.KindStep:
		add("step")
		add(s.Hook)
	default:
		add(strings.ReplaceAll(s.Kind.String(), "_", " "))
	}
	add(s.Code)
	return strings.Join(words, " ")
}
