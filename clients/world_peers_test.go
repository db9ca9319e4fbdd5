//go:build peers

package clients_test

// A server of the HTTP API for the clients: a process of refold serve with a tenant for
// each client, an agent whose model does as it is told, and a second address whose streams
// are cut.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/web"
	"github.com/refold/refold/web/bearer"
)

// tenants is how many programs may use the server, each with two scopes of its own.
const tenants = 16

// server is a process of refold serve, and the log that it serves.
type server struct {
	url    string
	pages  *httptest.Server // the files of this folder, whose pages may call the server
	tokens [tenants][2]string
	used   atomic.Int32
}

// started is the server of all tests: what it costs is its start.
var started = sync.OnceValues(func() (*server, error) { return start(context.Background()) })

// dir is where the server's files are, and running what TestMain ends.
var (
	dir     string
	running []func()
)

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if dir, err = os.MkdirTemp("", "clients"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer func() {
		for i := len(running) - 1; i >= 0; i-- {
			running[i]()
		}
	}()
	return m.Run()
}

// start starts the log, the agent's model and tools in this process, and refold serve.
func start(ctx context.Context) (*server, error) {
	rt, err := refold.Open(ctx, embedded.Dir(filepath.Join(dir, "log"), embedded.SyncInterval(time.Minute)), refold.Grace(time.Second))
	if err != nil {
		return nil, err
	}
	running = append(running, func() { _ = rt.Close() })
	model := refold.ModelRef{Provider: "obedient", Model: "obedient", Open: func() (executor.Model, error) { return obedient{}, nil }}
	if _, err := rt.Agent("helper", refold.Model(model), refold.Tools(weather, sign), refold.ToolsFrom(refold.AskPerson())); err != nil {
		return nil, err
	}
	asks, err := source.Wait("ask_person")
	if err != nil {
		return nil, err
	}
	record, err := function.InstallRecord(fmt.Appendf(nil, `{"v":1,"rules":1,"tools":[%s]}`, asks[0]), weather.ServedBy("helper"), sign.ServedBy("helper"))
	if err != nil {
		return nil, err
	}
	s := &server{pages: httptest.NewServer(http.FileServer(http.Dir(".")))}
	running = append(running, s.pages.Close)
	files := map[string]string{
		"record.json": string(record), "agents/helper.yaml": "model: obedient/obedient\ntools: [weather.get, form.sign, session.ask_person]\n", "tokens.yaml": "tokens:\n",
	}
	for i := range s.tokens {
		for j, name := range []string{"ann", "bob"} {
			s.tokens[i][j] = bearer.New()
			row, err := bearer.Row(bearer.Token{Name: name + strconv.Itoa(i), Hash: bearer.HashOf(s.tokens[i][j]), Rights: web.Rights, Scope: fmt.Sprintf("%s%d-", name, i)})
			if err != nil {
				return nil, err
			}
			files["tokens.yaml"] += row
		}
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return s, s.serve(ctx, rt.ContextFile())
}

var served = regexp.MustCompile(`at (http://[0-9.:]+);`)

// serve builds refold, stores the install record, and starts refold serve.
func (s *server) serve(ctx context.Context, contextFile string) error {
	program := filepath.Join(dir, "refold")
	for _, args := range [][]string{{"go", "build", "-o", program, "../cmd/refold"}, {program, "--context", contextFile, "install", filepath.Join(dir, "record.json")}} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	process := exec.Command(program, "--context", contextFile, "serve", "--listen", "127.0.0.1:0",
		"--tokens", filepath.Join(dir, "tokens.yaml"), "--agents", filepath.Join(dir, "agents"), "--origin", s.pages.URL)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		return err
	}
	running = append(running, func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	found := served.FindStringSubmatch(line)
	if found == nil {
		return fmt.Errorf("refold serve said %q, and not where it serves: %w", line, err)
	}
	s.url = found[1]
	return nil
}

// world is the server as one program uses it: with two tenants of its own.
type world struct {
	url, token, other string
	pages             string       // the files of this folder
	cut               string       // the same server, but each stream is cut after one event
	cuts              atomic.Int64 // of streams at cut
}

// serve returns the server for another program.
func serve(t *testing.T) *world {
	t.Helper()
	s, err := started()
	if err != nil {
		t.Fatal(err)
	}
	n := s.used.Add(1) - 1
	if n >= tenants {
		t.Fatalf("more than %d programs use the server: raise tenants", tenants)
	}
	w := &world{url: s.url, pages: s.pages.URL, token: s.tokens[n][0], other: s.tokens[n][1]}
	w.cut = w.cutting(t, s.url)
	return w
}

// cutting starts a proxy that lets one event of each stream through, and half of the next.
func (w *world) cutting(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(&cutWriter{ResponseWriter: out, cuts: &w.cuts}, r) // it aborts after errCut
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// cutWriter ends a stream of events within its second one.
type cutWriter struct {
	http.ResponseWriter
	cuts   *atomic.Int64
	events int
	event  []byte // what was written of an event
}

var eventStart = []byte("id: ")

func (c *cutWriter) Write(data []byte) (int, error) {
	if c.Header().Get("Content-Type") != "text/event-stream" {
		return c.ResponseWriter.Write(data)
	}
	c.event = append(c.event, data...)
	for {
		end := bytes.Index(c.event, []byte("\n\n"))
		if end < 0 {
			return len(data), nil
		}
		event := c.event[:end+2]
		c.event = c.event[end+2:]
		if bytes.HasPrefix(event, eventStart) {
			c.events++
		}
		if c.events > 1 {
			event = event[:len(event)/2]
		}
		if _, err := c.ResponseWriter.Write(event); err != nil {
			return 0, err
		}
		if c.events > 1 {
			_ = http.NewResponseController(c.ResponseWriter).Flush()
			c.cuts.Add(1)
			return 0, errCut
		}
	}
}

var errCut = errors.New("the connection is cut")

// Unwrap lets the proxy flush.
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
