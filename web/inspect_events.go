package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

const (
	eventsMax     = 2000
	eventsDefault = 500
	dataBytesMax  = 64 << 10 // of the data of an event that is opened
)

// sequence returns a sequence in the query; 0 if it is absent.
func (c *call) sequence(name string) (uint64, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seq == 0 {
		return 0, problem(http.StatusBadRequest, CodeBadRequest, "%s: %q is no sequence of the log", name, cut(text))
	}
	return seq, nil
}

// flag returns a boolean in the query; absent if there is none.
func (c *call) flag(name string, absent bool) (bool, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return absent, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, problem(http.StatusBadRequest, CodeBadRequest, "%s: it is true or false", name)
	}
	return value, nil
}

// sequenceInPath returns the sequence in the path.
func (c *call) sequenceInPath() (uint64, error) {
	seq, err := strconv.ParseUint(c.r.PathValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		return 0, problem(http.StatusBadRequest, CodeBadRequest, "%q is no sequence of the log", cut(c.r.PathValue("seq")))
	}
	return seq, nil
}

// limit returns the limit in the query.
func (c *call) limit(most, absent int) (int, error) {
	text := c.r.URL.Query().Get("limit")
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problem(http.StatusBadRequest, CodeBadRequest, "limit: it is 1 to %d", most)
	}
	return n, nil
}

// listEvents lists a session's events.
func (c *call) listEvents() (any, error) {
	from, err := c.sequence("from")
	if err != nil {
		return nil, err
	}
	limit, err := c.limit(eventsMax, eventsDefault)
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	begin := 0
	if from > h.heads[0].Seq {
		if begin, _ = h.find(from); h.heads[begin].Seq < from {
			begin++
		}
	}
	end := min(begin+limit, len(h.heads))
	list := EventList{Events: append([]EventHead{}, h.heads[begin:end]...), Total: len(h.heads)}
	if end < len(h.heads) {
		list.Next = h.heads[end].Seq
	}
	return list, nil
}

// getEvent returns an event, and what it did.
func (c *call) getEvent() (any, error) {
	seq, err := c.sequenceInPath()
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	place, err := h.exact(seq)
	if err != nil {
		return nil, err
	}
	e, err := c.client.Event(c.ctx(), seq)
	if err != nil {
		return nil, err
	}
	shown := &EventShown{EventHead: h.heads[place], Leaf: session.LeafOf(e).String(), Redacted: e.Original != nil}
	shown.read(e)
	state, err := c.at(h, place-1)
	if err != nil {
		return nil, err
	}
	outcome, err := c.tried(state, e)
	if err != nil {
		return nil, err
	}
	shown.Said, shown.Detail, shown.Withdrawn, shown.Changes, shown.More = outcome.Said, outcome.Detail, outcome.Withdrawn, outcome.Changes, outcome.More
	shown.Effects, shown.Chain, shown.Hash = outcome.Effects, outcome.chain, outcome.hash
	if place > 0 {
		shown.Previous = h.heads[place-1].Seq
	}
	if place+1 < len(h.heads) {
		shown.Following = h.heads[place+1].Seq
	}
	return shown, nil
}

// outcome is what comes of an event.
type outcome struct {
	Preview
	chain, hash string
}

// tried folds an event on a state, which it changes, and returns what comes of it. Before
// a session's first event the state is nil. Nothing is published.
func (c *call) tried(state *session.State, e session.Event) (o outcome, err error) {
	before, err := recordOf(state)
	if err != nil {
		return o, err
	}
	was := map[string]bool{}
	var notices []session.Notice
	err = c.folded(func() (err error) {
		if state == nil {
			notices, state, err = c.client.Folder(c.sid)(c.ctx(), e)
			return err
		}
		for _, open := range state.Open() {
			was[open.Name] = true
		}
		o.After = state.Seq
		if err := state.Foldable(); err != nil {
			return err
		}
		notices, _ = state.Evolve(e) // a rejection is among the notices
		return nil
	})
	if err != nil {
		return o, err
	}
	for i := range notices {
		if d, ok := notices[i].Data.(session.EventRejected); ok {
			o.Rejected, o.Detail = string(d.Code), d.Detail
		}
		o.Said = append(o.Said, saidOf(&notices[i]))
	}
	for _, open := range state.OpenExcept(func(p session.Place) bool { return was[p.String()] }) {
		o.Effects = append(o.Effects, askedOf(&open))
	}
	for _, w := range state.Withdrawals() {
		o.Withdrawn = append(o.Withdrawn, w.Name)
	}
	o.chain, o.hash = state.Chain.String(), state.Hash().String()
	after, err := recordOf(state)
	o.Changes, o.More = changesOf(before, after)
	return o, err
}

