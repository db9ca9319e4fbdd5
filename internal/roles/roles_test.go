package roles_test

// The files that Write writes, keeps and refuses: users, keys, accounts.
// Package trial tests the accounts on servers.

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/roles"
)

var rewrite = flag.Bool("rewrite", false, "write the table of rights in docs/operations.md")

const small = `
tenants:
  refold: {session-actors: [actor], clients: [web, cron], admins: [admin], models: {models: [openai]}}
`

func parse(t *testing.T, text string) *roles.File {
	t.Helper()
	f, err := roles.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// written writes the files of a text and returns what was done.
func written(t *testing.T, dir, text string, rotate ...string) roles.Written {
	t.Helper()
	w, err := parse(t, text).Write(dir, rotate)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKeysStayUntilRotated: a second Write changes nothing, a new user gets a
// key, a rotated one gets another, and a removed user disappears.
func TestKeysStayUntilRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := written(t, dir, small)
	if len(first.Made) != 5 || !first.Changed {
		t.Errorf("first: %d keys made, changed %t; want 5, true", len(first.Made), first.Changed)
	}
	conf := read(t, roles.AccountsFile(dir))
	if again := written(t, dir, small); len(again.Made) != 0 || again.Changed || !bytes.Equal(read(t, roles.AccountsFile(dir)), conf) {
		t.Errorf("again: %d keys made, changed %t; want none, false", len(again.Made), again.Changed)
	}
	rotated := written(t, dir, small, "cron")
	if len(rotated.Made) != 1 || rotated.Made[0].Name != "cron" || !rotated.Changed {
		t.Errorf("rotated: %+v made, changed %t; want cron, true", rotated.Made, rotated.Changed)
	}
	for user, key := range first.Keys {
		if same := rotated.Keys[user] == key; same != (user != "refold/cron") {
			t.Errorf("%s: the key is the same: %t", user, same)
		}
	}
	if conf := read(t, roles.AccountsFile(dir)); bytes.Contains(conf, []byte(first.Keys["refold/cron"])) {
		t.Error("the accounts have the key from before the rotation")
	}
	written(t, dir, strings.Replace(small, "web, cron", "web", 1))
	if conf := read(t, roles.AccountsFile(dir)); bytes.Contains(conf, []byte(rotated.Keys["refold/cron"])) {
		t.Error("the accounts have the key of a user that is gone")
	}
	if _, err := parse(t, small).Write(dir, []string{"nobody"}); err == nil || !strings.Contains(err.Error(), "no user or server is called") {
		t.Errorf("rotate nobody: got %v", err)
	}
}

// TestSecretFilesAreReadableByOwnerOnly: only the owner can read files below
// users, and the servers' file has no seed.
func TestSecretFilesAreReadableByOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written(t, dir, small)
	seeds := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Name() == "seed.nk" {
			seeds++
		}
		if path != roles.AccountsFile(dir) && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || seeds != 5 {
		t.Errorf("%d seeds, %v; want 5", seeds, err)
	}
	seed := bytes.TrimSpace(read(t, roles.SeedFile(dir, roles.User{Prefix: "refold", Name: "web"})))
	if bytes.Contains(read(t, roles.AccountsFile(dir)), seed) {
		t.Error("the servers' file has a seed")
	}
}

// TestEditedAccountsAreNotReplaced: no key changes either.
func TestEditedAccountsAreNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written(t, dir, small)
	edited := append(read(t, roles.AccountsFile(dir)), "# mine\n"...)
	if err := os.WriteFile(roles.AccountsFile(dir), edited, 0o600); err != nil {
		t.Fatal(err)
	}
	web := roles.SeedFile(dir, roles.User{Prefix: "refold", Name: "web"})
	before := read(t, web)
	if _, err := parse(t, small).Write(dir, []string{"web"}); err == nil || !strings.Contains(err.Error(), "was edited: move it away") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(read(t, roles.AccountsFile(dir)), edited) || !bytes.Equal(read(t, web), before) {
		t.Error("something was written")
	}
}

