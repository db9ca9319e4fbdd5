package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/chaos"
)

// chaosCommand kills daemons at every message that they send.
type chaosCommand struct {
	Model        string        `default:"demo" placeholder:"MODEL" help:"demo, or recorded:FILE (OpenAI chat JSONL, a conversation a line)."`
	Conversation []string      `placeholder:"ID" help:"Which conversations; all without it. The demo has two, demo and cancelled."`
	Points       int           `placeholder:"N" help:"Try N points of each conversation, of each kind one first; 0: all."`
	Brief        bool          `help:"Of what a daemon sends because it starts (streams, lanes, descriptors of tools), try one of each kind only."`
	Seed         uint64        `default:"1" help:"Which N points."`
	Point        []string      `placeholder:"NAME" help:"Try the points of these names, as --list prints them."`
	List         bool          `help:"Print the names of the points and kill nobody."`
	Parallel     int           `default:"12" help:"Trials at once; most of a trial is waiting."`
	Within       time.Duration `default:"3m" help:"For how long one trial may go on."`
	MissedMax    int           `default:"10" placeholder:"PERCENT" help:"Fail if more points than that are not come by in two trials each."`
	Quiet        bool          `help:"Print only what is wrong, and the summary."`
	Tools        string        `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of a recording. Default: x-tools.json beside x.jsonl."`
	RetrySafe    []string      `placeholder:"PATTERNS" help:"Names of recorded tools that may run twice, as in get_*,search_*."`
}

// chaosPartCommand is a process that chaosCommand starts and kills.
type chaosPartCommand struct {
	Part      string `required:"" enum:"session-actor,bridge"`
	URL       string `required:""`
	Dir       string `required:""`
	Model     string `required:""`
	Tools     string
	RetrySafe []string
}

// Run runs until its standard input ends: whoever started it is gone then.
func (c chaosPartCommand) Run(ctx context.Context, s streams) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		io.Copy(io.Discard, s.in) //nolint:errcheck // any end is the end
	}()
	source := chaos.Source{Model: c.Model, Tools: c.Tools, RetrySafe: c.RetrySafe}
	return chaos.Serve(ctx, chaos.Part(c.Part), c.URL, c.Dir, source, s.err)
}

// Run explores one conversation after the other.
func (c chaosCommand) Run(ctx context.Context, s streams) (err error) {
	switch {
	case c.Points < 0 || c.Parallel < 1 || c.Within <= 0 || c.MissedMax < 0 || c.MissedMax > 100:
		return &statusError{statusUsage, "chaos: --points from 0, --parallel from 1, --within above 0, --missed-max 0 to 100"}
	case len(c.Point) > 0 && c.Points > 0:
		return &statusError{statusUsage, "chaos: --point names points, --points chooses some"}
	}
	source := chaos.Source{Model: c.Model, Tools: c.Tools, RetrySafe: c.RetrySafe}
	cast, err := chaos.Open(source)
	if err != nil {
		return err
	}
	for _, note := range cast.Notes {
		fmt.Fprintln(s.err, "note:", note)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "refold-chaos-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options := chaos.Options{
		Source: source, Program: []string{self, "chaos-part"}, Dir: dir, Parallel: c.Parallel, Within: c.Within,
	}
	sum := tolls{began: time.Now()}
	for _, conversation := range cast.Conversations {
		if len(c.Conversation) > 0 && !slices.Contains(c.Conversation, conversation.ID) {
			continue
		}
		options.Conversation = conversation.ID
		if err := c.explore(ctx, s.out, cast, options, &sum); err != nil {
			return err
		}
	}
	if c.List {
		return nil
	}
	fmt.Fprintln(s.out, sum.line())
	switch {
	case sum.wrong > 0:
		return &statusError{statusFailed, "a kill did harm; repeat one with --point NAME"}
	case sum.tried == 0:
		return &statusError{statusFailed, "no point was tried: look at --list, and name one --conversation to try what it does not always come by"}
	case sum.missed*100 > sum.tried*c.MissedMax:
		return &statusError{statusFailed, fmt.Sprintf("%d of %d points were not come by", sum.missed, sum.tried)}
	}
	return nil
}

// explore explores one conversation.
func (c chaosCommand) explore(ctx context.Context, out io.Writer, cast *chaos.Cast, o chaos.Options, sum *tolls) error {
	x, err := chaos.Record(ctx, cast, o)
	if err != nil {
		return err
	}
	points := x.Points()
	if c.Brief {
		points = x.Brief(sum.tried == 0)
	}
	if c.Points > 0 {
		points = chaos.Sample(points, c.Points, c.Seed)
	}
	if len(c.Point) > 0 {
		points = nil
		for _, name := range c.Point {
			point, err := chaos.ParsePoint(name)
			if err != nil {
				return &statusError{statusUsage, "chaos: " + err.Error()}
			}
			if len(c.Conversation) == 1 || slices.Contains(x.Points(), point) {
				points = append(points, point)
			}
		}
	}
	if c.List {
		for _, point := range points {
			fmt.Fprintln(out, point)
		}
		return nil
	}
	if len(points) == 0 {
		return nil
	}
	fmt.Fprintf(out, "conversation %s: %d points, %d of them to try, %d at once\n", o.Conversation, len(x.Points()), len(points), c.Parallel)
	return x.Explore(ctx, points, func(v chaos.Verdict) {
		sum.add(v)
		if !c.Quiet || len(v.Faults) > 0 {
			fmt.Fprintln(out, verdictOf(v))
		}
	})
}

// verdictOf tells a verdict: on one line, if nothing is wrong.
func verdictOf(v chaos.Verdict) string {
	line := fmt.Sprintf("%-7s %5.1f s  %s", "ok", v.Took.Seconds(), v.Point)
	switch {
	case len(v.Faults) > 0:
		line = fmt.Sprintf("%-7s %5.1f s  %s", "WRONG", v.Took.Seconds(), v.Point)
	case !v.Reached:
		line = fmt.Sprintf("%-7s %5.1f s  %s", "missed", v.Took.Seconds(), v.Point)
	case v.Unknown > 0:
		line += fmt.Sprintf("  (%d outcome unknown)", v.Unknown)
	}
	if v.Revived > 0 {
		line += fmt.Sprintf("  (a daemon could not start %d times)", v.Revived)
	}
	for _, fault := range v.Faults {
		line += "\n        " + fault
	}
	for said := range strings.Lines(v.Said) {
		line += "\n        | " + strings.TrimSpace(said)
	}
	return line
}

// tolls sums verdicts up.
type tolls struct {
	began                                  time.Time
	tried, wrong, missed, unknown, revived int
	longest                                time.Duration
}

func (t *tolls) add(v chaos.Verdict) {
	t.tried++
	t.longest = max(t.longest, v.Took)
	switch {
	case len(v.Faults) > 0:
		t.wrong++
	case !v.Reached:
		t.missed++
	}
	if v.Unknown > 0 {
		t.unknown++
	}
	t.revived += v.Revived
}

func (t *tolls) line() string {
	line := fmt.Sprintf("killed at %d of %d points in %.0f s: %d wrong, %d not come by; %d left an outcome unknown; the longest took %.1f s",
		t.tried-t.missed, t.tried, time.Since(t.began).Seconds(), t.wrong, t.missed, t.unknown, t.longest.Seconds())
	if t.revived > 0 {
		line += fmt.Sprintf("; %d times a daemon could not start, and was started again", t.revived)
	}
	return line
}
