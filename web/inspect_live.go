package web

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// behindMax is how many notices a reader of rows may be behind: one that is further reads
// the list again.
const behindMax = 2000

// position returns where a stream begins: the header Last-Event-ID, or after in the query.
func (c *call) position() (uint64, bool, error) {
	text := cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.URL.Query().Get("after"))
	if text == "" {
		return 0, false, nil
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, problem(http.StatusBadRequest, CodeBadRequest, "after: %q is not the id of an event of this stream", cut(text))
	}
	return seq, true, nil
}

// followSessions streams the rows of sessions as they change.
func (c *call) followSessions() (any, error) {
	after, given, err := c.position()
	if err != nil {
		return nil, err
	}
	last, err := c.client.LastNotice(c.ctx())
	if err != nil {
		return nil, err
	}
	s, err := c.stream()
	if err != nil {
		return nil, err
	}
	defer s.close()
	if isBehind := given && after+behindMax < last; isBehind || !given || after > last {
		if given { // there is too much, or the log is another one
			if err := s.send("", "reset", []byte("{}")); err != nil {
				return nil, err
			}
		}
		after = last
		if err := s.write("id: " + strconv.FormatUint(after, 10) + "\n\n"); err != nil {
			return nil, err
		}
	}
	rows := func(ctx context.Context) iter.Seq2[client.IndexRow, error] {
		return c.client.Changes(ctx, c.caller.Scope, after)
	}
	return nil, pass(c, s, rows, func(row client.IndexRow) (bool, error) {
		text, err := json.Marshal(c.row(&row))
		if err != nil {
			return false, err
		}
		return true, s.send(row.Cursor[1:], "", text) // n120: after the notice at 120
	})
}

// followEvents streams the events of a session.
func (c *call) followEvents() (any, error) {
	after, given, err := c.position()
	if err != nil {
		return nil, err
	}
	heads, err := c.headsAfter(after)
	if err != nil {
		return nil, err
	}
	s, err := c.stream()
	if err != nil {
		return nil, err
	}
	defer s.close()
	if !given && len(heads) > 0 { // only what comes
		after = heads[len(heads)-1].Seq
		if err := s.write("id: " + strconv.FormatUint(after, 10) + "\n\n"); err != nil {
			return nil, err
		}
	}
	events := func(ctx context.Context) iter.Seq2[session.Event, error] {
		return c.client.Events(ctx, c.sid, after+1)
	}
	return nil, pass(c, s, events, func(e session.Event) (bool, error) {
		if e.Seq <= after { // it came with an earlier one
			return true, nil
		}
		heads, err := c.headsAfter(after)
		if err != nil {
			return false, s.fail(err)
		}
		for i := range heads {
			text, err := json.Marshal(heads[i])
			if err != nil {
				return false, err
			}
			after = heads[i].Seq
			if err := s.send(strconv.FormatUint(after, 10), "", text); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// headsAfter returns the session's events after a sequence; none if it has none yet.
func (c *call) headsAfter(after uint64) ([]EventHead, error) {
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	place, err := h.find(max(after, 1))
	if err != nil { // all of them
		place = -1
	}
	return append([]EventHead{}, h.heads[place+1:]...), nil
}
