package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// The streams of effects and timers name the log that they belong to in their metadata.
// So a log that is missing, while they exist, was lost, and no daemon takes an empty one
// for it (docs/adr/0081-a-lost-log-is-not-a-new-log.md).

const (
	// watchEvery is the interval of WatchStreams's checks.
	watchEvery = 2 * time.Second
	// aroundEvery is the interval of its checks of consumers and of the account, which
	// cost a cluster more.
	aroundEvery = 15 * time.Second
	// toldEvery is how often the log tells what stays wrong.
	toldEvery = time.Minute
	// lostAfter is how long the log must be missing before it counts as lost, and how
	// long a stream must be without a leader before that is told: a cluster that starts
	// may not know its streams yet, and chooses a leader within that time.
	lostAfter = 10 * time.Second
)

// LogLostError means that the log for which this process, or the stream of effects,
// works is not there any more.
type LogLostError struct {
	Stream string
	ID     string // identity of the lost log; empty: it had none
	Now    string // identity of the log that is there instead; empty: there is none
}

func (e *LogLostError) Error() string {
	text := fmt.Sprintf("the log %s with the identity %s is gone", e.Stream, e.ID)
	if e.Now != "" {
		text += fmt.Sprintf(", and another one, %s, is in its place", e.Now)
	}
	return text + ": stop all daemons, restore it from a backup (docs/operations.md, Backup and restore), and start them again; to begin with an empty log instead, use another --prefix, or delete all streams of this one"
}

// ofLog returns the streams whose content belongs to one log alone.
func (s *Streams) ofLog() []string {
	return []string{s.names.EffectsStream(), s.names.TimersStream()}
}

// info returns a stream's info; nil if there is no stream.
func (s *Streams) info(ctx context.Context, name string) (found *jetstream.StreamInfo, err error) {
	err = s.conn.Retry(ctx, func(ctx context.Context) error {
		stream, err := s.conn.JS.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil
		case err == nil:
			found = stream.CachedInfo()
		}
		return err
	})
	return found, err
}

// sameLog returns a *LogLostError if other streams belong to another log than the one
// that is there, or if that one is missing, or empty although it had effects. It returns
// an error if that one is a mirror.
func (s *Streams) sameLog(ctx context.Context) error {
	log, err := s.info(ctx, s.names.LogStream())
	if err != nil {
		return err
	}
	if log != nil && log.Config.Mirror != nil {
		return isMirror(log)
	}
	for _, name := range s.ofLog() {
		of, err := s.info(ctx, name)
		if err != nil {
			return err
		}
		if of == nil || LogIDOf(of) == "" {
			continue
		}
		lost := &LogLostError{Stream: s.names.LogStream(), ID: LogIDOf(of)}
		switch {
		case log == nil:
			return lost
		case LogIDOf(log) == lost.ID:
		case LogIDOf(log) != "":
			lost.Now = LogIDOf(log)
			return lost
		case log.State.LastSeq == 0 && of.State.LastSeq > 0:
			return lost
		}
	}
	return nil
}

// isMirror says what to do if the log's name belongs to a mirror, which gets no events.
func isMirror(log *jetstream.StreamInfo) error {
	of, do := log.Config.Mirror.Name, "connect to its servers"
	if e := log.Config.Mirror.External; e != nil {
		domain := strings.TrimSuffix(strings.TrimPrefix(e.APIPrefix, "$JS."), ".API")
		of += " in the domain " + domain
		do += ", or name the domain in the context (jetstream_domain)"
	}
	return fmt.Errorf("stream %s is a mirror of %s, and session-actors work with the log itself: %s", log.Config.Name, of, do)
}

// mark sets keys of a stream's metadata; an empty value removes the key.
func (s *Streams) mark(ctx context.Context, name, key, value string) error {
	return s.conn.Retry(ctx, func(ctx context.Context) error {
		stream, err := s.conn.JS.Stream(ctx, name)
		if err != nil {
			return err
		}
		cfg := stream.CachedInfo().Config
		if cfg.Metadata[key] == value {
			return nil
		}
		cfg.Metadata = maps.Clone(cfg.Metadata)
		if cfg.Metadata == nil {
			cfg.Metadata = map[string]string{}
		}
		if cfg.Metadata[key] = value; value == "" {
			delete(cfg.Metadata, key)
		}
		_, err = s.conn.JS.UpdateStream(ctx, cfg)
		return err
	})
}

// markLog marks the streams that belong to the log with its identity.
func (s *Streams) markLog(ctx context.Context) error {
	for _, name := range s.ofLog() {
		if err := s.mark(ctx, name, subjects.MetadataLog, s.conn.LogID()); err != nil {
			return fmt.Errorf("provision %s: %w", name, err)
		}
	}
	return nil
}

