package sim

// Rules about memory, and about the end: states, Views and notices are compared
// with a fresh fold of the log.

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
)

// crowdedMost is how long more sessions than a lane keeps may be in memory without
// waiting events: until the lane's next tick.
const crowdedMost = 3 * time.Second

// askedMost is how many names of published effects a session may remember.
const askedMost = 256 + session.CallsMax

// bounds checks what processes have in memory.
func (r *referee) bounds() {
	for _, h := range r.j.play.hosts {
		for _, run := range h.runs {
			if run != nil && !run.over && !h.dead && run.running.Err() == nil {
				r.boundsOf(run)
			}
		}
	}
	for _, b := range r.j.play.bridges {
		if n, most := b.counts.InFlight.Load(), slotsMax*len(r.j.targets); n > int64(most) {
			r.j.breaks("%s carries out %d effects, %d at most", b.name, n, most)
		}
	}
}

// boundsOf checks what a host has in memory for a lane.
func (r *referee) boundsOf(run *laneRun) {
	m := run.machine.Status()
	kept := 0
	for _, one := range m.Sessions {
		if !one.Stopped {
			kept++
		}
		if one.Asked > askedMost {
			r.j.breaks("%s remembers %d published names of %s", run.name, one.Asked, one.Session)
		}
		if one.Proven && !one.Stopped {
			r.inMemory(run.name, one.Session, one.Seq, one.Hash)
		}
	}
	switch {
	case m.Waits > 0 || kept <= m.Most:
		run.crowded = time.Time{}
	case run.crowded.IsZero():
		run.crowded = time.Now()
	case time.Since(run.crowded) > crowdedMost && run.ticked.Sub(run.crowded) > crowdedMost:
		r.j.breaks("%s keeps %d sessions of lane %d, %d at most", run.name, kept, run.end.number, m.Most)
	}
	if m.Loading > m.Waits {
		r.j.breaks("%s loads %d sessions for %d waiting events", run.name, m.Loading, m.Waits)
	}
}

// inMemory compares a state in memory, if it is the latest, with the log's fold.
func (r *referee) inMemory(by, sid string, seq uint64, hash func() string) {
	s := r.of(sid)
	if s.lost || len(s.events) == 0 || seq != s.state.Seq {
		return
	}
	key := by + " " + sid
	if r.compared[key] == seq {
		return
	}
	r.compared[key] = seq
	if s.hashed != seq {
		s.hashed, s.hash = seq, s.state.Hash().String()
	}
	if hash() != s.hash {
		r.j.breaks("%s has another state of %s at %d than the fold of its events", by, sid, seq)
	}
}

// endMemory checks memory when nothing is left to do.
func (r *referee) endMemory() {
	for _, h := range r.j.play.hosts {
		for _, run := range h.runs {
			if run == nil || run.over || h.dead || run.running.Err() != nil {
				continue
			}
			if m := run.machine.Status(); m.Waits > 0 || m.Loaded > 0 || m.Putting > 0 || len(run.queue) > 0 {
				r.j.breaks("%s has %d events that wait to be stored, %d snapshots and %d deliveries left", h.name, m.Waits, m.Putting, len(run.queue))
			}
		}
	}
	for _, b := range r.j.play.bridges {
		held := 0
		for _, of := range b.held {
			held += len(of)
		}
		if n := b.counts.InFlight.Load(); n > 0 || held > 0 {
			r.j.breaks("%s carries out %d effects in the end, and holds %d deliveries", b.name, n, held)
		}
	}
}

// fresh folds a session's events from the log.
func (r *referee) fresh(sid string) *session.State {
	state := session.New(r.install, sid)
	filter, err := r.j.names.Session(sid)
	if err != nil {
		panic(err)
	}
	for _, m := range r.j.log.All(filter, 1, 0) {
		_, _ = state.Evolve(r.j.event(m))
	}
	return state
}

// endView compares a host's View of a session with a fresh fold of the log.
func (r *referee) endView(sid string, s *judged) {
	fresh := r.fresh(sid)
	if !bytes.Equal(fresh.Bytes(), s.state.Bytes()) {
		r.j.breaks("%s: the log folds to another state than its events one by one", sid)
	}
	if err := fresh.Check(); err != nil {
		r.j.breaks("%s: %v", sid, err)
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fresh.View()); err != nil {
		panic(err)
	}
	for _, h := range r.j.play.hosts {
		if got, err := r.viewBy(h, sid); err != nil || string(got)+"\n" != want.String() {
			r.j.breaks("%s: the View of %s is\n%s (%v)\nand the fold of its events\n%s", sid, h.name, got, err, want.String())
		}
	}
}

// viewBy requests a View from a host, while nothing else happens.
func (r *referee) viewBy(h *host, sid string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	type answer struct {
		view []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		view, err := h.view(ctx, sid)
		answers <- answer{view, err}
	}()
	for {
		waits := r.j.rest()
		select {
		case a := <-answers:
			return a.view, a.err
		default:
		}
		if len(waits) == 0 {
			cancel()
		}
		for _, w := range waits {
			r.j.let(w)
		}
	}
}

// endNotices checks a session's notices for gaps, those of deleted streams included.
func (r *referee) endNotices(sid string, s *judged) {
	last := uint64(0)
	var latest []byte
	var newest uint64 // sequence of an event
	for _, m := range slices.Concat(r.j.goneNotices, r.j.out.All(">", 1, 0)) {
		if m.Subject != sid {
			continue
		}
		n, err := strconv.ParseUint(m.Header, 10, 64)
		if err != nil {
			r.j.breaks("%s: a notice has the number %q", sid, m.Header)
			return
		}
		line := m.Data[bytes.LastIndexByte(m.Data, '\n')+1:]
		var of struct {
			Seq uint64 `json:"seq"`
		}
		_ = json.Unmarshal(line, &of) // a line that is none has no sequence
		isLate := of.Seq < newest     // stored again, by an owner that is late or after the stream was lost
		if newest = max(newest, of.Seq); !isLate && !bytes.Contains(m.Data, []byte(session.NoticeSessionQuarantined)) && !bytes.Contains(m.Data, []byte(session.NoticeSessionReleased)) {
			latest = line
		}
		if n == 0 {
			continue
		}
		noticesIn(m.Data, n, func(n uint64, line []byte) {
			switch {
			case n == 0 || n > last+1 || n > uint64(len(s.notices)):
				r.j.breaks("%s: notice %d comes after %d", sid, n, last)
			case !bytes.Equal(line, s.notices[n-1]):
				r.j.breaks("%s: notice %d differs from the fold's", sid, n)
			}
			last = max(last, n)
		})
	}
	if last != uint64(s.state.NoticeN) {
		r.j.breaks("%s: %d notices were stored, of %d", sid, last, s.state.NoticeN)
	}
	if !bytes.Equal(latest, s.latest) {
		r.j.breaks("%s: the last stored notice is %s, the fold's is %s", sid, latest, s.latest)
	}
}

// noticesIn calls each with the notices of a message, whose last one has the number n.
func noticesIn(data []byte, n uint64, each func(n uint64, line []byte)) {
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		each(n-uint64(len(lines)-1-i), line)
	}
}
