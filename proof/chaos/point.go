package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/subjects"
)

// Part is a process of a trial.
type Part string

// The two daemons, and their server.
const (
	SessionActor Part = "session-actor"
	Bridge       Part = "bridge"
	Server       Part = "nats-server"
)

// Parts returns the daemons, whose messages are the points.
func Parts() []Part { return []Part{SessionActor, Bridge} }

// Side is the side of a message on which a process is killed.
type Side string

const (
	// Before the message: the server never receives it.
	Before Side = "before"
	// After the message: the server has it, and the process does not know.
	After Side = "after"
)

// Point is a place of a kill.
type Point struct {
	Part Part
	Side Side
	What string // the message: claim.r1t2c0
	N    int    // which of those messages, from 1
}

// String returns the point's name: bridge/before/claim.r1t2c0/1.
func (p Point) String() string {
	return string(p.Part) + "/" + string(p.Side) + "/" + p.What + "/" + strconv.Itoa(p.N)
}

// ParsePoint parses the name of a point. A conversation need not pass it.
func ParsePoint(name string) (Point, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return Point{}, fmt.Errorf("point %q: want PROCESS/SIDE/MESSAGE/N, as --list prints it", name)
	}
	p := Point{Part: Part(parts[0]), Side: Side(parts[1]), What: parts[2]}
	n, err := strconv.Atoi(parts[3])
	p.N = n
	switch {
	case !slices.Contains(Parts(), p.Part):
		return Point{}, fmt.Errorf("point %q: no process %q: %s or %s", name, p.Part, SessionActor, Bridge)
	case p.Side != Before && p.Side != After:
		return Point{}, fmt.Errorf("point %q: no side %q: %s or %s", name, p.Side, Before, After)
	case p.What == "":
		return Point{}, fmt.Errorf("point %q: it names no message", name)
	case err != nil || n < 1:
		return Point{}, fmt.Errorf("point %q: the last part is a number from 1", name)
	}
	return p, nil
}

// Kind returns the point without the names of effects: all claims are of one
// kind. A sample has a point of each kind.
func (p Point) Kind() string {
	what, _, _ := strings.Cut(p.What, ".")
	return string(p.Part) + "/" + string(p.Side) + "/" + what
}

// startsUp reports whether a daemon may send the message because it starts,
// whatever sessions there are. own names the acknowledgements on the session's
// lane: other lanes deliver only install records.
func (p Point) startsUp(own string) bool {
	switch kind, of, _ := strings.Cut(p.What, "."); kind {
	case "create", "update", "reset", "install", "chunk", "blob":
		return true
	case "ack":
		_, lane := subjects.ParseLaneName(of)
		return lane && p.What != own
	}
	return false
}
