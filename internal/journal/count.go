package journal

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// CountEvents returns how many events a session has, which is the number of
// those that the log has at have or before, and of what came later. 0: the leader
// does not tell; the log misses some that it had, or does not have that one yet.
//
// The server keeps this number. To find the end of a session by reading, it loads
// all blocks of the log between the session's last event and the log's.
func (j *Journal) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	filter, err := j.names.Session(sid)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(struct {
		Subjects string `json:"subjects_filter"`
	}{filter})
	if err != nil {
		return 0, err
	}
	subject := j.conn.API + "STREAM.INFO." + j.names.LogStream()
	err = j.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		answer, err := j.conn.NC.RequestWithContext(ctx, subject, body)
		if err == nil {
			n, err = parseCount(answer.Data, have)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count the events of %s: %w", sid, err)
	}
	return n, nil
}

// parseCount adds up what a stream has on the subjects that were asked for, if it
// has all that it ever had, and the message at have. The server looks at the
// stream first and at the subjects then.
func parseCount(data []byte, have uint64) (n uint64, err error) {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
		State struct {
			Msgs     uint64            `json:"messages"`
			LastSeq  uint64            `json:"last_seq"`
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return 0, fmt.Errorf("the answer of JetStream does not parse: %w", err)
	}
	if answer.Error != nil {
		return 0, answer.Error
	}
	if s := answer.State; s.Msgs != s.LastSeq || s.LastSeq < have {
		return 0, nil
	}
	for _, one := range answer.State.Subjects {
		n += one
	}
	return n, nil
}
