package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Statuses of answers to direct reads.
const (
	directEnd      = "204"
	directNotFound = "404"
)

// errHidden says that the answer to a direct read does not tell for certain which
// message it is: the leader has to be asked.
var errHidden = errors.New("direct read: the headers of the message hide what the server says of it")

// parseDirect reads one answer to a direct read. end is true for the mark that
// ends a batch. A message that is not there is jetstream.ErrMsgNotFound.
//
// The answer is the stored message, and behind the headers that its publisher wrote
// the server writes of what subject it is, which sequence and what time. Nothing
// keeps a publisher from writing the same: NATS has no permissions for headers. So
// of several values the last one counts, a header that the server writes into each
// message tells that it is one, whatever its status says, and if there is anything
// that the headers don't account for it is errHidden.
func parseDirect(msg *nats.Msg) (m stored, end bool, err error) {
	if !accounted(msg) {
		return stored{}, false, errHidden
	}
	sequence := lastHeader(msg, subjects.HeaderSequence)
	if sequence == "" {
		switch status := msg.Header.Get(subjects.HeaderStatus); status {
		case directEnd:
			return stored{}, true, nil
		case directNotFound:
			return stored{}, false, jetstream.ErrMsgNotFound
		case natsio.StatusNoResponders:
			return stored{}, false, nats.ErrNoResponders
		default:
			return stored{}, false, fmt.Errorf("direct read: %s %s", status, msg.Header.Get(subjects.HeaderDescription))
		}
	}
	m = stored{subject: lastHeader(msg, subjects.HeaderSubject), header: msg.Header, data: msg.Data}
	if m.seq, err = strconv.ParseUint(sequence, 10, 64); err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderSequence, err)
	}
	at, err := time.Parse(time.RFC3339Nano, lastHeader(msg, subjects.HeaderTimeStamp))
	if err != nil {
		return stored{}, false, fmt.Errorf("direct read: %s: %w", subjects.HeaderTimeStamp, err)
	}
	m.time = at.UnixMilli()
	return m, false, nil
}

// directSeq returns the sequence of the message that answers a direct read, 0 if
// there is none.
func directSeq(msg *nats.Msg) (uint64, error) {
	m, _, err := parseDirect(msg)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = nil
	}
	return m.seq, err
}

// headerNumber reads a number that the server writes.
func headerNumber(msg *nats.Msg, name string) (uint64, bool) {
	n, err := strconv.ParseUint(lastHeader(msg, name), 10, 64)
	return n, err == nil
}

// lastHeader returns the last value of a header, which is the server's if it wrote
// one.
func lastHeader(msg *nats.Msg, name string) string {
	if all := msg.Header[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// How many bytes headers take that the server and clients write.
const (
	headerFrame  = len("NATS/1.0\r\n") + len("\r\n")
	headerAround = len(": ") + len("\r\n")
)

// headersToldMost is for how many headers it can be told whether they account for all
// bytes. A publisher who leaves out the blank behind the colon and the carriage return
// saves two bytes a header, and some 25 with a status in the first line. What the server
// writes of a message, which an empty line before it would hide, has a hundred bytes at
// least. The messages of Refold have a dozen headers.
const headersToldMost = 32

// accounted reports whether the headers of a message are all that stands in it
// besides its payload. If not, there may be an empty line between them, behind which
// nothing counts as a header, or they don't parse.
func accounted(msg *nats.Msg) bool {
	n, lines := headerFrame, 0
	for name, values := range msg.Header {
		for _, value := range values {
			n += len(name) + headerAround + len(value)
			lines++
		}
	}
	has := msg.Size() - len(msg.Subject) - len(msg.Reply) - len(msg.Data)
	if n == has {
		return lines <= headersToldMost
	}
	// The server's own status stands in the first line: NATS/1.0 404 Message Not Found.
	status, text := lastHeader(msg, subjects.HeaderStatus), lastHeader(msg, subjects.HeaderDescription)
	if status == "" {
		return false
	}
	n -= len(subjects.HeaderStatus) + headerAround - len(" ")
	if text != "" {
		n -= len(subjects.HeaderDescription) + headerAround - len(" ")
	}
	return n == has && lines <= headersToldMost
}

// directMost is how many requests of directEach are under way at a time.
const directMost = 256

// directEach sends requests for messages of a stream, each by itself, and calls took
// with each answer, in any order. Its error ends it.
func (j *Journal) directEach(ctx context.Context, stream string, requests [][]byte, took func(i int, msg *nats.Msg) error) error {
	subject := j.directSubject(stream)
	for start := 0; start < len(requests); start += directMost {
		some := requests[start:min(start+directMost, len(requests))]
		err := j.conn.Attempt(ctx, subject, func(ctx context.Context) error {
			return j.directSome(ctx, subject, some, func(i int, msg *nats.Msg) error { return took(start+i, msg) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) directSome(ctx context.Context, subject string, requests [][]byte, took func(i int, msg *nats.Msg) error) error {
	inbox, msgs, done, err := j.conn.Await(len(requests))
	if err != nil {
		return err
	}
	defer done()
	for i, request := range requests {
		if err := j.conn.NC.PublishRequest(subject, natsio.ReplySubject(inbox, uint64(i)), request); err != nil {
			return err
		}
	}
	for range requests {
		var msg *nats.Msg
		select {
		case msg = <-msgs:
		case <-ctx.Done():
			return ctx.Err()
		}
		i, err := strconv.Atoi(strings.TrimPrefix(msg.Subject, inbox+"."))
		if err != nil || i < 0 || i >= len(requests) {
			return fmt.Errorf("an answer on %s, which nobody asked for", msg.Subject)
		}
		if err := took(i, msg); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) directSubject(stream string) string { return j.conn.API + "DIRECT.GET." + stream }
