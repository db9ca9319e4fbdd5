package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/transcript"
)

const (
	lookSoon     = 500 * time.Millisecond // interval of looks at the session of a followed run
	lookEach     = 2 * time.Second        // interval of looks at the sessions of a tail
	lookRarely   = 6 * time.Second        // interval between views of a session of which nothing is heard
	lookSlower   = 3                      // by which the interval grows with each of these
	watchedMax   = 16                     // watched sessions; refold bridge doctor covers all
	looksFailed  = 4                      // consecutive failures before they are reported
	looksSilent  = 2                      // the same without any answer: a new session-actor may still be starting
	slowToolFrom = time.Second            // a call that takes longer is reported

	silentModelFrom = 10 * time.Second // a turn whose model sends nothing for longer is reported
)

// watcher prints why the followed sessions wait: unserved targets, failing
// providers, lost bridges, long calls. Such a run publishes nothing itself. Each
// problem is reported once, and its end once: a look compares the problems in a view
// with those that were reported.
type watcher struct {
	out   io.Writer
	view  func(ctx context.Context, sid string) (session.View, error)
	each  time.Duration
	now   func() time.Time
	clock func() time.Time // the server's, which troubles go by; it may ask the server
	hears bool             // the caller receives the models' text and calls speaks

	mu       sync.Mutex
	sessions map[string]*watched
	silent   bool // it was reported that no session-actor answers
	failed   int  // consecutive failed looks
}

// watched is a session that is followed.
type watched struct {
	told []problem        // those that were reported and have not ended
	over map[string]int64 // targets whose trouble with that beginning has ended
	open []call           // what bridges carry out

	near bool // limits that were near at the first look were reported; notices tell of later ones

	view *session.View // the last one; nil: none
	next time.Time     // when it is requested again
	wait time.Duration // between the last one and the next
}

// problem is a reason why a session waits, or takes long.
type problem struct {
	of    string        // what it is about: a target, a call
	is    string        // if it changes, the problem is reported again
	begin string        // the line that reports it
	end   func() string // returns the line that reports its end; nil: none does
}

// call is an open call, or a turn of the model.
type call struct {
	effect string
	name   string // of the tool, or of the model's target
	isTurn bool
	seen   time.Time // first seen, or the last time its model sent text
}

func newWatcher(out io.Writer, view func(context.Context, string) (session.View, error), clock func() time.Time, each time.Duration) *watcher {
	return &watcher{out: out, view: view, each: each, now: time.Now, clock: clock, sessions: make(map[string]*watched)}
}

// add follows another session, up to watchedMax.
func (w *watcher) add(sid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.sessions[sid]; !known && len(w.sessions) < watchedMax {
		w.sessions[sid] = &watched{over: make(map[string]int64)}
	}
}

// note follows sessions while they have a run, by their notices.
func (w *watcher) note(n client.Notice) {
	if n.Type == session.NoticeRunFinished {
		w.mu.Lock()
		delete(w.sessions, n.Session)
		w.mu.Unlock()
		return
	}
	w.add(n.Session)
}

// heard notes that something happened in a session: its view is requested at the
// next look.
func (w *watcher) heard(sid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, followed := w.sessions[sid]; followed {
		s.next, s.wait = time.Time{}, 0
	}
}

// begin looks at intervals until ctx ends or stop is called; stop waits.
func (w *watcher) begin(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(w.each)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.look(ctx)
			}
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// look requests the views that are due, and prints what is new. Times pass also in
// an older view.
func (w *watcher) look(ctx context.Context) {
	w.mu.Lock()
	all := slices.Sorted(maps.Keys(w.sessions))
	w.mu.Unlock()
	for _, sid := range all {
		if last := w.current(sid); last != nil {
			w.tell(sid, last)
			continue
		}
		reading, cancel := context.WithTimeout(ctx, lookEach)
		view, err := w.view(reading, sid)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if !w.answered(sid, &view, err) {
			return
		}
		w.tell(sid, &view)
	}
}

