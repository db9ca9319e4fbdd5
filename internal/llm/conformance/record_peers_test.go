//go:build peers

package conformance

// Requests every recorded case from aimock through every API, and checks that
// the result is the recorded one. With -rewrite it records again:
//
//	npm ci --prefix e2e/peers/models
//	go test -tags peers -run TestPeersRecord ./internal/llm/conformance -rewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

var rewrite = flag.Bool("rewrite", false, "record the answers anew")

// errAsked ends a generation that would be asked again.
var errAsked = errors.New("asked once")

func TestPeersRecord(t *testing.T) {
	aimock := startAimock(t)
	for _, a := range apis() {
		archive := &txtar.Archive{Comment: []byte("Recorded of aimock by record_peers_test.go: status, type and what is to be waited for, and the body.\n\n")}
		for _, name := range slices.Sorted(maps.Keys(recordedCases)) {
			proxy := newRecorder(t, aimock)
			m, err := a.open(endpoint.Config{
				BaseURL: proxy.url, Key: key, Wait: func(context.Context, time.Duration) error { return errAsked },
			}, slog.New(slog.DiscardHandler))
			must(t, err)
			request := hello
			request.Model = a.name + "." + name
			request.Tools = []executor.Tool{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}}
			answer, err := m.Generate(t.Context(), request, func(string) {})
			var fault *executor.Error
			switch want := recordedCases[name]; {
			case want.later && !errors.Is(err, errAsked):
				t.Errorf("%s, %s: got %+v, %v, want it asked again", a.name, name, answer, err)
			case !want.later:
				_ = errors.As(err, &fault)
				want.hold(t, a.name+", "+name, answer, fault)
			}
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: proxy.said()})
		}
		if *rewrite {
			write(t, recordedIn+a.name+".txtar", txtar.Format(archive))
		}
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)))
}

// recorder is a proxy that keeps what the server answers.
type recorder struct {
	url string

	mu   sync.Mutex
	text bytes.Buffer
}

func newRecorder(t *testing.T, server string) *recorder {
	t.Helper()
	to, err := url.Parse(server)
	must(t, err)
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = r.keep
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	r.url = front.URL
	return r
}

// keep keeps what an answer says. Dates, ids of connections and the like are left
// out: what is recorded has no part of them.
func (r *recorder) keep(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.text, "HTTP/1.1 %s\n", response.Status)
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := response.Header.Get(name); value != "" {
			fmt.Fprintf(&r.text, "%s: %s\n", name, value)
		}
	}
	r.text.WriteByte('\n')
	r.text.Write(body)
	return nil
}

func (r *recorder) said() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.text.Bytes())
}

// startAimock starts the server with an answer to each case of each API, and
// returns its URL.
func startAimock(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	refusal := func(status int) object {
		return object{"status": status, "error": object{"message": "as the test wants it", "type": "invalid_request_error"}}
	}
	limited := refusal(http.StatusTooManyRequests)
	limited["retryAfter"] = 1
	responses := map[string]object{
		"text": {"content": recordedText}, "bad": refusal(400), "key": refusal(401), "limited": limited, "down": refusal(500), "full": refusal(529),
		"garbage": {"content": recordedText},
		"calls": {"content": "Let me look.", "toolCalls": []object{
			{"id": "one", "name": "look", "arguments": object{"at": "a"}}, {"id": "two", "name": "look", "arguments": object{"at": "b"}},
		}},
	}
	var fixtures []object
	for _, a := range apis() {
		for name, response := range responses {
			fixture := object{"match": object{"model": a.name + "." + name}, "response": response}
			if name == "garbage" {
				fixture["chaos"] = object{"malformedRate": 1}
			}
			fixtures = append(fixtures, fixture)
		}
	}
	text, err := json.Marshal(object{"fixtures": fixtures})
	must(t, err)
	file := filepath.Join(t.TempDir(), "fixtures.json")
	write(t, file, text)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v: install Node.js 20.15 or later", err)
	}
	cli := filepath.Join("..", "..", "..", "e2e", "peers", "models", "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	cmd := exec.Command(node, cli, "--port", "0", "--host", "127.0.0.1", "--fixtures", file, "--strict", "--validate-on-load")
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return listening(t, out)
}

// listening returns the URL that the server says it listens on.
func listening(t *testing.T, out io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		var said bytes.Buffer
		one := make([]byte, 4096)
		for told := false; ; {
			n, err := out.Read(one)
			said.Write(one[:n])
			if m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(said.String()); m != nil && !told {
				told = true
				found <- m[1]
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case url := <-found:
		return url
	case <-time.After(time.Minute):
		t.Fatal("aimock does not listen; is it installed? npm ci --prefix e2e/peers/models")
		return ""
	}
}
