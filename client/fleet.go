package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	Lanes     []RunningLane
	Targets   []ServedTarget
	NoBacklog error // why lanes and the queues of targets are not known: this user may not ask
}

// RunningLane is a lane of the log: session-actors fold its events in order.
type RunningLane struct {
	Lane        int
	Owner       string    // instance of the session-actor; empty: none says that it owns it
	Pinned      bool      // the server says that somebody owns it
	Undelivered uint64    // events that were not delivered to a session-actor
	Unacked     uint64    // events that were delivered, and whose outputs are not all stored
	Oldest      time.Time // when the oldest of both was stored; zero: there is none
}

// RunningBridge is a bridge that is heard.
type RunningBridge struct {
	Instance string
	Name     string // its own; empty: it has none
	Version  string // empty: it does not say
	Rules    int    // the newest version of the rules that it knows; 0: it does not say
	Targets  []string
	Heard    time.Time         // its last heartbeat; zero: it only answers
	AheadMS  int64             // of its machine's clock, if that is wrong
	Troubles []session.Trouble // of its targets
	Stated   *StatedBridge
}

// StatedBridge is what a bridge says when it is asked. One that is too busy to answer,
// or keeps no counts, is heard by its heartbeats alone.
type StatedBridge struct {
	InFlight  int64  // effects that are in a slot of one of its targets
	Slots     int    // that its targets have
	Done      uint64 // effects that it settled as succeeded, since its start
	Failed    uint64 // effects that it settled as anything else
	TakenOver uint64 // effects of bridges that were gone
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
	Rules    int      // the newest version of the rules that it knows
	Stated   *StatedActor
}

// StatedActor is what a session-actor says when it is asked. One that is too busy to
// answer is heard by its heartbeats alone.
type StatedActor struct {
	Version       string
	Owned         []int  // lanes that it owns
	Takeovers     uint64 // times that it became the owner of a lane, since its start
	Events        uint64 // that it folded and whose outputs it stored, since its start
	Sessions      int64  // in memory
	SessionsBytes int64  // memory that these take, about
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
	var stated map[string]*StatedActor
	var counts map[string]*StatedBridge
	var actorsErr, bridgesErr error
	var asking sync.WaitGroup
	asking.Go(func() { stated, actorsErr = c.statedActors(ctx) })
	asking.Go(func() { counts, bridgesErr = c.statedBridges(ctx) })
	found, err := c.bus.Fleet(ctx, within, func(*presence.Fleet) bool { return len(actors.Known()) > 0 }, func(time.Duration) {})
	asking.Wait()
	if err = errors.Join(err, actorsErr, bridgesErr); err != nil {
		return nil, fmt.Errorf("listen to bridges and session-actors: %w", err)
	}
	all := &Fleet{Bridges: bridgesOf(found, counts)}
	for _, member := range actors.Live(presence.GoneAfter) {
		var h presence.Heartbeat
		if json.Unmarshal(member.Body, &h) != nil {
			continue
		}
		all.LaneCount = max(all.LaneCount, h.LaneCount)
		all.Actors = append(all.Actors, RunningActor{
			Instance: member.Instance, Lanes: h.Lanes, Heard: member.Heard, AheadMS: h.AheadMS, Joining: h.Joining, Leaving: h.Leaving, NotReady: h.NotReady,
			Rules: h.Rules, Stated: stated[member.Instance],
		})
	}
	backlog, err := c.bus.Backlog(ctx)
	if err == nil {
		all.Lanes, err = c.lanes(ctx, all.Actors)
	}
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

// statedActors asks all session-actors, and returns what they say, by instance.
func (c *Client) statedActors(ctx context.Context) (map[string]*StatedActor, error) {
	running, err := c.bus.Discover(ctx, subjects.KindSessionActor)
	if err != nil || len(running) == 0 {
		return nil, err
	}
	stats, err := c.bus.Stated(ctx, subjects.KindSessionActor)
	if err != nil {
		return nil, err
	}
	all := map[string]*StatedActor{}
	for _, r := range running {
		var s presence.ActorStats
		if json.Unmarshal(stats[r.ID], &s) == nil {
			all[r.Metadata["instance"]] = &StatedActor{Version: cmp.Or(r.Metadata["version"], r.Version), Owned: s.Owned, Takeovers: s.Takeovers, Events: s.Events, Sessions: s.Sessions, SessionsBytes: s.Bytes}
		}
	}
	return all, nil
}

// statedBridges asks all bridges, and returns what they say, by the ID of their
// registration.
func (c *Client) statedBridges(ctx context.Context) (map[string]*StatedBridge, error) {
	stats, err := c.bus.Stated(ctx, subjects.KindBridge)
	if err != nil {
		return nil, err
	}
	all := map[string]*StatedBridge{}
	for id, text := range stats {
		var s struct {
			Claims struct {
				TakenOver uint64 `json:"taken_over"`
			} `json:"claims"`
			Targets map[string]struct {
				InFlight int64  `json:"in_flight"`
				Slots    int    `json:"slots"`
				Done     uint64 `json:"done"`
				Failed   uint64 `json:"failed"`
			} `json:"targets"`
		}
		if json.Unmarshal(text, &s) != nil {
			continue // it is none of this project's
		}
		one := &StatedBridge{TakenOver: s.Claims.TakenOver}
		for _, t := range s.Targets {
			one.InFlight += t.InFlight
			one.Slots += t.Slots
			one.Done += t.Done
			one.Failed += t.Failed
		}
		all[id] = one
	}
	return all, nil
}

// lanes returns the lanes, and which session-actor owns each.
func (c *Client) lanes(ctx context.Context, actors []RunningActor) (all []RunningLane, err error) {
	lanes, err := c.bus.LanesAged(ctx)
	for _, l := range lanes {
		one := RunningLane{Lane: l.Lane, Pinned: l.Pinned, Undelivered: l.Undelivered, Unacked: l.Unacked, Oldest: l.Oldest}
		for _, a := range actors {
			if a.Stated != nil && slices.Contains(a.Stated.Owned, l.Lane) {
				one.Owner = a.Instance
			}
		}
		all = append(all, one)
	}
	return all, err
}

// bridgesOf returns each bridge once: what it answers, and its heartbeat.
func bridgesOf(found *presence.Fleet, counts map[string]*StatedBridge) (all []RunningBridge) {
	for _, b := range found.Heard {
		all = append(all, RunningBridge{Instance: b.Instance, Rules: b.Rules, Targets: b.Targets, Heard: b.At, AheadMS: b.AheadMS, Troubles: b.Troubles})
	}
	for _, b := range found.Answered {
		instance := b.Metadata["instance"]
		at := slices.IndexFunc(all, func(r RunningBridge) bool { return r.Instance == instance })
		if at < 0 {
			all = append(all, RunningBridge{Instance: instance, Targets: strings.Fields(b.Metadata["targets"])})
			at = len(all) - 1
		}
		all[at].Name, all[at].Version = b.Metadata["name"], cmp.Or(b.Metadata["version"], b.Version)
		all[at].Stated = counts[b.ID]
	}
	slices.SortFunc(all, func(a, b RunningBridge) int { return strings.Compare(a.Name+a.Instance, b.Name+b.Instance) })
	return all
}
