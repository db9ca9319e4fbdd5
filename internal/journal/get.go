package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

type stored struct {
	subject string
	seq     uint64
	time    int64 // Unix milliseconds
	header  nats.Header
	data    []byte
}

// getRequest is the body of a read from the leader, or of a direct read.
type getRequest struct {
	Seq       uint64   `json:"seq,omitempty"`
	LastFor   string   `json:"last_by_subj,omitempty"`
	NextFor   string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MaxBytes  int      `json:"max_bytes,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
}

func (r getRequest) body() []byte {
	data, _ := json.Marshal(r) // a struct of strings and numbers never fails
	return data
}

// leaderGet reads one message from the stream's leader, which has every acknowledged
// message. A missing message is ErrNotFound.
func (j *Journal) leaderGet(ctx context.Context, stream string, req getRequest) (stored, error) {
	var answer leaderAnswer
	request := "STREAM.MSG.GET." + stream
	err := j.conn.Repeat(ctx, j.conn.API+request, func(ctx context.Context) error {
		answer = leaderAnswer{}
		return j.conn.Ask(ctx, request, req, &answer)
	})
	if err != nil {
		return stored{}, err
	}
	got := answer.Message
	if got.Sequence == 0 {
		return stored{}, errors.New("the answer of JetStream has no message")
	}
	m := stored{subject: got.Subject, seq: got.Sequence, time: got.Time.UnixMilli(), data: got.Data}
	if header, err := nats.DecodeHeadersMsg(got.Header); err == nil { // else the publisher's headers don't parse
		m.header = header
	}
	return m, nil
}

type leaderAnswer struct {
	natsio.Answer
	Message struct {
		Subject  string    `json:"subject"`
		Sequence uint64    `json:"seq"`
		Header   []byte    `json:"hdrs"`
		Data     []byte    `json:"data"`
		Time     time.Time `json:"time"`
	} `json:"message"`
}

// lastOn reads the last message on a subject from the stream's leader. Its sequence
// is 0 if there is none.
func (j *Journal) lastOn(ctx context.Context, stream, subject string) (stored, error) {
	m, err := j.leaderGet(ctx, stream, getRequest{LastFor: subject})
	if errors.Is(err, natsio.ErrNotFound) {
		return stored{}, nil
	}
	return m, err
}

// state returns the state of a stream from its leader. If filter is not empty, it has
// the number of messages on each matching subject, which the leader counts after it has
// read the rest.
func (j *Journal) state(ctx context.Context, stream, filter string) (state jetstream.StreamState, err error) {
	err = j.conn.Repeat(ctx, j.conn.API+"STREAM.INFO."+stream, func(ctx context.Context) (err error) {
		state, err = j.askState(ctx, stream, filter)
		return err
	})
	if err != nil {
		return state, fmt.Errorf("read the state of %s: %w", stream, err)
	}
	return state, nil
}

// askState is one attempt of state. The leader returns subjects in pages.
func (j *Journal) askState(ctx context.Context, stream, filter string) (state jetstream.StreamState, err error) {
	for {
		request := struct {
			Filter string `json:"subjects_filter,omitempty"`
			Offset int    `json:"offset,omitempty"`
		}{filter, len(state.Subjects)}
		var page struct {
			natsio.Answer
			Total int                   `json:"total"`
			State jetstream.StreamState `json:"state"`
		}
		if err := j.conn.Ask(ctx, "STREAM.INFO."+stream, request, &page); err != nil {
			return state, err
		}
		if request.Offset == 0 {
			state = page.State
		}
		maps.Copy(state.Subjects, page.State.Subjects)
		if len(page.State.Subjects) == 0 || len(state.Subjects) >= page.Total {
			return state, nil
		}
	}
}

// errForeign means that a message is of another system's log (natsio.Conn.IsForeign).
// Every reader of the log skips it, so that every replay folds the same events.
var errForeign = fmt.Errorf("the message is of another system: %w", natsio.ErrNotFound)

// event returns a message of the log as an event. It is errForeign for another system's.
func (j *Journal) event(m stored) (session.Event, error) {
	if j.conn.IsForeign(m.header) {
		return session.Event{}, fmt.Errorf("event %d: %w", m.seq, errForeign)
	}
	door, sid, err := j.names.ParseStored(m.subject)
	if err != nil {
		return session.Event{}, fmt.Errorf("event %d: %w", m.seq, err)
	}
	return session.Event{Session: sid, Door: door, Seq: m.seq, Time: m.time, Payload: m.data}, nil
}

// leaderless is how long a stream may have no leader before a core-only client treats
// it as missing. Servers elect a leader within ten seconds.
const leaderless = 30 * time.Second

// unanswered records when publishes of a core-only client began to get no answer.
type unanswered struct {
	mu          sync.Mutex
	first, last time.Time
}

// since records an unanswered request at now and returns the time of the first one
// of its series. A series ends when none is recorded for leaderless.
func (u *unanswered) since(now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.last) > leaderless {
		u.first = now
	}
	u.last = now
	return u.first
}

// WaitsForLog is the log message of a core-only client that begins to wait for a stream
// that nobody has created yet, or that has no leader.
const WaitsForLog = "stream_awaited"

// whyNoStream distinguishes a missing stream from one without a leader. It returns an
// error that is final for the former, and err for the latter. A core-only client
// treats a stream as missing after leaderless.
func (j *Journal) whyNoStream(ctx context.Context, stream string, err error) error {
	if j.unanswered != nil {
		if final := j.noJetStream(ctx, stream); final != nil {
			return final
		}
		now := time.Now()
		since := j.unanswered.since(now)
		if now.Sub(since) > leaderless {
			return jetstream.ErrStreamNotFound
		}
		if since.Equal(now) {
			j.conn.Log.Warn(WaitsForLog, "stream", stream, "for", leaderless.String())
		}
		return err
	}
	if _, missing := j.conn.JS.Stream(ctx, stream); errors.Is(missing, jetstream.ErrStreamNotFound) {
		return missing
	}
	return err
}

// noJetStream returns an error if the server says that it has no JetStream, or none
// for the account; nil to a user without the permission to ask. A missing stream is
// none yet: a client may start together with the session-actor that creates it.
func (j *Journal) noJetStream(ctx context.Context, stream string) error {
	err := j.conn.Attempt(ctx, j.conn.API+"STREAM.INFO."+stream, func(ctx context.Context) error {
		_, err := j.conn.JS.Stream(ctx, stream)
		return err
	})
	switch {
	case errors.Is(err, nats.ErrNoResponders): // as text: callers retry this cause
		return fmt.Errorf("%w at %s: start nats-server with -js (%s)", natsio.ErrNoJetStream, j.conn.Where, err.Error())
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return err
	}
	return nil
}
