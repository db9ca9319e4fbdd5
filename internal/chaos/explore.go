package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
	Parallel     int           // trials at once, at least 1
	Within       time.Duration // for one trial
}

// Explorer kills at the points of one conversation.
type Explorer struct {
	options      Options
	cast         *Cast
	conversation Conversation
	want         *End
	points       []Point
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
	if faults := Check("", out.end, out.end); len(faults) > 0 {
		return nil, fmt.Errorf("%s, without a kill: %s", x.conversation.ID, faults)
	}
	x.want, x.points = out.end, out.points
	return x, nil
}

// Brief returns all points of the session. Of what daemons send when they start
// (streams, lanes, descriptors of tools) it has one of each kind, with starts,
// else none: another conversation had them.
func (x *Explorer) Brief(starts bool) []Point {
	own := "ack." + subjects.LaneName(subjects.Lane(subjects.Partition(x.conversation.Session)))
	kinds := map[string]bool{}
	var brief []Point
	for _, point := range x.points {
		if point.startsUp(own) {
			if kinds[point.Kind()] || !starts {
				continue
			}
			kinds[point.Kind()] = true
		}
		brief = append(brief, point)
	}
	return brief
}

// Points returns the points that the conversation came by, in order, those of
// one process after those of the other.
func (x *Explorer) Points() []Point { return slices.Clone(x.points) }

// Verdict is what a kill at a point came to.
type Verdict struct {
	Point   Point
	Reached bool     // the process was killed there
	Faults  []string // what must not be; none: all is well
	Unknown int      // calls whose outcome nobody knows
	Revived int      // how often a process that said it could not run was started again
	Took    time.Duration
	Said    string // if something is wrong: what the processes logged last
}

// Explore kills at each of the points, several trials at once, and tells each
// verdict as it comes. A point that a trial does not come by is tried once
// more. It fails only when ctx ends.
func (x *Explorer) Explore(ctx context.Context, points []Point, tell func(Verdict)) error {
	room := make(chan struct{}, max(1, x.options.Parallel))
	var trying sync.WaitGroup
	var telling sync.Mutex
	for _, point := range points {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			trying.Wait()
			return context.Cause(ctx)
		}
		trying.Go(func() {
			defer func() { <-room }()
			v := x.kill(ctx, point)
			if !v.Reached && len(v.Faults) == 0 {
				v = x.kill(ctx, point)
			}
			telling.Lock()
			defer telling.Unlock()
			if ctx.Err() == nil {
				tell(v)
			}
		})
	}
	trying.Wait()
	return context.Cause(ctx)
}

// kill is one trial.
func (x *Explorer) kill(ctx context.Context, at Point) Verdict {
	began := time.Now()
	out, err := x.try(ctx, &at)
	v := Verdict{Point: at, Reached: out.reached, Revived: out.revived, Took: time.Since(began)}
	if err != nil {
		v.Faults, v.Said = []string{err.Error()}, out.said
		return v
	}
	if v.Faults = Check(at.Part, x.want, out.end); len(v.Faults) > 0 {
		v.Said = out.said
	}
	for _, call := range out.end.Calls {
		if call.Status == string(session.CallUnknown) {
			v.Unknown++
		}
	}
	return v
}

// Sample returns n of the points by a seed: one of each kind first, as far as n
// allows, then any others. The order is theirs.
func Sample(points []Point, n int, seed uint64) []Point {
	random := rand.New(rand.NewPCG(seed, 0))
	order := random.Perm(len(points))
	kinds := map[string]bool{}
	var first, rest []int
	for _, i := range order {
		kind := points[i].Kind()
		if kinds[kind] {
			rest = append(rest, i)
			continue
		}
		kinds[kind] = true
		first = append(first, i)
	}
	chosen := slices.Concat(first, rest)
	chosen = chosen[:min(n, len(chosen))]
	slices.Sort(chosen)
	sample := make([]Point, len(chosen))
	for k, i := range chosen {
		sample[k] = points[i]
	}
	return sample
}
