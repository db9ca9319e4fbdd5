package client

import (
	"context"

	"github.com/refold/refold/actors/session"
)

// Children returns the sessions that carry out calls of a session, theirs, and so on, each
// after its parent. Those whose messages were deleted are left out. It folds each session's
// log from its first event, and writes nothing.
func (c *Client) Children(ctx context.Context, sid string) ([]string, error) {
	all := []string{sid}
	for i := 0; i < len(all); i++ {
		asked, err := c.asked(ctx, all[i])
		if err != nil {
			return nil, err
		}
		for _, child := range asked {
			has, err := c.hasText(ctx, child)
			if err != nil {
				return nil, err
			}
			if has {
				all = append(all, child)
			}
		}
	}
	return all[1:], nil
}

// asked returns the sessions that a session has asked to carry out calls, in order.
func (c *Client) asked(ctx context.Context, sid string) (sids []string, err error) {
	known := map[string]bool{}
	var state *session.State
	for e, err := range c.Read(ctx, sid, 0, 0) {
		if err != nil {
			return nil, err
		}
		folded, err := c.fold(ctx, state, e)
		if err != nil {
			return nil, err
		}
		state = folded.after
		for _, m := range state.Messages() {
			env, err := session.ReadEnvelope(m.Payload)
			if err != nil {
				return nil, err
			}
			if env.Type == session.TypeChildRequested && !known[m.Session] {
				known[m.Session] = true
				sids = append(sids, m.Session)
			}
		}
	}
	return sids, nil
}

// hasText reports whether the log has more of a session than its tombstone.
func (c *Client) hasText(ctx context.Context, sid string) (bool, error) {
	tombstone, err := c.tombstoneAlone(ctx, sid)
	if err != nil || tombstone != 0 {
		return false, err
	}
	for _, err := range c.Read(ctx, sid, 0, 0) {
		return err == nil, err
	}
	return false, nil
}
