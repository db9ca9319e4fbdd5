package session

import (
	"fmt"

	"github.com/refold/refold/codec"
)

// Definition is the hash of what an agent consists of: the session's own config,
// and the registry without what spaces add. It is zero if the session has no config
// of its own. RunRequested.Agent names it.
func (s *State) Definition() codec.Hash {
	if s.Config == nil {
		return codec.Hash{}
	}
	return definition(s.Config, s.baseRegistry().Hash())
}

// DefinitionOf returns the Definition of a session that has accepted a
// SessionConfigured and a ToolRegistrySet with these data. It fails if no session
// accepts them.
func DefinitionOf(config, registry codec.Raw) (codec.Hash, error) {
	c, bad := decodeSessionConfig(config)
	if bad != nil {
		return codec.Hash{}, fmt.Errorf("config: %s: %s", bad.code, bad.detail)
	}
	_, r, bad := registryOf(registry)
	if bad != nil {
		return codec.Hash{}, fmt.Errorf("registry: %s: %s", bad.code, bad.detail)
	}
	if bad := configFault(r, &c.Run, true); bad != nil {
		return codec.Hash{}, fmt.Errorf("%s: %s", bad.code, bad.detail)
	}
	return definition(c, r.Hash()), nil
}

func definition(c *SessionConfig, registry codec.Hash) codec.Hash {
	config := encode(SessionConfigured{RunConfig: c.Run, QueueMax: c.QueueMax})
	return codec.Sum(append(registry[:], config...))
}

// agentFault refuses a request that was made for another definition than the
// session's.
func (s *State) agentFault(agent string) *refusal {
	if agent == "" {
		return nil
	}
	switch has := s.Definition(); {
	case has == codec.Hash{}:
		return refuse(RejectAgentChanged, "agent: the session has no config of its own: set the agent's config and registry first")
	case has.String() != agent:
		return refuse(RejectAgentChanged, "agent: the session has the definition "+has.String()+", and not "+agent+": set the agent's config and registry first")
	}
	return nil
}

// Content returns the hash of what a submission must repeat: the request's data
// without the definition, which may have changed since. of is what the event was, if its
// text was removed.
func (b *RunRequested) Content(data codec.Raw, of *Original) codec.Hash {
	switch {
	case of != nil:
		return of.Content
	case b.Agent == "":
		return codec.Sum(data)
	}
	without := *b
	without.Agent = ""
	return codec.Sum(encode(without))
}
