package mcp

// Calls of servers' tools, over pipes and over HTTP.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// record keeps what is logged.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// world is a config with one server, peer, and what it was imported as.
type world struct {
	t       *testing.T
	config  *Config
	ledger  string
	log     *record
	env     map[string]string
	secrets secrets.Source
	lock    Lock
	servers *Servers
}

// newWorld returns one whose server is this test binary.
func newWorld(t *testing.T, mode string) *world {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ledger := filepath.Join(t.TempDir(), "ledger")
	return worldOf(t, ledger, Server{Command: self, Env: []string{envMode + "=" + mode, envLedger + "=" + ledger, "SEEN"}})
}

// worldOf returns one with a server.
func worldOf(t *testing.T, ledger string, s Server) *world {
	t.Helper()
	return &world{
		t: t, ledger: ledger, log: &record{}, config: &Config{Servers: map[string]Server{"peer": s}},
		env: map[string]string{"PATH": os.Getenv("PATH"), "SEEN": "yes", "UNSEEN": "no", "TOKEN": "s3cret"},
	}
}

// remoteWorld returns one whose server is reached over HTTP, behind front.
func remoteWorld(t *testing.T, o *sdk.StreamableHTTPOptions, front func(http.Handler) http.Handler) *world {
	t.Helper()
	ledger := filepath.Join(t.TempDir(), "ledger")
	var server *httptest.Server
	p := &peer{ledger: ledger, exit: func(int) { server.CloseClientConnections() }, over: make(chan struct{})}
	s := p.server()
	var served http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
	if front != nil {
		served = front(served)
	}
	server = httptest.NewServer(served)
	t.Cleanup(func() { close(p.over); server.CloseClientConnections(); server.Close() })
	return worldOf(t, ledger, Server{URL: server.URL, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}})
}

