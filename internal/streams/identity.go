package streams

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// identifyTimeout bounds one look for the log's identity, and identifyEvery is the
// least time between two looks that found none.
const (
	identifyTimeout = 2 * time.Second
	identifyEvery   = time.Second
)

// ReadLogID reads the log's identity from its stream. It is empty if the stream has
// none yet: no session-actor of this release has provisioned it. A missing stream is
// jetstream.ErrStreamNotFound. It also makes the log's domain known to the connection: a
// mirror may be in another one.
func (s *Streams) ReadLogID(ctx context.Context) (id string, err error) {
	stream := s.names.LogStream()
	var info struct {
		natsio.Answer
		jetstream.StreamInfo
		Domain string `json:"domain"`
	}
	err = s.conn.Attempt(ctx, s.conn.API+"STREAM.INFO."+stream, func(ctx context.Context) error {
		return s.conn.Ask(ctx, "STREAM.INFO."+stream, nil, &info)
	})
	if err != nil {
		return "", fmt.Errorf("read the identity of %s: %w", stream, err)
	}
	if info.Config.Mirror == nil {
		s.conn.SetDomain(info.Domain)
	}
	return LogIDOf(&info.StreamInfo), nil
}

// LogIDOf returns the identity in the info of the log's stream, empty if it has none.
func LogIDOf(info *jetstream.StreamInfo) string { return info.Config.Metadata[subjects.MetadataLog] }

// Identify makes the log's identity known to the connection, if it is not and can be
// read. It asks at most once a second, and never again after a denial: a user who may
// not read the stream's info publishes messages that name no log.
func (s *Streams) Identify(ctx context.Context) {
	if s.conn == nil || s.conn.LogID() != "" || s.unidentified.Load() {
		return
	}
	now, next := time.Now().UnixNano(), s.identifyNext.Load()
	if now < next || !s.identifyNext.CompareAndSwap(next, now+int64(identifyEvery)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	id, err := s.ReadLogID(ctx)
	var denied *natsio.PermissionError
	switch {
	case errors.As(err, &denied):
		s.unidentified.Store(true)
	case err == nil && id != "":
		s.conn.SetLogID(id)
	}
}

// newLogID returns the identity of a log that is about to be created.
func newLogID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// provisionLogID makes sure that the log's stream has an identity, and makes it known
// to the connection.
func (s *Streams) provisionLogID(ctx context.Context) error {
	name := s.names.LogStream()
	info, err := s.info(ctx, name)
	if err == nil && info == nil {
		err = jetstream.ErrStreamNotFound
	}
	if err == nil && LogIDOf(info) == "" {
		var id string
		if id, err = s.formerLogID(ctx, info); err == nil {
			err = s.mark(ctx, name, subjects.MetadataLog, id)
		}
		if err == nil {
			s.conn.Log.Info("log_identified", "stream", name, "log", id)
			info, err = s.info(ctx, name) // what is stored counts, if another daemon has added one
		}
	}
	if err != nil {
		return fmt.Errorf("provision the identity of %s: %w", name, err)
	}
	s.conn.SetLogID(LogIDOf(info))
	return nil
}

// firstLogID returns the identity that the log's first event names, empty if it names
// none. In a log that was copied without its metadata, every event names the former one.
func (s *Streams) firstLogID(ctx context.Context, info *jetstream.StreamInfo) (id string, err error) {
	if info.State.Msgs == 0 {
		return "", nil
	}
	err = s.conn.Retry(ctx, func(ctx context.Context) error {
		stream, err := s.conn.JS.Stream(ctx, info.Config.Name)
		if err != nil {
			return err
		}
		first, err := stream.GetMsg(ctx, info.State.FirstSeq)
		if err == nil {
			id = first.Header.Get(subjects.HeaderLog)
		}
		return err
	})
	if _, bad := ulid.ParseStrict(id); bad != nil {
		id = "" // a publisher may set any header
	}
	return id, err
}

// formerLogID returns the identity of a log without one in its metadata. If another
// stream is marked with one, the metadata was lost, for instance in a copy. Otherwise
// the log is from before identities. The result follows from the stream's creation
// then, so that daemons that do this at once agree.
func (s *Streams) formerLogID(ctx context.Context, info *jetstream.StreamInfo) (string, error) {
	for _, name := range s.ofLog() {
		if of, err := s.info(ctx, name); err != nil {
			return "", err
		} else if of != nil && LogIDOf(of) != "" {
			return LogIDOf(of), nil
		}
	}
	if id, err := s.firstLogID(ctx, info); err != nil || id != "" {
		return id, err
	}
	sum := sha256.Sum256([]byte(info.Config.Name + " " + info.Created.UTC().Format(time.RFC3339Nano)))
	id := ulid.ULID{}
	if err := id.SetTime(uint64(max(info.Created.UnixMilli(), 0))); err != nil {
		return "", err
	}
	copy(id[6:], sum[:])
	return id.String(), nil
}