// current returns a session's last view, nil if it is due again.
func (w *watcher) current(sid string) *session.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, followed := w.sessions[sid]; followed && w.now().Before(s.next) {
		return s.view
	}
	return nil
}

// answered keeps a view. It prints when views are missing, and when they are back.
func (w *watcher) answered(sid string, view *session.View, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, natsio.ErrNoView):
		if w.failed++; w.failed >= looksSilent && !w.silent {
			w.silent = true
			fmt.Fprintln(w.out, "no session-actor answers: sessions wait until one runs; start one: refold actor serve")
		}
		return false
	case err != nil:
		if w.failed++; w.failed == looksFailed {
			fmt.Fprintf(w.out, "what %s waits for is not known: %v\n", sid, err)
		}
		return false
	case w.silent:
		fmt.Fprintln(w.out, "a session-actor answers again")
	}
	w.silent, w.failed = false, 0
	if s, followed := w.sessions[sid]; followed {
		s.wait = min(lookSlower*max(s.wait, w.each), max(w.each, lookRarely))
		s.view, s.next = view, w.now().Add(s.wait-w.each/2) // ticks are not exact
	}
	return true
}

// tell prints a session's new problems, and the ends of old ones.
func (w *watcher) tell(sid string, v *session.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, followed := w.sessions[sid]
	if !followed {
		return
	}
	s.open = w.openIn(v, s.open)
	before := s.told
	s.told = w.problems(sid, s, v)
	for _, p := range s.told {
		if at := problemOf(before, p.of); at < 0 || before[at].is != p.is {
			fmt.Fprintln(w.out, p.begin)
		}
	}
	for _, p := range before {
		if p.end != nil && problemOf(s.told, p.of) < 0 && !slices.Contains(v.Unserved, p.of) {
			fmt.Fprintln(w.out, p.end())
		}
	}
	if shown, ok := w.out.(*display); ok {
		shown.show(w.status(s, v, shown.isWithin()))
	}
}

func problemOf(all []problem, of string) int {
	return slices.IndexFunc(all, func(p problem) bool { return p.of == of })
}

// problems returns what a session waits for, according to a view. A terminal shows
// how long calls and turns take in its status line; else each is a problem, once.
func (w *watcher) problems(sid string, s *watched, v *session.View) (all []problem) {
	if q := v.Quarantined; q != nil {
		all = append(all, problem{
			of: "quarantine", is: fmt.Sprint(q.Seq),
			begin: fmt.Sprintf("quarantined: %s stopped at event %d: %s; see `refold release %s`", sid, q.Seq, q.Reason, sid),
		})
	}
	if !s.near {
		s.near = true
		for i := range v.Warnings {
			all = append(all, problem{of: v.Warnings[i].Limit, begin: transcript.NearLimit(sid, &v.Warnings[i])})
		}
	}
	for _, target := range v.Unserved {
		all = append(all, problem{
			of:    "unserved " + target, // beside the troubles of its bridges
			begin: fmt.Sprintf("unserved: %s waits for %s (%s): %s", sid, target, strings.Join(waitingFor(v, target), " "), howToServeTarget(target)),
			end:   func() string { return fmt.Sprintf("no longer unserved: %s of %s", target, sid) },
		})
	}
	for _, t := range s.troubles(v) {
		all = append(all, problem{
			of: t.Target, is: t.Code, begin: troubleLine(sid+" waits for", &t, w.clock()),
			end: func() string { return troubleOver(sid, &t, w.clock()) },
		})
	}
	if d, ok := w.out.(*display); ok && d.rewrites {
		return all
	}
	for _, c := range s.open {
		took := w.now().Sub(c.seen)
		line, due := fmt.Sprintf("running: %s (%s), for more than a second", c.name, c.effect), took >= slowToolFrom
		if c.isTurn {
			line = fmt.Sprintf("waiting: %s waits for %s (%s): no text for %s", sid, c.name, c.effect, seconds(took))
			due = took >= silentModelFrom && w.hears && !isHeld(v, c.name)
		}
		if due || problemOf(s.told, c.effect) >= 0 {
			all = append(all, problem{of: c.effect, begin: line})
		}
	}
	return all
}

