package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/internal/transcript"
)

// windowStore is the store of a prompt.Reader that changes nothing: it makes no lost
// content again.
type windowStore struct{ *bus.Bus }

// Events implements prompt.Store.
func (w windowStore) Events(ctx context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	events, err := w.EventsAt(ctx, seqs)
	for i := range events {
		if events[i].Session != sid {
			return nil, fmt.Errorf("event %d is of another session: %w", events[i].Seq, natsio.ErrNotFound)
		}
	}
	return events, err
}

// Blob implements prompt.Store.
func (w windowStore) Blob(ctx context.Context, ref codec.Ref) ([]byte, error) {
	return w.GetBlobUpTo(ctx, ref, prompt.BlobBytesMax)
}

// Remade implements prompt.Store.
func (windowStore) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}

// printWindow prints the messages of the turn's conversation as a bridge shows them to
// the model: the request is built by the same code.
func (p *shownPrompt) printWindow(ctx context.Context, out io.Writer, b *bus.Bus, sid string, asJSON bool) error {
	window := p.generation
	window.Prompt, window.Vars = nil, nil // they are printed by themselves
	request, fault, err := prompt.New(windowStore{b}).Request(ctx, &window)
	switch {
	case err != nil:
		return err
	case fault != nil:
		return fmt.Errorf("the messages of turn %s: %w", p.turn, fault)
	}
	for i := range request.Messages {
		m := &request.Messages[i]
		head := fmt.Sprintf("message %d, %s%s", i+1, m.Role, transcript.Prefixed(" ", m.CallID))
		p.section(out, sid, fmt.Sprintf("%s, %d bytes", head, len(m.Text)), messageText(m), asJSON)
	}
	return nil
}

// messageText returns a message's text, and its calls below it.
func messageText(m *executor.Message) string {
	var text strings.Builder
	text.WriteString(m.Text)
	for i := range m.Calls {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "call %s of %s: %s", m.Calls[i].ID, m.Calls[i].Name, cmp.Or(m.Calls[i].Arguments, "{}"))
	}
	return text.String()
}
