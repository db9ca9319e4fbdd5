package roles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/subjects"
)

// usersMax is the maximal number of users of a file.
const usersMax = 512

// File lists the users. The zero value has none.
type File struct {
	URL     string             `yaml:"url"`     // in the files by which programs connect
	Domain  string             `yaml:"domain"`  // of the servers' JetStream; empty: of the server that a program connects to
	Storage string             `yaml:"storage"` // limit of the streams of each tenant, such as 10GB; empty: the servers' limit
	Limits  map[string]Limits  `yaml:"limits"`  // of a user's account, by the user's name; "default" is for all others
	Tenants map[string]*Tenant `yaml:"tenants"` // by prefix

	Servers []string `yaml:"servers"` // of a cluster: NAME, NAME=HOST or NAME=HOST:PORT
	TLS     string   `yaml:"tls"`     // directory for the servers' certificates; empty: none
}

// Limits are the limits of one account. 0 means no limit.
type Limits struct {
	Connections   int    `yaml:"connections"`
	Subscriptions int    `yaml:"subscriptions"`
	Payload       string `yaml:"payload"` // size of one message, such as 64KB
}

// Tenant is the users of one prefix, which has streams and sessions of its own.
type Tenant struct {
	SessionActors []string `yaml:"session-actors"`
	Clients       []string `yaml:"clients"`
	Approvers     []string `yaml:"approvers"`
	Operators     []string `yaml:"operators"`
	Auditors      []string `yaml:"auditors"`
	Erasers       []string `yaml:"erasers"`    // the processes that delete sessions, one at a time
	Publishers    []string `yaml:"publishers"` // of packs
	Admins        []string `yaml:"admins"`
	Loopback      []string `yaml:"loopback"` // at most one, for the server's no_auth_user
	Apps          []string `yaml:"apps"`     // programs that own an agent
	AppAsks       []string `yaml:"app-asks"` // programs that ask others' agents

	// Names, and the targets of each. A name under several of these, apps and app-asks is
	// one user, whose bridges serve targets of several classes.
	Models       map[string][]string `yaml:"models"`
	Tools        map[string][]string `yaml:"tools"`
	StepHooks    map[string][]string `yaml:"step-hooks"`
	SpaceReaders map[string][]string `yaml:"space-readers"`

	// HTTP are servers of the HTTP API, and the webhooks of each; none is [].
	HTTP map[string][]string `yaml:"http"`

	// Buckets are object stores in the streams' account, by their space-reader.
	Buckets map[string][]string `yaml:"buckets"`

	Services map[string]Service `yaml:"services"`
}

// Service is a NATS service that is a tool.
type Service struct {
	Bridge   string   `yaml:"bridge"`   // the user of tools that calls it
	Subjects []string `yaml:"subjects"` // subjects of its requests
}

// DefaultTenant is the tenant used without a file: one user of each role that a
// deployment with OpenAI's models, host tools and session tools needs.
func DefaultTenant() *Tenant {
	return &Tenant{
		SessionActors: []string{"actor"}, Clients: []string{"client"}, Approvers: []string{"approver"}, Operators: []string{"operator"},
		Auditors: []string{"auditor"}, Erasers: []string{"eraser"}, Admins: []string{"admin"},
		Models: map[string][]string{"models": {"openai"}}, Tools: map[string][]string{"tools": {"host", "host-w1", sessionTools}},
	}
}

// Parse reads a file. Errors name the line; an error about an unknown key
// suggests the nearest known one.
func Parse(text []byte) (*File, error) {
	var f File
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&f)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlfile.Explain(err, &f)
	}
	return &f, nil
}

// Users returns all users, in an order that depends on the file only, or every
// problem of the file.
func (f *File) Users() ([]User, error) {
	var all []User
	var wrong []error
	for _, prefix := range slices.Sorted(maps.Keys(f.Tenants)) {
		if _, err := subjects.New(prefix); err != nil {
			wrong = append(wrong, fmt.Errorf("tenants: %w", err))
			continue
		}
		if f.Tenants[prefix] == nil {
			wrong = append(wrong, fmt.Errorf("tenant %s: it has no users", prefix))
			continue
		}
		users := f.Tenants[prefix].users(prefix)
		wrong = append(wrong, problems(prefix, users)...)
		wrong = append(wrong, f.Tenants[prefix].bucketProblems(prefix)...)
		all = append(all, users...)
	}
	if len(all) > usersMax {
		wrong = append(wrong, fmt.Errorf("%d users: use at most %d", len(all), usersMax))
	}
	if len(f.Tenants) == 0 {
		wrong = append(wrong, errors.New("tenants: name one at least"))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		if name != limitsDefault && !slices.ContainsFunc(all, func(u User) bool { return u.Name == name }) {
			wrong = append(wrong, fmt.Errorf("limits: no user is called %s", name))
		}
		wrong = append(wrong, f.Limits[name].problems(name)...)
	}
	if f.Domain != "" && subjects.ValidInstance(f.Domain) != nil {
		wrong = append(wrong, fmt.Errorf("domain: %q: a domain of JetStream is 1 to 64 of A-Za-z0-9_-", f.Domain))
	}
	if _, err := size(f.Storage); err != nil {
		wrong = append(wrong, fmt.Errorf("storage: %w", err))
	}
	for _, u := range all {
		if f.ofServers(u.Name) {
			wrong = append(wrong, fmt.Errorf("servers: %s is a user's name too: give each a name of its own", u.Name))
		}
	}
	_, err := f.cluster()
	wrong = append(wrong, err)
	return all, errors.Join(wrong...)
}

