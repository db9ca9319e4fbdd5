package natsio

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// Least version of nats-server: the first with ResetConsumer and batched
// publishes that this package relies on.
const (
	serverMajorLeast = 2
	serverMinorLeast = 14
)

// payloadLeast is the max_payload that a server must have: what it has unless it
// is told otherwise. Events, effects and the chunks of blobs fit it.
const payloadLeast = 1 << 20

const (
	connectTimeout = 2 * time.Second
	// RequestTimeout is how long one request to JetStream may take.
	RequestTimeout = 5 * time.Second
	startTimeout   = 20 * time.Second // for the first answer of JetStream: longer than an election of its leader
	// ReconnectWait is the pause before a lost connection is made again.
	ReconnectWait = 250 * time.Millisecond
	pingInterval  = 10 * time.Second
)

// Options say how to connect. The zero value connects to a server on this
// machine, without credentials, under the default prefix.
type Options struct {
	URL     string // one or more, separated by commas; empty: the context's, else nats://127.0.0.1:4222
	Creds   string // path of a credentials file; wins over the context's
	Context string // name of a context of the nats tool, or path of its file
	Prefix  string // empty: refold
	Name    string // of the connection, seen in the server's monitoring
	Logger  *slog.Logger

	// InboxPrefix begins the subjects that answers come on, where permissions
	// give each role its own; empty: the context's, else _INBOX.
	InboxPrefix string
	// InProcess, if given, is a server in this process; URL and Creds are not
	// looked at then.
	InProcess nats.InProcessConnProvider

	// CoreOnly leaves JetStream alone: nothing but publishing events and what is
	// on core NATS may be used then, with the rights of a client.
	CoreOnly bool

	// Durability is what the operator says of the servers. This package does not
	// look at it: streams.New and Provision return an error if they are found to be otherwise. Unknown: nothing is said.
	Durability Durability
	// SystemCreds is the path of a credentials file, or of a context's file, of a
	// user of the system account, and Monitor addresses of the servers'
	// monitoring, as streams.ParseMonitors returns them: either tells how the servers
	// sync. A server in this process is asked directly.
	SystemCreds string
	Monitor     []string
}

// Conn is a connection to NATS under one prefix. All methods may be called
// from several goroutines at once. The fields are set by Connect and not changed
// afterwards.
type Conn struct {
	NC    *nats.Conn
	JS    jetstream.JetStream
	API   string // prefix of the JetStream API's subjects, with its dot
	Where string // where the server is, for people: without credentials
	Log   *slog.Logger

	names    subjects.Names
	url      string // where to connect
	context  natsContext
	requests *requestTracker
	mux      replyMux
	dial     dialer

	reconnected atomic.Int64 // when the connection was last made again, Unix nanoseconds
}

// Connect connects and checks that the server is usable: it answers, is new
// enough, lets this user in and has JetStream. The error is one line that says
// what to do. After a first success the connection is restored for ever,
// whatever the server does in between.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	names, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	c := &Conn{names: names, Log: o.Logger, requests: newRequestTracker()}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if o.Context != "" {
		if c.context, err = readContext(o.Context); err != nil {
			return nil, err
		}
	}
	opts, err := c.options(o)
	if err != nil {
		return nil, err
	}
	if c.NC, err = nats.Connect(c.url, opts...); err != nil {
		return nil, c.connectError(ctx, err)
	}
	if err = c.usable(); err == nil && !o.CoreOnly {
		err = c.hasJetStream(ctx)
	}
	if err != nil {
		c.NC.Close()
		return nil, err
	}
	return c, nil
}

// Unconnected returns a Conn without a connection, for a model of a server.
func Unconnected(names subjects.Names, log *slog.Logger) *Conn {
	return &Conn{names: names, Log: log, requests: newRequestTracker()}
}

// Close closes the connection. What waits on it ends with an error.
func (c *Conn) Close() { c.NC.Close() }

// Names returns the names under this connection's prefix.
func (c *Conn) Names() subjects.Names { return c.names }

// URL returns the address that this connection was made to, without its
// credentials.
func (c *Conn) URL() string { return c.NC.ConnectedUrlRedacted() }

// Incarnation counts the connections to servers that were opened. An ack, nak or
// in-progress of a delivery is sent only in the incarnation in which it was
// delivered: a server that lost the unsynced end of a stream uses its sequences
// again, and an acknowledgement of the former message would acknowledge the new one.
// Whatever else was read by sequence is as old as its incarnation.
func (c *Conn) Incarnation() uint64 { return c.dial.opened.Load() }

// dialer opens connections and counts them. Incarnation is read several times for
// each effect; the client library's own count takes the lock that publishing takes,
// which cost 10 us of a run with 1,000 runs in flight.
type dialer struct {
	net.Dialer
	server nats.InProcessConnProvider // nil: connect over TCP
	opened atomic.Uint64
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.count(d.Dialer.Dial(network, address))
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) { return d.count(d.server.InProcessConn()) }

func (d *dialer) count(conn net.Conn, err error) (net.Conn, error) {
	if err == nil {
		d.opened.Add(1)
	}
	return conn, err
}

// Reconnected returns when the connection was last made again, zero if it never
// was: silence before it proves nothing.
func (c *Conn) Reconnected() (at time.Time) {
	if n := c.reconnected.Load(); n != 0 {
		at = time.Unix(0, n)
	}
	return at
}

// ServerVersion returns the version of the server that is connected now.
func (c *Conn) ServerVersion() string { return c.NC.ConnectedServerVersion() }