// open makes servers of the config; what they list is imported, unless it is.
func (w *world) open() {
	w.t.Helper()
	servers, err := New(w.config, w.lock, Options{Env: w.env, Secrets: w.secrets, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	must(w.t, err)
	w.t.Cleanup(func() {
		servers.Close()
		if w.t.Failed() {
			w.t.Log(w.log.String())
		}
	})
	w.servers = servers
}

func (w *world) imports() *Imported {
	w.t.Helper()
	w.open()
	all, err := w.servers.Import(w.t.Context())
	must(w.t, err)
	w.lock = all.Lock
	w.open()
	return all
}

// call rehearses one call.
func (w *world) call(ctx context.Context, tool, arguments string, safe bool) bridge.Rehearsed {
	w.t.Helper()
	return bridge.Rehearse(ctx, w.servers, executor.Call{
		ToolID: "mcp.peer." + tool, Arguments: json.RawMessage(arguments), RetrySafe: safe, Session: "s1", Effect: "r1t1c0", Start: "x",
	}, bridge.Rehearsal{RunTime: time.Minute})
}

// want compares what a call came to: its status, its code, what it shows.
func (w *world) want(r bridge.Rehearsed, status, code, shown string) {
	w.t.Helper()
	if r.Status != status || r.Code != code || !strings.Contains(r.Shown, shown) {
		w.t.Errorf("got %s %s, shown %q (%s); want %s %s, shown %q", r.Status, r.Code, r.Shown, r.Detail, status, code, shown)
	}
}

// until waits for something to become true.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func (w *world) logged(text string) func() bool {
	return func() bool { return strings.Contains(w.log.String(), text) }
}

// Ways to a server.
var (
	stateful = []string{"stdio", "http"}
	allWays  = append(slices.Clone(stateful), "stateless")
)

// over runs a test over pipes and over HTTP.
func over(t *testing.T, ways []string, test func(t *testing.T, w *world)) {
	t.Helper()
	worlds := map[string]func(t *testing.T) *world{
		"stdio": func(t *testing.T) *world { t.Helper(); return newWorld(t, modePlain) },
		"http":  func(t *testing.T) *world { t.Helper(); return remoteWorld(t, nil, nil) },
		"stateless": func(t *testing.T) *world {
			t.Helper()
			return remoteWorld(t, &sdk.StreamableHTTPOptions{Stateless: true}, nil)
		},
		"json": func(t *testing.T) *world {
			t.Helper()
			return remoteWorld(t, &sdk.StreamableHTTPOptions{JSONResponse: true}, nil)
		},
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, worlds[way](t))
		})
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	over(t, allWays, func(t *testing.T, w *world) {
		w.config.Servers["peer"] = func(s Server) Server {
			yes, never := true, "never"
			s.Exclude, s.Target = []string{"crash*"}, "box"
			s.Tools = map[string]Override{
				"*": {Deadline: time.Minute}, "remove": {RetrySafe: &yes, Approval: &never, Requires: []string{"del"}}, "rmove": {},
			}
			return s
		}(w.config.Servers["peer"])
		all := w.imports()
		var got []string
		for _, tool := range all.Tools {
			spec, err := tool.Function.Spec()
			must(t, err)
			var s struct {
				ToolName     string   `json:"tool_name"`
				RetrySafe    bool     `json:"retry_safe"`
				ParallelSafe bool     `json:"parallel_safe"`
				Access       string   `json:"access"`
				Approval     string   `json:"approval"`
				Requires     []string `json:"requires"`
				DeadlineMS   int      `json:"deadline_ms"`
			}
			must(t, json.Unmarshal(spec, &s))
			if s.DeadlineMS != 60_000 || tool.Function.Target() != "box" {
				t.Errorf("%s: deadline %d, target %s", s.ToolName, s.DeadlineMS, tool.Function.Target())
			}
			got = append(got, fmt.Sprint(tool.Function.ToolID(), " ", s.ToolName, " ", s.RetrySafe, s.ParallelSafe, " ", s.Access, s.Approval, s.Requires))
		}
		for _, want := range []string{
			"mcp.peer.echo peer_echo true true read[]", "mcp.peer.set peer_set true false []", "mcp.peer.add peer_add false false []",
			"mcp.peer.remove peer_remove true false never[del]", "mcp.peer.odd_name_eef6cd03 peer_odd_name_eef6cd03 true true read[]",
		} {
			if !slices.Contains(got, want) {
				t.Errorf("missing %q in\n%s", want, strings.Join(got, "\n"))
			}
		}
		if len(got) != 17 || len(all.Lock) != 17 {
			t.Errorf("%d tools, %d pins; want 17, of 20 without two that are excluded and one that can't be used", len(got), len(all.Lock))
		}
		if len(all.Problems) != 1 || !strings.Contains(all.Problems[0].Error(), "server peer, tool look.ahead: ") || !strings.Contains(all.Problems[0].Error(), "RE2") {
			t.Errorf("problems: %v", all.Problems)
		}
		if want := "server peer lists no tool rmove, which the file names"; !slices.Equal(all.Notes, []string{want}) {
			t.Errorf("notes %v, want %s", all.Notes, want)
		}
		w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", `{"text":"a"}`)
	})
}

func TestCalls(t *testing.T) {
	t.Parallel()
	over(t, allWays, func(t *testing.T, w *world) {
		w.imports()
		w.want(w.call(t.Context(), "echo", `{"text": "12345678901234567890"}`, true), "succeeded", "", `12345678901234567890`)
		w.want(w.call(t.Context(), "echo", `{"txt": "a"}`, true), "failed", "invalid_arguments", `"txt"`)
		w.want(w.call(t.Context(), "fail", "", true), "failed", CodeToolError, "error: tool_error: no such file")
		w.want(w.call(t.Context(), "refuse", "", true), "failed", CodeServerError, "I would rather not")
		w.want(w.call(t.Context(), "crash*", "", true), "failed", CodeToolNotPinned, "was not imported")
		w.want(w.call(t.Context(), "add", `{"text": "a"}`, true), "failed", CodeToolChanged, "by the bridge's config it is not")

		r := w.call(t.Context(), "rich", "", true)
		w.want(r, "succeeded", "", "a picture:\n[resource file:///notes]\nsome notes\n[resource file:///bytes]\n[resource there, text/plain: file:///there]\n{\"count\":2,\"tag\":\"<a>\"}")
		if len(r.Files) != 2 || r.Files[0].MediaType != "image/png" || string(r.Files[0].Data) != "\x89PNG" || string(r.Files[1].Data) != "PK" {
			t.Errorf("files: %+v", r.Files)
		}
		done := make(chan bridge.Rehearsed, 1)
		go func() { done <- w.call(t.Context(), "steps", "", true) }()
		w.until("progress is told", w.logged(`text="step 3"`))
		(&peer{ledger: w.ledger}).note("heard")
		w.want(<-done, "succeeded", "", "done")
		if got := countNotes(w.ledger, "echo"); got != 1 {
			t.Errorf("the server ran echo %d times, want 1", got)
		}
	})
}

