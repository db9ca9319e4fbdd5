package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// Victim is the process that is killed at a point.
type Victim string

// The victims.
const (
	Sender      Victim = "sender" // the daemon that sends the message
	BothDaemons Victim = "both"   // session-actor and bridge at once
	NATSServer  Victim = "server" // the NATS server, which comes back on its files
)

// Kill is a point, and which processes get SIGKILL or SIGTERM there.
type Kill struct {
	At   Point
	Whom Victim
	Term bool // SIGTERM, not SIGKILL
	Free bool // due when its message passes, in any order with the course's other kills
}

// Course has the kills of one trial: in order, or free, each when its point
// passes.
type Course []Kill

// isFree reports whether the kills of the course are free: it tries many points,
// and not what one does to the recovery from another.
func (c Course) isFree() bool { return len(c) > 0 && c[0].Free }

// Points returns the number of points that the course tries.
func (c Course) Points() int {
	if c.isFree() {
		return len(c)
	}
	return 1
}

// Way returns what a kill does: kill.sender, term.both.
func (s Kill) Way() string {
	if s.Term {
		return "term." + string(s.Whom)
	}
	return "kill." + string(s.Whom)
}

// parts returns the processes that are killed.
func (s Kill) parts() []Part {
	switch s.Whom {
	case BothDaemons:
		return Parts()
	case NATSServer:
		return []Part{Server}
	}
	return []Part{s.At.Part}
}

// suffixes follow the name of a point whose kill is not the plain one.
var suffixes = []struct {
	text string
	whom Victim
	term bool
}{
	{"", Sender, false}, {"=term", Sender, true},
	{"=both", BothDaemons, false}, {"=both-term", BothDaemons, true},
	{"=server", NATSServer, false}, {"=server-term", NATSServer, true},
}

// String returns the name of the kill: the point's, with a suffix if it is not a
// kill of the sender: bridge/before/claim.r1t2c0/1=server.
func (s Kill) String() string {
	for _, x := range suffixes {
		if x.whom == s.Whom && x.term == s.Term {
			return s.At.String() + x.text
		}
	}
	return s.At.String() + "=" + s.Way()
}

// The signs that join the names of kills.
const (
	thenSign     = "+" // one after the other
	togetherSign = "&" // each when its point passes
)

// String returns the kills' names, joined.
func (c Course) String() string {
	names := make([]string, len(c))
	for i, s := range c {
		names[i] = s.String()
	}
	if c.isFree() {
		return strings.Join(names, togetherSign)
	}
	return strings.Join(names, thenSign)
}

// The most kills of a course: one after the other, and together.
const (
	killsMax    = 2
	togetherMax = 24
)

// ParseCourse parses the name of a course. A conversation need not pass its points.
func ParseCourse(name string) (Course, error) {
	sign, most := thenSign, killsMax
	if strings.Contains(name, togetherSign) {
		sign, most = togetherSign, togetherMax
	}
	var c Course
	for part := range strings.SplitSeq(name, sign) {
		s, err := parseKill(part)
		if err != nil {
			return nil, err
		}
		s.Free = sign == togetherSign
		c = append(c, s)
	}
	if len(c) > most {
		return nil, fmt.Errorf("point %q: at most %d kills are in a trial, %d if they are joined by %s", name, killsMax, togetherMax, togetherSign)
	}
	return c, nil
}

func parseKill(name string) (s Kill, err error) {
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
	return s, fmt.Errorf("point %q: %q is not one of =term, =both, =both-term, =server and =server-term", name, suffix)
}

// kind returns the kinds of a course's points, with what is done there.
func (c Course) kind() string {
	kinds := make([]string, len(c))
	for i, s := range c {
		kinds[i] = s.At.Kind() + "=" + s.Way()
	}
	return strings.Join(kinds, "+")
}

// losesCalls reports whether the kills may lose a call, so that its outcome is
// unknown: a bridge is killed.
func (c Course) losesCalls() bool {
	return slices.ContainsFunc(c, func(s Kill) bool { return !s.Term && slices.Contains(s.parts(), Bridge) })
}

// with returns the course with one more kill.
func (c Course) with(s Kill) Course { return append(slices.Clone(c), s) }
