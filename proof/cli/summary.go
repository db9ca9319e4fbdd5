package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/proof/chaos"
)

// verdictOf formats a verdict, on one line if there are no faults.
func verdictOf(v chaos.Verdict) string {
	word := "ok"
	switch {
	case len(v.Faults) > 0:
		word = "WRONG"
	case len(v.Missed) > 0:
		word = "missed"
	}
	line := fmt.Sprintf("%-7s %5.1f s  %s", word, v.Took.Seconds(), v.Course)
	if all, _ := v.Points(); word == "ok" && all > 1 {
		line += fmt.Sprintf("  (%d points)", all)
	}
	if all, missed := v.Points(); word == "missed" && all > 1 {
		line += fmt.Sprintf("  (missed %d of %d: %s)", missed, all, v.Missed)
	}
	if word == "ok" && v.Unknown > 0 {
		line += fmt.Sprintf("  (%d outcome unknown)", v.Unknown)
	}
	if v.Drained > 0 {
		line += fmt.Sprintf("  (ended %.0f ms after SIGTERM)", v.Drained.Seconds()*1000)
	}
	if v.Revived > 0 {
		line += fmt.Sprintf("  (a daemon could not start %d times)", v.Revived)
	}
	for _, fault := range v.Faults {
		line += "\n        " + fault
	}
	if len(v.Faults) > 0 {
		line += fmt.Sprintf("\n        again: --conversation %s --point '%s'", v.Of, v.Course)
	}
	for logged := range strings.Lines(v.Said) {
		line += "\n        | " + strings.TrimSpace(logged)
	}
	return line
}

// counters sum up verdicts.
type counters struct {
	mu sync.Mutex // guards the counters

	began            time.Time
	trials, wrong    int
	tried, missed    int // points
	unknown, revived int
	ways             map[string]int // what was done
	longest, drained time.Duration

	k, n   int // the kth of every n chosen courses is tried
	all    int // existing courses
	chosen int // points of the chosen ones, before --part
	turns  int // trials for these
	skip   int // trials of this part to leave out at the beginning
	mine   int // the others of this part
	left   int // of these, not begun: time ran out, or it was stopped
	points int // of those that were not begun

	missing []string // missed points

	stopped int // number of trials that may have been running when it was stopped; 0: it was not
}

// take returns those courses of the next conversation that are in this part. all
// is the number of courses that the conversation has.
func (t *counters) take(courses []chaos.Course, all int) (mine []chaos.Course) {
	t.all += all
	for _, course := range courses {
		t.chosen += course.Points()
		turn := t.turns
		t.turns++
		if turn%t.n == t.k-1 && turn/t.n >= t.skip {
			mine = append(mine, course)
		}
	}
	t.mine += len(mine)
	return mine
}

// leave counts trials that were not begun.
func (t *counters) leave(courses []chaos.Course) {
	t.left += len(courses)
	for _, course := range courses {
		t.points += course.Points()
	}
}

func (t *counters) add(v chaos.Verdict) {
	all, missed := v.Points()
	t.trials, t.tried, t.missed = t.trials+1, t.tried+all, t.missed+missed
	if missed > 0 {
		for _, s := range v.Missed {
			t.missing = append(t.missing, s.String())
		}
	}
	t.longest, t.drained = max(t.longest, v.Took), max(t.drained, v.Drained)
	if len(v.Faults) > 0 {
		t.wrong++
	}
	if t.ways == nil {
		t.ways = map[string]int{}
	}
	if missed < all {
		for _, some := range v.Apart() {
			t.ways[way(some)]++
		}
	}
	if v.Unknown > 0 {
		t.unknown++
	}
	t.revived += v.Revived
}

// way names what was done in a trial, without the points.
func way(c chaos.Course) string {
	if len(c) > c.Points() {
		return "twice"
	}
	who, how := string(c[0].At.Part), ""
	switch c[0].Whom {
	case chaos.BothDaemons:
		who = "both"
	case chaos.NATSServer:
		who = string(chaos.Server)
	}
	if c[0].Term {
		how = " by SIGTERM"
	}
	return who + how
}

func (t *counters) line() string {
	line := fmt.Sprintf("killed at %d of %d points in %.0f s: %d wrong, %d missed; %d left an outcome unknown; the longest took %.1f s",
		t.tried-t.missed, t.tried, time.Since(t.began).Seconds(), t.wrong, t.missed, t.unknown, t.longest.Seconds())
	if t.drained > 0 {
		line += fmt.Sprintf("; ended %.0f ms after SIGTERM at the latest", t.drained.Seconds()*1000)
	}
	if t.revived > 0 {
		line += fmt.Sprintf("; %d times a daemon could not start, and was started again", t.revived)
	}
	var ways []string
	for _, name := range slices.Sorted(maps.Keys(t.ways)) {
		ways = append(ways, fmt.Sprintf("%s %d", name, t.ways[name]))
	}
	if len(ways) > 0 {
		line += "\nkilled: " + strings.Join(ways, ", ")
	}
	if len(t.missing) > 0 {
		line += "\nmissed: " + strings.Join(t.missing[:min(missingShown, len(t.missing))], ", ")
		if more := len(t.missing) - missingShown; more > 0 {
			line += fmt.Sprintf(", and %d more", more)
		}
	}
	return line + "\n" + t.share()
}

// missingShown is how many missed points the summary names.
const missingShown = 20

// share formats the number of trials that were made.
func (t *counters) share() string {
	line := fmt.Sprintf("tried %d trials; of %d kills there are, %d were chosen", t.trials, t.all, t.chosen)
	if t.n > 1 {
		line += fmt.Sprintf(", and of these every %dth from the %dth", t.n, t.k)
	}
	switch {
	case t.stopped > 0:
		line += fmt.Sprintf("; stopped: continue with --skip %d", t.next())
	case t.left > 0:
		line += fmt.Sprintf("; %d trials, of %d points, were not begun, because time ran out: continue with --skip %d", t.left, t.points, t.next())
	}
	return line
}

// next returns the --skip with which the next command continues.
func (t *counters) next() int { return t.skip + max(0, t.mine-t.left-t.stopped) }

// verdict returns the error of the whole command.
func (t *counters) verdict(missedMax int) error {
	switch {
	case t.wrong > 0:
		return &Error{Failed, "a kill did harm; repeat one with --point NAME"}
	case t.tried == 0 && t.left == 0:
		return &Error{Failed, "no point was tried: see --list, and name one --conversation to try points that it does not always pass"}
	case t.missed*100 > t.tried*missedMax:
		return &Error{Failed, fmt.Sprintf("%d of %d points were missed", t.missed, t.tried)}
	case t.left > 0:
		return &Error{Left, fmt.Sprintf("the time of --for ended with %d points left, in %d trials: continue with --skip %d and the same flags", t.points, t.left, t.next())}
	}
	return nil
}
