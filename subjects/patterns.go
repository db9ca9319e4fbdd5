package subjects

import "github.com/refold/refold/actors/session"

// Patterns for permissions.

// DoorAll matches the events that are published through a door, of every session, and
// for DoorInstall the install records.
func (n Names) DoorAll(door session.Door) string {
	if door == session.DoorInstall {
		return n.Install()
	}
	return n.join(string(door), "*")
}

// StoredAll matches the stored events of a door.
func (n Names) StoredAll(door session.Door) string { return n.join("*", string(door), "*") }

// EffectsAll matches the effects and claims of every session.
func (n Names) EffectsAll() string { return n.join("fx", ">") }

// ClaimsAll matches the claims of effects of a class and target.
func (n Names) ClaimsAll(class session.Class, target string) []string {
	return []string{n.join("fx", claimToken, string(class), target, "*", "*"), n.join("fx", claimToken, string(class), target, "*", "*", "*")}
}

// Probe tokens are in the subjects of Probes. They name no session and no target, so that
// nobody reads the messages.
const probeToken = "~"

// Probes returns subjects of the streams of effects, notices and timers for a message of
// no session. id names it in the stream of effects, whose subjects take one message.
func (n Names) Probes(id string) [3]string {
	return [3]string{
		n.join("fx", claimToken, string(session.ClassTool), probeToken, probeToken, id), n.join("out", probeToken), n.join("timer", probeToken, probeToken, "0"),
	}
}

// TimersAll matches the message schedules of every wake.
func (n Names) TimersAll() string { return n.join("timer", "*", "*", "*") }

// API is the prefix of the JetStream API for users of other accounts than the one with
// the streams: JetStream's own prefix addresses the user's own account.
func (n Names) API() string { return n.join("api") }

// JetStreamAPI is the prefix of the JetStream API of a domain; of the connected server's
// own, if domain is empty.
func JetStreamAPI(domain string) string {
	if domain == "" {
		return "$JS.API"
	}
	return "$JS." + domain + ".API"
}

// Account returns the name of the account with the streams if name is empty, and else
// of a user's account.
func (n Names) Account(name string) string {
	if name == "" {
		return n.upper
	}
	return n.upper + "/" + name
}

// ServicesAll matches the control requests to all micro services.
const ServicesAll = "$SRV.>"
