package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/internal/roles/trial"
	"github.com/refold/refold/internal/yamlfile"
)

// rolesCommand writes and checks the servers' permissions.
type rolesCommand struct {
	Write rolesWrite `cmd:"" default:"withargs" help:"Write the NATS servers' accounts, and for each user a key and the file by which its programs connect."`
	Check rolesCheck `cmd:"" help:"Test every user with every subject on running servers, and print the table; exit status 1 if a permission differs."`
	Table rolesTable `cmd:"" help:"Print the permissions of all roles, as Markdown."`
}

// rolesWrite writes accounts, keys and configurations.
type rolesWrite struct {
	File    string   `type:"existingfile" placeholder:"FILE" help:"YAML file that names the users. Without it: one user of each role, as the flags below change it, under --prefix."`
	Dir     string   `default:"roles" type:"path" placeholder:"DIR" help:"Directory for keys and configurations."`
	URL     string   `default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Servers that programs connect to, separated by commas; a file's url wins."`
	Domain  string   `placeholder:"NAME" help:"Domain of the servers' JetStream, which their configuration names too. Then programs may also connect to a leafnode of these servers; a file's domain wins."`
	Clients []string `name:"client" placeholder:"NAME" help:"Name of a client, instead of the one called client. May be repeated."`
	Models  []string `name:"models" sep:"none" placeholder:"NAME=TARGET,…" help:"Bridges of models and their providers, instead of models=openai. May be repeated."`
	Tools   []string `name:"tools" sep:"none" placeholder:"NAME=TARGET,…" help:"Bridges of tools and their executors, instead of tools=host,host-w1,refold (refold: the tools that every session has); a worker W of a fleet is host-W. May be repeated."`
	Apps    []string `name:"app" placeholder:"NAME" help:"A program that owns an agent. It serves the targets that --models and --tools give to the same name. May be repeated."`
	AppAsks []string `name:"app-ask" placeholder:"NAME" help:"A program that only asks agents of others. May be repeated."`
	HTTP    []string `name:"http" sep:"none" placeholder:"NAME[=WEBHOOK,…]" help:"A server of the HTTP API, for refold serve, and its webhooks. May be repeated."`
	Servers []string `name:"server" sep:"none" placeholder:"NAME[=HOST[:PORT]]" help:"A server of the cluster, and the address of its port for routes, by default NAME:6222. Writes the password by which the servers accept each other. May be repeated."`
	TLS     string   `name:"tls" type:"path" placeholder:"DIR" help:"Directory for an authority, and a certificate for each --server."`
	Rotate  []string `placeholder:"NAME" help:"Give this user a new key: the old one ends when the servers have read the accounts again. Or this server a new certificate; routes: the servers a new password; ca: a new authority. May be repeated."`
}

// Help returns the help text above the flags.
func (rolesWrite) Help() string {
	return `Every user has its own account, with the permissions that its role needs and no
others. Make the servers include DIR/server/accounts.conf; it has public keys only.
An include's path is relative to the directory of the file with the include.
DIR/users/PREFIX/NAME is for the programs of that user: give a daemon its
config.yaml with --config, and other programs its context.json with --context.
Existing keys stay, so it can be run again after every change of the file; then
the servers read it with nats-server --signal reload.

The servers of a cluster need a password for their routes, or any server that
reaches their port can join and publish as anybody: name them with --server, and
have each one include DIR/server/routes.conf in its block cluster. With --tls they
also get certificates: docs/operations.md, Servers of a cluster.

A file, such as

    url: nats://nats.example:4222
    domain: hub
    servers: [nats1, nats2, nats3=10.0.0.3:6222]
    tls: /etc/refold/tls
    storage: 20GB
    limits: {default: {connections: 50, payload: 1MB}}
    tenants:
      refold:
        session-actors: [actor]
        clients: [web, cron]
        approvers: [approver]
        operators: [operator]
        admins: [admin]
        models: {models: [openai], shop: [gemini]}
        tools: {tools: [host, host-w1, host-w2], shop: [shop]}
        apps: [shop]
        app-asks: [page]
        http: {front: [crm]}

may also name auditors, step-hooks, space-readers, their buckets, publishers, and services that a bridge of
tools calls: docs/operations.md.`
}

func (r rolesWrite) Run(s streams, conn connection) error {
	f, err := r.read(conn.Prefix)
	if err != nil {
		return &statusError{statusUsage, fmt.Sprintf("roles: %v", err)}
	}
	w, err := f.Write(r.Dir, r.Rotate)
	if err != nil {
		return fmt.Errorf("roles: %w", err)
	}
	made := map[string]bool{}
	for _, u := range w.Made {
		made[u.String()] = true
	}
	table := newWholeTable(s.out, "USER", "ROLE", "KEY", "FILES")
	for _, u := range w.Users {
		key := "kept"
		if made[u.String()] {
			key = "new"
		}
		table.texts(u.String(), u.Roles(), key, roles.UserDir(r.Dir, u))
	}
	table.flush()
	if w.Changed {
		fmt.Fprintf(s.out, "\nThe accounts have changed: %s\nMake the servers' configuration include that file, by its path relative to the configuration's own directory, and read it again (nats-server --signal reload).\n",
			roles.AccountsFile(r.Dir))
	}
	if w.Changed && f.Domain != "" {
		fmt.Fprintf(s.out, "In its block jetstream, name the domain %s, which the servers read only when they start.\n", f.Domain)
	}
	printServers(s, r.Dir, f, w)
	return nil
}

