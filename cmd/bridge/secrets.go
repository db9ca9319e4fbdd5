package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// given returns where the bridge looks for secrets before the environment:
// --secret, --secrets, then the entry of the space in the file of --spaces.
func (o *offers) given(f *flags, env settings.Environment) (all []bridge.Secrets) {
	for _, name := range slices.Sorted(maps.Keys(f.Secret)) {
		all = append(all, bridge.SecretFile(name, f.Secret[name]))
	}
	if f.SecretsDir != "" {
		all = append(all, bridge.SecretFiles(f.SecretsDir))
	}
	if o.spaces != nil {
		all = append(all, ofSpaces{o.spaces, env})
	}
	return all
}

// secretNames returns the names of secrets that any pack may use, and of those
// for MCP servers and services. An unreadable folder is reported when it is
// needed.
func (o *offers) secretNames(f *flags) (all []bridge.SecretName) {
	add := func(space string, names ...string) {
		for _, name := range names {
			all = append(all, bridge.SecretName{Space: space, Name: name})
		}
	}
	add("", slices.Sorted(maps.Keys(f.Secret))...)
	add("", slices.Sorted(maps.Values(f.ServiceSecret))...)
	for _, servers := range o.mcp {
		add("", servers.SecretNames()...)
	}
	if o.spaces != nil {
		for _, target := range o.spaces.Targets {
			for of, source := range target.Spaces {
				add(strings.TrimSuffix(of, spacefiles.AnySpace), slices.Sorted(maps.Keys(source.Secrets))...)
			}
		}
	}
	if f.SecretsDir == "" {
		return all
	}
	entries, _ := os.ReadDir(f.SecretsDir)
	for _, e := range entries {
		if space.IsSecretName(e.Name()) {
			add("", e.Name())
		}
	}
	return all
}

// ofSpaces are the secrets of spaces in the file of --spaces.
type ofSpaces struct {
	config *spacefiles.Config
	env    settings.Environment
}

// Secret returns the file's secret of that space, else of [spacefiles.AnySpace].
func (o ofSpaces) Secret(_ context.Context, of, name string) (string, error) {
	for _, key := range []string{of, spacefiles.AnySpace} {
		for _, target := range slices.Sorted(maps.Keys(o.config.Targets)) {
			from, ok := o.config.Targets[target].Spaces[key].Secrets[name]
			switch {
			case !ok:
				continue
			case from.Env != "":
				value, _ := o.env.Lookup(from.Env)
				return value, nil
			}
			return secrets.ReadFile(from.File)
		}
	}
	return "", nil
}
