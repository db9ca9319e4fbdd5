package client

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// changesEvery is how long a change may go unseen whose message was lost.
const changesEvery = time.Second

// Changes yields the rows of sessions as they change, as Index would list them: of those
// whose names begin with a text, after the notice with a sequence of their stream, until
// ctx ends or the reader stops; when ctx ends, it yields the error of ctx last. A session
// that changes often has one row for several changes. It reads the stream of notices, and
// only listens for when to look: it needs no consumer.
func (c *Client) Changes(ctx context.Context, beginning string, after uint64) iter.Seq2[IndexRow, error] {
	return func(yield func(IndexRow, error) bool) {
		if err := c.changes(ctx, after, func(row IndexRow) bool {
			return !strings.HasPrefix(row.Session, beginning) || yield(row, nil)
		}); err != nil {
			yield(IndexRow{}, err)
		}
	}
}

func (c *Client) changes(ctx context.Context, after uint64, each func(IndexRow) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came := make(chan struct{}, 1)
	if err := c.bus.Subscribe(ctx, c.bus.Names().OutAll(), func(*nats.Msg) {
		select {
		case came <- struct{}{}:
		default:
		}
	}); err != nil {
		return fmt.Errorf("follow sessions: %w", err)
	}
	tick := time.NewTicker(changesEvery)
	defer tick.Stop()
	for {
		last, err := c.bus.LastNotice(ctx)
		if err == nil && last > after {
			var stopped bool
			if stopped, err = c.changed(ctx, after+1, last, each); stopped {
				return nil
			}
			after = last
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("follow sessions: %w", err)
		}
		select {
		case <-came:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changed calls each with the sessions whose latest notice is in a part of the stream, in
// the order of these.
func (c *Client) changed(ctx context.Context, from, to uint64, each func(IndexRow) bool) (stopped bool, err error) {
	var rows []IndexRow
	at := map[string]int{} // by session: the row that counts
	for n, err := range c.bus.ReadNotices(ctx, "", from, to) {
		if err != nil {
			return false, err
		}
		at[n.Session] = len(rows)
		rows = append(rows, rowOf(&n))
	}
	for i, row := range rows {
		if at[row.Session] == i && !each(row) {
			return true, nil
		}
	}
	return false, nil
}
