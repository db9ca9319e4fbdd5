package client

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
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

// InstallRegistry returns the registry of the newest install record, as for SetRegistry:
// what new sessions begin with.
func (c *Client) InstallRegistry(ctx context.Context) (json.RawMessage, error) {
	install, err := c.installs.Pinned(ctx, math.MaxUint64)
	if err != nil {
		return nil, fmt.Errorf("read the install record: %w", err)
	}
	r := &install.Record
	packed, err := codec.Marshal(session.ToolRegistrySet(planner.Defaults{
		DefaultProfile: r.DefaultProfile, ProfileByProvider: r.ProfileByProvider, Profiles: r.Profiles, Tools: r.Tools,
	}))
	if err != nil {
		return nil, fmt.Errorf("the registry of the install record: %w", err)
	}
	return codec.ToJSON(packed)
}