// printServers says what was written for the servers of a cluster.
func printServers(s streams, dir string, f *roles.File, w roles.Written) {
	if len(f.Servers) == 0 {
		return
	}
	state := map[bool]string{true: "new", false: "kept"}
	fmt.Fprintf(s.out, "\nThe password of the servers' routes is %s: %s\n", state[w.Routes], roles.RoutesFile(dir))
	if len(w.Certificates) == 0 {
		return
	}
	fmt.Fprintln(s.out)
	table := newWholeTable(s.out, "SERVER", "CERTIFICATE", "EXPIRES", "FILES")
	for _, c := range w.Certificates {
		table.texts(c.Name, state[c.Made], c.Expires.UTC().Format(time.DateOnly), filepath.Join(f.TLS, c.Name))
	}
	table.flush()
}

// read returns the file, or one built from the flags.
func (r rolesWrite) read(prefix string) (*roles.File, error) {
	if r.File != "" {
		if len(r.Clients)+len(r.Models)+len(r.Tools)+len(r.Apps)+len(r.AppAsks)+len(r.HTTP) > 0 {
			return nil, errors.New("name users in --file or by flags, not both")
		}
		text, err := yamlfile.Read(r.File)
		var f *roles.File
		if err == nil {
			f, err = roles.Parse(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
		f.URL, f.Domain, f.TLS = cmp.Or(f.URL, r.URL), cmp.Or(f.Domain, r.Domain), cmp.Or(f.TLS, r.TLS)
		f.Servers = append(f.Servers, r.Servers...)
		return f, nil
	}
	t := roles.DefaultTenant()
	if len(r.Clients) > 0 {
		t.Clients = r.Clients
	}
	t.Apps, t.AppAsks, t.HTTP = r.Apps, r.AppAsks, map[string][]string{}
	for _, text := range r.HTTP {
		name, webhooks, _ := strings.Cut(text, "=")
		t.HTTP[name] = strings.FieldsFunc(webhooks, func(r rune) bool { return r == ',' })
	}
	for _, of := range []struct {
		flag  string
		given []string
		into  *map[string][]string
	}{{"--models", r.Models, &t.Models}, {"--tools", r.Tools, &t.Tools}} {
		if len(of.given) == 0 {
			continue
		}
		*of.into = map[string][]string{}
		for _, text := range of.given {
			name, targets, ok := strings.Cut(text, "=")
			if !ok {
				return nil, fmt.Errorf("%s %s: want NAME=TARGET, as in %s mail=mail", of.flag, text, of.flag)
			}
			(*of.into)[name] = strings.Split(targets, ",")
		}
	}
	return &roles.File{URL: r.URL, Domain: r.Domain, Servers: r.Servers, TLS: r.TLS, Tenants: map[string]*roles.Tenant{prefix: t}}, nil
}

// rolesCheck tries the table on running servers.
type rolesCheck struct {
	Dir string `default:"roles" type:"path" placeholder:"DIR" help:"Directory that refold roles has written."`
	asJSON
}

// cellJSON is what one user may do with one subject, as JSON.
type cellJSON struct {
	User    string `json:"user"`
	Role    string `json:"role"`
	Row     string `json:"row"`
	Subject string `json:"subject"`
	Servers string `json:"servers"` // what they allow
	Table   string `json:"table"`   // what they should allow
}

// Run prints what every user may do, and what differs from the table.
func (r rolesCheck) Run(ctx context.Context, s streams, conn connection) error {
	f, err := roles.Read(r.Dir)
	if err != nil {
		return fmt.Errorf("roles check: %w", err)
	}
	cells, err := trial.Try(ctx, trial.Servers{URL: cmp.Or(conn.NATS, f.URL), Dir: r.Dir}, f)
	if err != nil {
		return fmt.Errorf("roles check: %w", err)
	}
	wrong := trial.Wrong(cells)
	if r.JSON {
		for _, c := range cells {
			printJSON(s.out, cellJSON{c.User.Name, string(c.User.Role), c.Subject.Row, c.Subject.Name, says(c.Got), says(c.Want)})
		}
		return cellsVerdict(wrong)
	}
	printCells(s, cells)
	for _, c := range wrong {
		fmt.Fprintf(s.out, "%s (%s), %s: %s: the servers %s, the table %s\n", c.User, c.User.Roles(), c.Subject.Row, c.Subject.Name, says(c.Got), says(c.Want))
	}
	fmt.Fprintf(s.out, "%d cells tried, %d differ. Nothing was stored.\n", len(cells), len(wrong))
	return cellsVerdict(wrong)
}

// cellsVerdict returns the exit status of a check in which these cells differ.
func cellsVerdict(wrong []trial.Cell) error {
	if len(wrong) > 0 {
		return &statusError{status: statusFailed, text: "roles check: the servers' permissions differ from the table: make them read the accounts again"}
	}
	return nil
}

// printCells prints a line for each row and tenant, and a column for each user.
func printCells(s streams, cells []trial.Cell) {
	for _, tenant := range trial.Tenants(cells) {
		table := newWholeTable(s.out, append([]string{tenant.Prefix}, tenant.Users...)...)
		for _, row := range tenant.Rows {
			table.texts(append([]string{row.Name}, row.Cells...)...)
		}
		table.flush()
		fmt.Fprintln(s.out)
	}
}

// says describes a permission of a user.
func says(a roles.Act) string {
	switch a {
	case 0:
		return "refuse"
	case roles.Publish:
		return "let it publish"
	case roles.Hear:
		return "let it subscribe"
	}
	return "let it publish and subscribe"
}

// rolesTable prints the table.
type rolesTable struct{}

func (rolesTable) Run(s streams) error {
	fmt.Fprint(s.out, roles.Markdown())
	return nil
}
