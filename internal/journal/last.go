package journal

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
func (j *Journal) NoticesKept(ctx context.Context) (first, last uint64, err error) {
	state, err := j.state(ctx, j.names.NoticesStream(), "")
	if err != nil {
		return 0, 0, fmt.Errorf("look at %s: %w", j.names.NoticesStream(), err)
	}
	return state.FirstSeq, state.LastSeq, nil
}

// ReadNotices yields the notices of a session (of all, if sid is empty) with
// sequences from from to to in their stream, in order. An error ends it.
func (j *Journal) ReadNotices(ctx context.Context, sid string, from, to uint64) iter.Seq2[Notice, error] {
	return j.noticesOf(func(yield func(stored, error) bool) {
		filter := ">"
		if sid != "" {
			var err error
			if filter, err = j.names.Out(sid); err != nil {
				yield(stored{}, err)
				return
			}
		}
		for m, err := range j.read(ctx, j.names.NoticesStream(), filter, from, to, true) {
			if !yield(m, err) {
				return
			}
		}
	})
}

// LastNotices yields the last notice of each of these sessions, at most
// LastNoticesMax, in the order of the stream: the last one whose sequence is at
// most upTo (0: the newest). A session without one is left out. An error ends it.
func (j *Journal) LastNotices(ctx context.Context, sids []string, upTo uint64) iter.Seq2[Notice, error] {
	return j.noticesOf(func(yield func(stored, error) bool) {
		r := reading{journal: j, stream: j.names.NoticesStream(), next: 1, to: upTo, size: batchMsgsMax, yield: yield}
		for _, sid := range sids {
			subject, err := j.names.Out(sid)
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
func (j *Journal) noticesOf(read func(yield func(stored, error) bool)) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		read(func(m stored, err error) bool {
			if err != nil {
				yield(Notice{}, fmt.Errorf("read notices: %w", err))
				return false
			}
			sid, err := j.names.ParseOut(m.subject)
			if err != nil {
				return true // published by somebody under a name that is no session's
			}
			return yield(Notice{Session: sid, Seq: m.seq, Time: m.time, Payload: m.data}, nil)
		})
	}
}

// SessionNames returns the names of the sessions of one partition of the log, in
// their order. The server walks the subjects of that partition to answer.
func (j *Journal) SessionNames(ctx context.Context, partition int) ([]string, error) {
	names := map[string]bool{}
	subject := j.conn.API + "STREAM.INFO." + j.names.LogStream()
	for offset := 0; ; {
		body, err := json.Marshal(struct {
			Subjects string `json:"subjects_filter"`
			Offset   int    `json:"offset,omitempty"`
		}{j.names.LaneFilters(partition, subjects.Partitions)[0], offset})
		if err != nil {
			return nil, err
		}
		var answer subjectsAnswer
		err = j.conn.Repeat(ctx, subject, func(ctx context.Context) error {
			msg, err := j.conn.NC.RequestWithContext(ctx, subject, body)
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
			if _, sid, err := j.names.ParseStored(stored); err == nil && sid != "" {
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
