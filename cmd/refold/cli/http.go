package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/internal/webhook"
	"github.com/refold/refold/web"
	"github.com/refold/refold/web/bearer"
)

// httpCommand groups what is about the HTTP API.
type httpCommand struct {
	HTTP  httpServeCommand `cmd:"" name:"http" default:"withargs" help:"Serve the HTTP API."`
	Token httpTokenCommand `cmd:"" help:"Make a token: print it once, and its row for the file of tokens."`
}

// httpServeCommand serves the HTTP API.
type httpServeCommand struct {
	Listen      string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on. Other than loopback it needs --tls-cert and --tls-key, or --behind-proxy."`
	Tokens      string   `type:"existingfile" placeholder:"FILE" help:"Who may do what: tokens by their hashes, and issuers of JWTs. Read again on SIGHUP."`
	Agents      string   `type:"existingdir" placeholder:"DIR" help:"Agents that requests may name: a file helper.yaml for each. Default: the agent default alone, which is the install record."`
	Host        []string `placeholder:"NAME" help:"Name by which clients may address the server; those of this machine always may. May be repeated."`
	Origin      []string `placeholder:"ORIGIN" help:"Origin of pages that may call the server, such as https://example.com. May be repeated."`
	Secret      string   `type:"existingfile" placeholder:"FILE" help:"Signs the handles of files and reply links: at least 32 bytes, the same for all servers behind one address. Another one ends what the old one signed. Default: random, so that handles end with the server."`
	TLSCert     string   `name:"tls-cert" type:"existingfile" placeholder:"FILE" help:"Certificate of the server; with --tls-key. Read again on SIGHUP."`
	TLSKey      string   `name:"tls-key" type:"existingfile" placeholder:"FILE" help:"Key of the certificate."`
	BehindProxy bool     `help:"A proxy ends TLS, and nobody else reaches the address."`

	Operator string `placeholder:"CONTEXT" help:"Context of a NATS user with the role operator, for tokens with the rights operate and erase, and for --agents, if the server's own user may not configure sessions. It decides over calls, too."`
	Approver string `placeholder:"CONTEXT" help:"Context of a NATS user with the role approver, for tokens with the right approve, if neither the server's own user nor --operator may decide over calls."`
	Eraser   string `placeholder:"CONTEXT" help:"Context of a NATS user with the role eraser, to remove texts of events for tokens with the right erase. Without it refold redact does that."`
	Webhooks string `type:"existingfile" placeholder:"FILE" help:"Webhooks: receivers of notices, such as that a run has ended. All servers of the log deliver them together."`

	Redact string `type:"existingfile" placeholder:"FILE" help:"Patterns of secrets: regular expressions, one a line. No answer has what they match; texts come whole, and neither bytes of events nor Prove are served. Default: none."`

	provingFlags

	HTTP      string   `name:"http" placeholder:"HOST:PORT" help:"Address to serve /metrics, /healthz and /readyz on, for operators. Default: none."`
	HTTPHosts []string `name:"http-host" placeholder:"NAME" help:"Name by which clients may address --http; IP addresses and localhost always may. May be repeated."`
}

// Run serves until ctx ends.
func (h httpServeCommand) Run(ctx context.Context, s streams, conn connection, full *Full) (err error) {
	s = s.unguarded()
	if err := errors.Join(h.check(), h.checkUsers(conn)); err != nil {
		return &statusError{statusUsage, "serve: " + err.Error()}
	}
	tokens, err := bearer.Open(h.Tokens)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	o := web.Options{
		Auth: tokens.Auth, Hosts: append([]string{"localhost", "127.0.0.1", "::1"}, h.Host...), Origins: h.Origin,
		Logger: slog.New(slog.NewTextHandler(s.err, nil)),
	}
	if o.Program, err = h.program(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if o.Redact, err = h.patterns(); err != nil {
		return fmt.Errorf("serve: --redact %s: %w", h.Redact, err)
	}
	if h.Secret != "" {
		if o.Secret, err = os.ReadFile(h.Secret); err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		if o.Secret = bytes.TrimSpace(o.Secret); len(o.Secret) < 32 {
			return fmt.Errorf("serve: --secret %s has %d bytes, at least 32 are needed: head -c 32 /dev/urandom | base64 > %s", h.Secret, len(o.Secret), h.Secret)
		}
	}
	certificate := &certificate{cert: h.TLSCert, key: h.TLSKey}
	if err := certificate.load(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	var hooks []webhook.Hook
	if h.Webhooks != "" {
		hooks, err = webhook.Read(h.Webhooks)
		if err == nil {
			err = webhook.SignLinks(hooks, o.Secret)
		}
		if err != nil {
			return fmt.Errorf("serve: --webhooks: %w", err)
		}
	}
	rt, closeAll, err := h.open(ctx, conn, o.Logger)
	if err != nil {
		return err
	}
	defer closeAll()
	if err := defineAgents(ctx, rt, h.Agents); err != nil {
		return err
	}
	l, err := net.Listen("tcp", h.Listen)
	if err != nil {
		return fmt.Errorf("serve: %w: choose another address with --listen", err)
	}
	ctx, end, err := h.deliver(ctx, conn, full, hooks, rt, o.Logger)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, end()) }()
	defer onHangup(ctx, o.Logger, tokens.Reload, certificate.load)()
	scheme := "http"
	if h.TLSCert != "" {
		scheme, l = "https", tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get, NextProtos: []string{"h2", "http/1.1"}})
	}
	tellAddress(s.out, fmt.Sprintf("%s://%s", scheme, l.Addr()))
	return serveHTTP(ctx, l, web.Handler(rt, o))
}

