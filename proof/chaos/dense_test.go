package chaos

// Many points of a conversation in one trial: which are chosen for it, when
// each is due, what counts as done, and which points are blamed for a failure.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/subjects"
)

// held is a conversation of n turns, as it was recorded.
func held(n int) *Explorer {
	x := &Explorer{conversation: Conversation{Session: "s1"}, want: &End{}}
	for i := range n {
		turn := fmt.Sprintf("r%dt1", i+1)
		for _, m := range []struct {
			part Part
			what string
			n    int
		}{
			{SessionActor, "ask." + turn, 1}, {Bridge, "claim." + turn, 1}, {Bridge, "settle." + turn, 1}, {Bridge, "ack.llm-recorded", i + 1},
			{SessionActor, "ask." + turn + "c0", 1}, {Bridge, "claim." + turn + "c0", 1}, {Bridge, "settle." + turn + "c0", 1}, {SessionActor, "ack.l1", i + 1},
		} {
			x.order = append(x.order, Point{m.part, Before, m.what, m.n})
		}
		x.want.Calls = append(x.want.Calls, Call{Effect: turn + "c0", RetrySafe: i > 0})
	}
	x.points = bothSides(x.order)
	return x
}

// TestDenseCoversEachKillOnce: each kill is in one course, far from the
// course's next one, never with the other side of a message or another way. A
// kill that leaves an outcome unknown is alone.
func TestDenseCoversEachKillOnce(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{1, 3, 40} {
		x := held(turns)
		var courses []Course
		want := map[string]int{}
		for _, at := range x.points {
			for _, whom := range []Victim{Sender, NATSServer} {
				c := Course{{At: at, Whom: whom}}
				courses = append(courses, c)
				want[c.String()]++
			}
		}
		var alone []string
		for _, c := range x.Dense(courses) {
			if c.Points() == 1 {
				alone = append(alone, c.String())
			}
			last := -apartLeast
			for _, s := range c {
				at := s.At
				at.Side = Before
				place := slices.Index(x.order, at)
				if s.At.Side != c[0].At.Side || s.Way() != c[0].Way() || place-last < apartLeast || s.Free != (len(c) > 1) {
					t.Errorf("%d turns: %s", turns, c)
				}
				last = place
				want[Course{s}.alone().String()]--
			}
			if again, err := ParseCourse(c.String()); err != nil || again.String() != c.String() {
				t.Errorf("%s is read as %s, %v", c, again, err)
			}
		}
		for name, n := range want {
			if n != 0 {
				t.Errorf("%d turns: %s is tried %d times", turns, name, 1-n)
			}
		}
		for _, name := range []string{"bridge/after/claim.r1t1c0/1", "bridge/before/settle.r1t1c0/1"} {
			if !slices.Contains(alone, name) {
				t.Errorf("%d turns: %s is not alone", turns, name)
			}
		}
		if turns > 1 && len(alone) != 2 {
			t.Errorf("%d turns: alone are %v, want 2", turns, alone)
		}
	}
}

// TestDenseReadsSpacesAlone: a bridge that reads a space is killed once in a trial.
func TestDenseReadsSpacesAlone(t *testing.T) {
	t.Parallel()
	x := held(40)
	var courses []Course
	for _, at := range []Point{{Bridge, Before, "blob.1", 1}, {Bridge, Before, "settle.y1", 1}, {SessionActor, Before, "ask.y1", 1}} {
		x.order = append(x.order, at)
		for _, whom := range []Victim{Sender, BothDaemons, NATSServer} {
			courses = append(courses, Course{{At: at, Whom: whom}})
		}
	}
	for _, at := range x.order[:len(x.order)-3] {
		courses = append(courses, Course{{At: at, Whom: Sender}}, Course{{At: at, Whom: BothDaemons}}, Course{{At: at, Whom: NATSServer}})
	}
	alone := map[string]bool{}
	for _, c := range x.Dense(courses) {
		if len(c) == 1 {
			alone[c.String()] = true
		}
	}
	for name, want := range map[string]bool{
		"bridge/before/blob.1/1": true, "bridge/before/settle.y1/1=both": true, "session-actor/before/ask.y1/1=both": true,
		"session-actor/before/ask.y1/1": false, "bridge/before/blob.1/1=server": false,
	} {
		if alone[name] != want {
			t.Errorf("%s is alone: %t, want %t", name, alone[name], want)
		}
	}
}

