package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// addWaits adds to a view what the state does not know: targets that no bridge
// serves, and troubles that delay the session.
func (h *Host) addWaits(ctx context.Context, state *session.State, v *session.View) {
	defer func() {
		h.addStall(v)
		v.Troubles = v.Troubles[:min(len(v.Troubles), session.TroublesMax)]
	}()
	members := h.bridges.Load()
	if members == nil {
		return
	}
	bridges, sure := members.Bridges()
	now := time.Now()
	if sure {
		v.Unserved = unserved(v.Open, bridges, now)
	}
	addWhyNot(state, v, bridges, sure, now, h.now())
	v.Troubles = troubles(v.Open, bridges, now)
	for _, e := range orphans(v.Open, bridges, now) {
		t, ok := h.silentHolder(ctx, v.Session, e, bridges, now)
		if !ok {
			t, ok = mayBeHeld(state, e, bridges, now)
		}
		if ok {
			v.Troubles = append(v.Troubles, t)
		}
	}
	if t, ok := h.failedAttempt(ctx, v); ok {
		v.Troubles = append(v.Troubles, t)
	}
}

// addStall adds why nobody works on the session's open effects, or folds what they come
// to: its lane stores nothing, or a consumer is paused.
func (h *Host) addStall(v *session.View) {
	lane := subjects.LaneOf(subjects.Partition(v.Session), h.opts.Lanes)
	for _, e := range v.Open {
		target := targetOf(e)
		if e.Class == session.ClassWake || slices.ContainsFunc(v.Troubles, func(t session.Trouble) bool { return t.Target == target }) {
			continue
		}
		consumer, err := subjects.BridgeName(e.Class, e.Target)
		if err != nil {
			continue // no bridge can pull it
		}
		if why, since, holds := h.wrong.holds(lane, consumer); holds {
			t := session.Trouble{Target: target, Code: session.TroubleStalled, Detail: short(why), Effects: waiting(v.Open, target)}
			if !since.IsZero() {
				t.Since = since.UnixMilli()
			}
			v.Troubles = append(v.Troubles, t)
		}
	}
}

