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
// problem is reported once, and its end once.
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

// watched is what was reported about a session.
type watched struct {
	unserved    []string
	quarantined uint64 // the event of the quarantine that is printed; 0: none
	troubles    []session.Trouble
	over        map[string]int64 // targets whose trouble with that beginning has ended
	calls       map[string]*call // open calls, by effect
	model       *call            // the open turn; nil: none

	view *session.View // the last one; nil: none
	next time.Time     // when it is requested again
	wait time.Duration // between the last one and the next
}

// call is an open effect.
type call struct {
	effect   string
	name     string
	seen     time.Time // first seen, or the last time its model sent text
	reported bool
}

func newWatcher(out io.Writer, view func(context.Context, string) (session.View, error), clock func() time.Time, each time.Duration) *watcher {
	return &watcher{out: out, view: view, each: each, now: time.Now, clock: clock, sessions: make(map[string]*watched)}
}

// add follows another session, up to watchedMax.
func (w *watcher) add(sid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.sessions[sid]; !known && len(w.sessions) < watchedMax {
		w.sessions[sid] = &watched{over: make(map[string]int64), calls: make(map[string]*call)}
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
	if v.Quarantined != nil && s.quarantined != v.Quarantined.Seq {
		s.quarantined = v.Quarantined.Seq
		fmt.Fprintf(w.out, "quarantined: %s stopped at event %d: %s; see `refold release %s`\n", sid, v.Quarantined.Seq, v.Quarantined.Reason, sid)
	}
	for _, target := range v.Unserved {
		if !slices.Contains(s.unserved, target) {
			fmt.Fprintf(w.out, "unserved: %s waits for %s (%s): %s\n", sid, target, strings.Join(waitingFor(v, target), " "), howToServeTarget(target))
		}
	}
	for _, target := range s.unserved {
		if !slices.Contains(v.Unserved, target) {
			fmt.Fprintf(w.out, "no longer unserved: %s of %s\n", target, sid)
		}
	}
	s.unserved = v.Unserved
	w.tellTroubles(sid, s, v)
	w.tellCalls(sid, s, v)
}

// tellTroubles prints each trouble once, and its end once.
func (w *watcher) tellTroubles(sid string, s *watched, v *session.View) {
	troubles := slices.DeleteFunc(slices.Clone(v.Troubles), func(t session.Trouble) bool {
		since, over := s.over[t.Target]
		return over && since == t.Since || slices.Contains(v.Unserved, t.Target)
	})
	for _, t := range troubles {
		if i := troubleOf(s.troubles, t.Target); i < 0 || s.troubles[i].Code != t.Code {
			fmt.Fprintln(w.out, troubleLine(sid+" waits for", &t, w.clock()))
		}
	}
	before := s.troubles
	s.troubles = troubles
	for _, t := range before {
		if troubleOf(troubles, t.Target) < 0 && !slices.Contains(v.Unserved, t.Target) {
			fmt.Fprintln(w.out, troubleOver(sid, &t, w.clock()))
		}
	}
}

func troubleOf(all []session.Trouble, target string) int {
	return slices.IndexFunc(all, func(t session.Trouble) bool { return t.Target == target })
}

// speaks notes that a session's model has begun to answer. That ends reports
// about its silence, whatever an older view shows.
func (w *watcher) speaks(sid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, followed := w.sessions[sid]
	if !followed {
		return
	}
	if s.model != nil {
		s.model.seen = w.now()
	}
	if len(s.unserved) > 0 {
		s.next = time.Time{}
	}
	s.troubles = slices.DeleteFunc(s.troubles, func(t session.Trouble) bool {
		if !strings.HasPrefix(t.Target, string(session.ClassLLM)+"/") {
			return false
		}
		s.over[t.Target] = t.Since
		fmt.Fprintln(w.out, troubleOver(sid, &t, w.clock()))
		return true
	})
}

// tellCalls measures how long calls take, and shows the long ones: in the status
// line of a terminal, else once as a message.
func (w *watcher) tellCalls(sid string, s *watched, v *session.View) {
	open := openCalls(v)
	maps.DeleteFunc(s.calls, func(effect string, _ *call) bool { _, still := open[effect]; return !still })
	for _, effect := range slices.Sorted(maps.Keys(open)) {
		if s.calls[effect] == nil {
			s.calls[effect] = &call{effect: effect, name: open[effect], seen: w.now()}
		}
		c := s.calls[effect]
		if w.isPlain() && !c.reported && w.now().Sub(c.seen) >= slowToolFrom {
			c.reported = true
			fmt.Fprintf(w.out, "running: %s (%s), for more than a second\n", c.name, effect)
		}
	}
	switch effect, model := modelAt(v); {
	case effect == "":
		s.model = nil
	case s.model == nil || s.model.effect != effect:
		s.model = &call{effect: effect, name: model, seen: w.now()}
	}
	w.tellModel(sid, s, v)
	if shown, ok := w.out.(*display); ok {
		shown.show(w.status(s, shown.isWithin()))
	}
}

// isPlain reports whether the output shows no status line.
func (w *watcher) isPlain() bool {
	d, ok := w.out.(*display)
	return !ok || !d.rewrites
}

// tellModel reports once a turn whose model sends nothing for long, unless the
// status line shows it or another problem of the model was reported.
func (w *watcher) tellModel(sid string, s *watched, v *session.View) {
	m := s.model
	if m == nil || m.reported || !w.hears || !w.isPlain() || isHeld(v, m.name) {
		return
	}
	if silent := w.now().Sub(m.seen); silent >= silentModelFrom {
		m.reported = true
		fmt.Fprintf(w.out, "waiting: %s waits for %s (%s): no text for %s\n", sid, m.name, m.effect, seconds(silent))
	}
}

// isHeld reports whether a target is unserved, or its bridge has a trouble.
func isHeld(v *session.View, target string) bool {
	return slices.Contains(v.Unserved, target) || troubleOf(v.Troubles, target) >= 0
}

// openCalls returns the tool names of calls that a bridge carries out, by effect.
func openCalls(v *session.View) map[string]string {
	open := map[string]string{}
	if v.Batch == nil {
		return open
	}
	for _, c := range v.Batch.Calls {
		held := slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool {
			return e.Effect == c.Effect && isHeld(v, target(e.Class, e.Target))
		})
		if c.Status == session.CallOpen && c.HostLoop == "" && !held {
			open[c.Effect] = c.ToolName
		}
	}
	return open
}

// modelAt returns the open turn and its target, "" if there is none.
func modelAt(v *session.View) (effect, of string) {
	for _, e := range v.Open {
		if e.Class == session.ClassLLM {
			return e.Effect, target(e.Class, e.Target)
		}
	}
	return "", ""
}

// status returns the text of the status line: how long open effects have taken,
// and when failed ones are tried again. It does not break a pausing model's text.
func (w *watcher) status(s *watched, within bool) string {
	now := w.now()
	var parts []string
	for _, effect := range slices.Sorted(maps.Keys(s.calls)) {
		if c := s.calls[effect]; now.Sub(c.seen) >= slowToolFrom {
			parts = append(parts, fmt.Sprintf("%s %s", c.name, seconds(now.Sub(c.seen))))
		}
	}
	if m := s.model; m != nil && !within && now.Sub(m.seen) >= slowToolFrom {
		parts = append(parts, fmt.Sprintf("%s %s", m.name, seconds(now.Sub(m.seen))))
	}
	for _, t := range s.troubles {
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
