package roles

import (
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// User is a user of the NATS servers, under one prefix. All programs with its
// key have the same rights.
type User struct {
	Prefix  string
	Role    Role
	Name    string
	Targets []string // of a bridge: providers, executors, hooks, spaces; of a server of the HTTP API: webhooks
	Buckets []string // of a space-reader: object stores with their files

	// For a NATS service that is a tool: the bridge that calls it and in whose account
	// it is, and the subjects of its requests. For that bridge: the subjects of all its
	// services.
	Bridge   string
	Subjects []string

	// Also are further roles of a bridge that serves targets of several classes, or of an
	// app, each with its targets. The name is the same.
	Also []User
}

// each returns the user once for each of its roles, with the targets of that role.
func (u User) each() []User {
	own := u
	own.Also = nil
	return append([]User{own}, u.Also...)
}

func (u User) targetsOf(role Role) []string {
	for _, v := range u.each() {
		if v.Role == role {
			return v.Targets
		}
	}
	return nil
}

func (u User) has(role Role) bool {
	return slices.ContainsFunc(u.each(), func(v User) bool { return v.Role == role })
}

// Roles lists the user's roles.
func (u User) Roles() string {
	var all []string
	for _, v := range u.each() {
		all = append(all, string(v.Role))
	}
	return strings.Join(all, ", ")
}

// service is the role of NATS services that are tools. They know nothing of
// Refold, and have no column in the table.
const service Role = "service"

// Inbox is the prefix of the user's reply subjects.
func (u User) Inbox() string {
	if u.Role == Loopback {
		return "_INBOX" // the default of NATS clients
	}
	return "_INBOX_" + u.Name
}

// consumers returns the consumers of the user's targets in its role: one for
// each class of effects that the role carries out, and one for each webhook.
func (u User) consumers() (all []Consumer) {
	if u.Role == HTTP {
		for _, name := range u.Targets {
			all = append(all, Consumer{subjects.ClassWebhook, name})
		}
	}
	for _, c := range session.Classes() {
		if c.Bridged && Role(c.Role) == u.Role {
			for _, t := range u.Targets {
				all = append(all, Consumer{c.Class, t})
			}
		}
	}
	return all
}

// combines reports whether the user may have further roles: its programs are bridges,
// which may serve targets of several classes, or apps with bridges inside.
func (u User) combines() bool {
	return u.Role == App || u.Role == AppAsk || slices.Contains(bridges(), u.Role)
}

// Home reports whether the user is in the streams' account.
func (u User) Home() bool { return u.Role == SessionActor || u.Role == Admin }

func (u User) account(n subjects.Names) string {
	switch {
	case u.Home():
		return n.Account("")
	case u.Role == service:
		return n.Account(u.Bridge)
	}
	return n.Account(u.Name)
}

// Right is what a user may do with the subjects of a row.
type Right struct {
	Row      Row
	Act      Act
	Patterns []string // in the spelling of JetStream and Refold
}

// Rights expands the table for a user. A service has no rights, but subjects.
func Rights(n subjects.Names, u User) (all []Right) {
	for _, v := range u.each() {
		for _, row := range Table() {
			act := row.may(v.Role)
			if act == 0 {
				continue
			}
			if patterns := row.Patterns(n, v); len(patterns) > 0 {
				all = append(all, Right{Row: row, Act: act, Patterns: patterns})
			}
		}
	}
	return all
}

// Consumer is a consumer that session-actors create for bridges and servers of the HTTP
// API, which may not. A webhook's has the class webhook.
type Consumer struct {
	Class  session.Class
	Target string
}

// String formats it as a session-actor's flag does.
func (c Consumer) String() string { return string(c.Class) + "/" + c.Target }

// Consumers returns the consumers of all bridges and webhooks of a prefix.
func Consumers(users []User, prefix string) (all []Consumer) {
	for _, u := range users {
		if u.Prefix != prefix {
			continue
		}
		for _, v := range u.each() {
			for _, c := range v.consumers() {
				if !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
		}
	}
	return all
}
