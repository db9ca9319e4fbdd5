package bridgecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// openClaimed makes a call, stores a claim for it, and then stores the call.
func (c *checker) openClaimed(ctx context.Context, body string) (*testCall, error) {
	a, err := c.make(c.Arguments, c.Within)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.bus.Claim(ctx, subjects.ClaimName{EffectName: a.name, N: 1}, []byte(body)); err != nil {
		return nil, err
	}
	return a, c.store(ctx, a)
}

func (c *checker) withdrawn(ctx context.Context) error {
	a, err := c.openClaimed(ctx, `{"withdrawn":true}`)
	if err != nil {
		return err
	}
	ok, err := c.await(ctx, c.Within, a, ack)
	if err != nil {
		return err
	}
	if !ok && len(c.about(a, settlement)) == 0 {
		return found("it was not acknowledged within %v; %s", c.Within, c.answers(a))
	}
	if err := c.pass(ctx, c.Quiet); err != nil {
		return err
	}
	if all := c.about(a, settlement); len(all) > 0 {
		return found("it was settled: %s", shown(all[0].msg.Data))
	}
	return nil
}

// lost plays another live bridge: it claims a call and sends heartbeats.
func (c *checker) lost(ctx context.Context) error {
	beating, stop := context.WithCancel(ctx)
	defer stop()
	other := c.Instance + "-other"
	body, err := json.Marshal(map[string]any{"targets": []string{string(session.ClassTool) + "/" + c.Target}, "rules": session.RulesVersion})
	if err != nil {
		return err
	}
	if err := c.bus.Beat(subjects.KindBridge, other, body); err != nil {
		return err
	}
	go func() { _ = c.bus.Heartbeat(beating, subjects.KindBridge, other, func() []byte { return body }) }() // it ends with beating
	holder, err := journal.ClaimedBy(other)
	if err != nil {
		return err
	}
	a, err := c.openClaimed(ctx, string(holder))
	if err != nil {
		return err
	}
	return c.untouched(ctx, a, 3+int(c.Quiet/time.Second))
}

// gone plays another bridge that died: it claimed a call and sends no heartbeat.
func (c *checker) gone(ctx context.Context) error {
	holder, err := journal.ClaimedBy(c.Instance + "-gone")
	if err != nil {
		return err
	}
	a, err := c.openClaimed(ctx, string(holder))
	if err != nil {
		return err
	}
	return c.want(ctx, c.Within+presence.GoneAfter+c.leaseTime, a, "", session.CallUnknown)
}

func (c *checker) stop(ctx context.Context) error {
	if c.Stop == nil {
		return unchecked("the bridge was not started here: give its command after --")
	}
	var running *testCall
	var err error
	if c.slowTook > 0 {
		if running, err = c.startSlow(ctx, slowMax); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Stop(ctx) }()
	later, err := c.open(ctx, c.Arguments, c.Within, nil)
	if err != nil {
		return cmp.Or(err, <-ended)
	}
	if err := <-ended; err != nil {
		return cmp.Or(context.Cause(ctx), found("%v", err))
	}
	if err := c.nc.Flush(); err != nil {
		return err
	}
	if running != nil && len(c.about(running, settlement)) == 0 {
		return found("a call that ran was not settled; %s", c.answers(running))
	}
	body, err := c.claimed(ctx, later)
	if err == nil && body != "" && len(c.about(later, settlement)) == 0 {
		return found("a call that was published meanwhile was claimed and not settled")
	}
	if all := c.about(later, settlement, ack); err == nil && len(all) > 0 && all[0].kind == ack {
		return found("a call that was published meanwhile was acknowledged and not settled")
	}
	return err
}
