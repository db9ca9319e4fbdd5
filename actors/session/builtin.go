package session

import (
	"github.com/refold/refold/planner"
)

// BuiltinInstall returns the built-in install record, canonical: the registry
// and profiles of package planner, the default policy, no default config. It
// is what the first session-actor publishes when the log has none.
func BuiltinInstall() []byte {
	d := planner.Builtin()
	return encode(InstallRecord{
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: RulesVersion, Tools: d.Tools, V: Version,
	})
}
