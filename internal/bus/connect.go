package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
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
	apiTimeout     = 5 * time.Second  // one request to JetStream
	startTimeout   = 20 * time.Second // for the first answer of JetStream: longer than an election of its leader
	reconnectWait  = 250 * time.Millisecond
	pingInterval   = 10 * time.Second
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

	// Durability is what the operator says of the servers: an error of Connect
	// or Provision if they are found to be otherwise. Unknown: nothing is said.
	Durability Durability
	// SystemCreds is the path of a credentials file, or of a context's file, of a
	// user of the system account, and Monitor addresses of the servers'
	// monitoring, as ParseMonitors returns them: either tells how the servers
	// sync. A server in this process is asked directly.
	SystemCreds string
	Monitor     []string
}

// Bus is a connection to NATS under one prefix. All methods may be called
// from several goroutines at once.
type Bus struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	names      subjects.Names
	api        string // prefix of the JetStream API's subjects, with its dot
	url        string // where to connect
	where      string // the same for people, without credentials
	log        *slog.Logger
	open       *outstanding
	unanswered *unanswered // of a user who leaves JetStream alone; else nil

	durable atomic.Pointer[durable] // found out by Connect; the copies by Provision

	// When the connection was last made again, Unix nanoseconds: silence
	// before it proves nothing.
	reconnects atomic.Int64

	// What is stored goes through one committer for each stream.
	logs, effects, timers, notices *committer
	answers                        answers
	together                       together // direct reads of a few events
	resets                         turns    // of lanes

	bucket atomic.Pointer[jetstream.StreamConfig] // of snapshots, as Provision made it
	lanes  atomic.Pointer[Conf]                   // as Provision made them
	floors laneFloors

	dial dialer

	mu sync.Mutex
	kv jetstream.KeyValue // looked up when first used
}

// Connect connects and checks that the server is usable: it answers, is new
// enough, lets this user in and has JetStream. The error is one line that says
// what to do. After a first success the connection is restored for ever,
// whatever the server does in between.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	names, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	b := &Bus{names: names, api: "$JS.API.", log: o.Logger, open: &outstanding{inbox: nats.InboxPrefix}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.logs, b.effects = newCommitter(b, names.LogStream()), newCommitter(b, names.EffectsStream())
	b.timers, b.notices = newCommitter(b, names.TimersStream()), newCommitter(b, names.NoticesStream())
	b.timers.gap, b.timers.like, b.timers.pace = wakesGap, b.effects, pace{groups: true, judged: true}
	var nctx natsContext
	if o.Context != "" {
		if nctx, err = readContext(o.Context); err != nil {
			return nil, err
		}
	}
	if o.CoreOnly {
		b.unanswered = &unanswered{}
	}
	b.dial.server = o.InProcess
	opts, err := b.options(o, nctx)
	if err != nil {
		return nil, err
	}
	if b.nc, err = nats.Connect(b.url, opts...); err != nil {
		return nil, b.connectError(ctx, err)
	}
	if err = b.usable(nctx); err == nil && !o.CoreOnly {
		err = b.hasJetStream(ctx)
	}
	if err == nil && !o.CoreOnly {
		err = b.findDurability(ctx, o, nctx)
	}
	if err != nil {
		b.nc.Close()
		return nil, err
	}
	return b, nil
}

// Conn returns the connection and its JetStream, for programs that check what
// others publish.
func (b *Bus) Conn() (*nats.Conn, jetstream.JetStream) { return b.nc, b.js }

// Close closes the connection; what waits on it ends with an error.
func (b *Bus) Close() {
	for _, c := range []*committer{b.logs, b.effects, b.timers, b.notices} {
		c.close()
	}
	b.nc.Close()
}

// Names returns the names under this connection's prefix.
func (b *Bus) Names() subjects.Names { return b.names }

// URL returns the address that this connection was made to, without its
// credentials.
func (b *Bus) URL() string { return b.nc.ConnectedUrlRedacted() }

// Epoch counts the connections that this Bus has begun. An ack,
// nak or in-progress of a delivery is sent only in the epoch in which it was
// delivered: a server that lost the unsynced end of a stream uses its sequences
// again, and an acknowledgement of the former message would acknowledge the new one.
// Whatever else was read by sequence is as old as its epoch.
func (b *Bus) Epoch() uint64 { return b.dial.begun.Load() }

// ServerVersion returns the version of the server that is connected now.
func (b *Bus) ServerVersion() string { return b.nc.ConnectedServerVersion() }

