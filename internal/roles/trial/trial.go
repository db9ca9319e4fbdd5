// Package trial tries every cell of the table of package roles against running
// servers, and changes nothing there.
//
// # Path
//
// Every user connects with its own key. It publishes to an example of every
// subject, and subscribes to each. The administrator of each prefix listens in
// the account of its streams and records which messages arrive. Then the
// administrator publishes, and the user records which messages arrive.
//
// # Laws
//
//   - Nothing is stored: each message expects a stream that does not exist, so
//     JetStream refuses it.
//   - JetStream carries out no request: each message requires an API level that
//     no server has. A body that is not JSON would not suffice: a purge with
//     such a body purges everything.
//   - No daemon acts on a message: the names in the subjects belong to none.
package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/subjects"
)

// flushWithin is how long a server may take to confirm a flush.
const flushWithin = 10 * time.Second

// msgsMax is how many messages may arrive between two calls of received: a few
// for each subject.
const msgsMax = 1 << 16

// Cell is what one user may do with one subject, by the table and by the servers.
type Cell struct {
	User      roles.User
	Subject   roles.Subject
	Want, Got roles.Act // Publish: its messages arrive. Hear: it receives messages of others
}

// Servers are the servers to try.
type Servers struct {
	URL string
	Dir string // with the users' files
}

// Try tries all users of a file with all subjects. It needs the administrator
// of each prefix.
func Try(ctx context.Context, s Servers, f *roles.File) (cells []Cell, err error) {
	users, err := f.Users()
	if err != nil {
		return nil, err
	}
	all, err := roles.Subjects(users)
	if err != nil {
		return nil, err
	}
	t := &trial{servers: s, file: f, subjects: all, admins: map[string]*peer{}}
	defer t.close()
	for _, u := range users {
		if u.Role != roles.Admin || t.admins[u.Prefix] != nil {
			continue
		}
		admin, err := t.connect(u)
		if err != nil {
			return nil, err
		}
		t.admins[u.Prefix] = admin
	}
	for _, u := range users {
		if t.admins[u.Prefix] == nil {
			return nil, fmt.Errorf("tenant %s: name an admin: it checks which messages arrive", u.Prefix)
		}
	}
	if err := errors.Join(t.inDomain(ctx), t.listen(ctx)); err != nil {
		return nil, err
	}
	for _, u := range users {
		if u.Role == roles.Admin {
			continue
		}
		of, err := t.try(ctx, u)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", u, err)
		}
		cells = append(cells, of...)
	}
	return cells, nil
}

// trial is a running trial.
type trial struct {
	servers  Servers
	file     *roles.File
	subjects []roles.Subject
	admins   map[string]*peer // by prefix
}

// peer is a connection and the messages that it received. The connection puts a
// message into the channel when it reads it, so after a flush none is missing.
type peer struct {
	nc     *nats.Conn
	msgs   chan *nats.Msg
	domain string // of JetStream
}

// sent is a message: the tenant of its publisher, and its subject.
type sent struct{ prefix, subject string }

// received returns the messages since the last call.
func (p *peer) received() map[sent]bool {
	all := map[sent]bool{}
	for len(p.msgs) > 0 {
		m := <-p.msgs
		if prefix, ours := strings.CutPrefix(string(m.Data), payload); ours {
			subject := m.Subject
			if request, ok := strings.CutPrefix(subject, subjects.JetStreamAPI(p.domain)); ok { // at a leafnode
				subject = subjects.JetStreamAPI("") + request
			}
			all[sent{prefix, subject}] = true
		}
	}
	return all
}

// payload begins every message; the prefix of a tenant follows. It is not an
// event, and JetStream takes it for an invalid object.
const payload = "{refold roles check: "

// requiredLevel is the header by which JetStream refuses a request if its API
// has a lower level (ADR-44 of NATS).
const requiredLevel = "Nats-Required-Api-Level"

// message returns the message that a user or the administrator of a tenant
// publishes.
func message(prefix, subject string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set(nats.ExpectedStreamHdr, payload) // no stream has that name, so none stores it
	m.Header.Set(requiredLevel, "1000000000")
	m.Data = []byte(payload + prefix)
	return m
}

