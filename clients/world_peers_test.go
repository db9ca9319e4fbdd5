//go:build peers

package clients_test

// A server of the HTTP API for the clients: two tenants, an agent whose model does as it
// is told, and a second address whose streams are cut.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// world is a server.
type world struct {
	url  string
	cut  string       // the same server, but each stream is cut after one event
	cuts atomic.Int64 // of streams at cut
}

// tokens are those of the tenants.
var tokens = map[string]web.Caller{
	"acme-token":  {Subject: "ann", Rights: web.Rights, Scope: "acme-"},
	"other-token": {Subject: "bob", Rights: web.Rights, Scope: "other-"},
}

func auth(r *http.Request) (*web.Caller, error) {
	if c, ok := tokens[web.Bearer(r)]; ok {
		return &c, nil
	}
	return nil, errors.New("the token is not one of this server")
}

// serve starts a server with a log of its own.
func serve(t *testing.T) *world {
	t.Helper()
	rt := refoldtest.Open(t)
	model := refold.ModelRef{Provider: "obedient", Model: "obedient", Open: func() (executor.Model, error) { return obedient{}, nil }}
	if _, err := rt.Agent("helper", refold.Model(model), refold.Tools(weather, sign)); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	api := web.Handler(rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})
	w.url = listen(t, api)
	w.cut = listen(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		cutting := &cutWriter{ResponseWriter: out}
		api.ServeHTTP(cutting, r)
		if cutting.events > 1 {
			w.cuts.Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	return w
}

func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// cutWriter lets one event of a stream through, and half of the next.
type cutWriter struct {
	http.ResponseWriter
	events int
}

var errCut = errors.New("the connection is cut")

func (c *cutWriter) Write(data []byte) (int, error) {
	if !bytes.HasPrefix(data, []byte("id: ")) {
		return c.ResponseWriter.Write(data)
	}
	if c.events++; c.events == 1 {
		return c.ResponseWriter.Write(data)
	}
	_, _ = c.ResponseWriter.Write(data[:len(data)/2])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	return 0, errCut
}

// Unwrap lets the handler flush and set deadlines.
func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

var weather = refold.Func("weather.get", func(_ context.Context, in struct {
	City string `json:"city"`
}) (string, error) {
	return "rain in " + in.City, nil
}, refold.Description("The weather in a city."), refold.RetrySafe())

var sign = refold.Func("form.sign", func(_ context.Context, in struct {
	Text string `json:"text"`
}) (string, error) {
	return "signed " + in.Text, nil
}, refold.Description("Signs a form."), refold.RetrySafe(), refold.NeedsApproval())

// obedient is a model that does what the latest message says: "say TEXT", "count TO",
// "call TOOL ARGUMENTS" or "fail CODE DETAIL". A tool's result it repeats.
type obedient struct{}

func (obedient) Generate(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "tool" {
		return say("The tool: "+last.Text, delta), nil
	}
	text := cmp.Or(meanings[last.Text], last.Text)
	do, rest, _ := strings.Cut(text, " ")
	first, second, _ := strings.Cut(rest, " ")
	switch do {
	case "say":
		return say(rest, delta), nil
	case "count":
		to, err := strconv.Atoi(first)
		if err != nil {
			return executor.Answer{}, err
		}
		var all strings.Builder
		for i := range to {
			word := fmt.Sprintf("%d ", i+1)
			delta(word)
			all.WriteString(word)
		}
		return executor.Answer{Text: all.String()}, nil
	case "call":
		return executor.Answer{Calls: []executor.AnswerCall{{Name: first, Arguments: second}}}, nil
	case "fail":
		return executor.Answer{}, &executor.Error{Code: first, Detail: second}
	}
	return executor.Answer{}, fmt.Errorf("the model does not understand %q", last.Text)
}

// meanings are what the READMEs ask.
var meanings = map[string]string{
	"Weather in Bergen?":  `call weather_get {"city":"Bergen"}`,
	"Please sign form A.": `call form_sign {"text":"A"}`,
}

func say(text string, delta func(string)) executor.Answer {
	delta(text)
	return executor.Answer{Text: text}
}

// patience is how long a client's program may take. Programs of a loaded machine are slow.
const patience = 3 * time.Minute
