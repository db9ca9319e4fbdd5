package planner

import (
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// providerProfile is an entry of profile_by_provider. The provider's name is in
// lower case.
type providerProfile struct {
	provider string
	profile  string
}

// ProfileFrom says how a run's profile was chosen. The values are wire: they
// stand in toolsets that sessions keep, as their Source.
type ProfileFrom string

const (
	ProfileFromConfig   ProfileFrom = "config"
	ProfileFromSession  ProfileFrom = "session"  // ToolProfileSelected
	ProfileFromProvider ProfileFrom = "provider" // profile_by_provider has the run's provider
	ProfileFromDefault  ProfileFrom = "default"  // default_profile
)

// addProviders checks profile_by_provider and adds its entries.
func (r *Registry) addProviders(byProvider codec.Pairs) *RegistryError {
	const path = "profile_by_provider"
	if len(byProvider) > ProvidersMax {
		return fault(path, "%d providers, at most %d", len(byProvider), ProvidersMax)
	}
	for _, entry := range byProvider {
		if !IsName(entry.Key) {
			return fault(path, "a provider is 1 to %d of A-Za-z0-9_-, not %+q", NameBytesMax, clip(entry.Key, NameBytesMax))
		}
		at := path + "." + entry.Key
		provider := strings.ToLower(entry.Key) // a name is ASCII
		i, taken := r.provider(provider)
		if taken {
			return fault(at, "is there twice: upper and lower case are the same")
		}
		var name string
		if err := codec.Unmarshal(entry.Value, &name); err != nil {
			return fault(at, "is the name of a profile")
		}
		if !r.HasProfile(name) {
			return fault(at, "there is no profile %+q", clip(name, NameBytesMax))
		}
		r.byProvider = slices.Insert(r.byProvider, i, providerProfile{provider: provider, profile: name})
	}
	return nil
}

// provider finds a provider in the table by its name in lower case.
func (r *Registry) provider(name string) (int, bool) {
	return slices.BinarySearchFunc(r.byProvider, name, func(p providerProfile, name string) int { return strings.Compare(p.provider, name) })
}

// ProfileByProvider returns the profiles of providers, by provider in lower
// case, nil if there are none. The caller owns the result.
func (r *Registry) ProfileByProvider() codec.Pairs {
	var out codec.Pairs
	for _, p := range r.byProvider {
		out = append(out, codec.Pair{Key: p.provider, Value: codec.AppendString(nil, p.profile)})
	}
	return out
}

// ResolveProfile returns the name of a run's profile and how it was chosen: by
// the run's config, else the session, else the entry of profile_by_provider for
// the run's provider, else the registry's default. Providers are compared
// without regard to case, and otherwise exactly. A name that the registry lacks
// is skipped. With "" the run has no profile: its base is all tools.
func ResolveProfile(reg *Registry, config, session, provider string) (string, ProfileFrom) {
	switch {
	case config != "" && reg.HasProfile(config):
		return config, ProfileFromConfig
	case session != "" && reg.HasProfile(session):
		return session, ProfileFromSession
	}
	if i, ok := reg.provider(strings.ToLower(provider)); ok {
		return reg.byProvider[i].profile, ProfileFromProvider
	}
	if reg.defaultProfile != "" {
		return reg.defaultProfile, ProfileFromDefault
	}
	return "", ""
}

// IsFromProfile reports whether the toolset's base is a profile, or all tools
// because there is none.
func (ts *Toolset) IsFromProfile() bool {
	return ts.Source != FromStep && ts.Source != FromRun && ts.Source != FromCatalog
}

// WhyProfile says in words how the profile of a toolset was chosen. provider is
// the run's, or "" if it is no longer known.
func WhyProfile(ts *Toolset, provider string) string {
	who := "the run's provider"
	if provider != "" {
		who = "provider " + quoted(provider)
	}
	switch ProfileFrom(ts.Source) {
	case ProfileFromConfig:
		return "the run's config names it"
	case ProfileFromSession:
		return "selected for the session"
	case ProfileFromProvider:
		return who + " in profile_by_provider"
	case ProfileFromDefault:
		return who + " is not in profile_by_provider: the default profile"
	}
	return who + " is not in profile_by_provider, and there is no default profile"
}
