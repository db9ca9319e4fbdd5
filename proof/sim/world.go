package sim

// A host's view of the server: engine.World. Every call waits for the simulation.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/proof/jetmodel"
)

// world is a host's connection.
type world struct {
	*proc
	sim *sim
}

var _ engine.World = world{}

// InstallBefore answers at once: there is one record.
func (w world) InstallBefore(_ context.Context, seq uint64) (session.Event, bool, error) {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	return w.sim.install, true, nil
}

func (w world) ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error] {
	return w.read(ctx, sid, fmt.Sprintf("read %s from %d to %d", sid, from, to), func() []session.Event { return w.sim.history(sid, from, to, leader) })
}

func (w world) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return w.read(ctx, sid, fmt.Sprintf("read %d of %s from %d to %d", n, sid, from, to), func() []session.Event {
		all := w.sim.history(sid, from, to, false)
		return all[:min(uint64(len(all)), n)]
	})
}

func (w world) read(ctx context.Context, sid, text string, events func() []session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var all []session.Event
		err := w.call(ctx, text, func() error {
			if err := w.sim.fails(sid, failsLoad); err != nil {
				return err
			}
			all = events()
			return nil
		})
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

func (w world) FirstSeqs(ctx context.Context, sids []string) ([]uint64, error) {
	seqs := make([]uint64, len(sids))
	err := w.call(ctx, "first of "+strings.Join(sids, " "), func() error {
		if err := w.sim.fails("", failsLoad); err != nil {
			return err
		}
		for i, sid := range sids {
			if all := w.sim.history(sid, 1, w.sim.log.LastSeq(), false); len(all) > 0 {
				seqs[i] = all[0].Seq
			}
		}
		return nil
	})
	return seqs, err
}

func (w world) CountEvents(ctx context.Context, sid string, have uint64) (n uint64, err error) {
	err = w.call(ctx, "count "+sid, func() error {
		if last := w.sim.log.LastSeq(); last >= have {
			n = uint64(len(w.sim.history(sid, 1, last, true)))
		}
		return nil
	})
	return n, err
}

func (w world) LastSeq(ctx context.Context) (seq uint64, err error) {
	err = w.call(ctx, "last sequence", func() error {
		if err := w.sim.fails("", failsLoad); err != nil {
			return err
		}
		seq = w.sim.log.LastSeq()
		return nil
	})
	return seq, err
}

func (w world) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (seq uint64, err error) {
	err = w.call(ctx, fmt.Sprintf("publish %s %s", sid, textOf(payload)), func() error {
		w.sim.judge.wakes(w.proc, sid, payload)
		seq, err = w.sim.append(door, sid, id, payload)
		return err
	})
	return seq, err
}

func (w world) PublishAfter(ctx context.Context, door session.Door, sid string, payload []byte, after uint64) (seq uint64, err error) {
	err = w.call(ctx, fmt.Sprintf("publish %s %s", sid, textOf(payload)), func() error {
		if len(w.sim.history(sid, after+1, w.sim.log.LastSeq(), true)) > 0 {
			return journal.ErrOvertaken
		}
		seq, err = w.sim.append(door, sid, "", payload)
		return err
	})
	return seq, err
}

// NewestOutputs fails if a stream does not answer.
func (w world) NewestOutputs(ctx context.Context) (newest [3]journal.Newest, err error) {
	err = w.call(ctx, "all streams", func() error {
		if len(w.sim.down) > 0 {
			return errRefused
		}
		newest[2] = w.sim.newestTimer
		for i, stream := range []*jetmodel.Stream{w.sim.fx, w.sim.out} {
			if m, err := stream.At(stream.LastSeq(), 0); err == nil {
				newest[i] = journal.Newest{Seq: m.Seq, Session: w.sim.sessionOf(m.Subject)}
			}
		}
		return nil
	})
	return newest, err
}

// Probe stores nothing, and fails with the streams.
func (w world) Probe(ctx context.Context) (errs [4]error) {
	err := w.call(ctx, "probe", func() error {
		for i, stream := range []string{failsEffects, failsNotices, failsWakes, failsSnapshots} {
			if errs[i] = w.sim.fails("", stream); w.sim.denies() {
				errs[i] = errRefused
			}
		}
		return nil
	})
	if err != nil {
		return [4]error{err, err, err, err}
	}
	return errs
}

// sessionOf returns the session of an effect, a claim or a notice.
func (j *jetServer) sessionOf(subject string) string {
	if name, err := j.names.ParseEffect(subject); err == nil {
		return name.Session
	}
	if name, err := j.names.ParseClaim(subject); err == nil {
		return name.Session
	}
	return subject // of notices
}

// BeginStore is Store, and waits for it: all work has goroutines here.
func (w world) BeginStore(ctx context.Context, outputs []journal.Output, then func(errs []error)) {
	then(w.Store(ctx, outputs))
}

// Store stores outputs as Bus.Store does, in the steps of its committers: effects
// and withdrawals in groups while that succeeds, then one by one; then notices.
// Wakes come before or after them: no output waits for a wake. Outputs that are
// not known to be stored are stored again, under the same names.
func (w world) Store(ctx context.Context, outputs []journal.Output) []error {
	errs := make([]error, len(outputs))
	var left, wakes, events, notices []int
	for i := range outputs {
		switch errs[i] = errRefused; {
		case outputs[i].Notice != nil:
			notices = append(notices, i)
		case outputs[i].Event != nil:
			events = append(events, i)
		case outputs[i].Effect != nil && outputs[i].Effect.Class == session.ClassWake:
			wakes = append(wakes, i)
		default:
			left = append(left, i)
		}
	}
	w.sim.meet() // the caller may have slept
	first := len(wakes) > 0 && w.sim.draw(2) == 1
	if first {
		w.schedules(ctx, outputs, wakes, errs)
	}
	if !w.asks(ctx, outputs, left, errs) {
		return errs
	}
	w.notices(ctx, outputs, notices, errs)
	w.events(ctx, outputs, events, errs)
	if !first {
		w.schedules(ctx, outputs, wakes, errs)
	}
	return errs
}

// asks stores effects and withdrawals. False: it gave up.
func (w world) asks(ctx context.Context, outputs []journal.Output, left []int, errs []error) bool {
	grouped := w.sim.grouped()
	for tries := 0; len(left) > 0; tries++ {
		var still []int
		err := w.call(ctx, "store"+textsOf(outputs, left), func() error {
			left = slices.DeleteFunc(left, func(i int) bool {
				errs[i] = w.sim.fails(outputs[i].Session, failsEffects)
				return errs[i] != nil
			})
			if still = nil; len(left) == 0 {
				return nil
			}
			if len(left) > 1 && grouped && tries < 3 {
				still = w.sim.group(outputs, left, errs)
				return nil
			}
			some := left[:w.sim.part(len(left))]
			still = slices.Clone(left[len(some):])
			for _, i := range some {
				if errs[i] = nil; !w.sim.denies() {
					errs[i] = w.sim.single(&outputs[i])
				} else {
					errs[i] = errRefused
				}
				if errors.Is(errs[i], errNextClaim) {
					still = append(still, i)
				}
			}
			return nil
		})
		switch {
		case err == nil:
			left = still
		case ctx.Err() != nil || w.dead || tries > 3 && w.sim.denies():
			for i := range errs {
				errs[i] = err
			}
			return false
		}
	}
	return true
}

// notices stores notices in order, except those of sessions with a failed output.
func (w world) notices(ctx context.Context, outputs []journal.Output, left []int, errs []error) {
	failed := map[string]bool{}
	for i, o := range outputs {
		if o.Notice == nil && o.Event == nil && (o.Effect == nil || o.Effect.Class != session.ClassWake) && errs[i] != nil {
			failed[o.Session] = true
		}
	}
	w.each(ctx, outputs, left, errs, func(o *journal.Output) error {
		err := w.sim.fails(o.Session, failsNotices)
		if failed[o.Session] || w.sim.denies() {
			err = errRefused
		}
		if err != nil {
			failed[o.Session] = true
			return err
		}
		w.sim.notice(o)
		return nil
	})
}

// events stores events for other sessions, in order, and sometimes twice: an answer was
// lost, and the server has forgotten the id.
func (w world) events(ctx context.Context, outputs []journal.Output, left []int, errs []error) {
	w.each(ctx, outputs, left, errs, func(o *journal.Output) error {
		if w.sim.denies() {
			return errRefused
		}
		if !w.sim.calm && w.sim.faults > 0 && w.sim.draw(20) == 19 {
			if _, err := w.sim.append(session.DoorChild, o.Event.Session, "", o.Event.Payload); err != nil {
				return err
			}
			w.sim.did("event for another session stored twice")
		}
		_, err := w.sim.append(session.DoorChild, o.Event.Session, o.ID, o.Event.Payload)
		return err
	})
}

// schedules stores wakes, in any order.
func (w world) schedules(ctx context.Context, outputs []journal.Output, left []int, errs []error) {
	w.each(ctx, outputs, left, errs, func(o *journal.Output) error {
		if err := w.sim.fails(o.Session, failsWakes); err != nil {
			return err
		}
		if w.sim.denies() {
			return errRefused
		}
		w.sim.schedule(o)
		return nil
	})
}

// each stores some outputs, in steps between which a process may die.
func (w world) each(ctx context.Context, outputs []journal.Output, left []int, errs []error, store func(*journal.Output) error) {
	for len(left) > 0 {
		var still []int
		err := w.call(ctx, "store"+textsOf(outputs, left), func() error {
			some := left[:w.sim.part(len(left))]
			still = left[len(some):]
			for _, i := range some {
				errs[i] = store(&outputs[i])
			}
			return nil
		})
		switch {
		case err == nil:
			left = still
		case ctx.Err() != nil || w.dead:
			for _, i := range left {
				errs[i] = err
			}
			return
		}
	}
}

// denies reports whether something is not stored, now and then.
func (s *sim) denies() bool { return !s.calm && s.faults > 0 && s.draw(60) == 59 }

// grouped reports whether outputs are stored in groups, as with sync_interval
// always.
func (s *sim) grouped() bool { return s.mood.grouped }

// part returns how many of n are stored before a process may die.
func (s *sim) part(n int) int {
	if s.calm || s.faults == 0 || s.draw(4) < 3 {
		return n
	}
	some := 1 + s.draw(n)
	if some < n {
		s.say("  only %d", some)
	}
	return some
}

func textsOf(outputs []journal.Output, some []int) (text string) {
	for _, i := range some {
		switch o := &outputs[i]; {
		case o.Effect != nil:
			text += " " + o.Session + "." + o.Effect.Name
		case o.Withdraw != nil:
			text += " withdraw " + o.Session + "." + o.Withdraw.Name
		case o.Event != nil:
			text += " event for " + o.Event.Session
		default:
			text += " notice " + o.Session + " " + strconv.FormatUint(o.N, 10)
		}
	}
	return text
}

func (w world) PublishProgress(string, []byte) error { return nil } // no client follows a run here

func (w world) PublishCancel(ctx context.Context, sid string, payload []byte) error {
	return w.call(ctx, "cancel "+sid+" "+string(payload), func() error {
		w.sim.judge.cancel(sid, payload)
		for _, b := range w.sim.bridges {
			if b.dead || b.cut() || !w.sim.calm && w.sim.draw(8) == 7 {
				continue
			}
			b.worker.Cancelled(sid, payload)
		}
		return nil
	})
}