// The server is started once for all of them.
func TestConcurrentCallsShareOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	before := countNotes(w.ledger, "start")
	var beside sync.WaitGroup
	for range 16 {
		beside.Go(func() { w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", "a") })
	}
	beside.Wait()
	if got := countNotes(w.ledger, "start") - before; got != 1 {
		t.Errorf("the server was started %d times, want once", got)
	}
	text, err := os.ReadFile(w.ledger)
	if err != nil || !strings.Contains(string(text), "SEEN=yes") || strings.Contains(string(text), "UNSEEN") || strings.Contains(string(text), "s3cret") {
		t.Errorf("its environment: %s, %v", text, err)
	}
}

// A change during the session is noticed.
func TestOnlyChangedToolsAreRefused(t *testing.T) {
	t.Parallel()
	over(t, allWays, func(t *testing.T, w *world) {
		w.imports()
		w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", "a")
		w.want(w.call(t.Context(), "change", "", false), "succeeded", "", "changed")
		w.until("the log says it", w.logged("msg=mcp_tool_changed server=peer tool=mcp.peer.echo changed=schema"))
		w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "failed", CodeToolChanged, "server peer has changed echo since it was imported (schema), and it was not called")
		w.want(w.call(t.Context(), "set", `{"text": "a"}`, true), "succeeded", "", "a")
		w.want(w.call(t.Context(), "drop", "", false), "succeeded", "", "dropped")
		w.until("the log says it", w.logged(`tool=mcp.peer.set changed="the server does not list it"`))
		w.want(w.call(t.Context(), "set", `{"text": "a"}`, true), "failed", CodeToolGone, "server peer does not list set any more")
		got := w.servers.Executors()[TargetDefault].(interface{ Troubles() []string }).Troubles()
		found, err := pinOf(&sdk.Tool{InputSchema: json.RawMessage(schemaOther)})
		must(t, err)
		want := []string{
			fmt.Sprintf("server peer, tool mcp.peer.echo: schema (schema pinned %s, found %s)", w.lock["mcp.peer.echo"].Schema, found.Schema),
			"server peer, tool mcp.peer.set: the server does not list it",
		}
		if !slices.Equal(got, want) {
			t.Errorf("troubles %q, want %q", got, want)
		}
		if findings, same := w.servers.Check(t.Context()); w.config.Servers["peer"].URL != "" && (len(findings) != 2 || same != 17) {
			t.Errorf("a check finds %v, and %d as they were; want 2 that are not, and 17", findings, same)
		}
		if got := countNotes(w.ledger, "echo"); got != 1 {
			t.Errorf("the server ran echo %d times, want 1", got)
		}
		if got := strings.Count(w.log.String(), "mcp_tool_changed"); got != 2 {
			t.Errorf("it was said %d times, want 2", got)
		}
	})
}

// A tool that differs from its import is refused from the first call on.
func TestToolChangedBeforeStartIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	pin := w.lock["mcp.peer.remove"]
	pin.Hints = []string{hintReadOnly}
	w.lock["mcp.peer.remove"] = pin
	w.open()
	w.want(w.call(t.Context(), "remove", `{"text": "a"}`, false), "failed", CodeToolChanged, "(read_only, destructive)")
	if got := countNotes(w.ledger, "remove"); got != 0 {
		t.Errorf("it ran %d times", got)
	}
}

