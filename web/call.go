package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/inside"
)

// call is a request that passed the checks.
type call struct {
	*server
	w      http.ResponseWriter
	r      *http.Request
	caller *Caller
	sid    string // the session, with the scope; empty: none

	status int  // of the answer; 0: 200
	sent   bool // the answer has begun
}

// ctx returns the context of the request: events published with it have the caller as
// their publisher.
func (c *call) ctx() context.Context { return c.r.Context() }

// sessionForm is that of a session's id, with the scope.
var sessionForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// enter makes the call one about a session, whose id is as the client has it.
func (c *call) enter(id string) error {
	sid := c.caller.Scope + id
	if id == "" || !sessionForm.MatchString(sid) {
		return problem(http.StatusBadRequest, CodeBadRequest, "the session's id %q is not 1 to %d of A-Za-z0-9_-", cut(id), 64-len(c.caller.Scope))
	}
	c.sid = sid
	return nil
}

// cut returns the beginning of a text of a client, for an error.
func cut(text string) string {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// strip returns a session's id as the client has it.
func (c *call) strip(sid string) string { return strings.TrimPrefix(sid, c.caller.Scope) }

// stripView has a view name all sessions as the client has them.
func (c *call) stripView(v *session.View) {
	v.Session = c.strip(v.Session)
	if p := v.Parent; p != nil {
		p.Session, p.Root = c.strip(p.Session), c.strip(p.Root)
	}
	for i := range v.Children {
		v.Children[i].Session = c.strip(v.Children[i].Session)
	}
	if v.Batch != nil {
		for i := range v.Batch.Calls {
			v.Batch.Calls[i].Child = c.strip(v.Batch.Calls[i].Child)
		}
	}
}

// session returns the session.
func (c *call) session() *refold.Session { return c.rt.Session(c.sid) }

// defaultAgent is the agent of requests that name none: what the install record says, or
// what the session was given.
const defaultAgent = "default"

// agent returns the agent that a request names, as ask takes it.
func (c *call) agent(name string) (string, error) {
	if name == "" {
		name = defaultAgent
	}
	if !c.caller.mayName(name) {
		return "", problem(http.StatusForbidden, CodeForbidden, "this token may not use agent %s", cut(name))
	}
	for _, has := range c.inner.Agents() {
		if has == name {
			return name, nil
		}
	}
	if name == defaultAgent {
		return "", nil
	}
	return "", problem(http.StatusNotFound, CodeNoAgent, "the server has no agent %q", cut(name))
}

// ask requests a run.
func (c *call) ask(agent, text string, o client.RunOptions, tools ...json.RawMessage) (inside.Asked, error) {
	return c.inner.Ask(c.ctx(), agent, c.sid, text, o, tools...)
}

// decode reads the body as JSON. Unknown fields and other media types are refused. An
// empty body is {} if optional.
func (c *call) decode(to any, optional bool) error {
	if c.r.Header.Get("Content-Type") == "" && optional && c.r.ContentLength == 0 {
		return nil
	}
	if err := c.isJSON(); err != nil {
		return err
	}
	d := json.NewDecoder(c.r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(to)
	switch {
	case errors.Is(err, io.EOF) && optional:
		return nil
	case err == nil:
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.Join(errors.New("there is more after the value"), err)
	}
	return badBody(err)
}

// isJSON fails if the body is said to be anything else.
func (c *call) isJSON() error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, CodeMediaType, "send the body as application/json")
	}
	return nil
}

// badBody returns an error of a body that can't be read.
func badBody(err error) error {
	var large *http.MaxBytesError
	var p *Problem
	if errors.As(err, &large) || errors.As(err, &p) {
		return err
	}
	return problem(http.StatusBadRequest, CodeBadRequest, "the body: %s: see /openapi.json", strings.TrimPrefix(err.Error(), "json: "))
}

// key returns the header Idempotency-Key, as it names an event or a submission: itself,
// or its hash if it is long. what distinguishes operations that may have one key.
func (c *call) key(what ...string) (string, error) {
	key := c.r.Header.Get("Idempotency-Key")
	if key == "" {
		return "", nil
	}
	if len(key) > keyBytesMax || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", problem(http.StatusBadRequest, CodeBadRequest, "Idempotency-Key: it is 1 to %d printable ASCII characters", keyBytesMax)
	}
	if len(what) == 0 && len(key) <= session.IDBytesMax {
		return key, nil
	}
	return codec.Sum([]byte(strings.Join(append(what, key), "\x00"))).String(), nil
}

const keyBytesMax = 255

// number returns a number in the path.
func (c *call) number(name string) (uint32, error) {
	n, err := strconv.ParseUint(c.r.PathValue(name), 10, 32)
	if err != nil || n == 0 {
		return 0, problem(http.StatusBadRequest, CodeBadRequest, "%q is no number of a run: runs count from 1", cut(c.r.PathValue(name)))
	}
	return uint32(n), nil
}
