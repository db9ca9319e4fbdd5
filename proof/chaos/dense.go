package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
)

// apartLeast is the least number of messages between two kills of a dense course:
// within that number a session gets from one turn of its model to the next.
const apartLeast = 8

// Dense returns the same kills in fewer trials: each kills at every kth message
// that has a kill, and k trials cover all of them, on one side. A kill that is
// known to leave an outcome unknown stays alone, since the model's reaction to
// that can't be compared. So do courses of several kills, and kills of a bridge
// that reads a space.
func (x *Explorer) Dense(courses []Course) []Course {
	apart := max(apartLeast, (len(x.order)+togetherMax-1)/togetherMax)
	places := make(map[Point]int, len(x.order))
	for i, at := range x.order {
		places[at] = i
	}
	dense := map[string]Course{}
	var alone []Course
	for _, c := range courses {
		before := c[0].At
		before.Side = Before
		place, known := places[before]
		if len(c) != 1 || !known || x.losing(c) || c.readsSpace() {
			alone = append(alone, c)
			continue
		}
		k := fmt.Sprintf("%s %s %04d", c[0].Way(), c[0].At.Side, place%apart)
		s := c[0]
		s.Free = true
		dense[k] = append(dense[k], s)
	}
	var all []Course
	for _, k := range slices.Sorted(maps.Keys(dense)) {
		c := dense[k]
		slices.SortFunc(c, func(a, b Kill) int {
			a.At.Side, b.At.Side = Before, Before
			return places[a.At] - places[b.At]
		})
		for part := range slices.Chunk(c, togetherMax) {
			all = append(all, part.alone())
		}
	}
	return append(all, alone...)
}

// alone returns the course; a single kill in it becomes one that is not free.
func (c Course) alone() Course {
	if len(c) == 1 {
		s := c[0]
		s.Free = false
		return Course{s}
	}
	return c
}

// losing reports that a bridge is killed while it holds a call that may not run
// twice: claimed, and not settled.
func (x *Explorer) losing(c Course) bool {
	kind, effect, _ := strings.Cut(c[0].At.What, ".")
	if c[0].At.Part != Bridge || !c.losesCalls() {
		return false
	}
	if !slices.ContainsFunc(x.want.Calls, func(call Call) bool { return call.Effect == effect && !call.RetrySafe }) {
		return false
	}
	return kind == "claim" && c[0].At.Side == After || kind == "settle" && c[0].At.Side == Before
}

// readsSpace reports that the bridge may be killed while it reads a space. A read
// whose bridge died twice runs alone in its process, and so waits for the turn of
// the demo's workspace, which waits for it (docs/adr/0082).
func (c Course) readsSpace() bool {
	kind, effect, _ := strings.Cut(c[0].At.What, ".")
	stores := c[0].At.Part == Bridge && (kind == "chunk" || kind == "blob")
	return slices.Contains(c[0].parts(), Bridge) && (stores || strings.HasPrefix(effect, "y"))
}

// exact returns the kills of a course of many points that count as not done:
// those that were not, and those after a call's outcome became unknown, because
// nothing is compared from there on.
func (o *outcome) exact(course Course) Course {
	unknown := len(o.order) + 1
	for _, call := range o.end.Calls {
		settled := Point{Part: Bridge, Side: Before, What: "settle." + call.Effect, N: 1}
		if i := slices.Index(o.order, settled); call.Status == string(session.CallUnknown) && i >= 0 {
			unknown = min(unknown, i)
		}
	}
	var done []Kill
	for _, h := range o.hits {
		if h.at <= unknown && !slices.Contains(o.missed, h.kill) {
			done = append(done, h.kill)
		}
	}
	return slices.DeleteFunc(slices.Clone(course), func(s Kill) bool { return slices.Contains(done, s) })
}

// explorerRun follows courses, each in a trial, and reports their verdicts.
type explorerRun struct {
	follow func(context.Context, Course) Verdict
	report func(Verdict)
}

// twice follows a course, and once more if the first trial missed a point.
func (t explorerRun) twice(ctx context.Context, course Course) Verdict {
	v := t.follow(ctx, course)
	if len(v.Missed) == 0 || len(v.Faults) > 0 {
		return v
	}
	return t.follow(ctx, course)
}

// many tries a course of many points. One more trial gets the missed points, and
// what it misses is tried alone. After a failure, others find the cause.
func (t explorerRun) many(ctx context.Context, course Course) {
	left := course
	for range 2 {
		if len(left) < 2 || ctx.Err() != nil {
			break
		}
		v := t.follow(ctx, left)
		if len(v.Faults) > 0 {
			v.Course, v.Missed = left, nil
			t.blame(ctx, v)
			return
		}
		missed := v.Missed
		v.Course = slices.DeleteFunc(slices.Clone(left), func(s Kill) bool { return slices.Contains(missed, s) })
		if v.Missed, left = nil, missed; len(v.Course) > 0 {
			t.report(v)
		}
	}
	t.each(ctx, left)
}

// each tries each point in its own trial, and reports whether one failed.
func (t explorerRun) each(ctx context.Context, course Course) (wrong bool) {
	for _, s := range course {
		if ctx.Err() != nil {
			return wrong
		}
		v := t.twice(ctx, Course{s}.alone())
		wrong = wrong || len(v.Faults) > 0
		t.report(v)
	}
	return wrong
}

// blame finds which points of a course did harm: one alone, if one does, else the
// smallest part of the course, by halves, that was seen to.
func (t explorerRun) blame(ctx context.Context, v Verdict) {
	if t.each(ctx, v.Course) {
		return
	}
	v.Beside = true
	for again := true; again; {
		again = false
		middle := len(v.Course) / 2
		for _, half := range []Course{v.Course[:middle], v.Course[middle:]} {
			if len(half) < 2 || ctx.Err() != nil {
				continue
			}
			if got := t.follow(ctx, half); len(got.Faults) > 0 {
				got.Course, got.Missed, got.Beside = half, nil, true
				v, again = got, true
				break
			}
		}
	}
	t.report(v)
}
