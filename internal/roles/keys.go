package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nkeys"
)

// The files in a directory that Write has written. The files of the server and
// of each user are in directories of their own, so that each process can be
// given only its own.
const (
	accountsFile = "accounts.conf" // in serverDir
	serverDir    = "server"
	usersDir     = "users"
	usersFile    = "users.yaml" // the source of all other files
	seedFile     = "seed.nk"
	contextFile  = "context.json"
	configFile   = "config.yaml"
)

// UserDir is the directory of a user's files within dir.
func UserDir(dir string, u User) string { return filepath.Join(dir, usersDir, u.Prefix, u.Name) }

// ContextFile is the file by which programs connect as a user.
func ContextFile(dir string, u User) string { return filepath.Join(UserDir(dir, u), contextFile) }

// ConfigFile is the file that the user's daemon takes as --config.
func ConfigFile(dir string, u User) string { return filepath.Join(UserDir(dir, u), configFile) }

// SeedFile is the file with a user's seed.
func SeedFile(dir string, u User) string { return filepath.Join(UserDir(dir, u), seedFile) }

// AccountsFile is the file that the servers' configuration includes.
func AccountsFile(dir string) string { return filepath.Join(dir, serverDir, accountsFile) }

// keysOf reads the keys of users, and makes missing ones. It replaces the keys of
// the rotated users. It returns the public keys, and the users with a new key.
func keysOf(dir string, users []User, rotate []string) (public map[string]string, made []User, err error) {
	for _, name := range rotate {
		if !slices.ContainsFunc(users, func(u User) bool { return u.is(name) }) {
			return nil, nil, fmt.Errorf("rotate %s: no user or server is called so", name)
		}
	}
	public = map[string]string{}
	for _, u := range users {
		again := slices.ContainsFunc(rotate, u.is)
		key, isNew, err := keyOf(UserDir(dir, u), again)
		if err != nil {
			return nil, nil, fmt.Errorf("key of %s: %w", u, err)
		}
		if isNew {
			made = append(made, u)
		}
		public[u.String()] = key
	}
	return public, made, nil
}

// String identifies a user among all prefixes: refold/client.
func (u User) String() string { return u.Prefix + "/" + u.Name }

// is reports whether a name, with or without a prefix, is this user's.
func (u User) is(name string) bool { return name == u.Name || name == u.String() }

// keyOf returns the public key of the seed in a directory. Unless there is one,
// or if again is set, it makes a new one.
func keyOf(dir string, again bool) (public string, made bool, err error) {
	path := filepath.Join(dir, seedFile)
	seed, err := os.ReadFile(path)
	switch {
	case err == nil && !again:
		pair, err := nkeys.ParseDecoratedUserNKey(seed)
		if err != nil {
			return "", false, fmt.Errorf("%s holds no seed of a user: remove it to have a new one (%w)", path, err)
		}
		public, err = pair.PublicKey()
		return public, false, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", false, err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", false, err
	}
	if public, err = pair.PublicKey(); err != nil {
		return "", false, err
	}
	if seed, err = pair.Seed(); err != nil {
		return "", false, err
	}
	return public, true, replace(path, append(seed, '\n'), 0o600)
}

// replace writes a file atomically.
func replace(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
