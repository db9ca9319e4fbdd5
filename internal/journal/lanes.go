package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
)

// Lane is a lane as the server has it.
type Lane struct {
	streams.LaneBacklog
	Oldest time.Time // of the oldest event that is not acknowledged; zero: there is none
}

// LanesAged returns the lanes of the log, in their order. It asks for the oldest event of
// each partition of a lane that has a backlog. Any replica answers, so an event that one
// has not got yet may be missing.
func (j *Journal) LanesAged(ctx context.Context) ([]Lane, error) {
	backlogs, err := j.streams.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Lane, len(backlogs))
	var requests [][]byte
	var of []int // the lane of each request
	for i, backlog := range backlogs {
		all[i].LaneBacklog = backlog
		if backlog.Undelivered+backlog.Unacked == 0 {
			continue
		}
		for _, filter := range j.names.LaneFilters(backlog.Lane, len(backlogs)) {
			requests, of = append(requests, getRequest{Seq: backlog.Floor + 1, NextFor: filter}.body()), append(of, i)
		}
	}
	err = j.directEach(ctx, j.names.LogStream(), requests, func(i int, msg *nats.Msg) error {
		m, _, err := parseDirect(msg)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, errHidden): // its publisher hides when it was stored
			return nil
		case err != nil:
			return err
		}
		if at, lane := time.UnixMilli(m.time), &all[of[i]]; lane.Oldest.IsZero() || at.Before(lane.Oldest) {
			lane.Oldest = at
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the oldest events of lanes: %w", natsio.Typed(err))
	}
	return all, nil
}
