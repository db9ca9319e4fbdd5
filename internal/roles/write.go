package roles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/subjects"
)

// Written is the result of Write.
type Written struct {
	Users   []User
	Made    []User            // users with a new key
	Keys    map[string]string // public, by User.String
	Changed bool              // the accounts have changed: the servers must reload them

	Routes       bool          // the servers have another password for routes
	Certificates []Certificate // of the servers, and of their authority; nil without TLS
}

// Write writes the servers' accounts and each user's files to dir; of a cluster, also
// the servers' password, and certificates to f.TLS. It keeps existing keys, except
// for those to rotate. If somebody has edited the file of accounts, it returns an
// error and writes nothing.
//
// The file of accounts contains only public keys. A user's directory contains its
// seed, and only its owner can read it.
func (f *File) Write(dir string, rotate []string) (w Written, err error) {
	if w.Users, err = f.Users(); err != nil {
		return w, err
	}
	if dir, err = filepath.Abs(dir); err != nil { // the files refer to each other
		return w, err
	}
	before, err := readSigned(AccountsFile(dir))
	if err != nil {
		return w, err
	}
	if w.Keys, w.Made, err = keysOf(dir, w.Users, slices.DeleteFunc(slices.Clone(rotate), f.ofServers)); err != nil {
		return w, err
	}
	if err := f.writeServers(dir, rotate, &w); err != nil {
		return w, fmt.Errorf("files of the servers: %w", err)
	}
	for _, u := range w.Users {
		if err := f.writeUser(dir, w.Users, u); err != nil {
			return w, fmt.Errorf("files of %s: %w", u, err)
		}
	}
	conf, err := f.Config(func(u User) string { return w.Keys[u.String()] })
	if err != nil {
		return w, err
	}
	text := signed(conf)
	w.Changed = !bytes.Equal(text, before)
	if err := f.writeSource(dir); err != nil {
		return w, err
	}
	return w, replace(AccountsFile(dir), text, 0o644)
}

// writeServers writes how the servers of a cluster accept each other.
func (f *File) writeServers(dir string, rotate []string, w *Written) error {
	servers, err := f.cluster()
	if err != nil || len(servers) == 0 {
		return err
	}
	if w.Routes, err = writeRoutes(dir, servers, slices.Contains(rotate, routesName)); err != nil || f.TLS == "" {
		return err
	}
	w.Certificates, err = writeCertificates(f.TLS, servers, rotate, time.Now())
	return err
}

// writeSource keeps a copy of f with its output, for Read.
func (f *File) writeSource(dir string) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, usersFile), text, 0o600)
}

// Read returns the File from which Write has written dir.
func Read(dir string) (*File, error) {
	text, err := os.ReadFile(filepath.Join(dir, usersFile))
	if err != nil {
		return nil, fmt.Errorf("%w: write it first, with refold roles", err)
	}
	return Parse(text)
}

// head begins the file of accounts; a hash of the other lines follows.
const head = "# Written by refold roles, which refuses to replace it once it was edited. "

func signed(conf string) []byte {
	sum := sha256.Sum256([]byte(conf))
	return []byte(head + hex.EncodeToString(sum[:]) + "\n" + conf)
}

// connect is a context of the nats tool with the fields that a user needs.
type connect struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	NKey        string `json:"nkey"`
	InboxPrefix string `json:"inbox_prefix"`
	Domain      string `json:"jetstream_domain,omitempty"`
	APIPrefix   string `json:"jetstream_api_prefix,omitempty"`
}

// writeUser writes the files of a user's programs.
func (f *File) writeUser(dir string, users []User, u User) error {
	n, err := subjects.New(u.Prefix)
	if err != nil {
		return err
	}
	at := UserDir(dir, u)
	c := connect{Description: fmt.Sprintf("Refold, %s: %s", u.Prefix, u.Roles()), URL: f.URL, NKey: filepath.Join(at, seedFile), InboxPrefix: u.Inbox()}
	switch {
	case u.Home():
		c.Domain = f.Domain
	case u.Role != service:
		c.APIPrefix = n.API()
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(at, contextFile), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if lines := u.daemonFile(users); len(lines) > 0 {
		own := append([]string{"# Written by refold roles: give it to the daemon with --config.", "context: " + filepath.Join(at, contextFile), "prefix: " + u.Prefix}, lines...)
		return replace(ConfigFile(dir, u), []byte(strings.Join(own, "\n")+"\n"), 0o600)
	}
	return nil
}

// sessionTools is the executor of session tools.
const sessionTools = "refold"

// daemonFile returns the settings of the user's daemon, without its connection;
// nil for users that run no daemon of ours.
func (u User) daemonFile(users []User) []string {
	switch {
	case u.Role == SessionActor:
		lines := []string{"consumer:"}
		for _, c := range Consumers(users, u.Prefix) {
			lines = append(lines, "  - "+c.String())
		}
		if len(lines) == 1 {
			return []string{"consumer: []"}
		}
		return lines
	case u.has(App), u.has(AppAsk): // its bridges are in programs of others
		return nil
	case u.has(Models), u.has(Tools), u.has(SpaceReaders):
		lines := []string{"provision: false"}
		if workers := u.workers(); len(workers) == 1 { // it may not consume another worker's calls
			lines = append(lines, "worker: "+workers[0])
		}
		if !slices.Contains(u.targetsOf(Tools), sessionTools) {
			lines = append(lines, "no-session-tools: true")
		}
		return lines
	default:
		return nil
	}
}

// workers returns the workers of the fleet "host" that the user's bridges may be.
func (u User) workers() (all []string) {
	for _, target := range u.targetsOf(Tools) {
		if worker, ok := strings.CutPrefix(target, "host-"); ok {
			all = append(all, worker)
		}
	}
	return all
}
