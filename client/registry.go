package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// SetRegistry gives a session a registry of its own, in place of the one that
// it has, from its next turn on; a batch that is open ends under the registry
// that it began with, without the calls that the new one takes away. It goes through the door ctl. registry is an object with
// the fields of a ToolRegistrySet: {"tools": […]}, as function.Specs makes it, with
// profiles and a default_profile if wanted. id is the event's; empty: a new ULID.
//
// The session refuses a registry that is not valid, one that leaves a name in
// use without its tool, and one that binds a tool more loosely than the
// session's install record does: see Taken.
func (c *Client) SetRegistry(ctx context.Context, sid string, registry json.RawMessage, id string) (seq uint64, err error) {
	raw, err := codec.FromJSON(registry)
	if err != nil {
		return 0, fmt.Errorf("registry: %w", err)
	}
	var body session.ToolRegistrySet
	if err := codec.Decode(raw, &body); err != nil {
		return 0, fmt.Errorf("registry: %w", err)
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeToolRegistrySet, body, id)
}
