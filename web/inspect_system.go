package web

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Limits of what is listed of a system.
const (
	installsMax    = 20
	quarantinesMax = 200
	verifyEach     = 250 * time.Millisecond // between two steps of progress
)

// getCaller says who the caller is.
func (c *call) getCaller() (any, error) {
	shown := CallerShown{Subject: c.caller.Subject, Rights: append([]Right{}, c.caller.Rights...), Scoped: c.caller.Scope != "", Agents: []string{}, Redacts: len(c.masks) > 0}
	for _, name := range c.inner.Agents() {
		if c.caller.mayName(name) {
			shown.Agents = append(shown.Agents, name)
		}
	}
	return shown, nil
}

// getFleet says what runs now.
func (c *call) getFleet() (any, error) {
	fleet, err := c.client.Fleet(c.ctx(), heardWithin)
	if err != nil {
		return nil, err
	}
	shown := FleetShown{Bridges: []BridgeShown{}, SessionActors: []ActorShown{}, Lanes: fleet.LaneCount, LaneStates: []LaneShown{}, Targets: []TargetShown{}, Installs: []InstallShown{}}
	for i := range fleet.Bridges {
		shown.Bridges = append(shown.Bridges, bridgeOf(&fleet.Bridges[i]))
	}
	for i := range fleet.Actors {
		shown.SessionActors = append(shown.SessionActors, actorOf(&fleet.Actors[i]))
	}
	for _, l := range fleet.Lanes {
		shown.LaneStates = append(shown.LaneStates, LaneShown{Lane: l.Lane, Owner: l.Owner, Pinned: l.Pinned, Pending: l.Undelivered, Unacknowledged: l.Unacked, Oldest: heard(l.Oldest)})
	}
	for _, t := range fleet.Targets {
		shown.Targets = append(shown.Targets, TargetShown(t))
	}
	if fleet.NoBacklog != nil {
		shown.Unknown = fleet.NoBacklog.Error()
	}
	installs, err := c.client.Installs(c.ctx(), installsMax)
	for i := range installs {
		one := installOf(&installs[i])
		if one.Pinned {
			one.Unserved = unserved(installs[i].Install, shown.Targets)
		}
		shown.Installs = append(shown.Installs, one)
	}
	return shown, err
}

func bridgeOf(b *client.RunningBridge) BridgeShown {
	shown := BridgeShown{
		Instance: b.Instance, Name: b.Name, Version: b.Version, Targets: append([]string{}, b.Targets...), Heard: heard(b.Heard), AheadMS: b.AheadMS,
		Rules: b.Rules, Troubles: b.Troubles,
	}
	if b.Stated != nil {
		shown.Work = new(BridgeWork(*b.Stated))
	}
	return shown
}

func actorOf(a *client.RunningActor) ActorShown {
	shown := ActorShown{
		Instance: a.Instance, Lanes: append([]int{}, a.Lanes...), Heard: heard(a.Heard), Leaving: a.Leaving, Joining: a.Joining, AheadMS: a.AheadMS,
		Rules: a.Rules, NotReady: a.NotReady,
	}
	if s := a.Stated; s != nil {
		shown.Work = &ActorWork{Version: s.Version, Owned: append([]int{}, s.Owned...), Takeovers: s.Takeovers, Events: s.Events, Sessions: s.Sessions, SessionsBytes: s.SessionsBytes}
	}
	return shown
}

// unserved returns the tools of an install record whose target no bridge serves.
func unserved(r *session.Install, targets []TargetShown) (tools []string) {
	served := map[string]bool{}
	for _, t := range targets {
		served[t.Target] = t.Bridges > 0
	}
	for _, tool := range r.Registry.Tools() {
		if target := string(session.ClassTool) + "/" + tool.Executor.Target; tool.Executor.Kind == planner.ExecutorEffect && !served[target] {
			tools = append(tools, tool.ToolID)
		}
	}
	return tools
}

// getInstallChanges returns how an install record differs from the one before it.
func (c *call) getInstallChanges() (any, error) {
	seq, err := c.sequenceInPath()
	if err != nil {
		return nil, err
	}
	installs, err := c.client.Installs(c.ctx(), installsMax)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(installs, func(r client.InstallRecord) bool { return r.Seq == seq })
	if at < 0 {
		return nil, problem(http.StatusNotFound, CodeNoEvent, "event %d is none of the latest %d install records", seq, installsMax)
	}
	records := [2]any{}
	for i, of := range []int{at + 1, at} { // the newest one is the first
		if records[i] = map[string]any{}; of == len(installs) {
			continue
		}
		e, err := c.client.Event(c.ctx(), installs[of].Seq)
		if err != nil {
			return nil, err
		}
		if text, err := codec.ToJSON(e.Payload); err == nil { // one that can't be read has nothing
			if records[i], err = jsonValue(text); err != nil {
				return nil, err
			}
		}
	}
	changes, more := changesOf(records[0], records[1])
	return ChangeList{Changes: append([]Change{}, changes...), More: more}, nil
}

