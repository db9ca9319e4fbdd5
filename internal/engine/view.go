package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/presence"
)

// viewWithin is the time limit of one request for a View.
const viewWithin = 5 * time.Second

// ErrNoSession is the answer to a view request for an unknown session.
var ErrNoSession = errors.New("the log holds no event of this session")

// views answers refold.view.<sid>. Any live host can answer for any session, and
// one of them gets each request: it loads a copy, projects it and throws it away.
// The lane's owner is not needed: an idle lane may have no owner.
func (h *Host) views(ctx context.Context) presence.Endpoint {
	names := h.bus.Names()
	return presence.Endpoint{
		Name: "view", Subject: names.ViewAll(),
		Answer: func(subject string, _ []byte) ([]byte, error) {
			sid, err := names.ParseView(subject)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, viewWithin)
			defer cancel()
			return h.View(ctx, sid)
		},
	}
}

// stateless is the View of a quarantined session whose state can't be shown.
type stateless struct {
	Session     string                  `json:"session"`
	Quarantined *session.ViewQuarantine `json:"quarantined"`
}

// View returns the JSON of a session's View as of the log's end.
func (h *Host) View(ctx context.Context, sid string) (data []byte, err error) {
	defer func() { err = recovered(recover(), err) }()
	state, stop, err := h.latest(ctx, sid)
	var stopped *session.ViewQuarantine
	if stop != nil {
		stopped = &session.ViewQuarantine{Seq: stop.Seq, Reason: stop.Reason}
	}
	switch {
	case stop != nil && (err != nil || state == nil):
		h.log.Warn("view of a quarantined session without its state", "session", sid, "error", err)
		return json.Marshal(stateless{sid, stopped})
	case err != nil:
		return nil, err
	case state == nil:
		return nil, ErrNoSession
	}
	v := state.View()
	h.addWaits(ctx, state, &v)
	v.Quarantined = stopped
	return fit(&v, viewBytesMax)
}

// viewBytesMax bounds an answer: with its headers it fits a message of any server
// that Refold works with.
const viewBytesMax = 1<<20 - 4<<10

// fit encodes a View in at most max bytes. It leaves out what does not fit: first
// the lists of overrides, which each queued run may have, then the tools. Open
// effects and what a host loop carries out always fit. Markup is not escaped:
// escaping would make six bytes of one.
func fit(v *session.View, max int) ([]byte, error) {
	encode := func() ([]byte, error) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(v)
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
	}
	data, err := encode()
	for _, leave := range []func(){
		func() {
			for i := range v.Queue {
				v.Queue[i].Overrides = nil
			}
		},
		func() {
			v.Overrides = nil
			if v.Run != nil {
				v.Run.Overrides = nil
			}
		},
		func() { v.Tools = nil },
	} {
		if err != nil || len(data) <= max {
			break
		}
		leave()
		data, err = encode()
	}
	return data, err
}

// latest returns a session as of the log's end, nil if it has no event. A
// quarantined session is returned as it was when it stopped, with its quarantine. It
// is nil if it had processed no event, or if it killed processes: then it is not
// folded again.
func (h *Host) latest(ctx context.Context, sid string) (*session.State, *Stop, error) {
	stop, err := h.stopOf(ctx, sid)
	if stop != nil && stop.Released {
		stop = nil
	}
	if err != nil || stop != nil && stop.Kills > 0 {
		return nil, stop, err
	}
	state, err := h.restore(ctx, sid, stop)
	if err != nil {
		return nil, stop, err
	}
	last, err := h.world.LastSeq(ctx)
	if err != nil {
		return nil, stop, err
	}
	end := last + 1
	if stop != nil {
		end = min(end, stop.Seq)
	}
	// There is no event at end yet, so the read ends incomplete.
	state, err = h.foldRead(ctx, sid, state, end, h.readAfter(ctx, sid, state, end, true), false)
	if errors.Is(err, errIncomplete) {
		err = nil
	}
	if stop != nil && state != nil && state.Count == 0 {
		state = nil
	}
	return state, stop, err
}
