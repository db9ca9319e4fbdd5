package natsio

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// The oldest nats-server that works: the first with ResetConsumer and batched
// publishes.
const (
	serverMajorLeast = 2
	serverMinorLeast = 14
)

// PayloadLeast is the max_payload that a server must have, which is its default.
// Events, effects and the chunks of blobs fit it.
const PayloadLeast = 1 << 20

const (
	connectTimeout = 2 * time.Second
	// RequestTimeout is how long one request to JetStream may take.
	RequestTimeout = 5 * time.Second
	startTimeout   = 20 * time.Second // for the first answer of JetStream: longer than an election of its leader
	closedTimeout  = 5 * time.Second  // for a server that closes connections at once
	// ReconnectWait is the pause before each attempt to reconnect.
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

	// Domain of JetStream; the context's wins. Empty: that of the server.
	Domain string
	// InboxPrefix begins the reply subjects of requests, where permissions give
	// each role its own; empty: the context's, else _INBOX.
	InboxPrefix string
	// InProcess, if given, is a server in this process. URL and Creds are ignored
	// then.
	InProcess nats.InProcessConnProvider
	// Like, if given, is a connection whose address, credentials and TLS this one has
	// too. It is neither changed nor closed. URL, Creds and Context are ignored then.
	Like *nats.Conn

	// CoreOnly skips the check of JetStream. Only core NATS and the publishing of
	// events work then, which is all that a client has permission for.
	CoreOnly bool
	// Unchecked accepts every server and account, for a diagnosis of what they lack.
	Unchecked bool

	// Durability is what the operator states about the servers. This package ignores
	// it; streams.New and Provision return an error if the servers contradict it.
	Durability Durability
	// SystemCreds and Monitor are two ways to ask the servers how they sync; a server
	// in this process needs neither. SystemCreds is the path of a credentials or context
	// file of a user of the system account. Monitor has monitoring addresses, as
	// streams.ParseMonitors returns them.
	SystemCreds string
	Monitor     []string
}

// The variables of the environment that say how to connect.
const (
	VariableURL     = "NATS_URL"
	VariableCreds   = "NATS_CREDS"
	VariableContext = "NATS_CONTEXT"
	VariablePrefix  = "REFOLD_PREFIX"
)

// FillFrom sets what o leaves empty from the environment.
func (o *Options) FillFrom(lookup func(name string) (value string, ok bool)) {
	for _, of := range []struct {
		field *string
		name  string
	}{{&o.URL, VariableURL}, {&o.Creds, VariableCreds}, {&o.Context, VariableContext}, {&o.Prefix, VariablePrefix}} {
		if value, ok := lookup(of.name); ok && *of.field == "" {
			*of.field = value
		}
	}
}

// Conn is a connection to NATS under one prefix. It is safe for concurrent use.
// Connect sets the fields, and nothing changes them afterwards.
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
	identity identity

	foreigners foreigners

	reconnected atomic.Int64 // time of the last reconnect, Unix nanoseconds
	refusals    refusals

	closing atomic.Bool // Close was called
	open    context.Context
	closed  context.CancelCauseFunc // of open: the client library closed the connection
}

