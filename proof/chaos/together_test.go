package chaos

// Many kills in one trial: when each is due, how they are named, and which
// points are killed so.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/subjects"
)

// Each kill is due when its message passes, in whatever order, and one at a
// time. What is stored again under the same name is the same message.
func TestKillsTogether(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCourse("session-actor/before/chunk.1/1&session-actor/before/chunk.2/1&session-actor/before/install/1")
	if err != nil {
		t.Fatal(err)
	}
	a := newAim(namer{names}, c)
	chunk := func(nuid, text string) *frame {
		return &frame{op: "PUB", subject: names.BlobChunks(nuid), payload: []byte(text)}
	}
	passes := func(f *frame, want string) {
		t.Helper()
		got, due := a.pass(SessionActor, f)
		if due != (want != "") || due && got.At.What != want {
			t.Errorf("%s %s: got %v, %v, want %q", f.subject, f.payload, got, due, want)
		}
	}
	install := &frame{op: "PUB", subject: names.Install()}
	passes(install, "install")
	passes(chunk("a", "first"), "") // the kill is under way
	a.done()
	passes(chunk("b", "first"), "") // another comes by its point then, and a second trial is for it
	passes(chunk("c", "second"), "chunk.2")
	a.done()
	passes(chunk("d", "second"), "")
	if got, want := a.left(), "session-actor/before/chunk.1/1"; got.String() != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	passes(chunk("e", "third"), "")
	if got := a.points(); got[len(got)-1].String() != "session-actor/after/chunk.3/1" {
		t.Errorf("the points are %v", got)
	}
}

func TestNamesOfFreeKills(t *testing.T) {
	t.Parallel()
	point := "session-actor/before/install/1"
	many := strings.Repeat("&"+point+"=server", togetherMax)[1:]
	c, err := ParseCourse(many)
	if err != nil || c.String() != many || !c.isFree() || c.points() != togetherMax {
		t.Errorf("%s: got %s of %d points, %v", many, c, c.points(), err)
	}
	if c, err := ParseCourse(point + "+" + point); err != nil || c.isFree() || c.points() != 1 {
		t.Errorf("one after the other: got %s, %v", c, err)
	}
	for _, name := range []string{many + "&" + point, point + "&", point + "&" + point + "+" + point} {
		if c, err := ParseCourse(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, c)
		}
	}
}

// What is stored once there are lanes is of the session: kills there are alone.
func TestSessionMessagesAreKilledAlone(t *testing.T) {
	t.Parallel()
	x := &Explorer{conversation: Conversation{Session: "s1"}}
	for _, what := range []string{"chunk.1", "blob.1", "reset.l1", "chunk.2", "blob.2"} {
		x.order = append(x.order, Point{SessionActor, Before, what, 1})
	}
	x.order = append(x.order, Point{Bridge, Before, "chunk.3", 1})
	var courses []Course
	for _, at := range x.order {
		courses = append(courses, Course{{At: at, Whom: Sender}})
	}
	var got []string
	for _, c := range x.Merge(courses) {
		got = append(got, c.String())
	}
	want := []string{
		"session-actor/before/chunk.1/1&session-actor/before/blob.1/1&session-actor/before/reset.l1/1",
		"session-actor/before/chunk.2/1", "session-actor/before/blob.2/1", "bridge/before/chunk.3/1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What daemons send because they start is killed at together, the two sides of
// a message never in one trial; all else is killed at alone.
func TestStartMessagesShareATrial(t *testing.T) {
	t.Parallel()
	const sid = "s1"
	own := "ack." + subjects.LaneName(subjects.Lane(subjects.Partition(sid)))
	x := &Explorer{conversation: Conversation{Session: sid}}
	for _, what := range []string{"create.l1", "create.l2", "ask.r1t1", own, "chunk.1", "chunk.2"} {
		x.points = append(x.points, Point{SessionActor, Before, what, 1}, Point{SessionActor, After, what, 1})
	}
	x.points = append(x.points, Point{Bridge, Before, "create.wake", 1})
	var courses []Course
	for _, at := range x.points {
		courses = append(courses, Course{{At: at, Whom: Sender}})
	}
	got := x.Merge(courses)
	sum, alone := 0, 0
	for _, c := range got {
		sum += c.points()
		var sides []Side
		for _, s := range c {
			sides = append(sides, s.At.Side)
			if x.startsUp(s.At) != c.isFree() {
				t.Errorf("%s", c)
			}
		}
		if len(slices.Compact(sides)) > 1 {
			t.Errorf("both sides in one trial: %s", c)
		}
		if !c.isFree() {
			alone++
		}
	}
	if sum != len(courses) || alone != 4 || len(got) != 4+3 {
		t.Errorf("%d points in %d trials, %d of them alone; want %d in 7, 4 alone: %v", sum, len(got), alone, len(courses), got)
	}
}
