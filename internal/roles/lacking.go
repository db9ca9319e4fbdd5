package roles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/subjects"
)

// Lacking describes for people the right to publish to a subject, or to subscribe to it,
// and the roles that have it: `the right "ctl" (configure sessions) of the roles operator,
// app`. It is empty if no role has it.
func Lacking(n subjects.Names, publish bool, subject string) string {
	act := Hear
	if publish {
		act = Publish
	}
	if rest, ok := strings.CutPrefix(subject, n.API()+"."); ok {
		subject = api + rest
	}
	for _, row := range Table() {
		var have []string
		target := ""
		for _, role := range Roles() {
			if row.may(role)&act == 0 {
				continue
			}
			if covered(row.Patterns(n, User{Prefix: n.Prefix(), Role: role}), subject) {
				have = append(have, string(role))
				continue
			}
			for _, of := range targetsIn(subject) {
				if covered(row.Patterns(n, User{Prefix: n.Prefix(), Role: role, Targets: []string{of}}), subject) {
					have, target = append(have, string(role)), of
				}
			}
		}
		if len(have) == 0 {
			continue
		}
		of := strings.Join(have, ", ")
		if target != "" {
			return fmt.Sprintf("the right %q for the target %s (name it for this user, under %s, in the file of refold roles)", row.Name, target, of)
		}
		return fmt.Sprintf("the right %q (%s) of the roles %s", row.Name, row.About, of)
	}
	return ""
}

func covered(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, subject) })
}

// targetsIn returns what may be a target in a subject: a token, or what follows the class
// in the name of a consumer.
func targetsIn(subject string) (all []string) {
	for token := range strings.SplitSeq(subject, ".") {
		_, target, _ := strings.Cut(token, "-")
		for _, of := range []string{token, target} {
			if subjects.ValidTarget(of) == nil {
				all = append(all, of)
			}
		}
	}
	return all
}

// Allowed is what a server lets a user publish, or subscribe to, as it tells the user.
// Without Allow that is everything but Deny.
type Allowed struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// covers reports whether all subjects of a pattern are allowed; nil allows everything.
func (a *Allowed) covers(pattern string) bool {
	if a == nil {
		return true
	}
	if slices.ContainsFunc(a.Deny, func(d string) bool { return covers(d, pattern) || covers(pattern, d) }) {
		return false
	}
	return len(a.Allow) == 0 || covered(a.Allow, pattern)
}

// Lacks returns the rows of the table of which a role has rights that these permissions
// don't cover. What depends on the targets of a user is left out. at is the prefix of
// JetStream's API, with its dot.
func Lacks(n subjects.Names, role Role, at string, publish, subscribe *Allowed) (rows []string) {
	for _, r := range Rights(n, User{Prefix: n.Prefix(), Role: role}) {
		lacks := slices.ContainsFunc(r.Patterns, func(pattern string) bool {
			if rest, ok := strings.CutPrefix(pattern, api); ok {
				pattern = at + rest
			}
			return r.Act&Publish != 0 && !publish.covers(pattern) || r.Act&(Hear|Serve) != 0 && !subscribe.covers(pattern)
		})
		if lacks {
			rows = append(rows, r.Row.Name)
		}
	}
	return rows
}
