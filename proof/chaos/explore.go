package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Options say what is explored, and how.
type Options struct {
	Source
	Conversation string        // its ID; empty: the first
	Program      []string      // starts a process of a trial: the flags of Serve's arguments follow
	Dir          string        // in which each trial has a directory of its own; empty: the system's for temporary files
	Room         chan struct{} // its capacity is how many trials there are at once; nil: one. Explorers may share it
	Within       time.Duration // for one trial
	Until        time.Time     // after it no trial begins; zero: none is left out
	Twice        int           // how many courses of two kills follow one of one
	Seed         uint64        // chooses their second kills
}

// Explorer kills at the points of one conversation.
type Explorer struct {
	options      Options
	cast         *Cast
	conversation Conversation
	want         *End
	points       []Point
	order        []Point // Before each, those of all processes as they came
}

// Record holds the conversation once without a kill, and returns an explorer
// of the points that it came by.
func Record(ctx context.Context, cast *Cast, o Options) (*Explorer, error) {
	x := &Explorer{options: o, cast: cast, conversation: cast.Conversations[0]}
	if o.Conversation != "" {
		i := slices.IndexFunc(cast.Conversations, func(c Conversation) bool { return c.ID == o.Conversation })
		if i < 0 {
			return nil, fmt.Errorf("no conversation %q", o.Conversation)
		}
		x.conversation = cast.Conversations[i]
	}
	out, err := x.try(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%s, without a kill: %w\n%s", x.conversation.ID, err, out.said)
	}
	if faults := x.conversation.faults(out.end); len(faults) > 0 {
		return nil, fmt.Errorf("%s, without a kill: %s\nNobody was killed, and ends are compared with this one: have it end well first, or choose others by --conversation. What the processes logged last:\n%s",
			x.conversation.ID, strings.Join(faults, "; "), out.said)
	}
	x.want, x.points, x.order = out.end, out.points, out.order
	return x, nil
}

// Brief returns all points of the session. Of what daemons send when they start
// (streams, lanes, descriptors of tools) it has one of each kind, with starts,
// else none: another conversation had them.
func (x *Explorer) Brief(starts bool) []Point {
	kinds := map[string]bool{}
	var brief []Point
	for _, point := range x.points {
		if x.startsUp(point) {
			if kinds[point.Kind()] || !starts {
				continue
			}
			kinds[point.Kind()] = true
		}
		brief = append(brief, point)
	}
	return brief
}

// ownAck names the acknowledgements of the session's lane.
func (x *Explorer) ownAck() string {
	return "ack." + subjects.LaneName(subjects.Lane(subjects.Partition(x.conversation.Session)))
}

// startsUp reports that a daemon sends the message because it starts. Contents
// that a session-actor stores once it has lanes, and all that a bridge stores, are
// of the session: several kills there in one trial are kills over one event, and
// a session is quarantined for that.
func (x *Explorer) startsUp(at Point) bool {
	if !at.startsUp(x.ownAck()) {
		return false
	}
	if kind, _, _ := strings.Cut(at.What, "."); kind != "chunk" && kind != "blob" {
		return true
	}
	at.Side = Before
	lanes := slices.IndexFunc(x.order, func(p Point) bool { return p.Part == SessionActor && strings.HasPrefix(p.What, "reset.") })
	return at.Part == SessionActor && (lanes < 0 || slices.Index(x.order, at) < lanes)
}

// Points returns the points that the conversation came by, in order, those of
// one process after those of the other.
func (x *Explorer) Points() []Point { return slices.Clone(x.points) }

// Verdict is what a trial came to.
type Verdict struct {
	Of      string // the conversation's ID
	Course  Course
	Missed  Course   // of it: what was not done
	Beside  bool     // its points are in other verdicts: they were tried alone, too
	Faults  []string // what must not be; none: all is well
	Unknown int      // calls whose outcome nobody knows
	Revived int      // how often a process that said it could not run was started again
	Took    time.Duration
	Drained time.Duration // the longest that a process took from SIGTERM to its end
	Said    string        // if something is wrong: what the processes logged last

	recovery []Point
}

// Points returns how many points the trial was for, and how many of them it did
// not come by.
func (v Verdict) Points() (all, missed int) {
	if v.Beside {
		return 0, 0
	}
	all = v.Course.Points()
	return all, min(all, len(v.Missed))
}

