package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// This file has what protocols of others need of the log besides updates.

// seqOf returns the sequence of the event that an update is of.
func (c *call) seqOf(u refold.Update) uint64 {
	seq, _, _ := c.inner.Place(u.Position())
	return seq
}

// viewSince returns a function that returns the session's view as of the event at a
// sequence, or later: it folds the log only if the view that it has is older.
func (c *call) viewSince() func(seq uint64) (*session.View, error) {
	var has session.View
	return func(seq uint64) (*session.View, error) {
		if has.Seq >= seq {
			return &has, nil
		}
		var err error
		has, err = c.client.ViewNow(c.ctx(), c.sid)
		return &has, err
	}
}

// output returns what a call returned, as the model is shown it. seq is that of the event
// which ended the call.
func (c *call) output(seq uint64, name string) (string, error) {
	e, err := c.client.Event(c.ctx(), seq)
	if err != nil {
		return "", err
	}
	result, err := resultIn(e, name)
	if err != nil || result == nil {
		return "", err
	}
	return transcript.Text(c.ctx(), c.client, result.Output), nil
}

// resultIn returns the result of a call in an event; nil: the event has none.
func resultIn(e session.Event, name string) (*session.ToolCallSettled, error) {
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		return nil, err
	}
	results := make([]session.ToolCallSettled, 1)
	switch env.Type {
	case session.TypeToolCallSettled:
		err = codec.Decode(env.Data, &results[0])
	case session.TypeToolBatchSettled:
		var b session.ToolBatchSettled
		err = codec.Decode(env.Data, &b)
		results = b.Results
	case session.TypeWorkspaceSnapshotReady: // it does not name the call
		var b session.WorkspaceSnapshotReady
		err = codec.Decode(env.Data, &b)
		results[0] = session.ToolCallSettled{Effect: name, Output: b.Output}
	case session.TypeWorkspaceSyncUnchanged:
		var b session.WorkspaceSyncUnchanged
		err = codec.Decode(env.Data, &b)
		results[0] = session.ToolCallSettled{Effect: name, Output: b.Output}
	}
	for i := range results {
		if of, _, _ := strings.Cut(results[i].Effect, "a"); of == name && err == nil { // of an attempt: r1t2c0a2
			return &results[i], nil
		}
	}
	return nil, err
}

// How long the text that a model is writing is kept for a reader that is gone, and of how
// many streams. The log has it when the turn ends.
const (
	keptFor = time.Minute
	keptMax = 1024
)

// keep keeps what the models of the session write from now on, for readers that begin
// before gone is called, or within a minute: a page that is reloaded gets the text that is
// being written. A request of a run calls it first, or it may miss the beginning of the
// answer. It keeps nothing if too much is kept already.
func (c *call) keep() (gone func(), err error) {
	last, err := c.client.LastEvent(c.ctx())
	if err != nil {
		return nil, err
	}
	if c.kept.Add(1) > keptMax {
		c.kept.Add(-1)
		return func() {}, nil
	}
	leave, ok, err := c.inner.Hold(c.ctx(), c.sid, last+1)
	if err != nil || !ok {
		c.kept.Add(-1)
		return func() {}, err
	}
	return func() {
		time.AfterFunc(keptFor, func() {
			leave()
			c.kept.Add(-1)
		})
	}, nil
}

// noContent answers 204.
func (c *call) noContent() error {
	c.status, c.sent = http.StatusNoContent, true
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
