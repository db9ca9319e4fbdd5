package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/proof/chaos"
)

// Chaos kills daemons and the NATS server at every message.
type Chaos struct {
	Model        string        `default:"demo" placeholder:"MODEL" help:"demo, or recorded:FILE (OpenAI chat JSONL, a conversation a line)."`
	RetrySafe    []string      `placeholder:"PATTERNS" help:"Names of recorded tools that may run twice, as in get_*,search_*."`
	Conversation []string      `placeholder:"ID" help:"Which conversations. Default: all. The demo has eight: demo, cancelled, workspace, pack, long, wait, schedule and tree."`
	Kill         []string      `default:"actor,bridge" enum:"actor,bridge,both,server" help:"What to kill. actor, bridge: each at its own messages; both of them at once, or the NATS server: at all messages. ${enum}."`
	Points       int           `placeholder:"N" help:"Try N points of each conversation, as many of each kind; 0: all."`
	Dense        bool          `help:"Kill at many points of a conversation in one trial, one after the other. Points that the trial misses are tried alone, and all its points if it fails."`
	For          time.Duration `placeholder:"TIME" help:"Begin no trial after this time, and print how many were left."`
	Skip         int           `placeholder:"N" help:"Leave out the first N trials: continue where --for ended."`
	Point        []string      `sep:"none" placeholder:"NAME" help:"Try the points with these names, as --list and verdicts print them."`
	List         bool          `help:"Print the names and kill nothing."`
}

// Run explores one conversation after the other.
func (c Chaos) Run(ctx context.Context, s Streams) error {
	return ChaosAll{Chaos: c, chaosMore: chaosMore{Signal: []string{"kill"}, Seed: 1, Parallel: 12, Within: 3 * time.Minute, MissedMax: 10}}.Run(ctx, s)
}

// ChaosAll has the flags for long nights too.
type ChaosAll struct {
	Chaos
	chaosMore
}

// chaosMore has the flags that refold chaos does not have.
type chaosMore struct {
	Signal    []string      `default:"kill" enum:"kill,term" help:"kill: SIGKILL. term: SIGTERM, and the next process starts at once. ${enum}."`
	Twice     int           `placeholder:"N" help:"After each trial, N more of the same, each with a second kill: of the sender of a message that follows the first."`
	Part      string        `placeholder:"K/N" help:"Try every Nth of the chosen trials, beginning with the Kth: N nights try all."`
	Seed      uint64        `default:"1" help:"Seed of the choice of --points and --twice."`
	Parallel  int           `default:"12" help:"Trials at once; most of a trial is waiting."`
	Within    time.Duration `default:"3m" help:"Time limit of one trial."`
	MissedMax int           `default:"10" placeholder:"PERCENT" help:"Fail if more than this share of the points is missed by two trials each."`
	Quiet     bool          `help:"Print only faults and the summary."`
	Tools     string        `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of a recording. Default: x-tools.json next to x.jsonl."`
}

// ChaosPart is a process that Chaos starts and kills.
type ChaosPart struct {
	Part      string `required:"" enum:"session-actor,bridge,nats-server"`
	URL       string
	Dir       string `required:""`
	Model     string `required:""`
	Tools     string
	RetrySafe []string
}

// Run runs until standard input ends, as it does with the parent process.
func (c ChaosPart) Run(ctx context.Context, s Streams) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		io.Copy(io.Discard, s.In) //nolint:errcheck // any error is the end too
	}()
	source := chaos.Source{Model: c.Model, Tools: c.Tools, RetrySafe: c.RetrySafe}
	return chaos.Serve(ctx, chaos.Part(c.Part), c.URL, c.Dir, source, s.Out, s.Err)
}

// slice parses --part: the kth of n; 1 of 1 without it.
func (c ChaosAll) slice() (k, n int, err error) {
	if c.Part == "" {
		return 1, 1, nil
	}
	var rest string
	if got, _ := fmt.Sscanf(c.Part+" .", "%d/%d %s", &k, &n, &rest); got != 3 || rest != "." || k < 1 || n < k {
		return 0, 0, &Error{Usage, fmt.Sprintf("chaos: --part %q: want K/N, K from 1 to N", c.Part)}
	}
	return k, n, nil
}

// validate returns an error if flags don't go together.
func (c ChaosAll) validate() error {
	switch {
	case c.Points < 0 || c.Parallel < 1 || c.Within <= 0 || c.MissedMax < 0 || c.MissedMax > 100 || c.Twice < 0 || c.Skip < 0 || c.For < 0:
		return &Error{Usage, "chaos: --points, --twice, --skip and --for from 0, --parallel from 1, --within above 0, --missed-max 0 to 100"}
	case len(c.Point) > 0 && c.Points > 0:
		return &Error{Usage, "chaos: --point names points, --points chooses some"}
	case c.Dense && c.Twice > 0:
		return &Error{Usage, "chaos: --dense kills at many points in a trial, and a second kill of --twice would be one of them: leave one out"}
	}
	return nil
}

