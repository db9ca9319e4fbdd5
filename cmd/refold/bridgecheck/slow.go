package bridgecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/refold/refold/actors/session"
)

// stopWithin is how long a bridge may take to settle a call that it must stop:
// the tool has 5 s to end.
const stopWithin = 7 * time.Second

// startSlow opens a slow call, and waits until the bridge has claimed it.
func (c *checker) startSlow(ctx context.Context, run time.Duration) (*testCall, error) {
	a, err := c.open(ctx, c.Slow, run, nil)
	if err != nil {
		return nil, err
	}
	ok, err := c.await(ctx, c.Within, a, claim, settlement)
	if err == nil && !ok {
		err = found("the call was not claimed within %v; %s", c.Within, c.answers(a))
	}
	return a, err
}

// lease also measures how long a slow call takes.
func (c *checker) lease(ctx context.Context) error {
	if c.Slow == "" {
		return unchecked("give --slow: arguments of a call that takes longer than the lease, " + c.leaseTime.String())
	}
	a, err := c.startSlow(ctx, slowMax)
	if err != nil {
		return err
	}
	if err := c.want(ctx, slowMax, a, "", session.CallSucceeded); err != nil {
		return err
	}
	end := c.about(a, settlement)[0].at
	took := end.Sub(c.about(a, claim)[0].at)
	if took <= c.leaseTime {
		return unchecked("the call of --slow took " + took.Round(time.Millisecond).String() + ": it must take longer than the lease, " + c.leaseTime.String())
	}
	c.slowTook = took
	last := a.at
	for _, h := range append(c.about(a, progress), message{at: end}) {
		if gap := h.at.Sub(last); gap >= c.leaseTime {
			return found("for %v no +WPI was sent; the lease is %v", gap.Round(time.Millisecond), c.leaseTime)
		}
		last = h.at
	}
	return nil
}

// needsSlow returns why a check that needs a slow call can't be made.
func (c *checker) needsSlow() error {
	if c.slowTook == 0 {
		return unchecked("it needs a slow call: see the check lease")
	}
	return nil
}

func (c *checker) whileRunning(ctx context.Context) error {
	if err := c.needsSlow(); err != nil {
		return err
	}
	a, err := c.startSlow(ctx, slowMax)
	if err != nil {
		return err
	}
	// The subject of an acknowledgement is the delivery's reply subject. A NAK
	// there makes the server deliver the effect again at once.
	if ok, err := c.await(ctx, c.leaseTime, a, progress, ack); err != nil || !ok {
		return cmp.Or(err, found("no +WPI was sent within the lease, %v", c.leaseTime))
	}
	first := c.about(a, progress, ack)[0]
	if err := c.nc.Publish(first.msg.Subject, []byte("-NAK")); err != nil {
		return err
	}
	if err := c.want(ctx, slowMax, a, "", session.CallSucceeded); err != nil {
		return err
	}
	if err := c.pass(ctx, c.slowTook+c.Quiet); err != nil { // a second run would end meanwhile
		return err
	}
	if n := len(c.about(a, settlement)); n > 1 {
		if err := c.once(a); err != nil {
			return err
		}
		return found("it was settled %d times", n)
	}
	return nil
}

// stopped returns the time for a slow call that must stop: less than it needs.
func (c *checker) stopped() time.Duration { return min(stopWithin, c.slowTook*3/4) }

func (c *checker) cancel(ctx context.Context) error {
	if err := c.needsSlow(); err != nil {
		return err
	}
	a, err := c.startSlow(ctx, slowMax)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string][]string{"effects": {a.name.Effect}})
	if err != nil {
		return err
	}
	if err := c.bus.PublishCancel(ctx, a.name.Session, body); err != nil {
		return err
	}
	return c.want(ctx, c.stopped(), a, "", session.CallUnknown, session.CallCancelled)
}

func (c *checker) runTime(ctx context.Context) error {
	if err := c.needsSlow(); err != nil {
		return err
	}
	run := c.slowTook / 5
	a, err := c.startSlow(ctx, run)
	if err != nil {
		return err
	}
	return c.want(ctx, run+c.stopped(), a, "", session.CallUnknown)
}
