package web

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold"
)

// stream is an answer of server-sent events. It is for one goroutine.
type stream struct {
	c   *call
	out *http.ResponseController
	end func()

	last func(*Problem) error // sends an error as the last event; nil: the event problem
}

// stream begins a stream: its headers are sent. The caller must call close.
func (c *call) stream() (*stream, error) {
	end, err := c.usage.stream(c.caller.key(), &c.o.Limits)
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // or nginx holds events back
	s := &stream{c: c, out: http.NewResponseController(c.w), end: end}
	_ = s.out.SetReadDeadline(time.Time{}) // the body was read; a deadline would end the request
	c.w.WriteHeader(http.StatusOK)
	c.sent = true
	return s, s.write(": open\n\n")
}

// close ends the stream.
func (s *stream) close() { s.end() }

// write writes a part of the stream, and fails for a reader that is gone or too slow. The
// reader goes on after the last event that it has.
func (s *stream) write(text string) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(s.c.o.Limits.SlowReader)) // a test's recorder has none
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return errSent
	}
	if err := s.out.Flush(); err != nil {
		return errSent
	}
	return nil
}

// send writes an event: id, event and data may not have line breaks; id and event may be
// empty.
func (s *stream) send(id, event string, data []byte) error {
	var b strings.Builder
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: ")
	if json.Valid(data) { // [DONE] of the AI SDK is not
		data = s.c.masks.json(data)
	}
	b.Write(data)
	b.WriteString("\n\n")
	return s.write(b.String())
}

// fail sends an error as the last event.
func (s *stream) fail(err error) error {
	p, known := problemOf(context.Background(), err)
	if !known {
		s.c.o.Logger.Error("http_stream_failed", "session", s.c.sid, "error", err.Error())
	}
	if s.last != nil {
		return s.last(p)
	}
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.send("", "problem", text)
}

// followed is a step of a stream: a value, or the error that ends it.
type followed[T any] struct {
	value T
	err   error
}

// follow calls each with the updates of the session after a position, until it returns
// false or an error, the client is gone, or its token is not valid any more. It writes a
// comment to the stream when nothing comes for a while.
func (c *call) follow(s *stream, after string, each func(refold.Update) (bool, error)) error {
	if len(c.masks) > 0 {
		each = whole(each)
	}
	return pass(c, s, func(ctx context.Context) iter.Seq2[refold.Update, error] { return c.session().Updates(ctx, after) }, each)
}

// pass is follow, for values of any kind.
func pass[T any](c *call, s *stream, values func(context.Context) iter.Seq2[T, error], each func(T) (bool, error)) error {
	ctx, cancel := context.WithCancel(c.ctx())
	defer cancel()
	came := make(chan followed[T])
	done := make(chan struct{})
	defer func() { <-done }()
	defer cancel()
	go func() {
		defer close(done)
		for v, err := range values(ctx) {
			select {
			case came <- followed[T]{v, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	alive := time.NewTicker(c.o.Limits.KeepAlive)
	defer alive.Stop()
	for {
		select {
		case f := <-came:
			if f.err != nil {
				if ctx.Err() != nil {
					return errSent
				}
				return s.fail(f.err)
			}
			if more, err := each(f.value); err != nil || !more {
				return err
			}
		case <-alive.C:
			if _, err := c.authenticate(c.r); err != nil {
				return s.fail(err)
			}
			if err := s.write(": alive\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return errSent
		}
	}
}

// startPosition is what a client calls the beginning of a session.
const startPosition = "start"

// followSession streams the updates of the session, or of one of its runs.
func (c *call) followSession() (any, error) {
	q := c.r.URL.Query()
	after := q.Get("after")
	if id := c.r.Header.Get("Last-Event-ID"); id != "" {
		after = id
	}
	var run uint64
	if text := q.Get("run"); text != "" {
		var err error
		if run, err = strconv.ParseUint(text, 10, 32); err != nil || run == 0 {
			return nil, problem(http.StatusBadRequest, CodeBadRequest, "run: it is the number of a run, from 1")
		}
	}
	begins := after == "" && run == 0
	switch {
	case begins:
		last, err := c.client.LastEvent(c.ctx())
		if err != nil {
			return nil, err
		}
		after = c.inner.Before(last + 1)
	case after == startPosition:
		after = c.inner.Before(1)
	case after != "" && !c.isPosition(after):
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "after: %q is not the position of an update", cut(after))
	}
	if run > 0 {
		over, begin, err := c.runPosition(uint32(run), after)
		switch {
		case err != nil:
			return nil, err
		case over:
			return nil, c.noContent()
		}
		after = begin
	}
	s, err := c.stream()
	if err != nil {
		return nil, err
	}
	defer s.close()
	if begins { // a client that loses the connection before the first update misses none
		if err := s.write("id: " + after + "\n\n"); err != nil {
			return nil, err
		}
	}
	return nil, c.follow(s, after, func(u refold.Update) (bool, error) {
		update := updateOf(u)
		if run > 0 && update.Run != uint32(run) && update.Run != 0 {
			return true, nil
		}
		text, err := json.Marshal(update)
		if err != nil {
			return false, err
		}
		if err := s.send(u.Position(), "", text); err != nil {
			return false, err
		}
		return run == 0 || update.Type != "run_ended", nil
	})
}

// runPosition returns where the updates of a run begin, after a position if that is not
// empty; over if the run's end is not after it.
func (c *call) runPosition(run uint32, after string) (over bool, begin string, err error) {
	_, endedAt, err := c.client.RunNow(c.ctx(), c.sid, run)
	if err != nil {
		return false, "", err
	}
	if after == "" {
		began, err := c.client.Began(c.ctx(), c.sid, run)
		return false, c.inner.Before(began), err
	}
	seq, _, _ := c.inner.Place(after)
	if endedAt == 0 || seq != endedAt {
		return endedAt != 0 && seq > endedAt, after, nil
	}
	for u, err := range c.session().Updates(c.ctx(), c.inner.Before(endedAt)) {
		if err != nil {
			return false, "", err
		}
		if ended, ok := u.(refold.RunEnded); ok && ended.Run == run {
			return u.Position() == after, after, nil
		}
	}
	return false, after, nil
}

// isPosition reports whether a text is the position of an update.
func (c *call) isPosition(text string) bool {
	_, _, ok := c.inner.Place(text)
	return ok
}