func (t *Tenant) bucketProblems(prefix string) (all []error) {
	for _, name := range slices.Sorted(maps.Keys(t.Buckets)) {
		if _, ok := t.SpaceReaders[name]; !ok {
			all = append(all, fmt.Errorf("tenant %s: buckets: no space-reader is called %s", prefix, name))
		}
		for _, bucket := range t.Buckets[name] {
			switch {
			case subjects.ValidInstance(bucket) != nil:
				all = append(all, fmt.Errorf("tenant %s: buckets: %s: %q names no object store: use A-Za-z0-9_-", prefix, name, bucket))
			case strings.HasPrefix(bucket, strings.ToUpper(prefix)+"_"):
				all = append(all, fmt.Errorf("tenant %s: buckets: %s: %s is a store of Refold's own: workspaces have others", prefix, name, bucket))
			}
		}
	}
	return all
}

func (t *Tenant) users(prefix string) (all []User) {
	for _, of := range []struct {
		role    Role
		names   []string
		targets map[string][]string
	}{
		{SessionActor, t.SessionActors, nil}, {Admin, t.Admins, nil}, {Client, t.Clients, nil}, {Approver, t.Approvers, nil},
		{Operator, t.Operators, nil}, {Auditor, t.Auditors, nil}, {Eraser, t.Erasers, nil}, {Publishers, t.Publishers, nil}, {Loopback, t.Loopback, nil},
		{App, t.Apps, nil}, {AppAsk, t.AppAsks, nil},
		{Models, nil, t.Models}, {Tools, nil, t.Tools}, {StepHooks, nil, t.StepHooks}, {SpaceReaders, nil, t.SpaceReaders}, {HTTP, nil, t.HTTP},
	} {
		for _, name := range slices.Concat(of.names, slices.Sorted(maps.Keys(of.targets))) {
			u := User{Prefix: prefix, Role: of.role, Name: name, Targets: of.targets[name]}
			if of.role == SpaceReaders {
				u.Buckets = t.Buckets[name]
			}
			if i := slices.IndexFunc(all, func(other User) bool { return other.Name == name && other.combines() && u.combines() }); i >= 0 {
				all[i].Also = append(all[i].Also, u)
			} else {
				all = append(all, u)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Services)) {
		s := t.Services[name]
		all = append(all, User{Prefix: prefix, Role: service, Name: name, Bridge: s.Bridge, Subjects: s.Subjects})
		for i := range all {
			if all[i].has(Tools) && all[i].Name == s.Bridge {
				all[i].Subjects = append(all[i].Subjects, s.Subjects...)
			}
		}
	}
	return all
}

func problems(prefix string, users []User) (all []error) {
	say := func(format string, args ...any) {
		all = append(all, fmt.Errorf("tenant "+prefix+": "+format, args...))
	}
	named, served := map[string]bool{}, map[Consumer]string{}
	for _, u := range users {
		if err := subjects.ValidInstance(u.Name); err != nil || strings.ToLower(u.Name) != u.Name {
			say("user %q: a name is 1 to 64 of a-z 0-9 _ -", u.Name)
		}
		if named[u.Name] {
			say("user %s is named twice: give each a name of its own", u.Name)
		}
		named[u.Name] = true
		for _, v := range u.each() {
			if slices.Contains(bridges(), v.Role) && len(v.Targets) == 0 {
				say("%s %s: name its targets, as in %s: [openai]", v.Role, u.Name, u.Name)
			}
			for _, c := range v.consumers() {
				if err := subjects.ValidTarget(c.Target); err != nil {
					say("%s %s: %v", v.Role, u.Name, err)
				} else if other, twice := served[c]; twice {
					say("%s is served by %s and by %s: users that serve one target share its effects, so let them be one user", c, other, u.Name)
				}
				served[c] = u.Name
			}
		}
		if u.Role == service {
			all = append(all, u.serviceProblems(prefix, users)...)
		}
	}
	if !slices.ContainsFunc(users, func(u User) bool { return u.Role == SessionActor }) {
		say("name its session-actors: without one no session runs")
	}
	return all
}

func (u User) serviceProblems(prefix string, users []User) (all []error) {
	if !slices.ContainsFunc(users, func(b User) bool { return b.has(Tools) && b.Name == u.Bridge }) {
		all = append(all, fmt.Errorf("tenant %s: service %s: bridge: no user of tools is called %q", prefix, u.Name, u.Bridge))
	}
	if len(u.Subjects) == 0 {
		all = append(all, fmt.Errorf("tenant %s: service %s: name the subjects that it answers", prefix, u.Name))
	}
	for _, s := range u.Subjects {
		if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "_") || strings.HasPrefix(s, ">") || strings.HasPrefix(s, "*") ||
			s == prefix || strings.HasPrefix(s, prefix+".") || strings.ContainsAny(s, " \t\r\n\"\\") || s == "" {
			all = append(all, fmt.Errorf("tenant %s: service %s: subject %q: begin with a token of its own, which is not $…, _… or %s", prefix, u.Name, s, prefix))
		}
	}
	return all
}
