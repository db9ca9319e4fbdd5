package devserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/subjects"
)

// The users of a server with Options.Roles. The session-actor and the bridge of
// this process are actor and Admin; Models exists with Options.Model.
const (
	Admin    = "admin"
	Operator = "operator"
	Models   = "models"

	actor    = "actor"
	loopback = "loopback"
)

// Context returns the context file with which programs connect as a user; empty
// if the server has no users.
func (s *Server) Context(user string) string {
	if !s.roles {
		return ""
	}
	return ContextIn(s.dir, s.prefix, user)
}

// ContextIn returns the context file of a user of the server in a directory.
func ContextIn(dir, prefix, user string) string {
	return roles.ContextFile(filepath.Join(dir, "roles"), roles.User{Prefix: prefix, Name: user})
}

// Config returns the --config file for a user's daemon.
func (s *Server) Config(user string) string {
	return roles.ConfigFile(s.rolesDir(), roles.User{Prefix: s.prefix, Name: user})
}

func (s *Server) rolesDir() string { return filepath.Join(s.dir, "roles") }

// writeRoles writes the users' files, and sets the accounts in the server's
// options.
func (s *Server) writeRoles(o Options, names subjects.Names, opts *server.Options) error {
	t := &roles.Tenant{
		SessionActors: []string{actor}, Admins: []string{Admin},
		Clients: []string{"client"}, Approvers: []string{"approver"}, Operators: []string{Operator}, Auditors: []string{"auditor"},
	}
	if !o.KeysOnly {
		t.Loopback = []string{loopback}
	}
	if o.Model != "" {
		t.Models = map[string][]string{Models: {o.Model}}
	}
	f := &roles.File{URL: "nats://" + net.JoinHostPort(opts.Host, fmt.Sprint(opts.Port)), Tenants: map[string]*roles.Tenant{s.prefix: t}}
	w, err := f.Write(s.rolesDir(), nil)
	if err != nil {
		return err
	}
	if err := opts.ProcessConfigFile(roles.AccountsFile(s.rolesDir())); err != nil {
		return err
	}
	if !o.KeysOnly {
		opts.NoAuthUser = w.Keys[roles.User{Prefix: s.prefix, Name: loopback}.String()]
	}
	return moveStreams(filepath.Join(opts.StoreDir, "jetstream"), names.Account(""))
}

// moveStreams moves the streams of a server that had no accounts to an account: the
// server keeps them in the directory of the global account.
func moveStreams(dir, account string) error {
	to := filepath.Join(dir, account)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(filepath.Join(dir, server.DEFAULT_GLOBAL_ACCOUNT), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