func (c *Conn) options(o Options) ([]nats.Option, error) {
	nctx := c.context
	c.url = cmp.Or(o.URL, nctx.URL, nats.DefaultURL)
	c.Where = redact(c.url)
	opts := []nats.Option{
		nats.Name(cmp.Or(o.Name, c.names.Prefix())),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(ReconnectWait),
		nats.ReconnectBufSize(-1), // what was to be said over a lost connection is not said over the next one: see Incarnation
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(c.onError),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("nats_disconnected", "error", err.Error())
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.Log.Info("nats_reconnected", "url", nc.ConnectedUrlRedacted())
			c.reconnected.Store(time.Now().UnixNano())
			c.requests.each(func(w *waiting) { w.lost() })
		}),
	}
	c.dial.Timeout, c.dial.server = connectTimeout, o.InProcess
	if o.InProcess != nil {
		c.Where = "the server in this process"
		opts = append(opts, nats.InProcessServer(&c.dial))
	} else {
		opts = append(opts, nats.SetCustomDialer(&c.dial))
		nctx.Creds = cmp.Or(o.Creds, nctx.Creds)
	}
	auth, err := nctx.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, auth...)
	if inbox := cmp.Or(o.InboxPrefix, nctx.InboxPrefix); inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(inbox))
		c.requests.inbox = inbox
	}
	return opts, nil
}

// onError hears what the server says unasked.
func (c *Conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if p := parseViolation(err.Error()); p != nil {
		c.Log.Error("nats_permission_denied", "op", p.Op, "subject", p.Subject)
		c.requests.each(func(w *waiting) { w.denied(p) })
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.Log.Warn("nats_error", "subject", subject, "error", err.Error())
}

// connectError says why there is no connection.
func (c *Conn) connectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("connect to %s: %w", c.Where, ctx.Err())
	}
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAccountAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
		return fmt.Errorf("%w at %s: check --creds, NATS_CREDS or NATS_CONTEXT (%w)", ErrUnauthorized, c.Where, err)
	}
	return fmt.Errorf("%w at %s: start one, or name it with --nats or NATS_URL (%w)", ErrNoServer, c.Where, err)
}

// usable checks the server that answered.
func (c *Conn) usable() error {
	if v := c.NC.ConnectedServerVersion(); tooOld(v) {
		return &VersionError{Server: v, Least: leastVersion()}
	}
	if n := c.NC.MaxPayload(); n < payloadLeast {
		return fmt.Errorf("the NATS server at %s takes messages of at most %d bytes, and Refold needs %d: raise max_payload in its configuration", c.Where, n, payloadLeast)
	}
	prefix := "$JS.API"
	switch {
	case c.context.Domain != "":
		prefix = "$JS." + c.context.Domain + ".API"
	case c.context.APIPrefix != "":
		prefix = strings.TrimSuffix(c.context.APIPrefix, ".")
	}
	c.API = prefix + "."
	var err error
	c.JS, err = jetstream.NewWithAPIPrefix(c.NC, prefix, jetstream.WithDefaultTimeout(RequestTimeout), jetstream.WithPublishAsyncTimeout(RequestTimeout))
	return err
}

// hasJetStream checks that this user has JetStream. It asks until there is an
// answer, for startTimeout: a server that is just going down takes the connection
// with it, and a cluster may be without a leader. That nobody listens is an answer.
func (c *Conn) hasJetStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := c.Retry(ctx, func(ctx context.Context) error {
		_, err := c.JS.AccountInfo(ctx)
		switch {
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount),
			errors.Is(err, nats.ErrNoResponders):
			// As text: with this cause it would be asked again.
			err = fmt.Errorf("%w at %s: start nats-server with -js, or enable it for this account (%s)",
				ErrNoJetStream, c.Where, err.Error())
		}
		return err
	})
	if err == nil || errors.Is(err, ErrNoJetStream) {
		return err
	}
	return fmt.Errorf("ask %s for its JetStream account: %w", c.Where, err)
}

// tooOld reports that a server's version is below the least; one that does
// not parse is taken as new enough, since only development builds have such.
func tooOld(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < serverMajorLeast || major == serverMajorLeast && minor < serverMinorLeast
}

func leastVersion() string {
	return fmt.Sprintf("%d.%d", serverMajorLeast, serverMinorLeast)
}

// redact takes user, password and token out of addresses.
func redact(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.User != nil {
			u.User = nil
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}

// IsConnected reports whether the connection is there now. While it is not, it is
// being made again.
func (c *Conn) IsConnected() bool { return c.NC.IsConnected() }

// NotReady returns why nothing can be stored now: there is no connection, or a
// stream is missing. It is empty if all is well.
func (c *Conn) NotReady(ctx context.Context) (reasons []string) {
	if !c.IsConnected() {
		return []string{"NATS is not connected"}
	}
	for _, stream := range []string{c.names.LogStream(), c.names.EffectsStream()} {
		if _, err := c.JS.Stream(ctx, stream); err != nil {
			reasons = append(reasons, fmt.Sprintf("stream %s: %v", stream, err))
		}
	}
	return reasons
}

// LetsAnybodyIn reports whether the servers let somebody in who has no
// credentials. It tries: a server that asks for none may have a default user.
func (c *Conn) LetsAnybodyIn() bool {
	options := []nats.Option{nats.NoReconnect(), nats.Timeout(connectTimeout), nats.Name("refold: may anybody connect?")}
	if _, err := c.NC.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		options = append(options, nats.Secure(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // whoever tries this need not verify anything either
	}
	nc, err := nats.Connect(redact(c.url), options...)
	if err != nil {
		return false
	}
	nc.Close()
	return true
}