// troubles returns the troubles of bridges that have not ended.
func (s *watched) troubles(v *session.View) []session.Trouble {
	return slices.DeleteFunc(slices.Clone(v.Troubles), func(t session.Trouble) bool {
		since, over := s.over[t.Target]
		return over && since == t.Since || slices.Contains(v.Unserved, t.Target)
	})
}

// speaks notes that a session's model has begun to answer. That ends reports
// about its silence, whatever an older view shows.
func (w *watcher) speaks(sid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, followed := w.sessions[sid]
	if !followed || s.view == nil {
		return
	}
	for i := range s.open {
		if s.open[i].isTurn {
			s.open[i].seen = w.now()
		}
	}
	if len(s.view.Unserved) > 0 {
		s.next = time.Time{}
	}
	for _, t := range s.troubles(s.view) {
		if at := problemOf(s.told, t.Target); at >= 0 && strings.HasPrefix(t.Target, string(session.ClassLLM)+"/") {
			s.over[t.Target] = t.Since
			s.told = slices.Delete(s.told, at, at+1)
			fmt.Fprintln(w.out, troubleOver(sid, &t, w.clock()))
		}
	}
}

// isHeld reports whether a target is unserved, or its bridge has a trouble.
func isHeld(v *session.View, target string) bool {
	return slices.Contains(v.Unserved, target) ||
		slices.ContainsFunc(v.Troubles, func(t session.Trouble) bool { return t.Target == target })
}

// openIn returns the calls that a bridge carries out, and the open turn, with the
// times of those that were open before.
func (w *watcher) openIn(v *session.View, before []call) (open []call) {
	held := map[string]bool{}
	for _, e := range v.Open {
		of := target(e.Class, e.Target)
		held[e.Effect] = isHeld(v, of)
		if e.Class == session.ClassLLM {
			open = append(open, call{effect: e.Effect, name: of, isTurn: true})
		}
	}
	if v.Batch != nil {
		for _, c := range v.Batch.Calls {
			if c.Status == session.CallOpen && c.Kind == "" && !held[c.Effect] {
				open = append(open, call{effect: c.Effect, name: c.ToolName})
			}
		}
	}
	for i := range open {
		open[i].seen = w.now()
		if at := slices.IndexFunc(before, func(c call) bool { return c.effect == open[i].effect }); at >= 0 {
			open[i].seen = before[at].seen
		}
	}
	return open
}

// status returns the text of the status line: how long open effects have taken,
// and when failed ones are tried again. It does not break a pausing model's text.
func (w *watcher) status(s *watched, v *session.View, within bool) string {
	var parts []string
	for _, c := range s.open {
		if took := w.now().Sub(c.seen); took >= slowToolFrom && (!c.isTurn || !within) {
			parts = append(parts, c.name+" "+seconds(took))
		}
	}
	for _, t := range s.troubles(v) {
		if wait := time.UnixMilli(t.Next).Sub(w.clock()); wait > 0 && !within {
			parts = append(parts, fmt.Sprintf("%s: %s, next try in %s", t.Target, t.Code, seconds(wait)))
		}
	}
	return strings.Join(parts, ", ")
}

// seconds formats a duration in whole seconds, at least one.
func seconds(d time.Duration) string {
	return max(time.Second, d.Round(time.Second)).String()
}

// clock formats the time of day.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04:05Z") }

// waitingFor returns the open effects of a target.
func waitingFor(v *session.View, of string) (effects []string) {
	for _, e := range v.Open {
		if target(e.Class, e.Target) == of {
			effects = append(effects, e.Effect)
		}
	}
	return effects
}

// howToServeTarget is howToServe for a target in the form of heartbeats.
func howToServeTarget(target string) string {
	class, name, _ := strings.Cut(target, "/")
	return howToServe(session.Class(class), name)
}
