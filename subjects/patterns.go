package subjects

import "github.com/refold/refold/actors/session"

// Patterns that permissions name. The order of tokens is that of the subjects.

// DoorAll matches what is published through a door, of every session, and for
// DoorInstall the install record.
func (n Names) DoorAll(door session.Door) string {
	if door == session.DoorInstall {
		return n.Install()
	}
	return n.join(string(door), "*")
}

// StoredAll matches events of a door as the log holds them.
func (n Names) StoredAll(door session.Door) string { return n.join("*", string(door), "*") }

// EffectsAll matches the effects and claims of every session.
func (n Names) EffectsAll() string { return n.join("fx", ">") }

// ClaimsAll matches the claims of effects of a class and target.
func (n Names) ClaimsAll(class session.Class, target string) []string {
	return []string{n.join("fx", claimToken, string(class), target, "*", "*"), n.join("fx", claimToken, string(class), target, "*", "*", "*")}
}

// TimersAll matches the message schedules of every wake.
func (n Names) TimersAll() string { return n.join("timer", "*", "*", "*") }

// API is the prefix under which accounts other than that of the streams ask the
// JetStream API: JetStream's own prefix is answered for the asker's account.
func (n Names) API() string { return n.join("api") }

// Account is the name of the account that has the streams; a name makes that of
// the account of one user.
func (n Names) Account(name string) string {
	if name == "" {
		return n.upper
	}
	return n.upper + "/" + name
}

// ServicesAll matches what any micro service is asked about itself.
const ServicesAll = "$SRV.>"