// Connect connects and checks that the server is usable: it answers, is new
// enough, accepts this user and has JetStream. The error is one line that says
// what to do. After the first success the connection reconnects for ever.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	names, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	c := &Conn{names: names, Log: o.Logger, requests: newRequestTracker()}
	c.open, c.closed = context.WithCancelCause(context.Background())
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if o.Context != "" && o.Like == nil {
		if c.context, err = readContext(o.Context); err != nil {
			return nil, err
		}
	}
	opts, err := c.options(o)
	if err != nil {
		return nil, err
	}
	if err = c.connect(ctx, opts); err != nil {
		return nil, c.connectError(ctx, err)
	}
	if o.Like != nil && c.hasAccount(ctx) {
		c.context.APIPrefix = names.API()
	}
	if c.context.APIPrefix == "" {
		c.context.Domain = cmp.Or(c.context.Domain, o.Domain)
	}
	if err = c.setAPI(); err == nil && !o.Unchecked {
		err = c.usable()
	}
	if err == nil && !o.CoreOnly && !o.Unchecked {
		err = c.hasJetStream(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect sets NC. It tries again for closedTimeout if the server closes the connection
// without a word: it is going down, or a proxy has no server yet.
func (c *Conn) connect(ctx context.Context, opts []nats.Option) (err error) {
	for end := time.Now().Add(closedTimeout); ; {
		if c.NC, err = nats.Connect(c.url, opts...); !errors.Is(err, io.EOF) || time.Now().After(end) {
			return err
		}
		if Sleep(ctx, ReconnectWait) != nil {
			return err
		}
	}
}

// Unconnected returns a Conn without a connection, for a simulated server.
func Unconnected(names subjects.Names, log *slog.Logger) *Conn {
	return &Conn{names: names, Log: log, requests: newRequestTracker(), open: context.Background()}
}

// Close closes the connection. Calls that wait on it return an error.
func (c *Conn) Close() {
	c.closing.Store(true)
	c.NC.Close()
}

// Names returns the names under this connection's prefix.
func (c *Conn) Names() subjects.Names { return c.names }

// URL returns the address of the connected server, without credentials.
func (c *Conn) URL() string { return c.NC.ConnectedUrlRedacted() }

// Incarnation counts the connections that were opened. An ack, nak or in-progress of
// a delivery is sent only in the incarnation of that delivery. A server that lost the
// unsynced end of a stream reuses its sequences, and the ack of an old message would
// acknowledge a new one. Anything else read by sequence is also valid in its
// incarnation only.
func (c *Conn) Incarnation() uint64 { return c.dial.opened.Load() }

// CurrentIncarnation is Incarnation after a reconnect that is under way. A publish
// waits for it too, so this is what to compare before an acknowledgement is sent.
func (c *Conn) CurrentIncarnation() uint64 {
	c.NC.IsConnected() // waits for the lock that a reconnect holds
	return c.Incarnation()
}

// Reconnected returns the time of the last reconnect, zero if there was none.
// Silence before that time proves nothing.
func (c *Conn) Reconnected() (at time.Time) {
	if n := c.reconnected.Load(); n != 0 {
		at = time.Unix(0, n)
	}
	return at
}

// ServerVersion returns the version of the connected server.
func (c *Conn) ServerVersion() string { return c.NC.ConnectedServerVersion() }

func (c *Conn) options(o Options) ([]nats.Option, error) {
	nctx := c.context
	c.url = cmp.Or(o.URL, nctx.URL, nats.DefaultURL)
	var opts []nats.Option
	c.dial.Timeout, c.dial.server, c.dial.refused = connectTimeout, o.InProcess, c.onRefused
	if o.Like != nil {
		c.url, c.dial.server = cmp.Or(addresses(o.Like), nats.DefaultURL), o.Like.Opts.InProcessServer
		opts, nctx, o.Creds = append(opts, c.like(o.Like)), natsContext{InboxPrefix: o.Like.Opts.InboxPrefix}, ""
	}
	c.Where = redact(c.url)
	opts = append(opts,
		nats.Name(cmp.Or(o.Name, c.names.Prefix())),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(ReconnectWait),
		nats.ReconnectBufSize(-1), // a message for a lost connection is not sent over the next one: see Incarnation
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(c.onError),
		nats.ClosedHandler(c.onClosed),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("nats_disconnected", "error", err.Error())
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.Log.Info("nats_reconnected", "url", nc.ConnectedUrlRedacted())
			c.reconnected.Store(time.Now().UnixNano())
			c.requests.each(func(w *waiter) { w.lost() })
		}),
	)
	if c.dial.server != nil {
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

func (c *Conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if p := c.denialIn(err.Error()); p != nil {
		if p.Subject != c.API+"STREAM.INFO."+c.names.LogStream() { // a user without a key does without the log's identity
			c.Log.Error("nats_permission_denied", "op", p.Op, "subject", p.Subject)
		}
		c.requests.each(func(w *waiter) { w.denied(p) })
		return
	}
	if isUnauthorized(err) { // with each attempt to reconnect; under TLS the dialer does not see what the server says
		c.onRefused(err.Error())
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.Log.Warn("nats_error", "subject", subject, "error", err.Error())
}

func (c *Conn) connectError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("connect to %s: %w", c.Where, ctx.Err())
	}
	if isUnauthorized(err) {
		return fmt.Errorf("%w at %s: check --creds, NATS_CREDS or NATS_CONTEXT (%w)", ErrUnauthorized, c.Where, err)
	}
	if strings.Contains(err.Error(), "connections exceeded") { // of the server, or of the account
		return fmt.Errorf("%w at %s: raise max_connections of the server or the account, or close some (%w)", ErrConnections, c.Where, err)
	}
	return fmt.Errorf("%w at %s: start one, or name it with --nats or NATS_URL (%w)", ErrNoServer, c.Where, withoutAddress(err))
}

// usable checks the server's version and limits.
func (c *Conn) usable() error {
	if v := c.NC.ConnectedServerVersion(); tooOld(v) {
		return &VersionError{Server: v, Least: ServerLeast()}
	}
	return c.takesLittle()
}

// setAPI sets API and JS.
func (c *Conn) setAPI() error {
	prefix := subjects.JetStreamAPI(c.context.Domain)
	if c.context.Domain == "" && c.context.APIPrefix != "" {
		prefix = strings.TrimSuffix(c.context.APIPrefix, ".")
	}
	c.API = prefix + "."
	var err error
	c.JS, err = jetstream.NewWithAPIPrefix(c.NC, prefix, jetstream.WithDefaultTimeout(RequestTimeout), jetstream.WithPublishAsyncTimeout(RequestTimeout))
	return err
}

// TooOld reports whether the connected server's version is below ServerLeast.
func (c *Conn) TooOld() bool { return tooOld(c.ServerVersion()) }

// tooOld reports whether a server's version is below the least. A version that does
// not parse counts as new enough, since only development builds have one.
func tooOld(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < serverMajorLeast || major == serverMajorLeast && minor < serverMinorLeast
}

// ServerLeast is the oldest version of nats-server that works.
func ServerLeast() string {
	return fmt.Sprintf("%d.%d", serverMajorLeast, serverMinorLeast)
}

// errAddress stands for the parser's error, which repeats a part of the address.
var errAddress = errors.New("an address does not parse: write special characters of user and password as %XX")

// withoutAddress returns err, or errAddress if err may show a password.
func withoutAddress(err error) error {
	if bad := (*url.Error)(nil); errors.As(err, &bad) {
		return errAddress
	}
	return err
}

// redact removes user, password and token from addresses, also from those that don't
// parse as a URL.
func redact(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if at := strings.LastIndexByte(one, '@'); at >= 0 {
			scheme, _, found := strings.Cut(one[:at], "://")
			all[i] = one[at+1:]
			if found {
				all[i] = scheme + "://" + all[i]
			}
		}
	}
	return strings.Join(all, ",")
}

// LetsAnybodyIn reports whether the servers accept a client without credentials. It
// tries to connect, since a server that demands credentials may have a default user.
func (c *Conn) LetsAnybodyIn() bool {
	options := []nats.Option{nats.NoReconnect(), nats.Timeout(connectTimeout), nats.Name("refold: may anybody connect?")}
	if _, err := c.NC.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		options = append(options, nats.Secure(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // an intruder would not verify the server either
	}
	nc, err := nats.Connect(redact(c.url), options...)
	if err != nil {
		return false
	}
	nc.Close()
	return true
}
