package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// LastNoticesMax is how many sessions one call of LastNotices takes. The server
// answers for at most 1,024 subjects.
const LastNoticesMax = 512

// NoticesKept returns the sequences of the first and the last notice that the
// stream holds; last is less than first if it holds none.
func (b *Bus) NoticesKept(ctx context.Context) (first, last uint64, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		s, err := b.js.Stream(ctx, b.names.NoticesStream())
		if err == nil {
			state := s.CachedInfo().State
			first, last = state.FirstSeq, state.LastSeq
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look at %s: %w", b.names.NoticesStream(), err)
	}
	return first, last, nil
}

// ReadNotices yields the notices of a session (of all, if sid is empty) with
// sequences from from to to in their stream, in order. An error ends it.
func (b *Bus) ReadNotices(ctx context.Context, sid string, from, to uint64) iter.Seq2[Notice, error] {
	return b.noticesOf(func(yield func(stored, error) bool) {
		filter := ">"
		if sid != "" {
			var err error
			if filter, err = b.names.Out(sid); err != nil {
				yield(stored{}, err)
				return
			}
		}
		for m, err := range b.read(ctx, b.names.NoticesStream(), filter, from, to, true) {
			if !yield(m, err) {
				return
			}
		}
	})
}

// LastNotices yields the last notice of each of these sessions, at most
// LastNoticesMax, in the order of the stream: the last one whose sequence is at
// most upTo (0: the newest). A session without one is left out. An error ends it.
func (b *Bus) LastNotices(ctx context.Context, sids []string, upTo uint64) iter.Seq2[Notice, error] {
	return b.noticesOf(func(yield func(stored, error) bool) {
		r := reading{b: b, stream: b.names.NoticesStream(), next: 1, to: upTo, size: batchMsgsMax, yield: yield}
		for _, sid := range sids {
			subject, err := b.names.Out(sid)
			if err != nil {
				yield(stored{}, err)
				return
			}
			r.lasts = append(r.lasts, subject)
		}
		for r.lasts != nil && r.direct(ctx) && r.more && !r.ended {
		}
	})
}

// noticesOf yields as notices what read finds.
func (b *Bus) noticesOf(read func(yield func(stored, error) bool)) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		read(func(m stored, err error) bool {
			if err != nil {
				yield(Notice{}, fmt.Errorf("read notices: %w", err))
				return false
			}
			sid, err := b.names.ParseOut(m.subject)
			if err != nil {
				return true // published by somebody under a name that is no session's
			}
			return yield(Notice{Session: sid, Seq: m.seq, Time: m.time, Payload: m.data}, nil)
		})
	}
}

// SessionNames returns the names of the sessions of one partition of the log, in
// their order. The server walks the subjects of that partition to answer.
func (b *Bus) SessionNames(ctx context.Context, partition int) ([]string, error) {
	names := map[string]bool{}
	subject := b.api + "STREAM.INFO." + b.names.LogStream()
	for offset := 0; ; {
		body, err := json.Marshal(struct {
			Subjects string `json:"subjects_filter"`
			Offset   int    `json:"offset,omitempty"`
		}{b.names.LaneFilters(partition, subjects.Partitions)[0], offset})
		if err != nil {
			return nil, err
		}
		var answer subjectsAnswer
		err = b.repeat(ctx, subject, func(ctx context.Context) error {
			msg, err := b.nc.RequestWithContext(ctx, subject, body)
			if err != nil {
				return err
			}
			answer = subjectsAnswer{}
			if err := json.Unmarshal(msg.Data, &answer); err != nil {
				return fmt.Errorf("the answer of JetStream does not parse: %w", err)
			}
			if answer.Error != nil {
				return answer.Error
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the sessions of partition %d: %w", partition, err)
		}
		for stored := range answer.State.Subjects {
			if _, sid, err := b.names.ParseStored(stored); err == nil && sid != "" {
				names[sid] = true
			}
		}
		offset += len(answer.State.Subjects)
		if len(answer.State.Subjects) == 0 || offset >= answer.Total {
			return slices.Sorted(maps.Keys(names)), nil
		}
	}
}

// subjectsAnswer is what the server says of a stream's subjects, a page at a
// time.
type subjectsAnswer struct {
	Error *jetstream.APIError `json:"error"`
	Total int                 `json:"total"`
	State struct {
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// Partitions is how many partitions the log has.
const Partitions = subjects.Partitions