// TestInvalidFilesAreRefused: each error says what to write.
func TestInvalidFilesAreRefused(t *testing.T) {
	t.Parallel()
	tenant := func(more string) string {
		return "tenants: {refold: {session-actors: [actor]" + more + "}}"
	}
	for _, c := range []struct{ text, want string }{
		{"", "tenants: name one at least"},
		{"tenants: {refold: {}}", "name its session-actors"},
		{"tenants: {refold: }", "it has no users"},
		{"tenants: {a.b: {session-actors: [actor]}}", "tenants: "},
		{"tenant: {}", `did you mean "tenants"?`},
		{tenant(", clients: [actor]"), "user actor is named twice"},
		{"domain: a.b\n" + tenant(""), `domain: "a.b"`},
		{tenant(", clients: ['a b']"), "a name is 1 to 64 of a-z 0-9 _ -"},
		{tenant(", clients: [Web]"), "a name is 1 to 64 of a-z 0-9 _ -"},
		{tenant(", models: {models: []}"), "name its targets"},
		{tenant(", models: {models: ['a.b']}"), "models models: "},
		{tenant(", tools: {a: [host], b: [host]}"), "tool/host is served by a and by b"},
		{tenant(", apps: [b], tools: {a: [x], b: [x]}"), "tool/x is served by b and by a"},
		{tenant(", http: {web: ['a.b']}"), "http web: "},
		{tenant(", http: {a: [crm], b: [crm]}"), "webhook/crm is served by a and by b"},
		{tenant(", services: {s: {bridge: b, subjects: [s.x]}}"), `no user of tools is called "b"`},
		{tenant(", tools: {b: [x]}, services: {s: {bridge: b}}"), "name the subjects that it answers"},
		{tenant(", tools: {b: [x]}, services: {s: {bridge: b, subjects: [refold.ctl.*]}}"), "begin with a token of its own"},
		{tenant(", tools: {b: [x]}, services: {s: {bridge: b, subjects: ['>']}}"), "begin with a token of its own"},
		{tenant("") + "\nlimits: {web: {connections: 1}}", "no user is called web"},
		{tenant("") + "\nlimits: {default: {connections: -1}}", "0 (no limit) or more"},
		{tenant("") + "\nlimits: {default: {payload: 10}}", "is no size"},
		{tenant("") + "\nlimits: {default: {payload: 10B}}", "at least 1KB"},
		{tenant("") + "\nstorage: much", `storage: "much" is no size`},
		{tenant("") + "\nservers: [actor]", "actor is a user's name too"},
		{tenant("") + "\nservers: [a, a=b]", "a is named twice"},
		{tenant("") + "\nservers: [ca]", "neither routes nor ca"},
		{tenant("") + "\nservers: ['a=b@c']", "write NAME, NAME=HOST or NAME=HOST:PORT"},
		{tenant("") + "\nservers: ['a b']", "a name is 1 to 64 of"},
		{tenant("") + "\ntls: x", "name the servers that get a certificate"},
	} {
		f, err := roles.Parse([]byte(c.text))
		if err == nil {
			_, err = f.Users()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestOperationsHasTheTable: the documentation contains the table from which
// the accounts are computed.
func TestOperationsHasTheTable(t *testing.T) {
	t.Parallel()
	const path = "../../docs/operations.md"
	docs := string(read(t, path))
	before, rest, begins := strings.Cut(docs, "\n| subjects |")
	_, after, ends := strings.Cut(rest, "\n\n")
	want := before + "\n" + roles.Markdown() + "\n" + after
	switch {
	case !begins || !ends:
		t.Errorf("%s has no table of subjects", path)
	case docs == want:
	case *rewrite:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table than refold roles table: go test ./internal/roles -run TestOperationsHasTheTable -rewrite", path)
	}
}

const three = small + `
servers: [nats1, nats2=127.0.0.1, nats3=nats3.example:7222]
`

// writtenTLS is written, with certificates in a directory of dir.
func writtenTLS(t *testing.T, dir string, rotate ...string) map[string]roles.Certificate {
	t.Helper()
	f := parse(t, three)
	f.TLS = filepath.Join(dir, "tls")
	w, err := f.Write(dir, rotate)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]roles.Certificate{}
	for _, c := range w.Certificates {
		all[c.Name] = c
	}
	return all
}

// TestServersKeepPasswordAndCertificates: a second Write keeps the password of the
// routes and all certificates. Each is replaced only if it is named.
func TestServersKeepPasswordAndCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := writtenTLS(t, dir)
	routes := read(t, roles.RoutesFile(dir))
	for _, want := range []string{"@nats1:6222", "@127.0.0.1:6222", "@nats3.example:7222"} {
		if !bytes.Contains(routes, []byte(want)) {
			t.Errorf("routes have no %s:\n%s", want, routes)
		}
	}
	if len(all) != 4 || !all["ca"].Made || !all["nats3"].Made || time.Until(all["nats1"].Expires) < 364*24*time.Hour {
		t.Errorf("first: %+v, want an authority and three servers, for a year", all)
	}
	pem := func(name string) string { return string(read(t, filepath.Join(dir, "tls", name, "server.pem"))) }
	one, two := pem("nats1"), pem("nats2")
	for name, c := range writtenTLS(t, dir) {
		if c.Made {
			t.Errorf("again: %s was replaced", name)
		}
	}
	if !bytes.Equal(read(t, roles.RoutesFile(dir)), routes) {
		t.Error("again: the routes have another password")
	}
	if all := writtenTLS(t, dir, "nats1"); !all["nats1"].Made || all["nats2"].Made || pem("nats1") == one || pem("nats2") != two {
		t.Errorf("rotated nats1: %+v", all)
	}
	if writtenTLS(t, dir, "routes"); bytes.Equal(read(t, roles.RoutesFile(dir)), routes) {
		t.Error("rotated routes: the password is the same")
	}
	// Servers trust both authorities until the next one replaces them.
	trusted := func() int {
		return strings.Count(string(read(t, filepath.Join(dir, "tls", "nats2", "ca.pem"))), "BEGIN CERTIFICATE")
	}
	if all := writtenTLS(t, dir, "ca"); !all["ca"].Made || all["nats1"].Made || trusted() != 2 {
		t.Errorf("rotated ca: %+v, and servers trust %d authorities, want 2", all, trusted())
	}
	writtenTLS(t, dir, "nats1", "nats2", "nats3")
	if writtenTLS(t, dir, "ca"); trusted() != 2 {
		t.Errorf("rotated ca again: servers trust %d authorities, want 2", trusted())
	}
}

// TestFilesOfServersAreNotReplaced: files that refold roles did not write stay, and
// the error says what to do.
func TestFilesOfServersAreNotReplaced(t *testing.T) {
	t.Parallel()
	mine := "mine\n"
	other := t.TempDir()
	writtenTLS(t, other)
	for name, c := range map[string]struct{ path, text, want string }{
		"routes":            {"server/routes.conf", mine, "was edited: move it away"},
		"certificate":       {"tls/nats2/server.pem", mine, "holds no key with its certificate: move it away"},
		"other authority's": {"tls/nats2/server.pem", string(read(t, filepath.Join(other, "tls", "nats2", "server.pem"))), "was not signed by the authority"},
		"authority":         {"tls/ca/authority.pem", mine, "holds no key with its certificate: move it away"},
	} {
		dir := t.TempDir()
		writtenTLS(t, dir)
		path := filepath.Join(dir, c.path)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := parse(t, three)
		f.TLS = filepath.Join(dir, "tls")
		if _, err := f.Write(dir, []string{"nats2", "routes"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if got := read(t, path); string(got) != c.text {
			t.Errorf("%s was replaced", name)
		}
	}
}
