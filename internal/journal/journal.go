package journal

import (
	"sync/atomic"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// Journal stores and reads messages over one connection. It is safe for concurrent
// use.
type Journal struct {
	conn    *natsio.Conn
	names   subjects.Names
	streams *streams.Streams

	// Every stream has one committer.
	logs, effects, timers, notices, packs, dead *committer
	unanswered                                  *unanswered // of a core-only client; else nil

	redacted redactions
	erased   atomic.Uint64 // events that erasures have deleted, when the last one that this process knows was done
}

// New returns the journal of a connection. With coreOnly it does not use the JetStream
// API, and only Publish may be called.
func New(conn *natsio.Conn, s *streams.Streams, coreOnly bool) *Journal {
	names := conn.Names()
	j := &Journal{conn: conn, names: names, streams: s}
	j.logs, j.effects = newCommitter(j, names.LogStream()), newCommitter(j, names.EffectsStream())
	j.timers, j.notices = newCommitter(j, names.TimersStream()), newCommitter(j, names.NoticesStream())
	j.timers.gap = wakesGap
	j.packs, j.dead = newCommitter(j, names.PacksStream()), newCommitter(j, names.DeadStream())
	if coreOnly {
		j.unanswered = &unanswered{}
	}
	return j
}

// Close makes calls that wait for an outcome return ErrClosed. It does not close the
// connection.
func (j *Journal) Close() {
	for _, c := range []*committer{j.logs, j.effects, j.timers, j.notices, j.packs, j.dead} {
		c.close()
	}
}
