package roles

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/subjects"
)

// Account is an account of the servers, as Config prints it.
type Account struct {
	Name    string
	Home    bool // it has the streams
	Limits  Limits
	Exports []Export
	Imports []Import
	Users   []Permissions
}

// Export is what other accounts may import.
type Export struct {
	Pattern  string
	Stream   bool // for subscriptions; otherwise for publishes and requests
	Answers  Answers
	Accounts []string // that may import it
}

// Import is the import of an Export.
type Import struct {
	Pattern string
	Stream  bool
	From    string // account
	To      string // the subject in the importing account; empty: Pattern
}

// Permissions are the permissions of a user.
type Permissions struct {
	User      User
	Publish   []string
	Subscribe []string
	Responses bool // it may reply to each request once
}

// serviceReplies matches the reply subjects of requests from other accounts.
// The server makes them.
const serviceReplies = "_R_.>"

// plainInboxes are the inboxes of programs without a configured inbox prefix.
const plainInboxes = "_INBOX.>"

// Plan assigns the users to accounts. The accounts of each prefix stand in
// order, the streams' account first.
func (f *File) Plan() ([]Account, error) {
	users, err := f.Users()
	if err != nil {
		return nil, err
	}
	var all []Account
	for _, prefix := range slices.Sorted(maps.Keys(f.Tenants)) {
		n, err := subjects.New(prefix)
		if err != nil {
			return nil, err
		}
		p := &planning{n: n, api: subjects.JetStreamAPI(f.Domain) + ".", accounts: map[string]*Account{}, exports: map[exported]*Export{}}
		for _, u := range users {
			if u.Prefix == prefix {
				p.users = append(p.users, u)
			}
		}
		for _, u := range p.users {
			p.add(u, f.limits(u))
		}
		all = append(all, p.finish()...)
	}
	return all, nil
}

// planning is the plan of one prefix.
type planning struct {
	n        subjects.Names
	api      string // of JetStream in the streams' account, with its dot
	users    []User
	accounts map[string]*Account
	order    []*Account
	exports  map[exported]*Export
}

// exported identifies an export.
type exported struct {
	account, pattern string
	stream           bool
}

func (p *planning) account(u User, limits Limits) *Account {
	name := u.account(p.n)
	a := p.accounts[name]
	if a == nil {
		a = &Account{Name: name, Home: u.Home()}
		p.accounts[name] = a
		p.order = append(p.order, a)
	}
	if u.Role != service {
		a.Limits = limits
	}
	return a
}

func (p *planning) add(u User, limits Limits) {
	a := p.account(u, limits)
	may := Permissions{User: u}
	for _, r := range Rights(p.n, u) {
		for _, pattern := range r.Patterns {
			if r.Act&Publish != 0 {
				may.Publish = append(may.Publish, p.local(u, pattern))
				if u.Home() { // servers of the domain check what its API stands for
					may.Publish = append(may.Publish, pattern)
				}
				p.link(a, u, r.Row, pattern, false)
			}
			if r.Act&Hear != 0 {
				may.Subscribe = append(may.Subscribe, pattern)
				p.link(a, u, r.Row, pattern, true)
			}
			if r.Act&Serve != 0 {
				may.Subscribe = append(may.Subscribe, pattern)
				may.Publish = append(may.Publish, serviceReplies)
			}
		}
	}
	switch {
	case u.Role == service:
		may.Subscribe = append(may.Subscribe, u.Subjects...)
		may.Subscribe = append(may.Subscribe, subjects.ServicesAll)
		may.Publish, may.Responses = append(may.Publish, u.Inbox()+".>"), true
	case u.has(Tools):
		if may.Publish = append(may.Publish, u.Subjects...); len(u.Subjects) > 0 {
			may.Publish = append(may.Publish, subjects.ServicesAll, u.Inbox()+".>") // a service too, and it receives its own requests
		}
	case u.Role == SessionActor:
		may.Publish = append(may.Publish, plainInboxes) // of programs in the same account
		for _, other := range p.users {
			if other.Role == Admin {
				may.Publish = append(may.Publish, other.Inbox()+".>")
			}
		}
	case u.Role == Admin:
		may.Publish, may.Subscribe = []string{">"}, []string{">"}
	}
	may.Subscribe = append(may.Subscribe, u.Inbox()+".>")
	may.Publish, may.Subscribe = sorted(may.Publish), sorted(may.Subscribe)
	a.Users = append(a.Users, may)
}

// local returns how a pattern is spelt in the user's account.
func (p *planning) local(u User, pattern string) string {
	rest, ok := strings.CutPrefix(pattern, api)
	switch {
	case !ok:
		return pattern
	case u.Home():
		return p.api + rest
	}
	return p.n.API() + "." + rest
}

// link exports a pattern to the user's account and imports it there: from the
// streams' account, and from those of other users that serve it.
func (p *planning) link(a *Account, u User, row Row, pattern string, stream bool) {
	if u.Home() {
		return
	}
	local := p.local(u, pattern)
	pattern = p.local(User{Role: SessionActor}, pattern)
	// A server does not pass a message that came by an import of publishes on to the imports
	// of subscriptions. So deltas are imported from the account that publishes them. Apps
	// don't do that: two of them would form a cycle, and they read the log.
	from, act := []string{p.n.Account("")}, Serve
	if stream {
		act = Publish
	}
	for _, other := range p.users {
		gives := slices.ContainsFunc(other.each(), func(v User) bool { return row.May[v.Role]&act != 0 })
		if gives && !other.Home() && other.account(p.n) != a.Name && (!stream || !publishes(u, row)) {
			from = append(from, other.account(p.n))
		}
	}
	for _, account := range from {
		key := exported{account, pattern, stream}
		e := p.exports[key]
		if e == nil {
			e = &Export{Pattern: pattern, Stream: stream, Answers: row.Answers}
			p.exports[key] = e
		}
		if !slices.Contains(e.Accounts, a.Name) {
			e.Accounts = append(e.Accounts, a.Name)
		}
		e.Answers = max(e.Answers, row.Answers)
		i := Import{Pattern: pattern, Stream: stream, From: account}
		if local != pattern {
			i.To = local
		}
		if !slices.Contains(a.Imports, i) {
			a.Imports = append(a.Imports, i)
		}
	}
}

// publishes reports whether a user may publish a row's subjects.
func publishes(u User, row Row) bool {
	return slices.ContainsFunc(u.each(), func(v User) bool { return row.May[v.Role]&Publish != 0 })
}

func (p *planning) finish() []Account {
	for key, e := range p.exports {
		slices.Sort(e.Accounts)
		a := p.accounts[key.account]
		a.Exports = append(a.Exports, *e)
	}
	var all []Account
	for _, a := range p.order {
		slices.SortFunc(a.Exports, func(x, y Export) int {
			return cmp.Or(cmp.Compare(x.Pattern, y.Pattern), compareBools(x.Stream, y.Stream))
		})
		slices.SortFunc(a.Imports, func(x, y Import) int {
			return cmp.Or(cmp.Compare(x.Pattern, y.Pattern), compareBools(x.Stream, y.Stream), cmp.Compare(x.From, y.From))
		})
		all = append(all, *a)
	}
	return all
}

func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

// sorted sorts texts and removes duplicates.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
