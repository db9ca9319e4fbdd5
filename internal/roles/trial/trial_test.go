package trial_test

// A server runs with a configuration made by package roles, with two tenants
// and users of all roles. Every user tries every subject. The table says which
// messages must arrive, be stored and be received.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/internal/roles/trial"
	"github.com/refold/refold/subjects"
)

// everybody has users of all roles, and two of those that others must not pass for.
const everybody = `
tenants:
  refold:
    session-actors: [actor]
    clients: [chat1, chat2]
    approvers: [approver]
    operators: [operator]
    auditors: [auditor]
    loopback: [anyone]
    admins: [admin]
    models: {models: [openai, anthropic], shop: [gemini]}
    tools: {tools: [host, host-w1, host-w2, refold], mail: [mail], crm: [crm-v1], shop: [shop]}
    step-hooks: {steps: [mine], shop: [shop]}
    space-readers: {spaces: [git], crm: [crm]}
    buckets: {spaces: [FILES]}
    publishers: [ci]
    apps: [shop]
    app-asks: [page]
    http: {front: [crm, ops], other: []}
    services: {weather: {bridge: tools, subjects: [weather.>]}}
  other:
    session-actors: [actor]
    clients: [chat1]
    operators: [operator]
    admins: [admin]
`

// stage is a server on a file of users.
type stage struct {
	t     *testing.T
	dir   string
	url   string
	file  *roles.File
	users []roles.User
}

func start(t *testing.T, text string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	var err error
	if s.file, err = roles.Parse([]byte(text)); err != nil {
		t.Fatal(err)
	}
	w, err := s.file.Write(s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.users = w.Users
	conf := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream {store_dir: %q, domain: hub}\nfeature_flags {js_ack_fc_v2: true}\ninclude %q\n", t.TempDir(), relative(t, s.dir))
	options, err := server.ProcessConfigFile(write(t, s.dir, conf))
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs = true, true
	srv, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server is not ready")
	}
	s.url = srv.ClientURL()
	for _, prefix := range []string{"refold", "other"} {
		s.streams(prefix)
	}
	return s
}