// Run explores one conversation after the other.
func (c ChaosAll) Run(ctx context.Context, s Streams) (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	sum := counters{began: time.Now()}
	if sum.k, sum.n, err = c.slice(); err != nil {
		return err
	}
	source := chaos.Source{Model: c.Model, Tools: c.Tools, RetrySafe: c.RetrySafe}
	cast, err := chaos.Open(source)
	if err != nil {
		return err
	}
	for _, note := range cast.Notes {
		fmt.Fprintln(s.Err, "note:", note)
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
		Source: source, Program: []string{self, "chaos-part"}, Dir: dir, Room: make(chan struct{}, c.Parallel), Within: c.Within, Twice: c.Twice, Seed: c.Seed,
	}
	if c.For > 0 {
		options.Until = sum.began.Add(c.For)
	}
	err = c.exploreAll(ctx, s, cast, options, &sum)
	switch {
	case c.List:
		return err
	case ctx.Err() != nil && sum.trials > 0: // the result so far is printed, and where to continue
		sum.stopped = c.Parallel
		fmt.Fprintln(s.Out, sum.line())
		return err
	case err != nil:
		return err
	}
	fmt.Fprintln(s.Out, sum.line())
	return sum.verdict(c.MissedMax)
}

// exploreAll explores one conversation after the other. The next begins when all
// trials of one have begun, so that no time is lost with the last ones.
func (c ChaosAll) exploreAll(ctx context.Context, s Streams, cast *chaos.Cast, o chaos.Options, sum *counters) error {
	var exploring sync.WaitGroup
	defer exploring.Wait()
	var failed error
	for _, conversation := range cast.Conversations {
		if len(c.Conversation) > 0 && !slices.Contains(c.Conversation, conversation.ID) {
			continue
		}
		o.Conversation = conversation.ID
		x, courses, err := c.choose(ctx, s, cast, o, sum)
		if err != nil {
			return err
		}
		if len(courses) == 0 || c.List {
			continue
		}
		begun := make(chan struct{})
		exploring.Go(func() {
			left, err := x.Explore(ctx, courses, func(v chaos.Verdict) { c.tell(s.Out, v, sum) }, sync.OnceFunc(func() { close(begun) }))
			sum.mu.Lock()
			defer sum.mu.Unlock()
			sum.leave(courses[len(courses)-left:])
			failed = cmp.Or(failed, err)
		})
		<-begun
	}
	exploring.Wait()
	return failed
}

// tell adds a verdict to the counters and prints it.
func (c ChaosAll) tell(out io.Writer, v chaos.Verdict, sum *counters) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.add(v)
	if !c.Quiet || len(v.Faults) > 0 {
		fmt.Fprintln(out, verdictOf(v))
	}
}

// choose records a conversation and chooses the courses to try.
func (c ChaosAll) choose(ctx context.Context, s Streams, cast *chaos.Cast, o chaos.Options, sum *counters) (x *chaos.Explorer, courses []chaos.Course, err error) {
	if x, err = chaos.Record(ctx, cast, o); err != nil {
		return nil, nil, err
	}
	for _, note := range x.Notes() {
		fmt.Fprintln(s.Err, "note:", note)
	}
	sum.mu.Lock()
	defer sum.mu.Unlock()
	all := c.courses(x.Points())
	courses = all
	if c.Points > 0 {
		courses = chaos.Sample(courses, c.Points, c.Seed)
	}
	if c.Dense {
		courses = x.Dense(courses)
	}
	if len(c.Point) > 0 {
		if courses, err = c.named(x); err != nil {
			return nil, nil, err
		}
	}
	sum.skip = c.Skip
	courses = sum.take(courses, len(all))
	switch {
	case c.List:
		for _, course := range courses {
			fmt.Fprintln(s.Out, course)
		}
	case len(courses) > 0 && !c.Quiet:
		fmt.Fprintf(s.Out, "conversation %s: %d points, %d kills at them, %d trials to try, %d at once\n", o.Conversation, len(x.Points()), len(all), len(courses), c.Parallel)
	}
	return x, courses, nil
}

// courses returns all courses for --kill and --signal, point by point.
func (c ChaosAll) courses(points []chaos.Point) (all []chaos.Course) {
	for _, at := range points {
		for _, signal := range c.Signal {
			for _, kill := range c.Kill {
				s := chaos.Kill{At: at, Term: signal == "term"}
				switch {
				case kill == "both":
					s.Whom = chaos.BothDaemons
				case kill == "server":
					s.Whom = chaos.NATSServer
				case kill == "actor" && at.Part == chaos.SessionActor, kill == "bridge" && at.Part == chaos.Bridge:
					s.Whom = chaos.Sender
				default:
					continue
				}
				all = append(all, chaos.Course{s})
			}
		}
	}
	return all
}

// named returns the courses of --point, if the conversation passes them.
func (c ChaosAll) named(x *chaos.Explorer) (courses []chaos.Course, err error) {
	for _, name := range c.Point {
		course, err := chaos.ParseCourse(name)
		if err != nil {
			return nil, &Error{Usage, "chaos: " + err.Error()}
		}
		if len(c.Conversation) == 1 || slices.Contains(x.Points(), course[0].At) {
			courses = append(courses, course)
		}
	}
	return courses, nil
}