// read adds what is in an event.
func (s *EventShown) read(e session.Event) {
	env, err := session.ReadEnvelope(e.Payload)
	if err == nil && len(env.Data) > 0 {
		var data []byte
		if data, err = codec.ToJSON(env.Data); len(data) <= dataBytesMax {
			s.Data = data
		}
	}
	if err != nil {
		s.Fault = err.Error()
		return
	}
	s.ID, s.At = env.ID, env.At
}

// saidOf returns a notice as it is shown.
func saidOf(n *session.Notice) NoticeShown {
	var whole struct {
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(n.JSON(), &whole) // JSON made it
	return NoticeShown{Type: n.Type, Data: whole.Data}
}

// ownEvent returns the session's event in the path.
func (c *call) ownEvent() (e session.Event, err error) {
	seq, err := c.sequenceInPath()
	if err != nil {
		return e, err
	}
	e, err = c.client.Event(c.ctx(), seq)
	if errors.Is(err, natsio.ErrNotFound) || err == nil && e.Session != c.sid {
		return e, problem(http.StatusNotFound, CodeNoEvent, "event %d is of another session, or of none", seq)
	}
	return e, err
}

// attach sends bytes as a file, which no browser shows.
func (c *call) attach(name, kind string, text []byte) {
	c.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	c.raw(kind, text)
}

// getRawEvent sends an event's bytes.
func (c *call) getRawEvent() (any, error) {
	e, err := c.ownEvent()
	if err != nil {
		return nil, err
	}
	c.attach("event-"+strconv.FormatUint(e.Seq, 10), "application/octet-stream", e.Payload)
	return nil, nil
}

// getEventText sends an event's data as text.
func (c *call) getEventText() (any, error) {
	e, err := c.ownEvent()
	if err != nil {
		return nil, err
	}
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, CodeNoEvent, "event %d can't be read: %v: fetch its bytes", e.Seq, err)
	}
	text := []byte("{}")
	if len(env.Data) > 0 {
		if text, err = codec.ToJSON(env.Data); err != nil {
			return nil, err
		}
	}
	c.attach("event-"+strconv.FormatUint(e.Seq, 10)+".txt", "text/plain; charset=utf-8", text)
	return nil, nil
}

// getState returns the state after an event.
func (c *call) getState() (any, error) {
	seq, err := c.sequence("at")
	if err != nil {
		return nil, err
	}
	whole, err := c.flag("record", true)
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	place, err := h.find(seq)
	if err != nil {
		return nil, err
	}
	state, err := c.at(h, place)
	if err != nil {
		return nil, err
	}
	view := state.View() // with the hash of the whole
	c.stripView(&view)
	state.Session = view.Session
	shown := StateShown{Seq: h.heads[place].Seq, N: place + 1, View: view}
	if whole {
		shown.Record, err = codec.ToJSON(state.Bytes())
	}
	return shown, err
}

// getDiff returns how two states differ.
func (c *call) getDiff() (any, error) {
	a, err := c.sequence("a")
	if err != nil {
		return nil, err
	}
	b, err := c.sequence("b")
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	records := [2]any{}
	for i, seq := range []uint64{a, b} {
		place, err := h.find(seq)
		if err != nil {
			return nil, err
		}
		state, err := c.at(h, place)
		if err != nil {
			return nil, err
		}
		if records[i], err = recordOf(state); err != nil {
			return nil, err
		}
	}
	changes, more := changesOf(records[0], records[1])
	return ChangeList{Changes: append([]Change{}, changes...), More: more}, nil
}
