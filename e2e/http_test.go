package e2e_test

// The HTTP API as the users of refold roles: what refold serve does with the rights of the
// role http, with connections of an operator and an approver, and with webhooks.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// front is refold serve.
type front struct {
	t   *testing.T
	url string
	*daemon
}

var servedAt = regexp.MustCompile(`The HTTP API is at (https?://\S+);`)

// serveHTTP starts refold serve as a user, and waits until it listens.
func (g *guarded) serveHTTP(user string, args ...string) *front {
	g.t.Helper()
	d := startDaemon(g.t, "refold", g.as(user, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)...)
	until(g.t, time.Minute, "refold serve", func() bool { return servedAt.MatchString(d.out.String()) })
	return &front{g.t, servedAt.FindStringSubmatch(d.out.String())[1], d}
}

// token makes a token of some rights, and returns its row.
func token(t *testing.T, rights string) (secret, row string) {
	t.Helper()
	out, errOut, status := run(t, endWithin, nil, "refold", "serve", "token", "ann", "--rights", rights)
	if status != 0 {
		t.Fatal(errOut)
	}
	_, secret, _ = strings.Cut(strings.TrimSpace(errOut), "again: ")
	return secret, out
}

// want sends a request whose answer has a status, and returns the answer.
func (f *front) want(status int, token, method, path, body string, headers ...string) string {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != status {
		f.t.Errorf("%s %s: got %d %s (%v), want %d", method, path, got.StatusCode, text, err, status)
	}
	return string(text)
}

const hookSecret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OQ=="

// receiver takes notices, which it verifies.
type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	got    []string // type and session
	ids    []string
	answer func() int // nil: 204
}

// hooked starts a receiver, and returns it with the file of its webhook crm.
func hooked(t *testing.T) (r *receiver, file string) {
	t.Helper()
	r = &receiver{t: t}
	s := httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(s.Close)
	if _, err := base64.StdEncoding.DecodeString(hookSecret); err != nil {
		t.Fatal(err)
	}
	return r, writeFile(t, "hooks.yaml", "webhooks:\n- {name: crm, url: '"+s.URL+"', secret: whsec_"+hookSecret+", events: [RunFinished, ApprovalRequested], allow_private: true}\n")
}

func (r *receiver) receive(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	verifier, err := standardwebhooks.NewWebhook("whsec_" + hookSecret)
	if err == nil {
		err = verifier.Verify(body, q.Header)
	}
	var n struct{ Type, Session string }
	if err != nil || json.Unmarshal(body, &n) != nil {
		r.t.Errorf("%s does not verify: %v", body, err)
	}
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		status = answer()
	}
	w.WriteHeader(status)
	if status/100 == 2 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.ids = append(r.got, n.Type+" "+n.Session), append(r.ids, q.Header.Get("webhook-id"))
	}
}

