package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// Victim says who is struck at a point.
type Victim string

// Who is struck.
const (
	Sender      Victim = "sender" // the daemon that sends the message
	BothDaemons Victim = "both"   // session-actor and bridge at once
	NATSServer  Victim = "server" // the NATS server, which comes back on its files
)

// Strike is a point, and what is done there.
type Strike struct {
	At   Point
	Whom Victim
	Term bool // SIGTERM, and not SIGKILL
	Free bool // due when its message passes, whatever others of the course come first
}

// Course is what is done in one trial: in order, or, if its strikes are free,
// each as its point is come by.
type Course []Strike

// together reports that the strikes of the course are free: it tries many
// points, and not what one does to the recovery from another.
func (c Course) together() bool { return len(c) > 0 && c[0].Free }

// points is how many points the course tries.
func (c Course) points() int {
	if c.together() {
		return len(c)
	}
	return 1
}

// Way is what a strike does: kill.sender, term.both.
func (s Strike) Way() string {
	if s.Term {
		return "term." + string(s.Whom)
	}
	return "kill." + string(s.Whom)
}

// parts returns the processes that are struck.
func (s Strike) parts() []Part {
	switch s.Whom {
	case BothDaemons:
		return Parts()
	case NATSServer:
		return []Part{Server}
	}
	return []Part{s.At.Part}
}

// suffixes stand behind the name of a point whose strike is not the plain one.
var suffixes = []struct {
	text string
	whom Victim
	term bool
}{
	{"", Sender, false}, {"=term", Sender, true},
	{"=both", BothDaemons, false}, {"=both-term", BothDaemons, true},
	{"=server", NATSServer, false}, {"=server-term", NATSServer, true},
}

// String returns the name of the strike: that of the point, and what is done
// there if it is not a kill of the sender: bridge/before/claim.r1t2c0/1=server.
func (s Strike) String() string {
	for _, x := range suffixes {
		if x.whom == s.Whom && x.term == s.Term {
			return s.At.String() + x.text
		}
	}
	return s.At.String() + "=" + s.Way()
}

// What joins the names of strikes.
const (
	thenSign     = "+" // one after the other
	togetherSign = "&" // each as it is come by
)

// String returns the strikes' names, joined.
func (c Course) String() string {
	names := make([]string, len(c))
	for i, s := range c {
		names[i] = s.String()
	}
	if c.together() {
		return strings.Join(names, togetherSign)
	}
	return strings.Join(names, thenSign)
}

// How many strikes a course has at most: one after the other, and together.
const (
	strikesMax  = 2
	togetherMax = 24
)

// ParseCourse reads the name of a course. That it is one does not mean that a
// conversation comes by its points.
func ParseCourse(name string) (Course, error) {
	sign, most := thenSign, strikesMax
	if strings.Contains(name, togetherSign) {
		sign, most = togetherSign, togetherMax
	}
	var c Course
	for part := range strings.SplitSeq(name, sign) {
		s, err := parseStrike(part)
		if err != nil {
			return nil, err
		}
		s.Free = sign == togetherSign
		c = append(c, s)
	}
	if len(c) > most {
		return nil, fmt.Errorf("point %q: at most %d strikes are in a trial, %d if they are joined by %s", name, strikesMax, togetherMax, togetherSign)
	}
	return c, nil
}

func parseStrike(name string) (s Strike, err error) {
	point, suffix, found := strings.Cut(name, "=")
	if found {
		suffix = "=" + suffix
	}
	if s.At, err = ParsePoint(point); err != nil {
		return s, err
	}
	for _, x := range suffixes {
		if x.text == suffix {
			s.Whom, s.Term = x.whom, x.term
			return s, nil
		}
	}
	return s, fmt.Errorf("point %q: nothing is named %q: =term, =both, =both-term, =server or =server-term", name, suffix)
}

// kind is what a sample has each of: the kind of the points, and what is done
// there.
func (c Course) kind() string {
	kinds := make([]string, len(c))
	for i, s := range c {
		kinds[i] = s.At.Kind() + "=" + s.Way()
	}
	return strings.Join(kinds, "+")
}

// losesCalls reports that a call may be lost by what is done, so that nobody
// knows its outcome: a bridge is killed.
func (c Course) losesCalls() bool {
	return slices.ContainsFunc(c, func(s Strike) bool { return !s.Term && slices.Contains(s.parts(), Bridge) })
}

// with returns the course with one more strike.
func (c Course) with(s Strike) Course { return append(slices.Clone(c), s) }
