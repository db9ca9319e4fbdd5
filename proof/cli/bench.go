package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/refold/refold/proof/bench"
)

// Bench measures Refold on this machine, on its own servers.
type Bench struct {
	Runs   Runs      `cmd:"" default:"withargs" help:"Runs a second and their latency, and what the design could reach here."`
	Fold   Fold      `cmd:"" help:"Events a second that are folded from memory."`
	Replay Replay    `cmd:"" help:"Events a second that a client replays from the log, compared with what is stored."`
	Wake   Wake      `cmd:"" help:"How long a session that is in no session-actor's memory takes to begin a run."`
	Long   Long      `cmd:"" help:"How long the turns of one session take when it has had many, without a context and with one."`
	Prefix Prefix    `cmd:"" help:"Which share of what a recording's conversations send to a model a prompt cache can hold."`
	Part   BenchPart `cmd:"" hidden:""`
}

// place has the flags for the servers' files and the results.
type place struct {
	Dir string `type:"existingdir" placeholder:"DIR" help:"Where the servers keep their files while they run. Default: the system's directory for temporary files."`
	results
}

// results has the flag for the form of results.
type results struct {
	JSON bool `help:"Print a line of JSON a row."`
}

// options returns the options of all measurements.
func (p place) options(s Streams, runs int) bench.Options {
	begun := time.Now()
	return bench.Options{Dir: p.Dir, Runs: runs, Step: func(what string, took time.Duration) {
		fmt.Fprintf(s.Err, "%7.1f s  %s, in %.1f s\n", time.Since(begun).Seconds(), what, took.Seconds())
	}}
}

// column is one figure of a row.
type column struct {
	key    string // in JSON; "": only in the text
	head   string // in the text; "": only in JSON
	format string // of the text, a verb with its width
	value  any
}

// table prints rows: a line of JSON each, or lines under heads.
type table struct {
	results
	s     Streams
	begun bool
}

func (r results) table(s Streams) *table { return &table{results: r, s: s} }

// width matches the part of a verb's format that its head shares.
var width = regexp.MustCompile(`^%-?\d*`)

// row prints a row.
func (t *table) row(columns ...column) error {
	if t.JSON {
		values := map[string]any{}
		for _, c := range columns {
			if c.key != "" {
				values[c.key] = c.value
			}
		}
		return json.NewEncoder(t.s.Out).Encode(values)
	}
	var heads, texts []string
	for _, c := range columns {
		if c.head != "" {
			heads = append(heads, fmt.Sprintf(width.FindString(c.format)+"s", c.head))
			texts = append(texts, fmt.Sprintf(c.format, c.value))
		}
	}
	if !t.begun {
		t.begun = true
		fmt.Fprintln(t.s.Out, strings.Join(heads, " "))
	}
	_, err := fmt.Fprintln(t.s.Out, strings.Join(texts, " "))
	return err
}

// positive returns an error for numbers below one.
func positive(flags string, numbers ...int) error {
	for _, n := range numbers {
		if n < 1 {
			return &Error{Usage, "bench: " + flags + " must be above zero"}
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// BenchPart plays a part of bench runs --processes, which starts it.
type BenchPart struct {
	Part string `arg:"" help:"As JSON."`
}

// Run plays it until standard input ends.
func (b BenchPart) Run(ctx context.Context, s Streams) error {
	var part bench.Part
	if err := json.Unmarshal([]byte(b.Part), &part); err != nil {
		return err
	}
	return part.Play(ctx, s.In, s.Out)
}

// startPart starts a process that plays a part.
func startPart(s Streams, p bench.Part) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	part, _ := json.Marshal(p) // texts and a bool
	cmd := exec.Command(self, "bench", "part", string(part))
	cmd.Stderr = s.Err
	return cmd
}
