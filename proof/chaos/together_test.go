package chaos

// Many kills in one trial: when each is due, their names, and which messages a
// daemon sends because it starts.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/subjects"
)

// TestKillsTogether: each kill is due when its message passes, in any order,
// and one at a time. A message that is stored again under its name is the same.
func TestKillsTogether(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	c, err := ParseCourse("session-actor/before/chunk.1/1&session-actor/before/chunk.2/1&session-actor/before/install/1")
	must(t, err)
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
	if got := bothSides(a.passed); got[len(got)-1].String() != "session-actor/after/chunk.3/1" {
		t.Errorf("the points are %v", got)
	}
}

func TestNamesOfFreeKills(t *testing.T) {
	t.Parallel()
	point := "session-actor/before/install/1"
	many := strings.Repeat("&"+point+"=server", togetherMax)[1:]
	c, err := ParseCourse(many)
	if err != nil || c.String() != many || !c.isFree() || c.Points() != togetherMax {
		t.Errorf("%s: got %s of %d points, %v", many, c, c.Points(), err)
	}
	if c, err := ParseCourse(point + "+" + point); err != nil || c.isFree() || c.Points() != 1 {
		t.Errorf("one after the other: got %s, %v", c, err)
	}
	for _, name := range []string{many + "&" + point, point + "&", point + "&" + point + "+" + point} {
		if c, err := ParseCourse(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, c)
		}
	}
}

// TestStartMessages: contents that are stored once there are lanes belong to
// the session, and so do its lane's acknowledgements; all other messages of a
// start don't.
func TestStartMessages(t *testing.T) {
	t.Parallel()
	const sid = "s1"
	own := "ack." + subjects.LaneName(subjects.Lane(subjects.Partition(sid)))
	x := &Explorer{conversation: Conversation{Session: sid}}
	for _, what := range []string{"create.l1", "chunk.1", "blob.1", "reset.l1", "chunk.2", "blob.2", "ask.r1t1", own} {
		x.order = append(x.order, Point{SessionActor, Before, what, 1})
	}
	x.order = append(x.order, Point{Bridge, Before, "create.wake", 1}, Point{Bridge, Before, "chunk.3", 1})
	var got []string
	for _, at := range x.order {
		after := at
		after.Side = After
		if x.startsUp(after) != x.startsUp(at) {
			t.Errorf("the sides of %s differ", at)
		}
		if x.startsUp(at) {
			got = append(got, string(at.Part)+" "+at.What)
		}
	}
	want := []string{"session-actor create.l1", "session-actor chunk.1", "session-actor blob.1", "session-actor reset.l1", "bridge create.wake"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