func (b *Bus) options(o Options, nctx natsContext) ([]nats.Option, error) {
	b.url = firstOf(o.URL, nctx.URL, nats.DefaultURL)
	b.where = redact(b.url)
	opts := []nats.Option{
		nats.Name(firstOf(o.Name, b.names.Prefix())),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(-1), // what was to be said over a lost connection is not said over the next one: see Epoch
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval),
		nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(b.onError),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("nats_disconnected", "error", err.Error())
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			b.log.Info("nats_reconnected", "url", nc.ConnectedUrlRedacted())
			b.reconnects.Store(time.Now().UnixNano())
			b.open.reconnected()
		}),
	}
	if o.InProcess != nil {
		b.where = "the server in this process"
		opts = append(opts, nats.InProcessServer(&b.dial))
	} else {
		opts = append(opts, nats.SetCustomDialer(&b.dial))
		if o.Creds != "" {
			nctx.Creds = o.Creds
		}
	}
	auth, err := nctx.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, auth...)
	if inbox := firstOf(o.InboxPrefix, nctx.InboxPrefix); inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(inbox))
		b.open.inbox = inbox
	}
	return opts, nil
}

// onError hears what the server says unasked.
func (b *Bus) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if p := parseViolation(err.Error()); p != nil {
		b.log.Error("nats_permission_denied", "op", p.Op, "subject", p.Subject)
		b.open.denied(p)
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	b.log.Warn("nats_error", "subject", subject, "error", err.Error())
}

// connectError says why there is no connection.
func (b *Bus) connectError(ctx context.Context, err error) error {
	// A server that is too old may end the handshake in any way; what it said
	// of itself first tells more than how.
	if v := b.dial.serverVersion(); v != "" && tooOld(v) {
		return &VersionError{Server: v, Least: leastVersion()}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("connect to %s: %w", b.where, ctx.Err())
	}
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAccountAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
		return fmt.Errorf("%w at %s: check --creds, NATS_CREDS or NATS_CONTEXT (%w)", ErrUnauthorized, b.where, err)
	}
	return fmt.Errorf("%w at %s: start one, or name it with --nats or NATS_URL (%w)", ErrNoServer, b.where, err)
}

// usable checks the server that answered.
func (b *Bus) usable(nctx natsContext) error {
	if v := b.nc.ConnectedServerVersion(); tooOld(v) {
		return &VersionError{Server: v, Least: leastVersion()}
	}
	if n := b.nc.MaxPayload(); n < payloadLeast {
		return fmt.Errorf("the NATS server at %s takes messages of at most %d bytes, and Refold needs %d: raise max_payload in its configuration", b.where, n, payloadLeast)
	}
	opts := []jetstream.JetStreamOpt{jetstream.WithDefaultTimeout(apiTimeout), jetstream.WithPublishAsyncTimeout(apiTimeout)}
	var err error
	switch {
	case nctx.Domain != "":
		b.api = "$JS." + nctx.Domain + ".API."
		b.js, err = jetstream.NewWithDomain(b.nc, nctx.Domain, opts...)
	case nctx.APIPrefix != "":
		b.api = strings.TrimSuffix(nctx.APIPrefix, ".") + "."
		b.js, err = jetstream.NewWithAPIPrefix(b.nc, strings.TrimSuffix(nctx.APIPrefix, "."), opts...)
	default:
		b.js, err = jetstream.New(b.nc, opts...)
	}
	return err
}

// hasJetStream checks that this user has JetStream.
func (b *Bus) hasJetStream(ctx context.Context) error {
	err := b.askAccount(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w at %s: start nats-server with -js, or enable it for this account (%w)", ErrNoJetStream, b.where, err)
	default:
		return fmt.Errorf("ask %s for its JetStream account: %w", b.where, typed(err))
	}
}

// askAccount asks for the account until there is an answer, for startTimeout: a
// server that is just going down takes the connection with it, and a cluster may
// be without a leader. Nobody there to answer at all is an answer.
func (b *Bus) askAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for wait := retryWaitMin; ; wait = min(2*wait, retryWaitMax) {
		err := b.attempt(ctx, "", func(ctx context.Context) error {
			_, err := b.js.AccountInfo(ctx)
			return err
		})
		if err == nil || errors.Is(err, nats.ErrNoResponders) || !isTransient(err) || sleep(ctx, wait) != nil {
			return err
		}
	}
}

// tooOld reports that a server's version is below the least; one that does
// not parse is taken as new enough, since only development builds have such.
func tooOld(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	return major < serverMajorLeast || major == serverMajorLeast && minor < serverMinorLeast
}

func leastVersion() string {
	return strconv.Itoa(serverMajorLeast) + "." + strconv.Itoa(serverMinorLeast)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