// patterns reads the file of --redact.
func (h httpServeCommand) patterns() ([]*regexp.Regexp, error) {
	if h.Redact == "" {
		return nil, nil
	}
	text, err := os.ReadFile(h.Redact)
	if err != nil {
		return nil, err
	}
	return web.Patterns(string(text))
}

// onHangup reloads files on each SIGHUP, until stop is called.
func onHangup(ctx context.Context, log *slog.Logger, reload ...func() error) (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-hup:
				var errs []error
				for _, f := range reload {
					errs = append(errs, f())
				}
				if err := errors.Join(errs...); err != nil {
					log.Error("reload_failed", "error", err.Error())
					continue
				}
				log.Info("reloaded")
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(hup)
		cancel()
	}
}

// check refuses a server that anybody could use, or read along.
func (h httpServeCommand) check() error {
	host, _, err := net.SplitHostPort(h.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen %s: it is an address and a port, such as 127.0.0.1:8080", h.Listen)
	case (h.TLSCert == "") != (h.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case h.Tokens == "":
		return errors.New("give --tokens FILE, which says who may do what: refold serve token makes a row; refold dev serves this machine without tokens")
	case !isLoopback(host) && h.TLSCert == "" && !h.BehindProxy:
		return fmt.Errorf("--listen %s is not loopback: give --tls-cert and --tls-key, or --behind-proxy if a proxy ends TLS", h.Listen)
	}
	return nil
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serveHTTP serves until ctx ends. Requests in progress may then end; streams end, and go
// on at another server.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return serving },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what clients do wrong
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return server.Close()
	}
	return nil
}

// endWithin is how long requests in progress may take when the server ends.
const endWithin = 10 * time.Second

// tellAddress prints what is at the address of an HTTP server.
func tellAddress(out io.Writer, url string) {
	fmt.Fprintf(out, "The HTTP API is at %s; /docs shows it.\nThe inspector is at %[1]s/: open it in a browser.\n", url)
}

// certificate is that of the server, if it has one.
type certificate struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]
}

func (c *certificate) load() error {
	if c.cert == "" {
		return nil
	}
	now, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s: %w", c.cert, err)
	}
	c.now.Store(&now)
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }

// flagged is the log that the flags of a connection name.
type flagged connection

// Open implements refold.Source.
func (f flagged) Open(context.Context, source.Options) (*source.Opened, error) {
	return &source.Opened{URL: f.NATS, Creds: f.Creds, Context: f.Context, Close: func() {}}, nil
}

// inDev is the log of a server in this process.
type inDev struct{ *devserver.Server }

// Open implements refold.Source.
func (d inDev) Open(context.Context, source.Options) (*source.Opened, error) {
	return &source.Opened{InProcess: d.InProcess(), Context: d.Context(devserver.Admin), Close: func() {}}, nil
}

// httpTokenCommand makes a token.
type httpTokenCommand struct {
	Name    string        `arg:"" help:"Name of the holder: the publisher of events."`
	Rights  []web.Right   `default:"read,ask" placeholder:"RIGHT" help:"read, ask, approve, operate, erase; separated by commas (read,ask)."`
	Scope   string        `placeholder:"SCOPE" help:"1 to 16 of a-z0-9 and a hyphen, such as acme-: the token's sessions are those that begin with it. Default: all sessions."`
	Agents  []string      `placeholder:"NAME" help:"Agents that requests may name, separated by commas. Default: all."`
	Expires time.Duration `placeholder:"TIME" help:"The token ends after it, such as 720h. Default: never."`
}

// Run prints the token on standard error, and its row on standard output.
func (c httpTokenCommand) Run(s streams) error {
	token := bearer.New()
	row := bearer.Token{Name: c.Name, Hash: bearer.HashOf(token), Rights: c.Rights, Scope: c.Scope, Agents: c.Agents}
	if c.Expires > 0 {
		row.Expires = time.Now().Add(c.Expires).UTC().Truncate(time.Second)
	}
	text, err := bearer.Row(row)
	if err != nil {
		return &statusError{statusUsage, "serve token: " + err.Error()}
	}
	fmt.Fprintf(s.err, "The token of %s, which nothing shows again: %s\n", c.Name, token)
	fmt.Fprint(s.out, text)
	return nil
}
