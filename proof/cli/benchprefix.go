package cli

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/refold/refold/proof/bench"
)

// Prefix measures what prompt caches can hold.
type Prefix struct {
	File   string `arg:"" type:"existingfile" help:"The recording: OpenAI chat JSONL, a conversation a line."`
	Tools  string `type:"existingfile" placeholder:"FILE" help:"OpenAI tool definitions of the recording. Default: x-tools.json beside x.jsonl."`
	System string `type:"existingfile" placeholder:"FILE" help:"The system text, instead of the recording's own."`
	JSON   bool   `help:"Print a line of JSON a conversation."`
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
	all := bench.Prefix{Conversation: "together"}
	if !b.JSON {
		fmt.Fprintf(s.Out, "%-32s %6s %12s %8s %12s %8s\n", "conversation", "turns", "exact bytes", "held", "masked bytes", "held")
	}
	err := bench.Prefixes(b.File, b.Tools, system, func(p bench.Prefix) error {
		all.Turns += p.Turns
		for _, sum := range []struct{ to, of *bench.Held }{{&all.Exact, &p.Exact}, {&all.Masked, &p.Masked}} {
			sum.to.Sent += sum.of.Sent
			sum.to.Held += sum.of.Held
		}
		return b.tell(s, p)
	})
	if err != nil {
		return err
	}
	return b.tell(s, all)
}

func (b Prefix) tell(s Streams, p bench.Prefix) error {
	if b.JSON {
		return json.NewEncoder(s.Out).Encode(map[string]any{
			"conversation": p.Conversation, "turns": p.Turns, "exact_bytes": p.Exact.Sent, "exact_share": p.Exact.Share(),
			"masked_bytes": p.Masked.Sent, "masked_share": p.Masked.Share(),
		})
	}
	_, err := fmt.Fprintf(s.Out, "%-32s %6d %12d %7.1f%% %12d %7.1f%%\n",
		p.Conversation, p.Turns, p.Exact.Sent, 100*p.Exact.Share(), p.Masked.Sent, 100*p.Masked.Share())
	return err
}
