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
}

// Course is what is done in one trial, in order.
type Course []Strike

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

// String returns the strikes' names, joined by +.
func (c Course) String() string {
	names := make([]string, len(c))
	for i, s := range c {
		names[i] = s.String()
	}
	return strings.Join(names, "+")
}

// strikesMax is how many strikes a course has at most.
const strikesMax = 2

// ParseCourse reads the name of a course. That it is one does not mean that a
// conversation comes by its points.
func ParseCourse(name string) (Course, error) {
	var c Course
	for part := range strings.SplitSeq(name, "+") {
		point, suffix, found := strings.Cut(part, "=")
		if found {
			suffix = "=" + suffix
		}
		at, err := ParsePoint(point)
		if err != nil {
			return nil, err
		}
		known := false
		for _, x := range suffixes {
			if x.text == suffix {
				c, known = append(c, Strike{At: at, Whom: x.whom, Term: x.term}), true
			}
		}
		if !known {
			return nil, fmt.Errorf("point %q: nothing is named %q: =term, =both, =both-term, =server or =server-term", name, suffix)
		}
	}
	if len(c) > strikesMax {
		return nil, fmt.Errorf("point %q: at most %d strikes are in a trial", name, strikesMax)
	}
	return c, nil
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
