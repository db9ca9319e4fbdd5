package roles

import (
	"slices"
	"strings"

	"github.com/refold/refold/subjects"
)

// Subject is one that every user is tried with.
type Subject struct {
	Row    string
	Prefix string // of the tenant
	Name   string // as it is in the account of that tenant's streams
}

// Subjects returns an example of every pattern of the table: those of the users
// that it names, and of rows that are nobody's those that are the same for all.
func Subjects(users []User) (all []Subject, err error) {
	seen := map[Subject]bool{}
	add := func(row Row, n subjects.Names, u User) {
		for _, pattern := range row.Patterns(n, u) {
			s := Subject{Prefix: n.Prefix(), Name: example(pattern)}
			if !seen[s] {
				seen[s] = true
				s.Row = row.Name
				all = append(all, s)
			}
		}
	}
	for _, prefix := range prefixes(users) {
		n, err := subjects.New(prefix)
		if err != nil {
			return nil, err
		}
		for _, row := range Table() {
			given := false
			for _, u := range users {
				for _, v := range u.each() {
					if v.Prefix == prefix && row.may(v.Role) != 0 {
						given = true
						add(row, n, v)
					}
				}
			}
			if !given {
				add(row, n, User{Prefix: prefix})
			}
		}
	}
	return all, nil
}

// prefixes returns those of the users, in their order.
func prefixes(users []User) (all []string) {
	for _, u := range users {
		if !slices.Contains(all, u.Prefix) {
			all = append(all, u.Prefix)
		}
	}
	return all
}

// Tried is a user, ready to be tried: what it may do, and how it spells a
// subject.
type Tried struct {
	User
	n      subjects.Names
	rights []Right
}

// Trying prepares a user.
func Trying(u User) (Tried, error) {
	n, err := subjects.New(u.Prefix)
	if err != nil {
		return Tried{}, err
	}
	return Tried{User: u, n: n, rights: Rights(n, u)}, nil
}

// May says what the table lets the user do with a subject.
func (t Tried) May(s Subject) (act Act) {
	if s.Prefix != t.Prefix {
		return 0
	}
	for _, r := range t.rights {
		if slices.ContainsFunc(r.Patterns, func(p string) bool { return covers(p, s.Name) }) {
			act |= r.Act
		}
	}
	return act
}

// Spellings are how the user may try to publish to a subject: as the streams'
// account has it, and under each prefix of JetStream's API.
func (t Tried) Spellings(s Subject) []string {
	rest, ok := strings.CutPrefix(s.Name, api)
	if !ok {
		return []string{s.Name}
	}
	return []string{s.Name, t.n.API() + "." + rest}
}