// connect connects as a user. All users connect to one server if they can: once
// that server has a message, it is delivered.
func (t *trial) connect(u roles.User) (*peer, error) {
	auth, err := nats.NkeyOptionFromSeed(roles.SeedFile(t.servers.Dir, u))
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u, err)
	}
	p := &peer{msgs: make(chan *nats.Msg, msgsMax), domain: t.file.Domain}
	p.nc, err = nats.Connect(t.servers.URL, auth, nats.Name("refold roles check"), nats.DontRandomize(), nats.NoReconnect(),
		nats.CustomInboxPrefix(u.Inbox()), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // a refused message does not arrive
	if err != nil {
		return nil, fmt.Errorf("connect to %s as %s: %w: do the servers have the accounts of %s?", t.servers.URL, u, err, roles.AccountsFile(t.servers.Dir))
	}
	return p, nil
}

func (t *trial) close() {
	for _, p := range t.admins {
		p.nc.Close()
	}
}

// inDomain returns an error if no server has JetStream in the domain of the file.
func (t *trial) inDomain(ctx context.Context) error {
	if t.file.Domain == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	for prefix, admin := range t.admins {
		if _, err := admin.nc.RequestWithContext(ctx, subjects.JetStreamAPI(t.file.Domain)+".INFO", nil); err != nil {
			return fmt.Errorf("tenant %s: no server has JetStream in the domain %s: name it in their configuration, in the block jetstream (%w)", prefix, t.file.Domain, err)
		}
	}
	return nil
}

// listen subscribes the administrators to all subjects of their tenants.
func (t *trial) listen(ctx context.Context) error {
	for _, s := range t.subjects {
		admin := t.admins[s.Prefix]
		for _, name := range t.file.Spellings(s) {
			if _, err := admin.nc.ChanSubscribe(name, admin.msgs); err != nil {
				return err
			}
		}
	}
	return t.flush(ctx)
}

// flush waits until the servers have delivered their messages to the
// administrators.
func (t *trial) flush(ctx context.Context) error {
	for _, p := range t.admins {
		if err := flush(ctx, p.nc); err != nil {
			return err
		}
	}
	return nil
}

func flush(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

func (t *trial) try(ctx context.Context, u roles.User) ([]Cell, error) {
	as, err := t.file.Trying(u)
	if err != nil {
		return nil, err
	}
	p, err := t.connect(u)
	if err != nil {
		return nil, err
	}
	defer p.nc.Close()
	for _, s := range t.subjects {
		for _, name := range as.Spellings(s) {
			if err := p.nc.PublishMsg(message(u.Prefix, name)); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(flush(ctx, p.nc), t.flush(ctx)); err != nil {
		return nil, err
	}
	arrived := map[string]map[sent]bool{}
	for prefix, admin := range t.admins {
		arrived[prefix] = admin.received()
	}
	heard, err := t.receivedBy(ctx, p)
	if err != nil {
		return nil, err
	}
	cells := make([]Cell, len(t.subjects))
	for i, s := range t.subjects {
		cells[i] = Cell{User: u, Subject: s, Want: as.May(s) &^ roles.Serve}
		if arrived[s.Prefix][sent{u.Prefix, s.Name}] {
			cells[i].Got |= roles.Publish
		}
		if heard[sent{s.Prefix, s.Name}] {
			cells[i].Got |= roles.Hear
		}
		if as.May(s)&roles.Serve != 0 && as.Home() { // a server of requests receives the administrator's
			cells[i].Want |= roles.Hear
		}
	}
	return cells, nil
}

// receivedBy returns the administrators' messages that a user receives.
func (t *trial) receivedBy(ctx context.Context, p *peer) (map[sent]bool, error) {
	for _, s := range t.subjects {
		if _, err := p.nc.ChanSubscribe(s.Name, p.msgs); err != nil {
			return nil, err
		}
	}
	if err := flush(ctx, p.nc); err != nil {
		return nil, err
	}
	p.received()
	for _, s := range t.subjects {
		if err := t.admins[s.Prefix].nc.PublishMsg(message(s.Prefix, s.Name)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.flush(ctx), flush(ctx, p.nc)); err != nil {
		return nil, err
	}
	for _, admin := range t.admins {
		admin.received() // drops its own messages
	}
	return p.received(), nil
}

// Wrong returns the cells where the servers differ from the table.
func Wrong(cells []Cell) []Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Want == c.Got })
}
