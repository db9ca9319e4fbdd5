package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/internal/inspector"
)

// Options configure a Handler. The zero value answers 401 to all but /healthz.
type Options struct {
	// Auth says who sends a request: that of a bearer.File, say. Nil: nobody may do
	// anything.
	Auth Auth
	// Base is the path under which the handler is mounted, such as /agents; empty: /.
	Base string
	// Hosts are the names that the header Host may have, without a port. Empty: those of
	// this machine, localhost, 127.0.0.1 and [::1].
	Hosts []string
	// Origins are the origins of pages that may call from elsewhere (CORS), such as
	// https://example.com. Pages of the server's own origin always may.
	Origins []string
	// Secret signs handles of files. Servers behind one address need the same one, of at
	// least 32 bytes. Nil: a random one, so that handles end with the process.
	Secret []byte
	// Limits of each caller.
	Limits Limits
	// Logger receives faults of the server. Nil: none.
	Logger *slog.Logger
	// Program is the program with which the pages of the inspector fold a session again in
	// the browser: the file that make wasm writes. Nil: the one that was there when this
	// program was built, if there was one. Empty: none.
	Program []byte
	// Redact are patterns whose matches no answer has: [redacted] stands for them. Texts of
	// models come whole then, since a pattern matches no part of a secret; and the operations
	// that send what is stored as it is are refused: bytes of events, the log, Prove.
	Redact []*regexp.Regexp
}

// Limits are those of each caller, and of each request. The default stands for a zero.
type Limits struct {
	BodyBytes  int64         // of a request: 1 MiB
	ChatBytes  int64         // of a request of a page's library that sends all messages with their files: 32 MiB
	FileBytes  int64         // of a file: 8 MiB, which is the most that a model is shown
	DayBytes   int64         // of all files that a caller stores within 24 hours: 1 GiB
	Streams    int           // that a caller has open: 64
	PerSecond  int           // requests of a caller: 50, and twice as many at once
	Wait       time.Duration // that Prefer: wait may ask for: 60 s
	Operation  time.Duration // that an operation may take, besides waits and streams: 30 s
	SlowReader time.Duration // that a reader of a stream may take for one write: 10 s
	KeepAlive  time.Duration // between comments of a stream without updates: 15 s
	BodyTime   time.Duration // that a client may take for its body: 60 s
}

func (l *Limits) fill() {
	l.BodyBytes = cmp.Or(l.BodyBytes, 1<<20)
	l.ChatBytes = cmp.Or(l.ChatBytes, 32<<20)
	l.FileBytes = cmp.Or(l.FileBytes, client.FileBytesMax)
	l.DayBytes = cmp.Or(l.DayBytes, 1<<30)
	l.Streams = cmp.Or(l.Streams, 64)
	l.PerSecond = cmp.Or(l.PerSecond, 50)
	l.Wait = cmp.Or(l.Wait, 60*time.Second)
	l.Operation = cmp.Or(l.Operation, 30*time.Second)
	l.SlowReader = cmp.Or(l.SlowReader, 10*time.Second)
	l.KeepAlive = cmp.Or(l.KeepAlive, 15*time.Second)
	l.BodyTime = cmp.Or(l.BodyTime, 60*time.Second)
}

// server is a Handler.
type server struct {
	rt     *refold.Runtime
	inner  inside.Runtime
	client *client.Client
	o      Options
	mux    *http.ServeMux
	masks  masks
	usage  usage
	kept   atomic.Int64 // runs: see keep

	erasing   chan struct{}      // a mutex: one eraser works at a time
	histories *histories         // of sessions that the inspector shows
	proves    *inspector.Program // with which its pages fold them again; nil: they can't
}

// Handler serves the sessions of a runtime. The runtime's agents are those that requests
// may name. The handler ends with the requests that it serves: close the runtime after
// the server.
//
// It panics if the options are invalid: a Base that is no path, a Secret of less than 32
// bytes, or a Program that is no WebAssembly.
func Handler(rt *refold.Runtime, o Options) http.Handler {
	o.Limits.fill()
	o.Base = strings.TrimSuffix(o.Base, "/")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Base != "" && (o.Base[0] != '/' || path.Clean(o.Base) != o.Base) {
		panic(fmt.Sprintf("web.Handler: the base %q is no path, such as /agents", o.Base))
	}
	if o.Secret == nil {
		o.Secret = make([]byte, secretBytesMin)
		_, _ = rand.Read(o.Secret) // never fails
	}
	if len(o.Secret) < secretBytesMin {
		panic(fmt.Sprintf("web.Handler: the secret has %d bytes, at least %d are needed", len(o.Secret), secretBytesMin))
	}
	proves, err := o.program()
	if err != nil {
		panic(fmt.Sprintf("web.Handler: the program: %v", err))
	}
	if len(o.Hosts) == 0 {
		o.Hosts = []string{"localhost", "127.0.0.1", "[::1]"}
	}
	inner := inside.Of(rt)
	s := &server{rt: rt, inner: inner, client: inner.Client(), o: o, mux: http.NewServeMux(), masks: o.Redact, usage: newUsage(),
		histories: newHistories(), erasing: make(chan struct{}, 1), proves: proves}
	paths := map[string]map[string]*route{}
	all := pageRoutes()
	for i := range routes {
		all = append(all, &routes[i])
	}
	for _, r := range all {
		if paths[r.path] == nil {
			paths[r.path] = map[string]*route{}
		}
		paths[r.path][r.method] = r
	}
	for p, methods := range paths {
		if p == "/" {
			p = "/{$}"
		}
		s.mux.Handle(p, on{s, methods})
	}
	s.mux.Handle("/", on{s, nil})
	return s
}

