package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
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
func (b *Bus) leaderGet(ctx context.Context, stream string, req getRequest) (stored, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return stored{}, err
	}
	subject := b.api + "STREAM.MSG.GET." + stream
	var m stored
	err = b.repeat(ctx, subject, func(ctx context.Context) error {
		answer, err := b.nc.RequestWithContext(ctx, subject, body)
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
	if len(got.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(got.Header)
		if err != nil {
			return stored{}, fmt.Errorf("headers of message %d: %w", m.seq, err)
		}
		m.header = header
	}
	return m, nil
}

// Statuses of answers to direct reads.
const (
	directEnd          = "204"
	directNotFound     = "404"
	directNoResponders = "503"
)

// parseDirect reads one answer to a direct read. end is true for the mark that
// ends a batch. A message that is not there is jetstream.ErrMsgNotFound.
func parseDirect(msg *nats.Msg) (m stored, end bool, err error) {
	switch status := msg.Header.Get(subjects.HeaderStatus); status {
	case "":
	case directEnd:
		return stored{}, true, nil
	case directNotFound:
		return stored{}, false, jetstream.ErrMsgNotFound
	case directNoResponders:
		return stored{}, false, nats.ErrNoResponders
	default:
		return stored{}, false, fmt.Errorf("direct read: %s %s", status, msg.Header.Get(subjects.HeaderDescription))
	}
	m = stored{subject: msg.Header.Get(subjects.HeaderSubject), header: msg.Header, data: msg.Data}
	if m.seq, err = strconv.ParseUint(msg.Header.Get(subjects.HeaderSequence), 10, 64); err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderSequence, err)
	}
	at, err := time.Parse(time.RFC3339Nano, msg.Header.Get(subjects.HeaderTimeStamp))
	if err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderTimeStamp, err)
	}
	m.time = at.UnixMilli()
	return m, false, nil
}

// directSeq returns the sequence of the message that answers a direct read, 0 if
// there is none.
func directSeq(msg *nats.Msg) (uint64, error) {
	if msg.Header.Get(subjects.HeaderStatus) == "" {
		if seq, ok := headerNumber(msg, subjects.HeaderSequence); ok {
			return seq, nil
		}
	}
	m, _, err := parseDirect(msg)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	return m.seq, err
}

// headerNumber reads a number that the server writes.
func headerNumber(msg *nats.Msg, name string) (uint64, bool) {
	n, err := strconv.ParseUint(msg.Header.Get(name), 10, 64)
	return n, err == nil
}

func (b *Bus) directSubject(stream string) string { return b.api + "DIRECT.GET." + stream }
