package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Right is what a caller may do.
type Right string

// The rights.
const (
	RightRead    Right = "read"    // read sessions: views, runs, updates, transcripts, lists
	RightAsk     Right = "ask"     // request, steer and control runs, and store files for them
	RightApprove Right = "approve" // decide over calls that wait for a person
	RightOperate Right = "operate" // set configs, facts, agents and overrides, and end and hold sessions
	RightErase   Right = "erase"   // delete sessions
)

// Rights are all rights.
var Rights = []Right{RightRead, RightAsk, RightApprove, RightOperate, RightErase}

// Caller is who sends a request, and what they may do.
type Caller struct {
	Subject string    // the publisher of events, for people; limits count by it
	Rights  []Right   // empty: nothing
	Scope   string    // before every session id of a request; empty: all sessions
	Agents  []string  // that requests may name; nil: all
	Expires time.Time // a stream ends then; zero: never
}

// Auth says who sends a request. The error's text is shown to the client, with 401. It is
// called again while a stream is open, so that one whose token is revoked ends.
type Auth func(*http.Request) (*Caller, error)

// ScopePattern is the form of a scope: no scope is the beginning of another.
const ScopePattern = `^[a-z0-9]{1,16}-$`

var scopeForm = regexp.MustCompile(ScopePattern)

// IsScope reports whether a text is a scope. The empty one is: all sessions.
func IsScope(text string) bool { return text == "" || scopeForm.MatchString(text) }

// may reports whether the caller has a right.
func (c *Caller) may(r Right) bool { return r == "" || slices.Contains(c.Rights, r) }

// mayName reports whether the caller's requests may name an agent.
func (c *Caller) mayName(agent string) bool {
	return c.Agents == nil || slices.Contains(c.Agents, agent)
}

// key is what limits count by.
func (c *Caller) key() string { return c.Scope + " " + c.Subject }

// Bearer returns the token of a request's header Authorization; empty if there is none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