func heard(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func installOf(r *client.InstallRecord) InstallShown {
	shown := InstallShown{Seq: r.Seq, Time: r.Time, Pinned: r.IsPinned}
	if r.Install == nil {
		shown.Fault = r.Fault.Error()
		return shown
	}
	shown.Hash, shown.Rules, shown.Tools = r.Install.Hash.String(), r.Install.Rules, r.Install.Registry.Len()
	return shown
}

// getSystem says how the log is stored.
func (c *call) getSystem() (any, error) {
	storage, err := c.client.Storage(c.ctx())
	if err != nil {
		return nil, err
	}
	shown := SystemShown{
		Durability: storage.Durability, Last: storage.Last, Missing: storage.Missing, Rules: session.RulesVersion,
		NATS: storage.Server, Timers: TimersShown{Set: storage.Timers, Due: storage.Due},
		Streams: []StreamShown{}, Quarantines: []QuarantineShown{},
	}
	if storage.NoDue != nil {
		shown.Timers.Unknown = storage.NoDue.Error()
	}
	installs, err := c.client.Installs(c.ctx(), installsMax)
	if err != nil {
		return nil, err
	}
	for _, r := range installs {
		if r.IsPinned {
			shown.Pinned = r.Install.Rules
		}
	}
	for _, s := range storage.Streams {
		shown.Streams = append(shown.Streams, StreamShown{
			Name: s.Name, IsMissing: s.Missing, Messages: s.Messages, Bytes: s.Bytes, BytesMax: max(s.BytesMax, 0), MaxAge: int64(s.MaxAge.Seconds()),
			Replicas: s.Replicas, Leader: s.Leader,
		})
	}
	stopped, err := c.client.Quarantines(c.ctx(), quarantinesMax)
	for _, q := range stopped {
		shown.Quarantines = append(shown.Quarantines, QuarantineShown{Session: q.Session, Seq: q.Seq, Reason: q.Reason})
	}
	return shown, err
}

// verifySession folds the session again, and compares it with what is stored.
func (c *call) verifySession() (any, error) {
	var replayed *client.Replayed
	err := c.folded(func() (err error) {
		replayed, err = c.client.VerifySession(c.ctx(), c.sid)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.verified(replayed), nil
}

func (c *call) verified(r *client.Replayed) *Verified {
	return &Verified{
		Session: c.strip(r.Session), Events: r.Events, Rejected: r.Rejected, Hash: r.Hash.String(), Chain: r.Chain.String(),
		Same: r.EffectsSame, Gone: r.EffectsGone, SnapshotAt: r.SnapshotAt, Differences: r.Differences,
	}
}

// verifyAll folds all sessions again. It streams those that differ, and how far it is.
func (c *call) verifyAll() (any, error) {
	s, err := c.stream()
	if err != nil {
		return nil, err
	}
	defer s.close()
	var step VerifyStep
	sent := time.Now()
	send := func() error {
		sent = time.Now()
		text, err := json.Marshal(step)
		if err != nil {
			return err
		}
		step.Session = nil
		return s.send("", "", text)
	}
	var sum *client.Verified
	failed := c.folded(func() (err error) {
		sum, err = c.client.Verify(c.ctx(), client.VerifyOptions{Each: func(r *client.Replayed) error {
			step.Sessions++
			step.Events += r.Events
			if !r.Identical() {
				step.Differ++
				step.Session = c.verified(r)
			}
			if step.Session == nil && time.Since(sent) < verifyEach {
				return nil
			}
			return send()
		}})
		return err
	})
	if failed != nil {
		if c.ctx().Err() != nil {
			return nil, errSent
		}
		return nil, s.fail(failed)
	}
	step = VerifyStep{Done: true, Sessions: sum.Sessions, Events: sum.Events, Differ: sum.Differ}
	for _, hole := range sum.Holes {
		step.Missing += hole.Last - hole.First + 1
	}
	return nil, send()
}