// all returns what was received.
func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// helper writes a directory with the agent helper.
func helper(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "helper.yaml"), []byte("model: scripted/m\nsystem: You help.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestServeWithTheRightsOfItsRole: refold serve as a user with the role http, with
// connections of an operator and an approver, does all that its tokens permit, and
// delivers webhooks. The server refuses nothing.
func TestServeWithTheRightsOfItsRole(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(builtinAnd(t, tool("pay", object{"approval": "always"})))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}")))
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", rolesScript))...)
	secret, row := token(t, "read,ask,approve,operate")
	received, hooks := hooked(t)
	f := g.serveHTTP("front", "--tokens", writeFile(t, "tokens.yaml", "tokens:\n"+row), "--agents", helper(t), "--webhooks", hooks,
		"--operator", g.file("operator", "context.json"), "--approver", g.file("approver", "context.json"))

	if got := f.want(200, secret, "POST", "/v1/sessions/s1/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60"); !strings.Contains(got, `"text":"done"`) {
		t.Errorf("the run's end is %s", got)
	}
	var stored struct{ Blob string }
	if err := json.Unmarshal([]byte(f.want(200, secret, "PUT", "/v1/sessions/s1/blobs?name=a.txt", strings.Repeat("x", 1000), "Content-Type", "text/plain")), &stored); err != nil {
		t.Fatal(err)
	}
	f.want(200, secret, "POST", "/v1/sessions/s1/runs", `{"input": [{"text": "read"}, {"blob": "`+stored.Blob+`"}]}`, "Prefer", "wait=60")
	f.want(202, secret, "POST", "/v1/sessions/s2/runs", `{"input": "pay", "config": {"provider": "scripted", "model": "m"}}`)
	var waiting struct {
		Approvals []struct {
			Call     string
			ArgsHash string `json:"args_hash"`
		}
	}
	until(t, time.Minute, "an approval", func() bool {
		return json.Unmarshal([]byte(f.want(200, secret, "GET", "/v1/approvals?session=s2", "")), &waiting) == nil && len(waiting.Approvals) == 1
	})
	f.want(200, secret, "POST", "/v1/sessions/s2/pause", "")
	f.want(200, secret, "POST", "/v1/sessions/s2/resume", "")
	f.want(200, secret, "POST", "/v1/sessions/s2/approvals/"+waiting.Approvals[0].Call, `{"decision": "deny", "args_hash": "`+waiting.Approvals[0].ArgsHash+`", "reason": "no"}`)
	s.ended("s2", 1)
	f.want(200, secret, "POST", "/v1/sessions/s2/steer", `{"input": "more"}`)
	s.ended("s2", 2)
	f.want(200, secret, "PUT", "/v1/sessions/s2/facts", `{"facts": {"plan": "gold"}}`)
	f.want(200, secret, "PUT", "/v1/sessions/s2/agent", `{"agent": "helper"}`)
	f.want(200, secret, "PUT", "/v1/sessions/s2/overrides", `{"scope": "session", "disable": ["pay"]}`)
	for _, path := range []string{"/v1/sessions", "/v1/sessions?all=true", "/v1/sessions/s1", "/v1/sessions/s1/runs/1", "/v1/sessions/s1/transcript", "/v1/approvals", "/readyz"} {
		f.want(200, secret, "GET", path, "")
	}
	if got := f.want(200, secret, "GET", "/v1/sessions/s1/updates?run=1", ""); !strings.Contains(got, `"run_ended"`) {
		t.Errorf("the updates of run 1 are %s", got)
	}
	f.want(200, secret, "POST", "/v1/sessions/s2/end", "")
	want := []string{"RunFinished s1", "RunFinished s1", "ApprovalRequested s2", "RunFinished s2", "RunFinished s2"}
	until(t, time.Minute, "the webhooks", func() bool { return len(received.all()) >= len(want) })
	if got := received.all(); !slices.Equal(got, want) {
		t.Errorf("the receiver got %q, want %q", got, want)
	}
	if err := f.drain(endWithin); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	g.wantNone()
}

// TestServeWithoutAnOperatorSaysWhatToConfigure: a token's right is not the server's.
func TestServeWithoutAnOperatorSaysWhatToConfigure(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(builtinAnd(t, tool("pay", object{"approval": "always"})))
	s.at("s1", publish(t, s.nc, "refold.in.s1", []byte("{}")))
	secret, row := token(t, "read,ask,approve,operate")
	f := g.serveHTTP("front", "--tokens", writeFile(t, "tokens.yaml", "tokens:\n"+row), "--agents", helper(t))
	for path, body := range map[string]string{
		"PUT /v1/sessions/s1/facts":   `{"facts": {"plan": "gold"}}`,
		"POST /v1/sessions/s1/end":    ``,
		"POST /v1/sessions/s1/runs":   `{"agent": "helper", "input": "hi"}`,
		"PUT /v1/sessions/s1/agent":   `{"agent": "helper"}`,
		"POST /v1/sessions/new9/runs": `{"input": "hi", "config": {"turns_max": 3}}`,
	} {
		method, at, _ := strings.Cut(path, " ")
		if got := f.want(403, secret, method, at, body); !strings.Contains(got, `"code":"forbidden"`) || !strings.Contains(got, "--operator") {
			t.Errorf("%s: got %s", path, got)
		}
	}
	if got := f.want(403, secret, "POST", "/v1/sessions/s1/approvals/r1t1c0", `{"decision": "deny", "args_hash": "`+strings.Repeat("0", 64)+`"}`); !strings.Contains(got, "--approver") {
		t.Errorf("decide: got %s", got)
	}
}

