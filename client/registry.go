package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// SetRegistry replaces a session's registry from its next turn on, through the
// door ctl. An open batch ends under the registry that it began with, without
// calls whose tools the new one lacks. registry is an object with the fields of a
// ToolRegistrySet: {"tools": […]}, as function.Specs returns it, and optionally
// profiles and a default_profile. id is the event's; empty: a new ULID.
//
// The session refuses an invalid registry, one without a tool whose name is in
// use, and one that binds a tool more loosely than the session's install record
// does: see Taken.
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
