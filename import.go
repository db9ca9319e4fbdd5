package refold

import (
	"context"
	"fmt"

	"github.com/refold/refold/internal/transcript"
)

// Import makes a conversation that was held elsewhere the beginning of the session, before
// its first run: from then on models are shown it. messages is a JSON array as OpenAI's
// chat API or Anthropic's takes it, or an object with one as messages; what Transcript
// returns as OpenAI or Anthropic is one. System texts and reasoning are left out. The error
// names the message that can't be imported; nothing is imported then. A *RejectedError says
// that the session has a conversation already.
func (s *Session) Import(ctx context.Context, messages []byte) error {
	p, err := transcript.Parse(messages)
	if err != nil {
		return fmt.Errorf("import into session %s: %w", s.id, err)
	}
	return s.taken(ctx, func() (uint64, error) { return within{s.rt}.Operator().Import(ctx, s.id, p.Messages, "") })
}
