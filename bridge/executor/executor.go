package executor

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/refold/refold/space"
)

// Executor carries out the effects of one target. Execute is called at most
// once at a time per effect name in this process, from several goroutines for
// different effects.
//
// Execute returns what the settlement will say. A returned error is a fault of
// the executor itself: for a tool it settles the call `failed` with code
// `executor_error`; an executor that knows better returns a Result with an
// Error. If it wraps context.DeadlineExceeded (a time-out of Execute's own), the
// code is `deadline_exceeded`, and a call that is not retry-safe is settled
// `outcome_unknown`: what was sent may have arrived. When ctx is cancelled (run time over, effect withdrawn, bridge
// draining past its grace time) Execute must return soon. What it returns then
// is not believed: a call that is retry-safe is settled `cancelled` or
// `failed`, or given to another bridge, and any other `outcome_unknown`, with
// the output. See "Ends" in the package's doc.
type Executor interface {
	// Execute runs one tool call.
	Execute(ctx context.Context, call Call) (Result, error)
}

// Call is one tool call, as its effect says it.
type Call struct {
	Session        string          // session id
	Effect         string          // effect name, r1t2c0
	Start          string          // ULID of this start of the effect
	ToolID         string          // the registry's key: host.fs.read_file
	ToolName       string          // what the model called: read_file
	Arguments      json.RawMessage // a JSON object
	ProviderCallID string          // the model's own id, or empty
	IdempotencyKey string          // <sid>.<name without a…>; the same on every start
	RetrySafe      bool            // may run again with the same key
	HostSession    *HostSession    // where host tools run, nil if none
	Context        json.RawMessage // an object that step rules or a hook carried on; nil: none
	Spaces         []CallSpace     // of a tool of the session's own: what was applied when the turn began; of a pack's tool: the pack
	Grants         []CallGrant     // of an extension tool: the packs that the session may adopt
	Traceparent    string          // W3C trace context, for whoever the tool calls; empty: none
	Secrets        CallSecrets     // what Secret, Hide and Redacting use; nil: no bridge made the call
}

// CallSecrets is what a bridge gives a call for its secrets. Executors use the
// methods of Call.
type CallSecrets interface {
	Secret(name string) (value string, ok bool)
	Hide(values ...string)
	Redacting(w io.Writer) io.WriteCloser
}

// CallSpace is one space that a session tool works on.
type CallSpace struct {
	Space    string
	Kind     string // workspace or pack
	Version  string // empty: it has none
	Source   string // what its reader said of itself; empty: nothing
	At       int64  // Unix ms: when it was applied
	Manifest string // name of the blob that holds its manifest, sha256-…
}

// CallGrant says which packs a session may adopt.
type CallGrant struct {
	Space   string   // name of a pack; a trailing * matches the rest
	Attach  []string // who may ask: operator, model; nil: operator
	Sources []string // factory, package, module
	Target  string   // who reads it; empty: the pack's name
	Version string   // 1, 1.4 or 1.4.2, that the pack's must match; empty: any
}

// HostSession is the session's place on a host. As a part of a Result it
// changes the session's status in the same event that settles the call. One with
// another status, an ID or Route above 128 bytes, or a Root that is not an
// absolute path of at most 1024 bytes, the session refuses: the call then fails
// with `bad_settlement`. Root is the working directory as the tools take it;
// without it, calls that name a file by an absolute path run alone among those
// that use files.
type HostSession struct {
	ID     string `json:"id" msgpack:"id"`
	Status string `json:"status" msgpack:"status"` // ready, closed, expired, error
	Root   string `json:"root,omitempty" msgpack:"root,omitempty"`
	Route  string `json:"route,omitempty" msgpack:"route,omitempty"`
}

// Result is the outcome of one call. The zero value is an empty success.
type Result struct {
	Output      string       // what the model is shown; any size, see "Results" in the package's doc
	Files       []File       // results that are not text: each becomes a blob
	Error       *Error       // nil: succeeded
	Unknown     bool         // the outcome can't be told: settles `outcome_unknown`
	HostSession *HostSession // nil: unchanged
}

// File is a result that is no text: an image, an archive. It is stored as a blob
// and referred to from the settlement; a model is shown its type, size and name,
// sha256-….
type File struct {
	MediaType string // such as image/png; empty: application/octet-stream
	Data      []byte
}

// Error is a failure that the model is shown.
type Error struct {
	Code      string `json:"code" msgpack:"code"`     // lower_snake_case
	Detail    string `json:"detail" msgpack:"detail"` // a sentence that says what to do
	Retryable bool   `json:"retryable,omitempty" msgpack:"retryable,omitempty"`
}

// Error returns "code: detail".
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Secret returns the value of a secret that the tool, or its pack, needs: one that
// their needs name. false: there is none, which happens to optional needs alone.
//
// What the call returns, its errors and what this bridge logs are stored and
// printed with ***** in place of the value, plain, in base64, escaped for a URL or
// escaped as JSON, if it has at least 6 bytes. Redacting does so in text that a
// tool sends elsewhere.
func (c Call) Secret(name string) (value string, ok bool) {
	if c.Secrets == nil {
		return "", false
	}
	return c.Secrets.Secret(name)
}

// Hide tells the bridge of values that an executor took from elsewhere, such as its
// own configuration: they are redacted as those that Secret returns.
func (c Call) Hide(values ...string) {
	if c.Secrets != nil {
		c.Secrets.Hide(values...)
	}
}

// Redacting returns a writer to w that replaces the secrets of the call, also one
// that comes in several pieces. Close it when all is written; w stays open.
func (c Call) Redacting(w io.Writer) io.WriteCloser {
	if c.Secrets == nil {
		return unredacted{w}
	}
	return c.Secrets.Redacting(w)
}

// unredacted writes what it is given.
type unredacted struct{ io.Writer }

func (unredacted) Close() error { return nil }

// Pack returns the name of the pack whose tool is called, "" if it is no pack's.
func (c Call) Pack() string {
	for i := range c.Spaces {
		if s := &c.Spaces[i]; s.Kind == string(space.Pack) && strings.HasPrefix(c.ToolID, s.Space+".") {
			return s.Space
		}
	}
	return ""
}
