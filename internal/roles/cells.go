package roles

import (
	"slices"
	"strings"

	"github.com/refold/refold/subjects"
)

// Subject is a subject that every user is tried with.
type Subject struct {
	Row    string
	Prefix string // of the tenant
	Name   string // as spelt in the account of that tenant's streams
}

// Subjects returns an example of every pattern of the table: one for each user
// with rights in a row. A row without such users gets one example.
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

func prefixes(users []User) (all []string) {
	for _, u := range users {
		if !slices.Contains(all, u.Prefix) {
			all = append(all, u.Prefix)
		}
	}
	return all
}

// Tried is a user with its rights, as far as trying the user needs them.
type Tried struct {
	User
	file   *File
	n      subjects.Names
	rights []Right
}

// Trying prepares a user of the file.
func (f *File) Trying(u User) (Tried, error) {
	n, err := subjects.New(u.Prefix)
	if err != nil {
		return Tried{}, err
	}
	return Tried{User: u, file: f, n: n, rights: Rights(n, u)}, nil
}

// May returns what the table permits the user to do with a subject.
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

// Spellings returns the subjects by which the user may try to publish to s.
func (t Tried) Spellings(s Subject) []string {
	all := t.file.Spellings(s)
	if rest, ok := strings.CutPrefix(s.Name, api); ok {
		all = append(all, t.n.API()+"."+rest)
	}
	return all
}

// Spellings returns the subjects by which s arrives in the streams' account: a request
// to JetStream has the file's domain until it is there.
func (f *File) Spellings(s Subject) []string {
	rest, ok := strings.CutPrefix(s.Name, api)
	if !ok || f.Domain == "" {
		return []string{s.Name}
	}
	return []string{s.Name, subjects.JetStreamAPI(f.Domain) + "." + rest}
}