func relative(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Rel(dir, roles.AccountsFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// as connects as a user.
func (s *stage) as(prefix, name string, options ...nats.Option) *nats.Conn {
	s.t.Helper()
	u := roles.User{Prefix: prefix, Name: name}
	auth, err := nats.NkeyOptionFromSeed(roles.SeedFile(s.dir, u))
	if err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(s.url, append(options, auth, nats.CustomInboxPrefix(u.Inbox()))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// streams makes a tenant's streams, as far as it matters here.
func (s *stage) streams(prefix string) {
	s.t.Helper()
	n, err := subjects.New(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, there := s.file.Tenants[prefix]; !there {
		return
	}
	js, err := jetstream.New(s.as(prefix, "admin"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, stream := range n.Streams() {
		cfg := jetstream.StreamConfig{Name: stream, Subjects: n.StreamSubjects(stream), AllowDirect: true}
		if _, err := js.CreateStream(s.t.Context(), cfg); err != nil {
			s.t.Fatal(err)
		}
	}
}

// fill stores a message in each stream of a tenant.
func (s *stage) fill(prefix string) {
	s.t.Helper()
	admin := s.as(prefix, "admin")
	n, err := subjects.New(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, stream := range n.Streams() {
		subject := strings.NewReplacer("*", "kept", ">", "kept").Replace(n.StreamSubjects(stream)[0])
		mark(s.t, admin, roles.Subject{Prefix: prefix, Name: subject})
	}
}

// stored returns how many messages each stream of a tenant holds, and the last
// sequence that it has given.
func (s *stage) stored(prefix string) map[string][2]uint64 {
	s.t.Helper()
	js, err := jetstream.New(s.as(prefix, "admin"))
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string][2]uint64{}
	for info := range js.ListStreams(s.t.Context()).Info() {
		all[info.Config.Name] = [2]uint64{info.State.Msgs, info.State.LastSeq}
	}
	return all
}

func TestPermissionsMatchTheTable(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"", "domain: hub"} {
		t.Run(domain, func(t *testing.T) {
			t.Parallel()
			matchTheTable(t, start(t, domain+everybody))
		})
	}
}

func matchTheTable(t *testing.T, s *stage) {
	t.Helper()
	before := map[string]map[string][2]uint64{}
	for _, prefix := range []string{"refold", "other"} {
		s.fill(prefix)
		before[prefix] = s.stored(prefix)
	}
	cells, err := trial.Try(t.Context(), trial.Servers{URL: s.url, Dir: s.dir}, s.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range trial.Wrong(cells) {
		t.Errorf("%s (%s): %s %s: got %s, want %s", c.User, c.User.Role, c.Subject.Row, c.Subject.Name, act(c.Got), act(c.Want))
	}
	if len(cells) < 1000 {
		t.Errorf("%d cells were tried", len(cells))
	}
	for _, prefix := range []string{"refold", "other"} {
		if after := s.stored(prefix); !maps.Equal(after, before[prefix]) {
			t.Errorf("the streams of %s held %v, and hold %v after the trial", prefix, before[prefix], after)
		}
	}
}

// TestDomainIsTried: before anything else, since no request would arrive.
func TestDomainIsTried(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	s.file.Domain = "elsewhere"
	if _, err := trial.Try(t.Context(), trial.Servers{URL: s.url, Dir: s.dir}, s.file); err == nil || !strings.Contains(err.Error(), "no server has JetStream in the domain elsewhere") {
		t.Errorf("got %v", err)
	}
}

func act(a roles.Act) string {
	var all []string
	for _, of := range []struct {
		act  roles.Act
		text string
	}{{roles.Publish, "publish"}, {roles.Hear, "hear"}} {
		if a&of.act != 0 {
			all = append(all, of.text)
		}
	}
	return "[" + strings.Join(all, " ") + "]"
}

// TestTryWithoutAServer returns an error that names the server.
func TestTryWithoutAServer(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), &roles.File{Tenants: map[string]*roles.Tenant{"refold": roles.DefaultTenant()}}
	if _, err := f.Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	const url = "nats://127.0.0.1:1"
	if _, err := trial.Try(t.Context(), trial.Servers{URL: url, Dir: dir}, f); err == nil || !strings.Contains(err.Error(), "connect to "+url) {
		t.Errorf("got %v, want an error that names %s", err, url)
	}
}

// TestUnconditionalPublishIsStoredOnce: a message without expectations is stored if
// and only if the table lets the user publish to its subject, and then once.
func TestUnconditionalPublishIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := start(t, everybody)
	all, err := roles.Subjects(s.users)
	if err != nil {
		t.Fatal(err)
	}
	admins := map[string]*nats.Conn{"refold": s.as("refold", "admin"), "other": s.as("other", "admin")}
	cells := 0
	for _, u := range s.users {
		as, err := s.file.Trying(u)
		if err != nil {
			t.Fatal(err)
		}
		if u.Role == roles.Admin {
			continue
		}
		nc := s.as(u.Prefix, u.Name, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		for _, subject := range all {
			stream := streamOf(t, subject)
			if stream == "" {
				continue
			}
			cells++
			want := mark(t, admins[subject.Prefix], subject) + 1
			if err := nc.Publish(subject.Name, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if as.May(subject)&roles.Publish != 0 {
				want++
			}
			if got := mark(t, admins[subject.Prefix], subject); got != want {
				t.Errorf("%s (%s): %s: %s stored %d messages too many", u, u.Role, subject.Name, stream, int64(got)-int64(want))
			}
		}
	}
	if cells < 400 {
		t.Errorf("%d cells were tried", cells)
	}
}

// streamOf returns the stream that listens to a subject; empty for none.
func streamOf(t *testing.T, s roles.Subject) string {
	t.Helper()
	n, err := subjects.New(s.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range n.Streams() {
		if slices.ContainsFunc(n.StreamSubjects(stream), func(p string) bool { return server.SubjectsCollide(p, s.Name) }) {
			return stream
		}
	}
	return ""
}

// mark stores a message in the stream of a subject and returns its sequence. The
// stream takes it after what came to the server before.
func mark(t *testing.T, admin *nats.Conn, s roles.Subject) uint64 {
	t.Helper()
	answer, err := admin.Request(s.Name, nil, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Seq == 0 {
		t.Fatalf("%s: %s", s.Name, answer.Data)
	}
	return ack.Seq
}