// The server dies in the middle of a call.
func TestServerCrashesDuringACall(t *testing.T) {
	t.Parallel()
	over(t, allWays, func(t *testing.T, w *world) {
		w.imports()
		w.want(w.call(t.Context(), "crash", "", false), "outcome_unknown", "outcome_unknown", "the answer was lost, and the call may have taken effect")
		w.want(w.call(t.Context(), "crash", "", false), "succeeded", "", "call 2")
		w.want(w.call(t.Context(), "crash_once", "", true), "succeeded", "", "call 2")
		if w.config.Servers["peer"].Command == "" {
			return
		}
		for _, text := range []string{"msg=mcp_server_ended", `state="exit status 3"`, "out of memory, or so"} {
			w.until("the log has "+text, w.logged(text))
		}
	})
}

// A server that does not start is started again, with growing pauses.
func TestFailingServerIsRestartedWithPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	s := w.config.Servers["peer"]
	w.ledger = filepath.Join(t.TempDir(), "other")
	s.Env = []string{envMode + "=" + modeFaulty, envLedger + "=" + w.ledger}
	w.config.Servers["peer"] = s
	w.open()
	began := time.Now()
	w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", "a")
	if took := time.Since(began); took < restartMin+2*restartMin {
		t.Errorf("it was there after %v: two pauses take %v", took, 3*restartMin)
	}
	for _, text := range []string{"again_after=500ms", "again_after=1s", "not today"} {
		if !w.logged(text)() {
			t.Errorf("the log does not say %q", text)
		}
	}
	if got := countNotes(w.ledger, "start"); got != 3 {
		t.Errorf("started %d times, want 3", got)
	}
}

// Output of a server that is not a message.
func TestGarbageIsSkippedAndLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	w.want(w.call(t.Context(), "noise", "", true), "succeeded", "", "heard")
	for _, text := range []string{`text="Server is ready."`, `text="[info] noise"`, `text="{\"half\":"`} {
		if !w.logged("msg=mcp_server_wrote_garbage server=peer " + text)() {
			t.Errorf("the log does not say %q", text)
		}
	}
}

// Neither the server's process nor its children stay.
func TestCloseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modePlain, modeDeaf} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, modePlain)
			w.imports()
			s := w.config.Servers["peer"]
			s.Env = append(slices.Clone(s.Env), envMode+"="+mode)
			w.config.Servers["peer"] = s
			w.open()
			r := w.call(t.Context(), "spawn", "", false)
			pid, err := strconv.Atoi(r.Shown)
			if err != nil {
				t.Fatalf("got %+v", r)
			}
			server := w.servers.servers["peer"].session.program.pid
			w.servers.Close()
			if err := syscall.Kill(server, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the server is there still: %v", err)
			}
			// Killed, but perhaps not yet waited for by whoever inherited it.
			w.until("what it started is gone", func() bool {
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err != nil || strings.Contains(string(state), ") Z ")
			})
			w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "failed", CodeServerMissing, "stopping")
		})
	}
}

// TestServersAreGivenTheTraceContext: in _meta, as the MCP documents specify.
func TestServersAreGivenTheTraceContext(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := newWorld(t, modePlain)
	w.imports()
	got, err := w.servers.Execute(t.Context(), executor.Call{
		ToolID: "mcp.peer.echo", Arguments: json.RawMessage(`{"text": "a"}`), RetrySafe: true, Session: "s1", Effect: "r1t1c0", Start: "x", Traceparent: parent,
	})
	if err != nil || got.Error != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	if noted, err := os.ReadFile(w.ledger); err != nil || !strings.Contains(string(noted), "traceparent "+parent) {
		t.Errorf("the server noted %q (%v)", noted, err)
	}
}

// TestPackNameReplacesThePrefix: in a pack, the pack's name replaces the first
// part of a tool_id.
func TestPackNameReplacesThePrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, modePlain)
	w.imports()
	got, err := w.servers.Execute(t.Context(), executor.Call{
		ToolID: "crm.peer.echo", Arguments: json.RawMessage(`{"text": "a"}`), RetrySafe: true, Session: "s1", Effect: "r1t1c0", Start: "x",
		Spaces: []executor.CallSpace{{Space: "crm", Kind: "pack"}},
	})
	if err != nil || got.Error != nil || got.Output != `{"text":"a"}` {
		t.Errorf("got %+v, %v", got, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