// WatchStreams checks the named streams every two seconds until ctx ends, or all if
// none is named, and then what Check finds around them every 15 seconds, too. It logs
// what is wrong, and what is not any more, and calls each with the findings. It returns
// a *LogLostError if the log has been missing for ten seconds, or if another log is in
// its place.
func (s *Streams) WatchStreams(ctx context.Context, conf *Conf, each func([]Finding), names ...string) error {
	whole := len(names) == 0
	if whole {
		names = conf.names.Streams()
	}
	var missing, unknown, asked time.Time // since when the log is missing, or nothing is known, if so; of the latest checkAround
	var around []Finding
	told, leaderless := map[Finding]time.Time{}, map[Finding]time.Time{}
	for s.Identify(ctx); natsio.Sleep(ctx, watchEvery) == nil; s.Identify(ctx) {
		found, err := s.checkStreams(ctx, conf, names)
		if whole && err == nil && time.Since(asked) >= aroundEvery {
			asked = time.Now()
			if more, err := s.checkAround(ctx, found); err == nil {
				around = more
			} else if ctx.Err() == nil {
				s.conn.Log.Debug("streams_not_checked", "error", err.Error())
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				s.conn.Log.Debug("streams_not_checked", "error", err.Error())
			}
			if missing = (time.Time{}); unknown.IsZero() {
				unknown = time.Now()
			}
			if time.Since(unknown) >= lostAfter && s.conn.IsConnected() { // else the connection is what is wrong
				all := []Finding{{Trouble: notChecked(err)}}
				s.tell(told, all)
				each(all)
			}
			continue
		}
		unknown = time.Time{}
		all := slices.Concat(lasting(found, leaderless), around)
		s.tell(told, all)
		each(all)
		lost := &LogLostError{Stream: s.names.LogStream(), ID: s.conn.LogID()}
		at := slices.IndexFunc(found, func(f Finding) bool {
			return f.Stream == lost.Stream && (f.Missing || f.Setting == identitySetting)
		})
		switch {
		case at < 0:
			missing = time.Time{}
		case found[at].Setting == identitySetting:
			lost.Now = found[at].Server
			return lost
		case missing.IsZero():
			missing = time.Now()
		case time.Since(missing) >= lostAfter:
			return lost
		}
	}
	return nil
}

// notChecked says that the streams can't be checked. A server that does not answer has
// different words for it from one check to the next.
func notChecked(err error) string {
	text := "the streams can't be checked: "
	if natsio.IsTransient(err) {
		return text + "JetStream does not answer: see that the servers run, and have it enabled"
	}
	return text + err.Error()
}

// lasting returns the findings without streams that have had no leader for less than
// lostAfter. since has when each was first found without one.
func lasting(found []Finding, since map[Finding]time.Time) []Finding {
	maps.DeleteFunc(since, func(f Finding, _ time.Time) bool { return !slices.Contains(found, f) })
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool {
		if !strings.HasSuffix(f.Trouble, noLeader) {
			return false
		}
		if since[f].IsZero() {
			since[f] = time.Now()
		}
		return time.Since(since[f]) < lostAfter
	})
}

// tell logs findings at once and each minute, and those that are over. told has when
// each was logged.
func (s *Streams) tell(told map[Finding]time.Time, found []Finding) {
	for _, f := range found {
		if time.Since(told[f]) >= toldEvery {
			told[f] = time.Now()
			s.conn.Log.Error("stream_endangered", "stream", f.Stream, "setting", f.Setting, "error", f.String())
		}
	}
	for f := range told {
		if !slices.Contains(found, f) {
			delete(told, f)
			s.conn.Log.Info("stream_right_again", "stream", f.Stream, "setting", f.Setting, "was", f.String())
		}
	}
}

// Remake creates a missing stream again if what it holds can be derived: notices from
// now on, timers from the log (WakesLost), and the bucket of snapshots, a cache; and the
// stream of dead letters, which takes new ones only if it exists. It
// returns false for every other stream, since an empty one would hide the loss.
func (s *Streams) Remake(ctx context.Context, conf *Conf, name string) (made bool, err error) {
	note := "followers of sessions miss the notices that it held"
	switch name {
	case s.names.SnapshotsStream():
		note = "sessions load from the log, and quarantines are lost"
	case s.names.TimersStream():
		note = "open wakes are asked again from the log"
	case s.names.NoticesStream():
	case s.names.DeadStream():
		note = "the dead letters that it held are lost"
	default:
		return false, nil
	}
	if err = s.ensureStream(ctx, conf.streams[name], int(s.replicas.Load())); err != nil {
		return false, err
	}
	if name == s.names.TimersStream() {
		if err = s.ensureDue(ctx, conf); err == nil {
			err = s.mark(ctx, name, subjects.MetadataLog, s.conn.LogID())
		}
	}
	if err == nil {
		s.conn.Log.Warn("stream_made_again", "stream", name, "note", note)
	}
	return err == nil, err
}

// WakesLost reports whether the stream of timers was created since its wakes were last
// asked.
func (s *Streams) WakesLost(ctx context.Context) (bool, error) {
	timers, err := s.info(ctx, s.names.TimersStream())
	return err == nil && timers != nil && timers.Config.Metadata[subjects.MetadataWakes] != "", err
}

// WakesRestored records that all open wakes of the log are asked.
func (s *Streams) WakesRestored(ctx context.Context) error {
	return s.mark(ctx, s.names.TimersStream(), subjects.MetadataWakes, "")
}
