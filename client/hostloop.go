package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// SettleCall publishes the result of a host loop's call through the door tool. A
// large output is stored as a blob first. The session refuses a call whose group
// has not begun, or a plan_hash other than the batch's; see Taken.
func (c *Client) SettleCall(ctx context.Context, sid string, result session.ToolCallSettled) (seq uint64, err error) {
	if result.Output, err = c.fit(ctx, result.Output, session.TextBytesMax); err != nil {
		return 0, err
	}
	return c.publish(ctx, session.DoorTool, sid, session.TypeToolCallSettled, result, "")
}

// outputBytesEach is the limit of an inline output in a batch's settlement: the
// largest batch fits an event.
const outputBytesEach = session.TextBytesMax / session.CallsMax

// SettleBatch publishes the results of all calls of a batch that have none yet,
// also of later groups, through the door tool. Large outputs are stored as blobs
// first. Repeating the same settlement is a no-op.
func (c *Client) SettleBatch(ctx context.Context, sid string, batch session.ToolBatchSettled) (seq uint64, err error) {
	batch.Results = slices.Clone(batch.Results)
	size := 0
	for i := range batch.Results {
		if output := batch.Results[i].Output; output != nil {
			size += len(output.Text)
		}
	}
	limit := session.TextBytesMax
	if size > limit {
		limit = outputBytesEach
	}
	for i := range batch.Results {
		r := &batch.Results[i]
		if r.Output, err = c.fit(ctx, r.Output, limit); err != nil {
			return 0, err
		}
	}
	return c.publish(ctx, session.DoorTool, sid, session.TypeToolBatchSettled, batch, "")
}

// fit returns content, as a blob if it is text of more than limit bytes.
func (c *Client) fit(ctx context.Context, content *session.Content, limit int) (*session.Content, error) {
	if content == nil || len(content.Text) <= limit {
		return content, nil
	}
	blob, err := c.blob(ctx, content.Text)
	return &blob, err
}

// Arguments returns the arguments of a call without a result, as JSON text, with
// a person's changes, and also if they are too large for the view. It folds the
// log itself.
func (c *Client) Arguments(ctx context.Context, sid, call string) (string, error) {
	state, err := c.latest(ctx, sid)
	if err != nil {
		return "", fmt.Errorf("arguments of %s: %w", call, err)
	}
	if t := state.Turn; t != nil && t.Batch != nil {
		position, ok := strings.CutPrefix(call, fmt.Sprintf("r%dt%dc", t.Run, t.Number))
		if i, err := strconv.Atoi(position); ok && err == nil && i >= 0 && i < len(t.Batch.Calls) {
			switch c := &t.Batch.Calls[i]; c.Status {
			case session.CallWaiting, session.CallAwaiting, session.CallOpen:
				return c.Arguments, nil
			}
		}
	}
	return "", fmt.Errorf("arguments of %s: session %s has no such call, or it has a result", call, sid)
}
