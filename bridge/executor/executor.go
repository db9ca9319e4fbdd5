package executor

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/refold/refold/space"
)

// Executor executes the tool calls of one target. Execute is called at most once
// at a time per effect name in this process, from several goroutines for
// different effects.
//
// The Result becomes the settlement. A returned error is a fault of the executor
// itself: it settles the call `failed` with code `executor_error`; to give
// another code, return a Result with an Error. If the error wraps
// context.DeadlineExceeded (a time-out of Execute's own), the code is
// `deadline_exceeded`, and a call that is not retry-safe is settled
// `outcome_unknown`: its request may have arrived.
//
// When ctx is cancelled (run time over, effect withdrawn, bridge draining past
// its grace time) Execute must return soon. Its result then does not count: a
// retry-safe call is settled `cancelled` or `failed`, or given back to other
// bridges, and any other call `outcome_unknown`, with the output. See "Ends" in
// the package's doc.
type Executor interface {
	// Execute runs one tool call.
	Execute(ctx context.Context, call Call) (Result, error)
}

// Call is one tool call, as its effect has it.
type Call struct {
	Session        string          // session id
	Effect         string          // effect name, r1t2c0
	Start          string          // ULID of this start of the effect
	ToolID         string          // the registry's key: host.fs.read_file
	ToolName       string          // the name that the model called: read_file
	Arguments      json.RawMessage // a JSON object
	ProviderCallID string          // the model's own id, or empty
	IdempotencyKey string          // <sid>.<name without a…>; the same on every start
	RetrySafe      bool            // may run again with the same key
	HostSession    *HostSession    // where host tools run, nil if none
	Context        json.RawMessage // an object from step rules or a hook; nil: none
	Spaces         []CallSpace     // of a session's own tool: the spaces applied when the turn began; of a pack's tool: the pack
	Grants         []CallGrant     // of an extension tool: the packs that the session may adopt
	Traceparent    string          // W3C trace context, for the tool's own requests; empty: none
	Secrets        CallSecrets     // used by Secret, Hide and Redacting; nil: no bridge made the call
}

// CallSecrets holds the secrets of a call. Executors use the methods of Call.
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
	Source   string // as its reader reported it; may be empty
	At       int64  // Unix ms: when it was applied
	Manifest string // name of the blob that holds its manifest, sha256-…
}

// CallGrant is a grant of packs that a session may adopt.
type CallGrant struct {
	Space   string      // name of a pack; a trailing * matches any suffix
	Attach  []string    // roles that may enable it: operator, model; nil: operator
	Sources []string    // factory, package, module
	Target  string      // the target of its reader; empty: the pack's name
	Trust   space.Trust // which manifests the session would adopt
}

// HostSession is a session's working directory on a host. In a Result it changes
// the session's host session in the same event that settles the call. The session
// refuses another status, an ID or Route above 128 bytes, or a Root that is not
// an absolute path of at most 1024 bytes: the call then fails with
// `bad_settlement`. Root is the working directory as the tools see it; without
// it, a call that names a file by an absolute path runs alone among those that
// use files.
type HostSession struct {
	ID     string `json:"id" msgpack:"id"`
	Status string `json:"status" msgpack:"status"` // ready, closed, expired, error
	Root   string `json:"root,omitempty" msgpack:"root,omitempty"`
	Route  string `json:"route,omitempty" msgpack:"route,omitempty"`
}

// Result is the outcome of one call. The zero value is an empty success.
type Result struct {
	Output      string       // text for the model, of any size: see "Results" in the package's doc
	Files       []File       // results that are not text: each becomes a blob
	Error       *Error       // nil: succeeded
	Unknown     bool         // the outcome is unknown: settles `outcome_unknown`
	HostSession *HostSession // nil: unchanged
}

// File is a result that is not text: an image, an archive. The bridge stores it
// as a blob, to which the settlement refers. An image or a PDF is shown to the model
// by its bytes, whatever its type says; of other files it is shown name, type, size
// and hash, sha256-….
type File struct {
	Name      string // which the model is shown, at most 128 bytes: the beginning of a longer one; may be empty
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

// Secret returns the value of a secret that the needs of the tool or its pack
// name. ok is false if there is none, which happens only for optional needs.
//
// In the call's results and errors, and in this bridge's logs, ***** replaces the
// value, plain, in base64, escaped for a URL or escaped as JSON, if it has at
// least 6 bytes. Redacting does so in text that a tool sends elsewhere.
func (c Call) Secret(name string) (value string, ok bool) {
	if c.Secrets == nil {
		return "", false
	}
	return c.Secrets.Secret(name)
}

// Hide redacts values that an executor has from elsewhere, such as its own
// configuration, like those that Secret returns.
func (c Call) Hide(values ...string) {
	if c.Secrets != nil {
		c.Secrets.Hide(values...)
	}
}

// Redacting returns a writer to w that replaces the secrets of the call, also if
// one is split between writes. The caller must close it in the end; w stays open.
func (c Call) Redacting(w io.Writer) io.WriteCloser {
	if c.Secrets == nil {
		return unredacted{w}
	}
	return c.Secrets.Redacting(w)
}

// unredacted is a writer that redacts nothing.
type unredacted struct{ io.Writer }

func (unredacted) Close() error { return nil }

// Pack returns the name of the pack whose tool is called, "" if it is not a pack's.
func (c Call) Pack() string {
	for i := range c.Spaces {
		if s := &c.Spaces[i]; s.Kind == string(space.Pack) && strings.HasPrefix(c.ToolID, s.Space+".") {
			return s.Space
		}
	}
	return ""
}