// TestServersDeliverWebhooksTogether: of two servers with one file, each notice comes
// once; when the one that delivers is killed while the receiver has not answered, the
// other goes on, in order and with the same ids.
func TestServersDeliverWebhooksTogether(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	s := g.start(builtinAnd(t))
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}")))
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", rolesScript))...)
	secret, row := token(t, "read,ask")
	received, hooks := hooked(t)
	tokens := writeFile(t, "tokens.yaml", "tokens:\n"+row)
	servers := []*front{g.serveHTTP("front", "--tokens", tokens, "--webhooks", hooks)}
	ask := func(f *front, sid string) {
		t.Helper()
		f.want(200, secret, "POST", "/v1/sessions/"+sid+"/runs", `{"input": "hi"}`, "Prefer", "wait=60")
	}
	ask(servers[0], "a")
	until(t, time.Minute, "the first notice", func() bool { return len(received.all()) == 1 })
	servers = append(servers, g.serveHTTP("front", "--tokens", tokens, "--webhooks", hooks))
	for i := range 10 {
		ask(servers[i%2], "a")
	}
	until(t, time.Minute, "all notices", func() bool { return len(received.all()) >= 11 })
	asked, killed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	received.mu.Lock()
	received.answer = func() int {
		status := http.StatusNoContent
		once.Do(func() {
			close(asked)
			<-killed
			status = http.StatusInternalServerError // nobody hears it
		})
		return status
	}
	received.mu.Unlock()
	ask(servers[1], "a")
	<-asked
	ask(servers[1], "a")
	servers[0].kill()
	close(killed)
	until(t, time.Minute, "the notices after a server was killed", func() bool { return len(received.all()) >= 13 })
	received.mu.Lock()
	defer received.mu.Unlock()
	ids := slices.Compact(slices.Clone(received.ids))
	if len(received.got) != 13 || len(ids) != 13 || slices.ContainsFunc(received.got, func(n string) bool { return n != "RunFinished a" }) {
		t.Errorf("the receiver got %q, %q; want each of 13 runs once", received.got, received.ids)
	}
	g.wantNone()
}

// certificates writes a certificate of this machine and its key, and returns what trusts it.
func certificates(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		text := pem.EncodeToMemory(block)
		pool.AppendCertsFromPEM(text)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// TestServeReadsTokensAndCertificateAgain: over TLS on any address, and on SIGHUP. A
// faulty file of tokens changes nothing.
func TestServeReadsTokensAndCertificateAgain(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	dir := t.TempDir()
	trusted := certificates(t, dir)
	first, firstRow := token(t, "read")
	second, secondRow := token(t, "read")
	tokens := filepath.Join(dir, "tokens.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokens:\n" + firstRow)
	d := startDaemon(t, "refold", "--nats", s.url, "serve", "--listen", "0.0.0.0:0", "--tokens", tokens, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	until(t, time.Minute, "refold serve", func() bool { return servedAt.MatchString(d.out.String()) })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(servedAt.FindStringSubmatch(d.out.String())[1], "https://"))
	get := func(token string, trusted *x509.CertPool) (int, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/v1/sessions", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		got, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return got.StatusCode, got.Body.Close()
	}
	want := func(status int, token string) {
		t.Helper()
		if got, err := get(token, trusted); got != status {
			t.Errorf("got %d (%v), want %d: %s", got, err, status, d.out.String())
		}
	}
	hangUp := func(says string, n int) {
		t.Helper()
		if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		until(t, time.Minute, says, func() bool { return strings.Count(d.out.String(), "msg="+says) == n })
	}
	want(200, first)
	want(401, second)
	before := trusted
	trusted = certificates(t, dir)
	write("tokens:\n" + secondRow)
	hangUp("reloaded", 1)
	want(401, first)
	want(200, second)
	if status, err := get(second, before); err == nil {
		t.Errorf("the former certificate is served: %d", status)
	}
	write("tokens: [{}]")
	hangUp("reload_failed", 1)
	want(200, second)
}
