package journal

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

// TestNoticesAreHeldBack: a notice that is queued with the effects of its session is
// sent when these are stored, and not before. It is refused if one of them is not stored,
// and dropped if its caller gives up.
func TestNoticesAreHeldBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer string // to the effect; empty: none yet
		ended  bool
		ready  int
		err    error
	}{
		{"pending", "", false, 0, nil},
		{"pending, and its caller gave up", "", true, 0, ErrUnknownOutcome},
		{"stored", `{"stream":"S","seq":1}`, false, 1, nil},
		{"not stored", refusal(codeTooLarge), false, 0, errHeld},
	} {
		effects, notices := testLoop(), testLoop()
		ctx, end := context.WithCancel(t.Context())
		effect := effects.testWrites(1)[0]
		effect.of.next = notices.committer
		notice := notices.testWrites(2)[1]
		notice.of.ctx = ctx
		notice.needs = &needed{effect.of, func(order string) bool { return order == notice.order && effect.err == nil }}
		number := effects.sent(effect)
		notices.taken = []*write{notice}
		if notices.releaseHeld(); len(notices.ready) != 0 {
			t.Errorf("%s: the notice is sent before the effect has its outcome", c.name)
		}
		if c.answer != "" {
			effects.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(c.answer)})
			if effects.frees != notices.committer {
				t.Errorf("%s: the committer of notices does not send", c.name)
			}
		}
		if c.ended {
			end()
		}
		notices.dropEnded()
		notices.releaseHeld()
		if len(notices.ready) != c.ready || !errors.Is(notice.err, c.err) {
			t.Errorf("%s: got %d ready and %v, want %d and %v", c.name, len(notices.ready), notice.err, c.ready, c.err)
		}
		if held := slices.Contains(notices.taken, notice); held != (c.answer == "" && !c.ended) {
			t.Errorf("%s: got held back %v", c.name, held)
		}
		end()
	}
}
