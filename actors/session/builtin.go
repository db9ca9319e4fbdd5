package session

import (
	"github.com/refold/refold/planner"
)

// BuiltinInstall returns the canonical bytes of the built-in install record: the
// registry and profiles of package planner, the default policy, no default config.
// The first session-actor publishes it if the log has no record.
func BuiltinInstall() []byte {
	d := planner.Builtin()
	return encode(InstallRecord{
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: RulesVersion, Tools: d.Tools, V: Version,
	})
}
