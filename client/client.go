package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// Options say how to connect. What is empty is read from the environment, as the
// programs do. Without variables, the zero value connects to a server on this
// machine, without credentials, under the prefix refold.
type Options struct {
	URL     string       // of NATS; empty: NATS_URL, else the context's, else nats://127.0.0.1:4222
	Creds   string       // path of a credentials file; empty: NATS_CREDS
	Context string       // name of a context of the nats tool, or path of its file; empty: NATS_CONTEXT
	Prefix  string       // of all subjects; empty: REFOLD_PREFIX, else refold
	Name    string       // of the connection; empty: refold-client
	Logger  *slog.Logger // nil: no logs

	// InboxPrefix begins the subjects of replies, if permissions give each role
	// its own; empty: the context's, else _INBOX.
	InboxPrefix string
	// CoreOnly is for the permissions of a client: the connection does not use
	// JetStream. Run, Follow, View, Live and the controls of runs work, but no
	// method that reads a stream. Input over session.TextBytesMax, and files, need
	// the object store.
	CoreOnly bool
	// InProcess, if given, is a NATS server in this process, to which the
	// client connects instead; the environment is not read then.
	InProcess nats.InProcessConnProvider
	// Like, if given, is a connection of the program: the client dials its own, with
	// the address, credentials and TLS of this one, which it neither changes nor
	// closes. The environment, URL, Creds and Context are not read then.
	Like *nats.Conn
}

// Client is a connection. It is safe for concurrent use.
type Client struct {
	bus      store
	installs *journal.Installs
	by       string

	mu        sync.Mutex
	histories map[string]*history       // by session: those in use
	readers   map[string]map[*news]bool // of events, by session
}

// Connect connects to NATS and checks that it is usable: the error is one line that
// says what to do. The caller must call Close.
func Connect(ctx context.Context, o Options) (*Client, error) {
	o.Name = cmp.Or(o.Name, "refold-client")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	to := natsio.Options{
		URL: o.URL, Creds: o.Creds, Context: o.Context, Prefix: o.Prefix, Name: o.Name, Logger: o.Logger,
		InboxPrefix: o.InboxPrefix, CoreOnly: o.CoreOnly, InProcess: o.InProcess, Like: o.Like,
	}
	if o.InProcess == nil && o.Like == nil {
		to.FillFrom(os.LookupEnv) //nolint:forbidigo // programs expect the variables of the nats tool in every client
	}
	b, err := bus.Connect(ctx, to)
	if err != nil {
		return nil, err
	}
	return newClient(b, o.Name, o.Logger), nil
}

func newClient(s store, by string, log *slog.Logger) *Client {
	return &Client{bus: s, installs: journal.NewInstalls(s, log, nil), by: by, histories: map[string]*history{}, readers: map[string]map[*news]bool{}}
}

// Clock returns the server's clock: times of events, notices and troubles are the
// server's. Its first use asks the server for its time. If this user may not ask, or
// gets no answer within five seconds, it shows this machine's time.
func (c *Client) Clock(ctx context.Context) func() time.Time {
	measured := sync.OnceValue(func() *natsio.Clock {
		clock := c.bus.NewClock(natsio.NewLocalClock())
		_ = clock.Measure(ctx)
		return clock
	})
	return func() time.Time { return measured().Now() }
}

// Close closes the connection.
func (c *Client) Close() { c.bus.Close() }

// RunOptions are the optional parts of a request for a run.
type RunOptions struct {
	ID       string          // of the event, at most 64 bytes; empty: a new ULID
	Config   json.RawMessage // a RunConfig as JSON; nil: the session's, else the install record's
	Roles    []string        // for step rules; the built-in policy accepts them only from operators
	Operator bool            // publish through the door ctl, which accepts Roles and every field of Config
	Files    []File          // after the text, in this order; the text may then be empty. Each is stored as a blob first

	// Parts are more of the input, after the text and before the files: texts, and what
	// Store returned. Their order is kept.
	Parts []session.Content

	// Submission names the request: all requests with the same value and content,
	// from any program, are one run, and End returns its outcome to each. With other
	// content the request is refused. A session remembers at least its newest
	// session.SubmissionsMax; a request with a forgotten one starts a new run.
	Submission string

	// Agent is the definition that the run is requested for, as DefinitionOf returns
	// it: the session refuses the request as agent_changed if it has another. It is no
	// part of what a submission repeats. Empty: any.
	Agent string

	// WhenBusy decides what happens to the request while a run is active. Empty or
	// session.BusyQueue: it is queued. BusySteer: it is more input for the active
	// run. BusyInterrupt: the active run ends when its open effects are settled,
	// and this one is next. BusyReject: it is refused.
	WhenBusy string
}

// Run requests a run of a session with text, and the files of o, as the user's
// input. Text over session.TextBytesMax is stored as a blob first. It returns the request's
// sequence once the request is stored in the log; the first request opens the
// session. If ctx ends first, it is safe to call Run again with the same ID
// within two minutes, or with the same Submission while the session remembers it. End waits for the
// outcome of the request; Taken and RunOf return it without waiting.
func (c *Client) Run(ctx context.Context, sid, text string, o RunOptions) (seq uint64, err error) {
	input, err := c.input(ctx, text, o.Parts, o.Files)
	if err != nil {
		return 0, err
	}
	body := session.RunRequested{Agent: o.Agent, Input: input, Roles: o.Roles, Submission: o.Submission, WhenBusy: o.WhenBusy}
	if o.Config != nil {
		raw, err := codec.FromJSON(o.Config)
		if err != nil {
			return 0, fmt.Errorf("run: config: %w", err)
		}
		body.Config = &session.RunConfig{}
		if err := codec.Decode(raw, body.Config); err != nil {
			return 0, fmt.Errorf("run: config: %w", err)
		}
	}
	door := session.DoorIn
	if o.Operator {
		door = session.DoorCtl
	}
	return c.publish(ctx, door, sid, session.TypeRunRequested, body, o.ID)
}

