package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// Options configure Servers. The zero value is usable.
type Options struct {
	Target  string            // of servers whose Config has none; empty: mcp
	Env     map[string]string // the environment to which Config refers
	Secrets secrets.Source    // the secrets to which Config refers; nil: Env, by the built-in catalog
	Version string            // of this program, sent to servers
	Logger  *slog.Logger      // nil: no logs
	// Silent is called if a server has not answered a request of its start for
	// silenceTold: initialize or tools/list. nil: only the log has it.
	Silent func(server, request string)
}

// Servers carries out calls of tools of MCP servers. Each server is started or
// connected at its first call.
type Servers struct {
	log     *slog.Logger
	lock    Lock
	servers map[string]*server // by name
}

// New returns Servers for a valid Config. Only tools in lock run.
func New(c *Config, lock Lock, o Options) (*Servers, error) {
	if err := c.Validate(o.Env); err != nil {
		return nil, err
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Secrets == nil {
		catalog, err := secrets.NewCatalog(func(name string) (string, bool) { value, ok := o.Env[name]; return value, ok })
		if err != nil {
			return nil, err
		}
		o.Secrets = secrets.Chain{catalog}
	}
	all := &Servers{log: log, lock: lock, servers: make(map[string]*server, len(c.Servers))}
	for name, config := range c.Servers {
		s := &server{
			name: name, config: config, target: config.target(o.Target), env: o.Env, sources: o.Secrets,
			lock: lock, version: o.Version, silent: o.Silent, logged: map[string]string{}, current: map[string]string{},
		}
		s.given.Add(config.valuesOf(o.Env)...)
		s.log = slog.New(s.given.Handler(log.Handler())).With("server", name)
		s.base, s.cancel = context.WithCancel(context.Background())
		all.servers[name] = s
	}
	for _, id := range slices.Sorted(maps.Keys(lock)) {
		if all.of(id) == nil {
			log.Info("mcp_import_unused", "tool", id, "do", "its server is not in the config any more: import the tools again")
		}
	}
	return all, nil
}

// Executors returns an executor for each target.
func (s *Servers) Executors() map[string]executor.Executor {
	all := map[string]executor.Executor{}
	for _, server := range s.servers {
		all[server.target] = target{s, server.target}
	}
	return all
}

// target carries out the calls of one target.
type target struct {
	*Servers
	name string
}

// ToolIDs returns the ids of the target's imported tools, sorted. In a pack, its
// name stands for their first part.
func (t target) ToolIDs() (ids []string) {
	for _, server := range t.servers {
		if server.target == t.name {
			ids = slices.AppendSeq(ids, maps.Keys(server.lock))
		}
	}
	slices.Sort(ids)
	return ids
}

// Troubles returns which tools of the target have changed since their import,
// and which servers failed at the latest attempt, for the bridge's stats and
// refold bridge doctor.
func (t target) Troubles() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(t.servers)) {
		server := t.servers[name]
		if server.target != t.name {
			continue
		}
		changes := server.changes()
		for _, id := range slices.Sorted(maps.Keys(changes)) {
			all = append(all, fmt.Sprintf("server %s, tool %s: %s", name, id, changes[id]))
		}
		if missing := server.missing(); missing != "" {
			all = append(all, fmt.Sprintf("server %s is not there: %s", name, missing))
		}
	}
	return all
}

// Close ends all sessions and the programs started for them. Calls in progress
// fail.
func (s *Servers) Close() {
	var background sync.WaitGroup
	for _, server := range s.servers {
		background.Go(server.close)
	}
	background.Wait()
}

// Imported is the result of Import.
type Imported struct {
	Tools    []*Tool // by server and tool_id
	Problems []*Problem
	Lock     Lock     // of Tools
	Notes    []string // for people
}

// Import requests the tools of every server. It fails if one is not there.
func (s *Servers) Import(ctx context.Context) (*Imported, error) {
	all := &Imported{Lock: Lock{}}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		if err := s.servers[name].list(ctx, all); err != nil {
			failed = append(failed, fmt.Errorf("server %s: %w", name, err))
		}
	}
	all.separate()
	return all, errors.Join(failed...)
}

// separate leaves out tools whose name for models is that of a tool of an earlier
// server: one record can't have both.
func (all *Imported) separate() {
	owners := map[string]*Tool{}
	all.Tools = slices.DeleteFunc(all.Tools, func(t *Tool) bool {
		name, id := t.Function.ToolName(), t.Function.ToolID()
		owner, taken := owners[name]
		if !taken {
			owners[name] = t
			return false
		}
		all.Problems = append(all.Problems, &Problem{Server: t.Server, Tool: t.Name, ToolID: id, Err: fmt.Errorf(
			"models would see it as %s, as tool %s of server %s: give one of the servers another name, or exclude one of the tools", name, owner.Name, owner.Server)})
		delete(all.Lock, id)
		return true
	})
}

func (s *server) list(ctx context.Context, all *Imported) error {
	if s.config.URL == "" && s.config.Command == "" {
		return errors.New("it has neither a command nor a url")
	}
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	with, err := s.fill(ctx, "")
	if err != nil {
		return err
	}
	t, err := s.begin(ctx, with)
	if err != nil {
		return err
	}
	defer t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.tools)) {
		all.Tools = append(all.Tools, t.tools[id])
		all.Lock[id] = t.tools[id].Pin
	}
	all.Problems = append(all.Problems, t.problems...)
	for _, name := range s.config.unlisted(t.names) {
		all.Notes = append(all.Notes, fmt.Sprintf("server %s lists no tool %s, which the file names", s.name, name))
	}
	return nil
}

// of returns the server of a tool, or nil.
func (s *Servers) of(id string) *server {
	for _, server := range s.servers {
		if prefix := server.prefix(); len(id) > len(prefix) && id[:len(prefix)] == prefix {
			return server
		}
	}
	return nil
}
