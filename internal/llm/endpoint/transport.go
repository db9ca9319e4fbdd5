package endpoint

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"
)

// refused is a response with an HTTP status that means no answer.
type refused struct {
	status int
	header http.Header
	body   []byte // the beginning
}

func (r *refused) Error() string { return fmt.Sprintf("HTTP status %d", r.status) }

// unexpectedType is a response that is neither events nor JSON.
type unexpectedType struct{ media, text string }

func (s *unexpectedType) Error() string { return "an answer of the type " + s.media }

// truncated is an answer that can't be read to its end.
type truncated struct{ err error }

func (t *truncated) Error() string { return t.err.Error() }
func (t *truncated) Unwrap() error { return t.err }

// errEndless means that an event of a stream is too large.
var errEndless = fmt.Errorf("one event has more than %d bytes", eventBytesMax)

// silent is a server that was silent for too long.
type silent struct {
	limit time.Duration
	begun bool // a part of the answer had arrived
}

func (s *silent) Error() string { return "silent for too long" }

// transport turns responses that are not answers into errors, and the body of
// an answer into events. A library would lose the former: its own errors need a
// body of the form that it expects.
type transport struct {
	next      http.RoundTripper // nil: the default one
	firstByte time.Duration     // 0: no limit
	idle      time.Duration
}

// defaultTransport is that of package http with a limit of headers.
var defaultTransport http.RoundTripper = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it always is one
	t.MaxResponseHeaderBytes = headerBytesMax
	return t
}()

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	next := cmp.Or(t.next, defaultTransport)
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watched{ctx: ctx, cancel: cancel, idle: t.idle}
	w.timer = time.AfterFunc(cmp.Or(t.firstByte, forever), func() {
		if w.begun.Load() {
			cancel(&silent{limit: t.idle, begun: true})
		} else {
			cancel(&silent{limit: t.firstByte})
		}
	})
	response, err := next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = w.cause(err)
		w.stop()
		return nil, err
	}
	w.body = response.Body
	if response.StatusCode >= http.StatusMultipleChoices {
		defer w.Close()
		// An unreadable body only makes the detail shorter.
		body, _ := io.ReadAll(io.LimitReader(response.Body, faultBytesMax))
		return nil, &refused{status: response.StatusCode, header: response.Header, body: body}
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	response.Header.Set("Content-Type", mediaStream)
	response.Body = &events{body: w, in: bufio.NewReader(w), media: media}
	return response, nil
}

// The media types of answers.
const (
	mediaStream = "text/event-stream"
	mediaJSON   = "application/json"
)

// watched is a body that fails if it is silent for too long, or if an event has
// too many bytes: libraries buffer an event until it ends.
type watched struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // until the first byte, then for each silence
	idle   time.Duration
	begun  atomic.Bool
	event  int // bytes since the last event; events sets it to 0
}

// Read reads the next bytes; every byte restarts the idle timer.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.begun.Store(true)
		w.timer.Reset(w.idle)
	}
	if w.event += n; w.event > eventBytesMax {
		return n, &truncated{errEndless}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, &truncated{w.cause(err)}
}

// cause returns the silence that ended a request, if one did, else err.
func (w *watched) cause(err error) error {
	var s *silent
	if errors.As(context.Cause(w.ctx), &s) {
		return s
	}
	return err
}

func (w *watched) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

func (w *watched) Close() error {
	w.stop()
	return w.body.Close()
}