// unserved returns the targets of open effects that no bridge has served for
// presence.SilentAfter, sorted and without duplicates. Wakes are left out:
// session-actors settle them.
func unserved(open []session.ViewEffect, bridges []presence.BridgeHeard, now time.Time) (targets []string) {
	for _, e := range open {
		if e.Class != session.ClassWake && !slices.ContainsFunc(bridges, serving(e, false, now)) {
			targets = append(targets, targetOf(e))
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// addWhyNot adds to calls that wait for a person why they would not run if they were
// approved now, if the state does not say so: nobody serves their target, or their
// deadline has passed and its wake is still to come.
func addWhyNot(state *session.State, v *session.View, bridges []presence.BridgeHeard, sure bool, now, server time.Time) {
	if v.Batch == nil {
		return
	}
	for i := range v.Batch.Calls {
		c := &v.Batch.Calls[i]
		if c.Status != session.CallAwaiting || c.ArgsHash == "" || c.Code != "" {
			continue
		}
		if c.Deadline <= server.UnixMilli() {
			c.Code, c.Detail = session.CodeApprovalExpired, "nobody decided over the call in time"
			continue
		}
		e := session.ViewEffect{Class: session.ClassTool, Target: state.CallTarget(c.ToolID)}
		if sure && c.Kind == "" && c.Pack == nil && !slices.ContainsFunc(bridges, serving(e, false, now)) {
			c.Code, c.Detail = session.TroubleUnserved, "no running bridge serves "+targetOf(e)+": start one, or the call waits for it until its deadline"
		}
	}
}

func targetOf(e session.ViewEffect) string { return string(e.Class) + "/" + e.Target }

func silent(b presence.BridgeHeard, now time.Time) bool { return now.Sub(b.At) > presence.SilentAfter }

// serving matches the bridges that serve an effect's target and are silent, or are
// not.
func serving(e session.ViewEffect, isSilent bool, now time.Time) func(presence.BridgeHeard) bool {
	return func(b presence.BridgeHeard) bool {
		return silent(b, now) == isSilent && slices.Contains(b.Targets, targetOf(e))
	}
}

// troubles returns the troubles that bridges report for the targets of open
// effects, one for each target. A failure without a next try delays nothing: the
// effect is settled.
func troubles(open []session.ViewEffect, bridges []presence.BridgeHeard, now time.Time) (all []session.Trouble) {
	for _, b := range bridges {
		if silent(b, now) {
			continue
		}
		for _, t := range b.Troubles {
			tells := t.Next != 0 || t.Code == session.TroubleLacks || t.Code == session.TroubleExecutor
			t.Effects = waiting(open, t.Target)
			if tells && len(t.Effects) > 0 && !slices.ContainsFunc(all, func(other session.Trouble) bool { return other.Target == t.Target }) {
				all = append(all, t)
			}
		}
	}
	return all
}

// waiting returns the open effects of a target.
func waiting(open []session.ViewEffect, target string) (effects []string) {
	for _, e := range open {
		if targetOf(e) == target {
			effects = append(effects, e.Effect)
		}
	}
	return effects
}

// orphansMax is how many claims are read for one view.
const orphansMax = 16

// orphans returns open effects that a silent bridge may hold while another bridge
// serves their target.
func orphans(open []session.ViewEffect, bridges []presence.BridgeHeard, now time.Time) (some []session.ViewEffect) {
	for _, e := range open {
		if len(some) < orphansMax && slices.ContainsFunc(bridges, serving(e, true, now)) && slices.ContainsFunc(bridges, serving(e, false, now)) {
			some = append(some, e)
		}
	}
	return some
}

// silentHolder reports an effect that a silent bridge has claimed.
func (h *Host) silentHolder(ctx context.Context, sid string, e session.ViewEffect, bridges []presence.BridgeHeard, now time.Time) (t session.Trouble, ok bool) {
	name := subjects.EffectName{Class: e.Class, Target: e.Target, Session: sid, Effect: e.Effect}
	holder, held, err := h.bus.Holder(ctx, name)
	if err != nil || !held {
		return t, false
	}
	return silentTrouble(e, bridges, func(b presence.BridgeHeard) bool { return b.Instance == holder && silent(b, now) },
		"the bridge that began it is not heard any more: another one goes on with it, or says that its outcome is unknown")
}

// mayBeHeld reports a retry-safe call, which has no claim, that was opened before a
// bridge of its target fell silent. If that bridge had begun the call, another one
// begins it again when its lease is over.
func mayBeHeld(state *session.State, e session.ViewEffect, bridges []presence.BridgeHeard, now time.Time) (t session.Trouble, ok bool) {
	asked, ok := state.CallAsked(e.Effect)
	if !ok {
		return t, false
	}
	serves := serving(e, true, now)
	return silentTrouble(e, bridges, func(b presence.BridgeHeard) bool {
		return serves(b) && asked <= b.At.Add(presence.HeartbeatEvery).UnixMilli()
	},
		"a bridge that serves it is not heard any more: if that one had begun the call, another one begins it again when its lease is over")
}

// silentTrouble returns the trouble of an effect whose bridge is silent, if there
// is such a bridge.
func silentTrouble(e session.ViewEffect, bridges []presence.BridgeHeard, is func(presence.BridgeHeard) bool, detail string) (t session.Trouble, ok bool) {
	at := slices.IndexFunc(bridges, is)
	if at < 0 {
		return t, false
	}
	return session.Trouble{
		Target: targetOf(e), Code: session.TroubleSilent, Effects: []string{e.Effect}, Since: bridges[at].At.UnixMilli(), Detail: detail,
	}, true
}

// failedAttempt reports how the last attempt at a turn failed, while the session
// waits for the next one.
func (h *Host) failedAttempt(ctx context.Context, v *session.View) (t session.Trouble, ok bool) {
	if v.Run == nil || v.Turn == nil || v.Run.RetryAt == 0 {
		return t, false
	}
	t = session.Trouble{Target: targetOf(session.ViewEffect{Class: session.ClassLLM, Target: v.Run.Provider}), Next: v.Run.RetryAt, Effects: []string{v.Turn.Effect}}
	e, found, err := h.bus.LastOf(ctx, session.DoorLLM, v.Session)
	if err != nil || !found {
		return t, false
	}
	t.Since, t.Code = e.Time, session.CodeDeadlineExceeded // no settlement: its deadline passed
	var b session.GenerationSettled
	env, err := session.ReadEnvelope(e.Payload)
	if err == nil && codec.Unmarshal(env.Data, &b) == nil && strings.HasPrefix(b.Effect, v.Turn.Effect) && b.Error != nil {
		t.Code, t.Detail = b.Error.Code, b.Error.Detail
	}
	return t, true
}