const secretBytesMin = 32

// program returns the program with which pages fold sessions again; nil: there is none.
func (o *Options) program() (*inspector.Program, error) {
	switch {
	case o.Program == nil:
		return inspector.Built(), nil
	case len(o.Program) == 0:
		return nil, nil
	}
	return inspector.ReadProgram(o.Program)
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				panic(v)
			}
			s.o.Logger.Error("http_panic", "path", r.URL.Path, "panic", fmt.Sprint(v))
			problem(http.StatusInternalServerError, CodeInternal, "a fault of the server: its log has the cause").write(w)
		}
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	rest, under := strings.CutPrefix(r.URL.Path, s.o.Base)
	if !under || rest == "" || rest[0] != '/' || path.Clean(rest) != rest || r.URL.RawPath != "" {
		rest = nowhere
	}
	inner := *r
	url := *r.URL
	inner.URL, url.Path = &url, rest
	s.mux.ServeHTTP(w, &inner)
}

// nowhere is a path that no route has.
const nowhere = "/-"

// on serves a path by method. Without methods it is no path of the API.
type on struct {
	*server
	methods map[string]*route
}

// ServeHTTP implements http.Handler.
func (o on) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rt := o.methods[method]
	if r.Method == http.MethodHead && rt != nil && rt.stream {
		rt = nil
	}
	if err := o.serve(w, r, o.methods, rt); err != nil {
		o.fail(w, r, err)
	}
}

// serve checks a request, and does what its route does.
func (s *server) serve(w http.ResponseWriter, r *http.Request, methods map[string]*route, rt *route) error {
	if rt != nil && rt.open == always {
		return s.do(&call{server: s, w: w, r: r, caller: &Caller{}}, rt)
	}
	if err := s.checkHost(r); err != nil {
		return err
	}
	if done, err := s.checkOrigin(w, r, methods); done || err != nil {
		return err
	}
	if rt != nil && rt.open == withAuth && s.o.Auth != nil {
		return s.do(&call{server: s, w: w, r: r, caller: &Caller{}}, rt)
	}
	caller, err := &Caller{Subject: "reply link"}, error(nil) // all links count as one caller
	if rt == nil || rt.open != byLink {
		caller, err = s.authenticate(r)
	}
	if err != nil {
		return err
	}
	if err := s.usage.request(caller.key(), s.o.Limits.PerSecond); err != nil {
		return err
	}
	switch {
	case methods == nil:
		return problem(http.StatusNotFound, CodeNotFound, "there is no %s: /openapi.json has all paths", r.URL.Path)
	case rt == nil:
		w.Header().Set("Allow", strings.Join(allowed(methods), ", "))
		return problem(http.StatusMethodNotAllowed, CodeMethod, "%s takes %s", r.URL.Path, strings.Join(allowed(methods), ", "))
	case rt.global && caller.Scope != "":
		return problem(http.StatusForbidden, CodeForbidden, "this is about all sessions: it needs a token without a scope")
	case !caller.may(rt.right):
		return problem(http.StatusForbidden, CodeForbidden, "this token lacks the right %s", rt.right)
	}
	if err := s.keepsBytes(rt); err != nil {
		return err
	}
	c := &call{server: s, w: w, r: r, caller: caller}
	if id := r.PathValue("sid"); strings.Contains(rt.path, "{sid}") {
		if err := c.enter(id); err != nil {
			return err
		}
	}
	return s.do(c, rt)
}

// do runs the operation of a route, and sends what it returns.
func (s *server) do(c *call, rt *route) error {
	ctx := client.WithBy(c.r.Context(), c.caller.Subject)
	if !rt.stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Limits.Operation+rt.waits(c))
		defer cancel()
	}
	c.r = c.r.WithContext(ctx)
	limit := rt.bytes(&s.o.Limits)
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(s.o.Limits.BodyTime)) // a test's recorder has none
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, limit)
	body, err := rt.do(c)
	if err != nil || c.sent {
		return err
	}
	return c.json(cmp.Or(c.status, http.StatusOK), body)
}

// fail sends an error as a problem.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errSent) {
		return
	}
	p, known := problemOf(r.Context(), err)
	if !known {
		s.o.Logger.Error("http_failed", "method", r.Method, "path", r.URL.Path, "error", err.Error())
	}
	if len(s.masks) > 0 {
		p.Detail = s.masks.text(p.Detail)
	}
	p.write(w)
}

// errSent says that an answer has begun, so that no other can be sent.
var errSent = errors.New("the answer has begun")

// authenticate returns who sends a request.
func (s *server) authenticate(r *http.Request) (*Caller, error) {
	if s.o.Auth == nil {
		return nil, problem(http.StatusUnauthorized, CodeUnauthorized, "this server has no tokens: give its handler the option Auth")
	}
	caller, err := s.o.Auth(r)
	switch {
	case err != nil:
		return nil, problem(http.StatusUnauthorized, CodeUnauthorized, "%v", err)
	case caller == nil || !IsScope(caller.Scope) || !caller.Expires.IsZero() && !time.Now().Before(caller.Expires):
		return nil, problem(http.StatusUnauthorized, CodeUnauthorized, "the token is not valid any more: get another one")
	}
	return caller, nil
}

// json sends a value.
func (c *call) json(status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	text = c.masks.json(text)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	c.sent = true
	_, _ = c.w.Write(append(text, '\n')) // the client may be gone
	return nil
}
