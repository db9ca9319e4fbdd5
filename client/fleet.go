package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Fleet is what runs now, by its heartbeats and its answers.
type Fleet struct {
	Bridges   []RunningBridge
	Actors    []RunningActor
	LaneCount int // lanes of the log; 0: no session-actor is heard
	Targets   []ServedTarget
	NoBacklog error // why the queues of targets are not known: this user may not ask
}

// RunningBridge is a bridge that is heard.
type RunningBridge struct {
	Instance string
	Name     string // its own; empty: it has none
	Version  string // empty: it does not say
	Targets  []string
	Heard    time.Time         // its last heartbeat; zero: it only answers
	AheadMS  int64             // of its machine's clock, if that is wrong
	Troubles []session.Trouble // of its targets
}

// RunningActor is a session-actor that is heard.
type RunningActor struct {
	Instance string
	Lanes    []int
	Heard    time.Time
	AheadMS  int64
	Joining  bool
	Leaving  bool
	NotReady []string // for people
}

// ServedTarget is a target that bridges serve, or that has a queue.
type ServedTarget struct {
	Target  string // class/target
	Bridges int    // that serve it
	Lacks   []string
	Untaken uint64 // effects that no bridge has got
	Waiting uint64 // Untaken, and those that a bridge has
}

// Fleet listens to bridges and session-actors for at least one interval of heartbeats,
// and for within at most.
func (c *Client) Fleet(ctx context.Context, within time.Duration) (*Fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	actors, err := c.bus.TrackMembers(ctx, subjects.KindSessionActor)
	if err != nil {
		return nil, fmt.Errorf("listen to session-actors: %w", err)
	}
	found, err := c.bus.Fleet(ctx, within, func(*presence.Fleet) bool { return len(actors.Known()) > 0 }, func(time.Duration) {})
	if err != nil {
		return nil, fmt.Errorf("listen to bridges: %w", err)
	}
	all := &Fleet{Bridges: bridgesOf(found)}
	for _, member := range actors.Live(presence.GoneAfter) {
		var h presence.Heartbeat
		if json.Unmarshal(member.Body, &h) != nil {
			continue
		}
		all.LaneCount = max(all.LaneCount, h.LaneCount)
		all.Actors = append(all.Actors, RunningActor{
			Instance: member.Instance, Lanes: h.Lanes, Heard: member.Heard, AheadMS: h.AheadMS, Joining: h.Joining, Leaving: h.Leaving, NotReady: h.NotReady,
		})
	}
	backlog, err := c.bus.Backlog(ctx)
	switch {
	case IsDenied(err):
		all.NoBacklog = err
	case err != nil:
		return nil, err
	}
	targets := map[string]*ServedTarget{}
	of := func(target string) *ServedTarget {
		if targets[target] == nil {
			targets[target] = &ServedTarget{Target: target, Lacks: found.Lacks(target)}
		}
		return targets[target]
	}
	for target, n := range found.Served() {
		of(target).Bridges = n
	}
	for _, queue := range backlog.Targets {
		t := of(string(queue.Class) + "/" + queue.Target)
		t.Untaken, t.Waiting = queue.Untaken, queue.Waiting
	}
	for _, t := range targets {
		all.Targets = append(all.Targets, *t)
	}
	slices.SortFunc(all.Targets, func(a, b ServedTarget) int { return strings.Compare(a.Target, b.Target) })
	return all, nil
}

// bridgesOf returns each bridge once: what it answers, and its heartbeat.
func bridgesOf(found *presence.Fleet) (all []RunningBridge) {
	for _, b := range found.Heard {
		all = append(all, RunningBridge{Instance: b.Instance, Targets: b.Targets, Heard: b.At, AheadMS: b.AheadMS, Troubles: b.Troubles})
	}
	for _, b := range found.Answered {
		instance := b.Metadata["instance"]
		at := slices.IndexFunc(all, func(r RunningBridge) bool { return r.Instance == instance })
		if at < 0 {
			all = append(all, RunningBridge{Instance: instance, Targets: strings.Fields(b.Metadata["targets"])})
			at = len(all) - 1
		}
		all[at].Name, all[at].Version = b.Metadata["name"], b.Version
	}
	slices.SortFunc(all, func(a, b RunningBridge) int { return strings.Compare(a.Name+a.Instance, b.Name+b.Instance) })
	return all
}