// content returns text as an event carries it: inline, or, over
// session.TextBytesMax, as a blob, which it stores.
func (c *Client) content(ctx context.Context, text string) (session.Content, error) {
	switch {
	case !utf8.ValidString(text):
		return session.Content{}, errors.New("the text is not valid UTF-8")
	case len(text) <= session.TextBytesMax:
		return session.Content{Text: text}, nil
	case len(text) > FileBytesMax:
		return session.Content{}, fmt.Errorf("the text has %d bytes, at most %d MiB: shorten it, or let a tool read it", len(text), FileBytesMax>>20)
	}
	return c.blob(ctx, text)
}

func (c *Client) blob(ctx context.Context, text string) (session.Content, error) {
	ref, err := c.bus.PutBlob(ctx, []byte(text))
	if err != nil {
		return session.Content{}, fmt.Errorf("store %d bytes of text as a blob: %w", len(text), err)
	}
	return session.Content{Blob: &ref, MediaType: "text/plain", Size: int64(len(text))}, nil
}

// byKey is the key of WithBy.
type byKey struct{}

// WithBy returns a context under which events have this publisher, in place of the
// connection's name: the user of a server, say. It is for people, never for authority,
// and is cut to session.ByBytesMax bytes.
func WithBy(ctx context.Context, by string) context.Context {
	by = strings.ToValidUTF8(by, "\uFFFD")
	for len(by) > session.ByBytesMax {
		_, size := utf8.DecodeLastRuneInString(by)
		by = by[:len(by)-size]
	}
	return context.WithValue(ctx, byKey{}, by)
}

func byOf(ctx context.Context, name string) string {
	if by, ok := ctx.Value(byKey{}).(string); ok && by != "" {
		return by
	}
	return name
}

func (c *Client) publish(ctx context.Context, door session.Door, sid, typ string, body any, id string) (seq uint64, err error) {
	if id == "" {
		id = ulid.Make().String()
	}
	text, err := envelope(byOf(ctx, c.by), typ, body, id)
	if err != nil {
		return 0, err
	}
	return c.Publish(ctx, door, sid, text, id)
}

// envelope returns an event as JSON: people read the log.
func envelope(by, typ string, body any, id string) (text []byte, err error) {
	data, err := codec.Marshal(body)
	if err == nil {
		data, err = codec.Marshal(session.Envelope{By: by, Data: data, ID: id, Type: typ, V: session.Version})
	}
	if err == nil {
		text, err = codec.ToJSON(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", typ, err)
	}
	return text, nil
}

// Publish appends an event: payload is the envelope, JSON or msgpack. The server drops
// a repeat of the same id in the same session; empty is none. It returns the sequence in the log.
func (c *Client) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (seq uint64, err error) {
	if seq, err = c.bus.Publish(ctx, door, sid, payload, id); err == nil {
		c.published(sid, seq)
	}
	return seq, err
}

// viewTry is how long View waits for one session-actor before it requests the
// view again.
const viewTry = 2 * time.Second

// View returns a session's current view from a session-actor. It repeats the
// request until one answers or ctx ends; if none runs, it returns an error at
// once.
func (c *Client) View(ctx context.Context, sid string) (session.View, error) {
	for {
		answer, err := c.requestView(ctx, sid)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return session.View{}, err
		}
		var v session.View
		if err := json.Unmarshal(answer, &v); err != nil {
			return session.View{}, fmt.Errorf("view of %s: %w", sid, err)
		}
		return v, nil
	}
}

func (c *Client) requestView(ctx context.Context, sid string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, viewTry)
	defer cancel()
	return c.bus.RequestView(ctx, sid)
}

// Blob returns the content of a blob.
func (c *Client) Blob(ctx context.Context, ref codec.Ref) ([]byte, error) {
	return c.bus.GetBlob(ctx, ref)
}

// Event returns the event at a sequence of the log.
func (c *Client) Event(ctx context.Context, seq uint64) (session.Event, error) {
	return c.bus.EventAt(ctx, seq)
}

// Input returns the input in the event at a sequence of the log: a RunRequested, a
// SteerRequested, a RunEdited, a ScheduleSet or a ChildRequested.
func (c *Client) Input(ctx context.Context, seq uint64) (*session.Content, error) {
	e, err := c.bus.EventAt(ctx, seq)
	if err != nil {
		return nil, err
	}
	env, err := envelopeOf(e)
	if err != nil {
		return nil, err
	}
	switch env.Type {
	case session.TypeRunRequested:
		var b session.RunRequested
		err = codec.Decode(env.Data, &b)
		return &b.Input, err
	case session.TypeSteerRequested:
		var b session.SteerRequested
		err = codec.Decode(env.Data, &b)
		return &b.Input, err
	case session.TypeChildRequested:
		var b session.ChildRequested
		err = codec.Decode(env.Data, &b)
		return &b.Input, err
	case session.TypeRunEdited:
		var b session.RunEdited
		err = codec.Decode(env.Data, &b)
		return &b.Input, err
	case session.TypeScheduleSet:
		var b session.ScheduleSet
		err = codec.Decode(env.Data, &b)
		return &b.Input, err
	}
	return nil, fmt.Errorf("event %d is a %s: it has no input", e.Seq, env.Type)
}
