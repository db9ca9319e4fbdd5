package chaos

import (
	"cmp"
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

// Options select what is explored, and how.
type Options struct {
	Source
	Conversation string        // its ID; "": the first
	Program      []string      // starts a process of a trial, with flags for Serve's arguments appended
	Dir          string        // parent of each trial's directory; "": the system's for temporary files
	Room         chan struct{} // its capacity is the number of concurrent trials; nil: one. Explorers may share it
	Within       time.Duration // for one trial
	Until        time.Time     // no trial begins after it; zero: no limit
	Twice        int           // number of courses of two kills that follow one of one
	Seed         uint64        // chooses their second kills
}

// Explorer kills at the points of one conversation.
type Explorer struct {
	options      Options
	cast         *Cast
	conversation Conversation
	want         *End
	points       []Point
	order        []Point // Before each message, of all processes in order of arrival
}

// Record runs the conversation without a kill, and returns an explorer of its
// points.
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
		return nil, fmt.Errorf("%s, without a kill: %w\n%s", x.conversation.ID, err, out.logs)
	}
	if faults := x.conversation.faults(out.end); len(faults) > 0 {
		return nil, fmt.Errorf("%s, without a kill: %s\nThis trial killed nothing, and the ends of others are compared with it: make it end well first, or choose others by --conversation. Latest logs of the processes:\n%s",
			x.conversation.ID, strings.Join(faults, "; "), out.logs)
	}
	x.want, x.points, x.order = out.end, out.points, out.order
	return x, nil
}

// ownAck returns the name of acknowledgements on the session's lane.
func (x *Explorer) ownAck() string {
	return "ack." + subjects.LaneName(subjects.Lane(subjects.Partition(x.conversation.Session)))
}

// startsUp reports whether a daemon sends the message because it starts. Contents
// that a session-actor stores once it has lanes, and all that a bridge stores,
// belong to the session: several kills there in one trial are kills over one
// event, and a session is quarantined for that.
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

// Points returns the conversation's points, in order, process by process.
func (x *Explorer) Points() []Point { return slices.Clone(x.points) }

// Verdict is the result of a trial.
type Verdict struct {
	Of      string // the conversation's ID
	Course  Course
	Missed  Course   // kills of it that were not done
	Beside  bool     // its points are in other verdicts: they were tried alone, too
	Faults  []string // broken rules; none: all is well
	Unknown int      // calls whose outcome is unknown
	Revived int      // how often a process that ended because it could not run was started again
	Took    time.Duration
	Drained time.Duration // the longest time of a process from SIGTERM to its end
	Said    string        // if there are faults: the latest logs of the processes

	recovery []Point
}

// Points returns the number of points of the trial, and of those that it missed.
func (v Verdict) Points() (all, missed int) {
	if v.Beside {
		return 0, 0
	}
	all = v.Course.Points()
	return all, min(all, len(v.Missed))
}

// Apart returns the kills that were done, as a course for each point.
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

// Explore tries the courses, several trials at once, and calls tell with each
// verdict. A course whose point a trial misses is tried once more; of many
// points, the missed ones, and then each of them alone. Options.Twice more
// courses follow each course that was done: they begin like it, and then kill the
// sender of a message of the recovery. left is the number of courses that had not
// begun by Options.Until. begun is called once all others have, at the latest
// before Explore returns. It fails only when ctx ends.
func (x *Explorer) Explore(ctx context.Context, courses []Course, tell func(Verdict), begun func()) (left int, err error) {
	defer begun()
	room := x.options.Room
	if room == nil {
		room = make(chan struct{}, 1)
	}
	var trying sync.WaitGroup
	var reporting sync.Mutex
	report := func(v Verdict) {
		reporting.Lock()
		defer reporting.Unlock()
		if ctx.Err() == nil {
			tell(v)
		}
	}
	t := explorerRun{x.follow, report}
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
			report(first)
			if len(first.Missed) > 0 || len(first.Faults) > 0 {
				return
			}
			for _, at := range x.seconds(first.recovery, x.options.Seed+uint64(i)) {
				if ctx.Err() != nil || x.late() {
					return
				}
				report(t.twice(ctx, course.with(Kill{At: at, Whom: Sender})))
			}
		})
	}
	begun()
	trying.Wait()
	return 0, context.Cause(ctx)
}

// late reports whether no trial may begin any more.
func (x *Explorer) late() bool { return !x.options.Until.IsZero() && time.Now().After(x.options.Until) }

// seconds chooses points of a recovery by a seed: half of them are messages that
// are sent only after the first kill.
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

// follow runs one trial.
func (x *Explorer) follow(ctx context.Context, course Course) Verdict {
	began := time.Now()
	out, err := x.try(ctx, course)
	v := Verdict{Of: x.conversation.ID, Course: course, Missed: out.missed, Revived: out.revived, Took: time.Since(began), Drained: out.drained, recovery: out.recovery}
	if err != nil {
		v.Faults, v.Said = []string{err.Error()}, out.logs
		return v
	}
	if course.isFree() {
		v.Missed = out.exact(course)
	}
	if v.Faults = Check(course.losesCalls(), x.want, out.end); len(v.Faults) > 0 {
		v.Said = out.logs
	}
	for _, call := range out.end.Calls {
		if call.Status == string(session.CallUnknown) {
			v.Unknown++
		}
	}
	return v
}

// Sample returns n of the courses by a seed, in their order: as many of each kind,
// as far as there are so many.
func Sample(courses []Course, n int, seed uint64) []Course {
	return sample(courses, Course.kind, n, seed)
}

func sample[T any](all []T, kindOf func(T) string, n int, seed uint64) []T {
	random := rand.New(rand.NewPCG(seed, 0))
	order, rank := random.Perm(len(all)), make([]int, len(all)) // rank: how many of the kind come before
	seen, lot := map[string]int{}, map[string]uint64{}
	for _, i := range order {
		kind := kindOf(all[i])
		if rank[i] = seen[kind]; rank[i] == 0 {
			lot[kind] = random.Uint64()
		}
		seen[kind]++
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(lot[kindOf(all[a])], lot[kindOf(all[b])]))
	})
	chosen := order[:max(0, min(n, len(order)))]
	slices.Sort(chosen)
	some := make([]T, len(chosen))
	for k, i := range chosen {
		some[k] = all[i]
	}
	return some
}
