package roles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/subjects"
)

// Written is what Write has done.
type Written struct {
	Users   []User
	Made    []User            // those whose keys are new
	Keys    map[string]string // public, by User.String
	Changed bool              // the accounts are others than before: the servers must read them again
}

// Write writes the servers' accounts and each user's files below dir. Keys that
// are there stay, but for those of the users to rotate. A file of accounts that
// somebody has edited is an error, and nothing is written then.
//
// The servers' file has public keys alone. A user's directory has its seed, and
// only its owner reads it.
func (f *File) Write(dir string, rotate []string) (w Written, err error) {
	if w.Users, err = f.Users(); err != nil {
		return w, err
	}
	if dir, err = filepath.Abs(dir); err != nil { // files name one another
		return w, err
	}
	before, err := readAccounts(dir)
	if err != nil {
		return w, err
	}
	if w.Keys, w.Made, err = keysOf(dir, w.Users, rotate); err != nil {
		return w, err
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
	if err := f.remember(dir); err != nil {
		return w, err
	}
	return w, replace(AccountsFile(dir), text, 0o644)
}

// remember keeps a copy of the file with its output, for Read.
func (f *File) remember(dir string) error {
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, usersFile), text, 0o600)
}

// Read returns the file of which Write has made what is below dir.
func Read(dir string) (*File, error) {
	text, err := os.ReadFile(filepath.Join(dir, usersFile))
	if err != nil {
		return nil, fmt.Errorf("%w: write it first, with refold roles", err)
	}
	return Parse(text)
}

// head begins the file of accounts; a hash of the rest follows.
const head = "# Written by refold roles, which refuses to replace it once it was edited. "

func signed(conf string) []byte {
	sum := sha256.Sum256([]byte(conf))
	return []byte(head + hex.EncodeToString(sum[:]) + "\n" + conf)
}

// readAccounts returns the file of accounts as it is; nil, if there is none.
func readAccounts(dir string) ([]byte, error) {
	text, err := os.ReadFile(AccountsFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, conf, _ := strings.Cut(string(text), "\n"); !bytes.Equal(text, signed(conf)) {
		return nil, fmt.Errorf("%s was edited: move it away, or undo that, and run this again", AccountsFile(dir))
	}
	return text, nil
}

// connect is a context of the nats tool, as far as a user needs it.
type connect struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	NKey        string `json:"nkey"`
	InboxPrefix string `json:"inbox_prefix"`
	APIPrefix   string `json:"jetstream_api_prefix,omitempty"`
}

// writeUser writes what the programs of a user read.
func (f *File) writeUser(dir string, users []User, u User) error {
	n, err := subjects.New(u.Prefix)
	if err != nil {
		return err
	}
	at := UserDir(dir, u)
	c := connect{Description: fmt.Sprintf("Refold, %s: %s", u.Prefix, u.Roles()), URL: f.URL, NKey: filepath.Join(at, seedFile), InboxPrefix: u.Inbox()}
	if !u.Home() && u.Role != service {
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

// sessionTools is the executor of the tools that sessions have of their own.
const sessionTools = "refold"

// daemonFile holds the settings of the user's daemon besides its connection;
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
	case u.has(Models), u.has(Tools), u.has(SpaceReaders):
		lines := []string{"provision: false"}
		if workers := u.workers(); len(workers) == 1 { // it may consume no other worker's calls
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

// workers returns the workers of the fleet "host" that the user's bridge may be.
func (u User) workers() (all []string) {
	for _, target := range u.targetsOf(Tools) {
		if worker, ok := strings.CutPrefix(target, "host-"); ok {
			all = append(all, worker)
		}
	}
	return all
}