// TestKillsOfAConversation: a repeated message keeps its number, a kill is due
// when its message is sent for the first time, and the next only when the
// killed process has sent something new.
func TestKillsOfAConversation(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	c, err := ParseCourse("session-actor/before/ack.l1/2&session-actor/after/ack.l1/4&bridge/before/ack.llm-recorded/2&bridge/before/ack.llm-recorded/3")
	must(t, err)
	a := newAim(namer{names}, c)
	passes := func(part Part, consumer string, seq int, want string) {
		t.Helper()
		f := &frame{op: "PUB", subject: fmt.Sprintf("$JS.ACK.REFOLD_LOG.%s.1.%d.3.1763740000000000000.0", consumer, seq)}
		got, due := a.pass(part, f)
		if due != (want != "") || due && got.String() != want {
			t.Errorf("%s of %d: got %s, %v, want %q", consumer, seq, got, due, want)
		}
	}
	passes(SessionActor, "l1", 7, "")
	passes(SessionActor, "l1", 8, "session-actor/before/ack.l1/2")
	passes(SessionActor, "l1", 10, "") // it was under way, and its process is gone
	a.done()
	passes(Bridge, "llm-recorded", 1, "")
	passes(Bridge, "llm-recorded", 2, "") // the session-actor has not gone on
	passes(SessionActor, "l1", 7, "")
	passes(SessionActor, "l1", 8, "")
	passes(Bridge, "llm-recorded", 2, "")
	passes(SessionActor, "l1", 11, "session-actor/after/ack.l1/4")
	a.done()
	passes(SessionActor, "l1", 11, "")
	passes(SessionActor, "l1", 12, "")
	passes(Bridge, "llm-recorded", 5, "bridge/before/ack.llm-recorded/3")
	if got, want := a.left().String(), "bridge/before/ack.llm-recorded/2"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

// TestFinishedCallsAreNotUnknown: kills after an outcome became unknown don't
// count, because the conversation is another from there on.
func TestFinishedCallsAreNotUnknown(t *testing.T) {
	t.Parallel()
	x := held(3)
	var course Course
	var hits []hit
	for i, at := range x.order {
		if i%8 == 1 { // claims of turns
			course = append(course, Kill{At: at, Whom: Sender, Free: true})
			hits = append(hits, hit{course[len(course)-1], i + 1})
		}
	}
	for _, c := range []struct {
		unknown string
		missed  Course
		want    Course
	}{
		{"", nil, Course{}},
		{"", course[1:2], course[1:2]},
		{"r3t1c0", nil, Course{}},
		{"r2t1c0", nil, course[2:]},
		{"r1t1c0", course[1:2], course[1:]},
	} {
		o := outcome{order: x.order, hits: hits, missed: c.missed, end: &End{}}
		if c.unknown != "" {
			o.end.Calls = []Call{{Effect: c.unknown, Status: "outcome_unknown"}}
		}
		if got := o.exact(course); !slices.Equal(got, c.want) {
			t.Errorf("unknown %q, missed %v: got %v, want %v", c.unknown, c.missed, got, c.want)
		}
	}
}

// wrongIf follows courses: one that has all the points of wrong is wrong, one
// of several points misses those of missed.
func wrongIf(wrong, missed []string) (t *explorerRun, told *[]string) {
	told = new([]string)
	has := func(c Course, name string) bool {
		return slices.ContainsFunc(c, func(s Kill) bool { return s.At.What == name })
	}
	return &explorerRun{
		follow: func(_ context.Context, c Course) Verdict {
			v := Verdict{Course: c}
			if len(wrong) > 0 && !slices.ContainsFunc(wrong, func(name string) bool { return !has(c, name) }) {
				v.Faults = []string{"harm"}
			}
			for _, s := range c {
				if len(c) > 1 && slices.Contains(missed, s.At.What) {
					v.Missed = append(v.Missed, s)
				}
			}
			return v
		},
		report: func(v Verdict) {
			var whats []string
			for _, s := range v.Course {
				whats = append(whats, s.At.What)
			}
			all, missed := v.Points()
			*told = append(*told, fmt.Sprintf("%s %d-%d%s", strings.Join(whats, "&"), all, missed, strings.Join(v.Faults, "")))
		},
	}, told
}

// TestBlameReportsEachPointOnce: each point is reported once, as wrong only if
// it fails alone. A fault that only several points together cause is reported
// separately.
func TestBlameReportsEachPointOnce(t *testing.T) {
	t.Parallel()
	var course Course
	for _, what := range []string{"a", "b", "c", "d", "e", "f"} {
		course = append(course, Kill{At: Point{Bridge, Before, what, 1}, Whom: Sender, Free: true})
	}
	singles := []string{"a 1-0", "b 1-0", "c 1-0", "d 1-0", "e 1-0", "f 1-0"}
	for _, c := range []struct {
		wrong, missed, want []string
	}{
		{nil, nil, []string{"a&b&c&d&e&f 6-0"}},
		{nil, []string{"b", "d"}, []string{"a&c&e&f 4-0", "b 1-0", "d 1-0"}},
		{nil, []string{"a", "b", "c", "d", "e", "f"}, singles},
		{[]string{"d"}, nil, []string{"a 1-0", "b 1-0", "c 1-0", "d 1-0harm", "e 1-0", "f 1-0"}},
		{[]string{"b", "c"}, nil, append(slices.Clone(singles), "b&c 0-0harm")},
		{[]string{"a", "f"}, nil, append(slices.Clone(singles), "a&b&c&d&e&f 0-0harm")},
	} {
		tries, told := wrongIf(c.wrong, c.missed)
		tries.many(t.Context(), course)
		if !slices.Equal(*told, c.want) {
			t.Errorf("wrong %v, missed %v: told %v, want %v", c.wrong, c.missed, *told, c.want)
		}
	}
}
