package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/webhook"
)

// webhooksCommand shows dead letters.
type webhooksCommand struct {
	Name string `arg:"" optional:"" help:"Webhook whose dead letters to list. Default: all."`
	Send string `type:"existingfile" placeholder:"FILE" help:"Send them again, once each, by the webhooks of this file. They stay listed for 30 days: receivers drop a repeat by its webhook-id."`
	asJSON
}

// letterJSON is a dead letter, as JSON.
type letterJSON struct {
	Seq uint64 `json:"seq"`
	At  int64  `json:"at"` // Unix milliseconds
	journal.DeadLetter
	Sent string `json:"sent,omitempty"` // with --send: delivered, or why not
}

// Run lists the dead letters, and sends them again if that is asked for.
func (c webhooksCommand) Run(ctx context.Context, s streams, conn connection) error {
	hooks := map[string]*webhook.Hook{}
	if c.Send != "" {
		all, err := webhook.Read(c.Send)
		if err != nil {
			return fmt.Errorf("webhooks: --send: %w", err)
		}
		for i := range all {
			hooks[all[i].Name] = &all[i]
		}
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	failed := 0
	table := newWholeTable(s.out, "SEQ", "DEAD SINCE", "WEBHOOK", "ID", "FAILURE", "SENT")
	for d, err := range b.DeadLetters(ctx, c.Name) {
		if err != nil {
			return fmt.Errorf("webhooks: %w", err)
		}
		shown := letterJSON{Seq: d.Seq, At: d.At, DeadLetter: d}
		if c.Send != "" {
			shown.Sent = "delivered"
			if err := webhook.Again(ctx, hooks[d.Webhook], d); err != nil {
				shown.Sent = err.Error()
				failed++
			}
		}
		if c.JSON {
			printJSON(s.out, shown)
			continue
		}
		table.texts(fmt.Sprint(d.Seq), time.UnixMilli(d.At).UTC().Format(time.RFC3339), d.Webhook, d.ID, d.Failure, shown.Sent)
	}
	if !c.JSON {
		table.flush()
	}
	if failed > 0 {
		return fmt.Errorf("webhooks: %d dead letters were not delivered", failed)
	}
	return nil
}
