package cli

import (
	"context"
	"os"
	"time"

	"github.com/refold/refold/proof/bench"
)

// Fold measures the fold.
type Fold struct {
	Runs int `default:"1000" help:"Runs, each of a session of its own, that Refold carries out first."`
	place
}

// Run carries runs out and folds them.
func (b Fold) Run(ctx context.Context, s Streams) error {
	return b.measure(ctx, s, func(p bench.Pace) column { return column{"fold_events_s", "folded/s", "%12.0f", p.FoldPerS} })
}

// Replay measures a replay of everything. It fails unless it is identical.
type Replay struct{ Fold }

// Run carries runs out and replays them.
func (b Replay) Run(ctx context.Context, s Streams) error {
	return b.measure(ctx, s, func(p bench.Pace) column { return column{"replay_events_s", "replayed/s", "%12.0f", p.ReplayPerS} })
}

func (b Fold) measure(ctx context.Context, s Streams, pace func(bench.Pace) column) error {
	if err := positive("--runs", b.Runs); err != nil {
		return err
	}
	p, err := bench.Fold(ctx, b.options(s, b.Runs))
	if err != nil {
		return err
	}
	return b.table(s).row(
		column{"sessions", "sessions", "%8d", p.Sessions}, column{"events", "events", "%8d", p.Events},
		column{"bytes_per_event", "bytes/event", "%11.0f", p.BytesEach}, pace(p))
}

// Wake measures cold wakes.
type Wake struct {
	Sessions int           `default:"300" help:"Sessions that are woken, one after the other."`
	Events   int           `default:"10000" help:"Events of each; its snapshot is 64 behind."`
	Every    time.Duration `default:"200ms" help:"From the start of one wake to the next; 0: without a pause."`
	Asleep   time.Duration `default:"130s" help:"Idle time before the first wake: after two minutes the server has nothing of the sessions' blocks of the log in memory."`
	place
}

// Run wakes the sessions.
func (b Wake) Run(ctx context.Context, s Streams) error {
	if err := positive("--sessions and --events", b.Sessions, b.Events); err != nil {
		return err
	}
	w, err := bench.Wake(ctx, b.options(s, 0), bench.WakeOptions{
		Sessions: b.Sessions, Events: b.Events, Asleep: max(b.Asleep, 0), Every: max(b.Every, 0),
	})
	if err != nil {
		return err
	}
	return b.table(s).row(
		column{"sessions", "sessions", "%8d", w.Sessions}, column{"events", "events", "%8d", w.Events},
		column{"behind", "behind", "%6d", w.Behind},
		column{"p50_ms", "p50 ms", "%9.2f", ms(w.P50)}, column{"p99_ms", "p99 ms", "%9.2f", ms(w.P99)})
}

// Long measures the turns of a session that gets long.
type Long struct {
	Turns  []int `default:"100,1000,10000" help:"After how many turns the latest 50 are reported."`
	Tokens int64 `default:"32000" help:"Tokens of the context."`
	place
}

// Run lets a session have turns, without a context and with one.
func (b Long) Run(ctx context.Context, s Streams) error {
	if err := positive("--turns", append([]int{len(b.Turns)}, b.Turns...)...); err != nil {
		return err
	}
	t := b.table(s)
	return bench.LongTurns(ctx, b.options(s, 0), bench.LongOptions{Turns: b.Turns, Tokens: b.Tokens}, func(l bench.Long) error {
		of := map[bool]string{true: "tokens", false: "none"}[l.Context]
		return t.row(
			column{"context", "context", "%-8s", of}, column{"turns", "turns", "%8d", l.Turns}, column{"tokens", "tokens shown", "%12d", l.Tokens},
			column{"p50_ms", "p50 ms", "%9.2f", ms(l.P50)}, column{"p99_ms", "p99 ms", "%9.2f", ms(l.P99)}, column{"ends", "then", "%s", l.Ends})
	})
}

// Prefix measures the share of requests that prompt caches can hold.
type Prefix struct {
	File   string `arg:"" type:"existingfile" help:"The recording: OpenAI chat JSONL, a conversation a line."`
	Tools  string `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of the recording. Default: x-tools.json next to x.jsonl."`
	System string `type:"existingfile" placeholder:"FILE" help:"The system text, instead of the recording's own."`
	Tokens int64  `placeholder:"N" help:"Take all conversations as one session, shown whole and with a context of N tokens."`
	results
}

// Run folds the conversations and prints a line for each, and their sum.
func (b Prefix) Run(s Streams) error {
	system := ""
	if b.System != "" {
		text, err := os.ReadFile(b.System)
		if err != nil {
			return err
		}
		system = string(text)
	}
	if b.Tokens > 0 {
		return b.windows(s, system)
	}
	t, all := b.table(s), bench.Prefix{Conversation: "together"}
	tell := func(p bench.Prefix) error {
		return t.row(
			column{"conversation", "conversation", "%-32s", p.Conversation}, column{"turns", "turns", "%6d", p.Turns},
			column{"exact_bytes", "exact bytes", "%12d", p.Exact.Sent}, column{"exact_share", "held", "%7.3f", p.Exact.Share()},
			column{"masked_bytes", "masked bytes", "%12d", p.Masked.Sent}, column{"masked_share", "held", "%7.3f", p.Masked.Share()})
	}
	err := bench.Prefixes(b.File, b.Tools, system, func(p bench.Prefix) error {
		all.Turns += p.Turns
		for _, sum := range []struct{ to, of *bench.Held }{{&all.Exact, &p.Exact}, {&all.Masked, &p.Masked}} {
			sum.to.Sent += sum.of.Sent
			sum.to.Held += sum.of.Held
		}
		return tell(p)
	})
	if err != nil {
		return err
	}
	return tell(all)
}

// windows prints a line for each way to show one session of all conversations.
func (b Prefix) windows(s Streams, system string) error {
	t := b.table(s)
	return bench.Windows(b.File, b.Tools, system, b.Tokens, func(w bench.Window) error {
		return t.row(
			column{"shown", "shown", "%-12s", w.Shown}, column{"turns", "turns", "%6d", w.Turns}, column{"largest_bytes", "largest", "%9d", w.Largest},
			column{"sent_bytes", "sent bytes", "%12d", w.Held.Sent}, column{"held_share", "held", "%7.3f", w.Held.Share()},
			column{"new_bytes", "not held", "%12d", w.Held.Sent - w.Held.Held})
	})
}
