package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Configure sets a session's own config, for runs that are requested from now on and
// bring none, through the door ctl. config is an object with the fields of a
// SessionConfigured: a RunConfig, and optionally queue_max. id is the event's; empty:
// a new ULID. Taken returns the outcome.
func (c *Client) Configure(ctx context.Context, sid string, config json.RawMessage, id string) (seq uint64, err error) {
	var body session.SessionConfigured
	raw, err := codec.FromJSON(config)
	if err == nil {
		err = codec.Decode(raw, &body)
	}
	if err != nil {
		return 0, fmt.Errorf("config: %w", err)
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeSessionConfigured, body, id)
}

// DefinitionOf returns the hash of a definition, as in RunOptions.Agent: config is as
// for Configure and names a provider and a model, registry is as for SetRegistry. The
// error says why no session accepts them.
func DefinitionOf(config, registry json.RawMessage) (codec.Hash, error) {
	of, err := codec.FromJSON(config)
	if err != nil {
		return codec.Hash{}, fmt.Errorf("config: %w", err)
	}
	with, err := codec.FromJSON(registry)
	if err != nil {
		return codec.Hash{}, fmt.Errorf("registry: %w", err)
	}
	return session.DefinitionOf(of, with)
}

// Definition returns the hash of a session's definition: zero for a session without
// events, or without a config of its own. It folds the log itself.
func (c *Client) Definition(ctx context.Context, sid string) (codec.Hash, error) {
	state, err := c.latest(ctx, sid)
	switch {
	case errors.Is(err, ErrNoSession):
		return codec.Hash{}, nil
	case err != nil:
		return codec.Hash{}, fmt.Errorf("definition of %s: %w", sid, err)
	}
	return state.Definition(), nil
}

// SetFacts sets facts of a session from its next turn on, and removes others, through
// the door ctl: all of them or none. A nil value removes a fact. id is the event's;
// empty: a new ULID. Taken returns the outcome.
func (c *Client) SetFacts(ctx context.Context, sid string, facts map[string]*string, id string) (seq uint64, err error) {
	body := session.FactsSet{}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		value, err := codec.Marshal(facts[name])
		if err != nil {
			return 0, fmt.Errorf("fact %s: %w", name, err)
		}
		body.Facts = append(body.Facts, codec.Pair{Key: name, Value: value})
	}
	return c.publish(ctx, session.DoorCtl, sid, session.TypeFactsSet, body, id)
}

// SetOverrides changes the lists of tools that a session, or its active run, adds or
// leaves out, through the door ctl. id is the event's; empty: a new ULID. Taken returns
// the outcome.
func (c *Client) SetOverrides(ctx context.Context, sid string, lists session.ToolOverridesSet, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeToolOverridesSet, lists, id)
}

// SelectProfile selects the profile of runs whose config names none, from the next turn
// on, through the door ctl. id is the event's; empty: a new ULID. Taken returns the
// outcome.
func (c *Client) SelectProfile(ctx context.Context, sid, profile, id string) (seq uint64, err error) {
	return c.publish(ctx, session.DoorCtl, sid, session.TypeToolProfileSelected, session.ToolProfileSelected{Profile: profile}, id)
}
