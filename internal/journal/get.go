package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stored is a message of a stream.
type stored struct {
	subject string
	seq     uint64
	time    int64 // Unix milliseconds
	header  nats.Header
	data    []byte
}

// getRequest is the body of a read: of the leader's, and of the direct ones.
type getRequest struct {
	Seq       uint64   `json:"seq,omitempty"`
	LastFor   string   `json:"last_by_subj,omitempty"`
	NextFor   string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MaxBytes  int      `json:"max_bytes,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
}

// appendSeq writes the request for one sequence.
func appendSeq(out []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(out, `{"seq":`...), seq, 10), '}')
}

// appendFirst writes the request for the first message under a filter: one of our
// names, in which nothing needs an escape.
func appendFirst(out []byte, filter string) []byte {
	return append(append(append(out, `{"seq":1,"next_by_subj":"`...), filter...), `"}`...)
}

// leaderGet reads one message from the stream's leader, which has everything
// that was acknowledged. A message that is not there is ErrNotFound.
func (j *Journal) leaderGet(ctx context.Context, stream string, req getRequest) (stored, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return stored{}, err
	}
	subject := j.conn.API + "STREAM.MSG.GET." + stream
	var m stored
	err = j.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		answer, err := j.conn.NC.RequestWithContext(ctx, subject, body)
		if err != nil {
			return err
		}
		m, err = parseLeaderAnswer(answer.Data)
		return err
	})
	return m, err
}

func parseLeaderAnswer(data []byte) (stored, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return stored{}, fmt.Errorf("the answer of JetStream does not parse: %w", err)
	}
	if answer.Error != nil {
		return stored{}, answer.Error
	}
	if answer.Message == nil {
		return stored{}, errors.New("the answer of JetStream has no message")
	}
	got := answer.Message
	m := stored{subject: got.Subject, seq: got.Sequence, time: got.Time.UnixMilli(), data: got.Data}
	if header, err := nats.DecodeHeadersMsg(got.Header); err == nil { // else who published it wrote none that can be read
		m.header = header
	}
	return m, nil
}
