package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// refused is a response with an HTTP status that means no answer.
type refused struct {
	status int
	header http.Header
	body   []byte // the beginning
}

func (r *refused) Error() string { return fmt.Sprintf("HTTP status %d", r.status) }

// unexpectedType is a response of a media type that no provider uses.
type unexpectedType struct{ media string }

func (s *unexpectedType) Error() string { return "an answer of the type " + s.media }

// truncated is an answer that can't be read to its end.
type truncated struct{ err error }

func (t *truncated) Error() string { return t.err.Error() }
func (t *truncated) Unwrap() error { return t.err }

// errEndless means that an event of a stream is too large.
var errEndless = fmt.Errorf("one event has more than %d bytes", eventBytesMax)

// errSilent means that a stream was silent for too long.
var errSilent = errors.New("silent for too long")

// transport turns responses that are not answers into errors. A library would
// lose them: its own errors need a body of the form that it expects.
type transport struct {
	next http.RoundTripper // nil: the default one
	idle time.Duration
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
	response, err := next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer cancel(nil)
		defer response.Body.Close()
		// An unreadable body only makes the detail shorter.
		body, _ := io.ReadAll(io.LimitReader(response.Body, faultBytesMax))
		return nil, &refused{status: response.StatusCode, header: response.Header, body: body}
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && media != mediaStream && media != mediaJSON {
		defer cancel(nil)
		defer response.Body.Close()
		return nil, &unexpectedType{media}
	}
	response.Body = newWatched(ctx, cancel, response.Body, t.idle)
	return response, nil
}

// The kinds of answers.
const (
	mediaStream = "text/event-stream"
	mediaJSON   = "application/json"
)

// IsStream reports whether a response consists of events. Without a media type,
// it is assumed to be of the requested kind.
func IsStream(response *http.Response, asked bool) bool {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return asked
	}
	return media == mediaStream
}

// watched is a body that fails if it is silent for too long, or if an event has
// too many bytes: libraries buffer an event until it ends.
type watched struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	event  int // bytes since the last empty line
}

func newWatched(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, idle time.Duration) *watched {
	return &watched{
		body: body, ctx: ctx, cancel: cancel, idle: idle,
		timer: time.AfterFunc(idle, func() { cancel(errSilent) }),
	}
}

// Read reads the next bytes; every byte restarts the idle timer.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.timer.Reset(w.idle)
	}
	w.event += n
	if end := max(bytes.LastIndex(p[:n], []byte("\n\n")), bytes.LastIndex(p[:n], []byte("\n\r\n"))); end >= 0 {
		w.event = n - end
	}
	if w.event > eventBytesMax {
		return n, &truncated{errEndless}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if cause := context.Cause(w.ctx); errors.Is(cause, errSilent) {
		err = cause
	}
	return n, &truncated{err}
}

func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel(nil)
	return w.body.Close()
}
