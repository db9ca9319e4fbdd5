package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// deadBytesMax bounds a dead letter: a notice, and what is said about it.
const deadBytesMax = session.NoticeBytesMax + 16<<10

// DeadLetter is a notice that no receiver of a webhook took in time.
type DeadLetter struct {
	Webhook string          `json:"webhook"`
	ID      string          `json:"id"`      // the header webhook-id of all tries
	Session string          `json:"session"` // as in the log
	Failure string          `json:"failure"` // of the last try
	Body    json.RawMessage `json:"body"`    // as it was sent
	Seq     uint64          `json:"-"`       // in the stream of dead letters
	At      int64           `json:"-"`       // Unix ms, when it was stored
}

// StoreDead stores a dead letter. The same ID again within the stream's duplicate window
// stores nothing.
func (j *Journal) StoreDead(ctx context.Context, d DeadLetter) error {
	subject, err := j.names.Dead(d.Webhook, d.Session)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // the body stays as it was sent
	if err := enc.Encode(d); err != nil {
		return err
	}
	w := &write{subject: subject, data: bytes.TrimSpace(text.Bytes()), headers: []string{subjects.HeaderMsgID, d.Webhook + "." + d.ID}, alone: true}
	if err = j.check(w, deadBytesMax); err == nil {
		err = j.dead.commitOne(ctx, w)
	}
	return natsio.Typed(err)
}

// DeadLetters yields the dead letters of a webhook (of all, if it is empty), oldest first.
// An error ends it.
func (j *Journal) DeadLetters(ctx context.Context, webhook string) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		filter, err := ">", error(nil)
		if webhook != "" {
			filter, err = j.names.DeadOf(webhook)
		}
		if err != nil {
			yield(DeadLetter{}, err)
			return
		}
		for m, err := range j.read(ctx, j.names.DeadStream(), filter, 1, 0, true) {
			d := DeadLetter{Seq: m.seq, At: m.time}
			if err == nil {
				err = json.Unmarshal(m.data, &d)
			}
			if err != nil {
				err = fmt.Errorf("read dead letters: %w", err)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