// Apart returns what was done in the trial, as a course for each point that it
// was for.
func (v Verdict) Apart() (done []Course) {
	if !v.Course.isFree() {
		return []Course{v.Course}
	}
	for _, s := range v.Course {
		if !slices.Contains(v.Missed, s) {
			done = append(done, Course{s}.alone())
		}
	}
	return done
}

// Explore tries the courses, several trials at once, and tells each verdict as
// it comes. A course whose point a trial does not come by is tried once more; of
// many points, those that are missed, and then each of them alone.
// After each course that was done come Options.Twice that begin like it, in each
// of which the sender of a message of the recovery is killed. left is how many of
// the courses were not begun by Options.Until. begun is called when all others
// are, and before it returns. It fails only when ctx ends.
func (x *Explorer) Explore(ctx context.Context, courses []Course, tell func(Verdict), begun func()) (left int, err error) {
	defer begun()
	room := x.options.Room
	if room == nil {
		room = make(chan struct{}, 1)
	}
	var trying sync.WaitGroup
	var telling sync.Mutex
	told := func(v Verdict) {
		telling.Lock()
		defer telling.Unlock()
		if ctx.Err() == nil {
			tell(v)
		}
	}
	t := explorerRun{x.follow, told}
	for i, course := range courses {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			trying.Wait()
			return len(courses) - i, context.Cause(ctx)
		}
		if x.late() {
			trying.Wait()
			return len(courses) - i, nil
		}
		trying.Go(func() {
			defer func() { <-room }()
			if course.isFree() {
				t.many(ctx, course)
				return
			}
			first := t.twice(ctx, course)
			told(first)
			if len(first.Missed) > 0 || len(first.Faults) > 0 {
				return
			}
			for _, at := range x.seconds(first.recovery, x.options.Seed+uint64(i)) {
				if ctx.Err() != nil || x.late() {
					return
				}
				told(t.twice(ctx, course.with(Kill{At: at, Whom: Sender})))
			}
		})
	}
	begun()
	trying.Wait()
	return 0, context.Cause(ctx)
}

// late reports that no trial begins any more.
func (x *Explorer) late() bool { return !x.options.Until.IsZero() && time.Now().After(x.options.Until) }

// seconds chooses points of a recovery by a seed: half of them are messages
// that are only sent after the first kill.
func (x *Explorer) seconds(recovery []Point, seed uint64) []Point {
	n := x.options.Twice
	var own, others []Point
	for _, at := range recovery {
		if slices.Contains(x.points, at) {
			others = append(others, at)
		} else {
			own = append(own, at)
		}
	}
	chosen := sample(own, Point.Kind, max((n+int(seed%2))/2, n-len(others)), seed)
	return append(chosen, sample(others, Point.Kind, n-len(chosen), seed)...)
}

// follow is one trial.
func (x *Explorer) follow(ctx context.Context, course Course) Verdict {
	began := time.Now()
	out, err := x.try(ctx, course)
	v := Verdict{Of: x.conversation.ID, Course: course, Missed: out.missed, Revived: out.revived, Took: time.Since(began), Drained: out.drained, recovery: out.recovery}
	if err != nil {
		v.Faults, v.Said = []string{err.Error()}, out.said
		return v
	}
	if course.isFree() {
		v.Missed = out.exact(course)
	}
	if v.Faults = Check(course.losesCalls(), x.want, out.end); len(v.Faults) > 0 {
		v.Said = out.said
	}
	for _, call := range out.end.Calls {
		if call.Status == string(session.CallUnknown) {
			v.Unknown++
		}
	}
	return v
}

// Sample returns n of the courses by a seed: one of each kind first, as far as n
// allows, then any others. The order is theirs.
func Sample(courses []Course, n int, seed uint64) []Course {
	return sample(courses, Course.kind, n, seed)
}

func sample[T any](all []T, kindOf func(T) string, n int, seed uint64) []T {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := map[string]bool{}
	var first, rest []int
	for _, i := range random.Perm(len(all)) {
		kind := kindOf(all[i])
		if kinds[kind] {
			rest = append(rest, i)
			continue
		}
		kinds[kind] = true
		first = append(first, i)
	}
	chosen := slices.Concat(first, rest)
	chosen = chosen[:max(0, min(n, len(chosen)))]
	slices.Sort(chosen)
	some := make([]T, len(chosen))
	for k, i := range chosen {
		some[k] = all[i]
	}
	return some
}
