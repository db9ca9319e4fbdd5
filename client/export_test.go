package client

import "context"

// ViewerThrough is Viewer with another source of deltas.
func (c *Client) ViewerThrough(ctx context.Context, sid string, between func(d Delta, hear func(Delta))) (*Viewer, error) {
	return c.viewerOf(ctx, sid, func(ctx context.Context, sid string, hear func(Delta)) error {
		return c.Live(ctx, sid, func(d Delta) { between(d, hear) })
	})
}
