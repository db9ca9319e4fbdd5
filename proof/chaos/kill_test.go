package chaos

// Courses: their names, what they may lose, and when a kill of them is due.

import (
	"slices"
	"testing"

	"github.com/refold/refold/subjects"
)

func TestCourseNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"bridge/before/claim.r1t2c0/1", "bridge/after/claim.r1t2c0/1=term", "session-actor/before/ask.r1t1/1=both",
		"bridge/after/ack.tool-host/3=server", "bridge/after/ack.tool-host/3=server-term",
		"bridge/before/claim.r1t2c0/1=both+session-actor/before/create.l0/2",
	} {
		c, err := ParseCourse(name)
		if err != nil || c.String() != name {
			t.Errorf("%s: got %s, %v", name, c, err)
		}
	}
	point := "bridge/before/claim.r1t2c0/1"
	for _, name := range []string{"", point + "=", point + "=kill", point + "+", point + "+" + point + "+" + point} {
		if c, err := ParseCourse(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, c)
		}
	}
}

// Only a killed bridge can leave an outcome unknown.
func TestLosesCalls(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"bridge/before/claim.r1t2c0/1":                            true,
		"bridge/before/claim.r1t2c0/1=term":                       false,
		"bridge/before/claim.r1t2c0/1=server":                     false,
		"session-actor/before/ask.r1t1/1":                         false,
		"session-actor/before/ask.r1t1/1=both":                    true,
		"session-actor/before/ask.r1t1/1=both-term":               false,
		"session-actor/before/ask.r1t1/1+bridge/after/claim.x/1":  true,
		"session-actor/before/ask.r1t1/1+session-actor/after/x/1": false,
	} {
		c, err := ParseCourse(name)
		must(t, err)
		if got := c.losesCalls(); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestSecondKill: the second kill is due only after the first is done, and the
// recovery begins there.
func TestSecondKill(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	c, err := ParseCourse("bridge/after/install/1+session-actor/before/install/2")
	must(t, err)
	a := newAim(namer{names}, c)
	install := &frame{op: "PUB", subject: names.Install()}
	passes := func(part Part, want *Kill) {
		t.Helper()
		got, due := a.pass(part, install)
		if due != (want != nil) || due && got != *want {
			t.Errorf("%s: got %v, %v; want %v", part, got, due, want)
		}
	}
	passes(SessionActor, nil)
	passes(Bridge, &c[0])
	a.done()
	passes(Bridge, nil)
	passes(SessionActor, &c[1])
	passes(SessionActor, nil) // it is under way
	a.done()
	passes(SessionActor, nil)
	if got, want := len(bothSides(a.passed)), 12; got != want {
		t.Errorf("%d points, want %d", got, want)
	}
	want := []Point{{SessionActor, Before, "install", 4}, {SessionActor, After, "install", 4}}
	if got := bothSides(a.passed[a.since:]); !slices.Equal(got, want) {
		t.Errorf("the recovery: got %v, want %v", got, want)
	}
}

// TestSecondKillsHitRecovery: half of the second kills are at messages that
// only the recovery sends.
func TestSecondKillsHitRecovery(t *testing.T) {
	t.Parallel()
	x := &Explorer{points: []Point{{Bridge, Before, "claim.r1t1", 1}, {Bridge, Before, "settle.r1t1", 1}}}
	own := Point{Bridge, Before, "claim.r1t1", 2}
	for _, c := range []struct {
		n        int
		recovery []Point
		want     []Point
	}{
		{2, append([]Point{own}, x.points[1]), []Point{own, x.points[1]}},
		{2, []Point{own}, []Point{own}},
		{2, x.points, x.points},
		{2, nil, nil},
	} {
		x.options.Twice = c.n
		for seed := range uint64(4) {
			got := x.seconds(c.recovery, seed)
			if !slices.Equal(got, c.want) {
				t.Errorf("%d of %v: got %v, want %v", c.n, c.recovery, got, c.want)
			}
		}
	}
}
