package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/client"
)

const (
	listMax     = 200
	listDefault = 50
)

// listed are the states of rows.
var listed = []string{
	"running", "waiting_input", "paused", "interrupting", "completed", "failed", "cancelled", "interrupted",
	client.StateOpen, client.StateClosed, client.StateQuarantined, client.StateUnknown, client.StateSilent,
}

// listSessions lists the sessions of the caller's scope.
func (c *call) listSessions() (any, error) {
	o, limit, err := c.listing(c.r.URL.Query())
	if err != nil {
		return nil, err
	}
	page := SessionList{Sessions: []SessionRow{}}
	cursor := ""
	for row, err := range c.client.Index(c.ctx(), o) {
		switch {
		case errors.Is(err, client.ErrCursor):
			return nil, problem(http.StatusBadRequest, CodeBadRequest, "after: it is no cursor of a list")
		case err != nil:
			return nil, err
		}
		if len(page.Sessions) == limit {
			page.Next = cursor
			break
		}
		page.Sessions = append(page.Sessions, c.row(&row))
		cursor = row.Cursor
	}
	return page, nil
}

// row returns a row of the index as JSON.
func (c *call) row(of *client.IndexRow) SessionRow {
	row := SessionRow{Session: c.strip(of.Session), State: of.State, At: of.At, Summary: of.Summary}
	row.Parent, row.Root = c.strip(row.Parent), c.strip(row.Root)
	return row
}

// listing reads the query of a list.
func (c *call) listing(q url.Values) (o client.IndexOptions, limit int, err error) {
	wrong := func(format string, args ...any) (client.IndexOptions, int, error) {
		return o, 0, problem(http.StatusBadRequest, CodeBadRequest, format, args...)
	}
	for name := range q {
		if !slices.Contains([]string{"name", "state", "waits_for", "model", "parent", "tree", "since", "all", "after", "limit"}, name) {
			return wrong("a list has no parameter %s", cut(name))
		}
	}
	o = client.IndexOptions{Name: c.caller.Scope + q.Get("name"), WaitsFor: q.Get("waits_for"), Model: q.Get("model"), After: q.Get("after")}
	if of := q.Get("parent"); of != "" {
		o.Parent = c.caller.Scope + of
	}
	if of := q.Get("tree"); of != "" {
		o.Tree = c.caller.Scope + of
	}
	if states := q.Get("state"); states != "" {
		o.State = strings.Split(states, ",")
	}
	for _, state := range o.State {
		if !slices.Contains(listed, state) {
			return wrong("state: it is one of %s", strings.Join(listed, ", "))
		}
	}
	if since := q.Get("since"); since != "" {
		if o.Since, err = time.Parse(time.RFC3339, since); err != nil {
			return wrong("since: it is a time such as 2026-01-31T12:00:00Z")
		}
	}
	if o.All, err = c.flag("all", false); err != nil {
		return o, 0, err
	}
	limit = listDefault
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > listMax {
			return wrong("limit: it is 1 to %d", listMax)
		}
	}
	return o, limit, nil
}

// getSession returns the view of a session.
func (c *call) getSession() (any, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	v, err := c.client.View(c.ctx(), c.sid)
	if err != nil {
		return nil, err
	}
	c.stripView(&v)
	return v, nil
}

// ready answers if the server reaches the log.
func (c *call) ready() (any, error) {
	if _, err := c.client.LastEvent(c.ctx()); err != nil {
		return nil, problem(http.StatusServiceUnavailable, CodeUnavailable, "the server does not reach the log")
	}
	return Health{Status: "ok"}, nil
}
