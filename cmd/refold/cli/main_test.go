package cli

// The commands against a server and a session-actor inside the test, which
// plays the bridges; and arguments that are refused before any request.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/tools/sandbox"
)

// mainEnv says that the test binary is refold itself, for shells to run.
const mainEnv = "REFOLD_TEST_MAIN"

func TestMain(m *testing.M) {
	sandbox.Child()
	if os.Getenv(mainEnv) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// Parts are the parts that refold-full has. An external test file sets them, since
// their package imports this one.
var Parts *Full

// Main runs one command of refold-full.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (status int) {
	return Run(ctx, Parts, args, in, out, errOut)
}

// text is what a command prints while it runs.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.String()
}

// shows waits until it holds what a pattern matches, and returns the match.
func (x *text) shows(t *testing.T, pattern string) []string {
	t.Helper()
	var match []string
	re := regexp.MustCompile(pattern)
	bustest.Until(t, "a line like "+pattern, func() bool {
		match = re.FindStringSubmatch(x.String())
		return match != nil
	})
	return match
}

// world is a server with a host.
type world struct {
	*client.Client
	t    *testing.T
	ctx  context.Context
	node *bustest.Node
	bus  *bus.Bus
}

func newWorld(t *testing.T) *world {
	t.Helper()
	record := `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`
	return newWorldOn(t, bustest.Server(t), record, slog.New(slog.DiscardHandler))
}

// newWorldOn is newWorld on a server, with an install record and a host's log.
func newWorldOn(t *testing.T, node *bustest.Node, record string, log *slog.Logger) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, node: node, bus: testbus.ConnectWith(t, natsio.Options{URL: node.URL(), Logger: log})}
	bustest.OK(t, w.bus.Provision(ctx, testbus.Conf(t, ""), 0))
	if _, err := engine.EnsureInstall(ctx, w.bus, []byte(record)); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	h, done := engine.New(w.bus, log, engine.Options{}), make(chan error, 1)
	go func() { done <- h.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("host: %v", err)
		}
	})
	<-h.Ready()
	var err error
	w.Client, err = client.Connect(ctx, client.Options{URL: w.node.URL()})
	bustest.OK(t, err)
	t.Cleanup(w.Close)
	return w
}

// command is a command that runs.
type command struct {
	out, err text
	stop     context.CancelFunc
	ended    chan int
}

// begin starts a command.
func (w *world) begin(in string, args ...string) *command {
	ctx, stop := context.WithCancel(w.ctx)
	c := &command{stop: stop, ended: make(chan int, 1)}
	w.t.Cleanup(stop)
	args = append([]string{"--nats", w.node.URL()}, args...)
	go func() { c.ended <- Main(ctx, args, strings.NewReader(in), &c.out, &c.err) }()
	return c
}

// end waits for a command's end and checks its status.
func (w *world) end(c *command, status int) (out, errOut string) {
	w.t.Helper()
	select {
	case got := <-c.ended:
		if got != status {
			w.t.Errorf("status: got %d, want %d\n%s%s", got, status, c.out.String(), c.err.String())
		}
	case <-w.ctx.Done():
		w.t.Fatalf("no end\n%s%s", c.out.String(), c.err.String())
	}
	return c.out.String(), c.err.String()
}

// does runs a command to its end.
func (w *world) does(status int, args ...string) (out, errOut string) {
	w.t.Helper()
	return w.end(w.begin("", args...), status)
}

// settle publishes the settlement of a turn.
func (w *world) settle(sid, effect string, rest map[string]any) {
	w.t.Helper()
	data := map[string]any{"effect": effect, "status": "ok"}
	for key, value := range rest {
		data[key] = value
	}
	payload, err := json.Marshal(map[string]any{"type": session.TypeGenerationSettled, "data": data})
	bustest.OK(w.t, err)
	if _, err := w.Publish(w.ctx, session.DoorLLM, sid, payload, ""); err != nil {
		w.t.Fatal(err)
	}
}

// waits waits until a session's run is at the model's turn.
func (w *world) waits(sid string, run uint32) {
	w.t.Helper()
	bustest.Until(w.t, fmt.Sprintf("run %d of %s waits for the model", run, sid), func() bool {
		v, err := w.View(w.ctx, sid)
		return err == nil && v.Run != nil && v.Run.Number == run && v.WaitsFor == "model"
	})
}

func TestRunPrintsTheAnswerOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin("", "run", "s1", "hi")
	w.waits("s1", 1)
	for n, word := range []string{"hel", "lo"} {
		bustest.OK(t, w.bus.PublishLive("s1", fmt.Appendf(nil, `{"effect":"r1t1","start":"A","n":%d,"text":%q}`, n, word)))
	}
	run.out.shows(t, "hello")
	w.settle("s1", "r1t1", map[string]any{
		"text": map[string]any{"text": "hello"}, "usage": map[string]any{"input_tokens": 900, "cached_tokens": 640, "cache_write_tokens": 200, "output_tokens": 4},
	})
	out, errOut := w.end(run, 0)
	if out != "hello\n" {
		t.Errorf("it prints %q", out)
	}
	like(t, "the closing line", errOut, `^run 1: 1 turn, 0 calls, 900 tokens in \(71% from the cache\), 4 out, \d+\.\d s\n$`)
}

func TestExitStatusFollowsRunOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	failing := w.begin("what is said on a pipe", "run", "s1", "-")
	w.waits("s1", 1)
	queued := w.begin("", "run", "s1", "more")
	queued.err.shows(t, "queued: another run is active")
	if _, errOut := w.does(statusFailed, "run", "s1", "now", "--when-busy", "reject"); !strings.Contains(errOut, "rejected: run_active") {
		t.Errorf("a busy session: %q", errOut)
	}
	w.settle("s1", "r1t1", map[string]any{"status": "failed", "error": map[string]any{"code": "overloaded"}})
	out, errOut := w.end(failing, statusFailed)
	if out != "" {
		t.Errorf("a failed run prints %q", out)
	}
	// The next run has begun: whose turn the view has decides whether turns are told.
	like(t, "a failed run", errOut, `^run 1: (1 turn, 0 calls, )?\d+\.\d s\nrefold: run 1 failed: overloaded\n$`)
	w.waits("s1", 2)
	queued.stop()
	if _, errOut := w.end(queued, statusInterrupted); !strings.Contains(errOut, "the run continues: refold tail s1") {
		t.Errorf("stopped: it prints %q", errOut)
	}
	out, _ = w.does(0, "run", "s1", "later", "--no-follow")
	if last, err := w.LastEvent(w.ctx); err != nil || out != fmt.Sprintf("session s1: run 3 is queued (event %d of the log)\n", last) {
		t.Errorf("--no-follow prints %q, the event is at %d (%v)", out, last, err)
	}
	out, _ = w.does(0, "run", "s2", "now", "--no-follow", "--json")
	if last, err := w.LastEvent(w.ctx); err != nil || out != fmt.Sprintf(`{"session":"s2","seq":%d,"run":1}`+"\n", last) {
		t.Errorf("--no-follow --json prints %q, the event is at %d (%v)", out, last, err)
	}
	w.prints(statusFailed, `^refold: rejected: run_active: .*\n  leave out --when-busy reject`, "run", "s2", "no", "--no-follow", "--when-busy", "reject")
	w.prints(statusUsage, `^refold: run: --json goes with --no-follow`, "run", "s2", "hi", "--json")
}

// Notices are followed across a restart of the server: each is printed once.
func TestTailSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tail := w.begin("", "tail", "--all", "--follow")
	all := w.begin("", "tail", "s1", "--all", "--follow", "--json")
	w.does(0, "run", "s1", "one", "--no-follow")
	tail.out.shows(t, `s1  2  RunStarted`)
	w.node.Stop()
	w.node.Start()
	w.waits("s1", 1)
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "1"}})
	w.does(0, "run", "s1", "two", "--no-follow")
	tail.out.shows(t, `s1  4  RunStarted`)
	all.out.shows(t, `"n":4`)
	tail.stop()
	all.stop()
	out, _ := w.end(tail, statusInterrupted)
	var kinds []string
	for line := range strings.Lines(out) {
		kinds = append(kinds, strings.Join(strings.Fields(line)[2:4], " "))
	}
	if want := []string{"1 SessionOpened", "2 RunStarted", "3 RunFinished", "4 RunStarted"}; !slices.Equal(kinds, want) {
		t.Errorf("tail: got %q, want %q", kinds, want)
	}
	objects, _ := w.end(all, statusInterrupted)
	for line := range strings.Lines(objects) {
		var n client.Notice
		if err := json.Unmarshal([]byte(line), &n); err != nil || n.Session != "s1" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestReplaySaysWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sid := range []string{"good", "bad"} {
		w.does(0, "run", sid, "hi", "--no-follow")
		w.waits(sid, 1)
		w.settle(sid, "r1t1", map[string]any{"text": map[string]any{"text": "hello"}})
		bustest.Until(t, sid+" ends", func() bool {
			v, err := w.View(w.ctx, sid)
			return err == nil && v.Lifecycle == session.Completed
		})
	}
	bustest.OK(t, errors.Join(w.bus.Store(w.ctx, []journal.Output{{Session: "bad", Effect: &session.Effect{Name: "r9t1", Class: session.ClassLLM, Target: "p", Payload: []byte{0x80}}}})...))
	for _, c := range []struct {
		status int
		args   []string
		want   string // a pattern of what is printed
	}{
		{0, []string{"good"}, `^[0-9a-f]{64}  good  2 events\n$`},
		{0, []string{"good", "--verify"}, `^replay: identical  session good  2 events  1 effects compared  state [0-9a-f]{64}\n$`},
		{1, []string{"bad", "--verify"}, `^replay: DIFFERENT  session bad .*\n  effect r9t1 is stored, and the fold never asks for it\n$`},
		{0, []string{"bad"}, `^[0-9a-f]{64}  bad  2 events\n$`},
		{0, []string{"bad", "--to", "4", "--verify"}, `^replay: identical  session bad  1 events`},
		{1, []string{"--all", "--verify"}, `^replay: identical  session good .*\nreplay: DIFFERENT  session bad `},
		{0, []string{"good", "--json"}, `^{"session":"good","events":2,"rejected":0,"seq":3,"hash":"[0-9a-f]{64}","chain":"[0-9a-f]{64}","effects_same":1,"effects_gone":0}\n$`},
		{0, []string{"good", "--events"}, `(?s)run requested: hi\n.*turn r1t1 \(\d+ ms\): hello\n[0-9a-f]{64}`},
		{0, []string{"good", "--export"}, `(?s)^# The history of session good.\ninstall \{.*> RunFinished run 1 completed "hello"\n$`},
		{1, []string{"nobody"}, `^$`},
	} {
		out, errOut := w.does(c.status, append([]string{"replay"}, c.args...)...)
		if !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("replay %v: got %q and %q, want %s", c.args, out, errOut, c.want)
		}
	}
}

func TestViewAndErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "run", "s1", "hi", "--no-follow")
	w.waits("s1", 1)
	out, _ := w.does(0, "view", "s1")
	var v session.View
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Session != "s1" || v.Count != 1 {
		t.Errorf("view: %v in %q", err, out)
	}
	for want, args := range map[string][]string{
		"no event of this session": {"view", "nobody"},
		"use A-Z a-z 0-9 _ -":      {"tail", "no such session"},
		`did you mean "provider"?`: {"run", "s1", "hi", "--config", `{"provder":"p"}`},
	} {
		status := statusUsage
		if args[0] == "view" {
			status = statusFailed
		}
		if _, errOut := w.does(status, args...); !strings.Contains(errOut, want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%q: got %q, want one line with %q", args, errOut, want)
		}
	}
}

func TestInputThatIsNoText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, errOut := w.end(w.begin("\xff", "run", "s1"), statusFailed); !strings.Contains(errOut, "not valid UTF-8") {
		t.Errorf("got %q", errOut)
	}
	if _, errOut := w.end(w.begin("", "run", "s1"), statusFailed); !strings.Contains(errOut, "empty") {
		t.Errorf("got %q", errOut)
	}
}

func TestCommandsThatNeedNoServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		args   []string
		want   string // in what is printed, wherever
	}{
		{0, nil, "refold demo"},
		{0, []string{"--help"}, "Exit status"},
		{0, []string{"run", "--help"}, "--when-busy"},
		{0, []string{"version"}, "refold "},
		{0, []string{"streams"}, "REFOLD_LOG"},
		{0, []string{"--prefix", "app", "streams", "--json", "APP_LOG"}, `"app.in.*"`},
		{0, []string{"streams", "l0"}, `"durable_name": "l0"`},
		{0, []string{"--version"}, "refold "},
		{statusUsage, []string{"streams", "--json", "nothing"}, "nothing"},
		{statusFailed, []string{"--prefix", "No!", "streams"}, "No!"},
		{statusUsage, []string{"rnu"}, `did you mean "run"?; see refold --help`},
		{statusUsage, []string{"run"}, "see refold run --help"},
		{statusUsage, []string{"run", "s1", "hi", "--model", "m"}, "go together"},
		{statusUsage, []string{"run", "s1", "hi", "--system", "s"}, "--provider and --model"},
		{statusUsage, []string{"replay"}, "name one session, or give --all"},
		{statusUsage, []string{"replay", "s1", "--all"}, "name one session, or give --all"},
		{statusUsage, []string{"replay", "--all", "--export"}, "for one session"},
		{statusUsage, []string{"decode"}, "nothing to decode"},
		{0, []string{"install", "--help"}, "refold install record.json"},
		{0, []string{"install", "--builtin", "--dry-run"}, "valid: hash "},
		{statusUsage, []string{"install"}, "give one of FILE, --builtin, --show, --list"},
		{statusUsage, []string{"install", "a", "--show"}, "give one of FILE, --builtin, --show, --list"},
		{statusUsage, []string{"install", "--list", "--dry-run"}, "--dry-run goes with FILE or --builtin"},
		{statusUsage, []string{"install", "--list", "--seq", "1"}, "--seq and --hash go with --show"},
		{statusUsage, []string{"install", "--show", "--seq", "1", "--hash", "a"}, "not both"},
		{statusFailed, []string{"install", "/no/such/record.json"}, "/no/such/record.json"},
		{0, []string{"tools", "check", "--help"}, "--coverage fail"},
		{statusUsage, []string{"tools", "check", "a", "--session", "s1"}, "not both"},
		{statusUsage, []string{"tools"}, "see refold tools show --help"},
		{statusUsage, []string{"tools", "s1", "--turn", "r1"}, "a turn has a name such as r1t2"},
		{statusUsage, []string{"why", "s1"}, "see refold why --help"},
		{statusUsage, []string{"why", "s1", "t", "--turn", "r1t2c0"}, "a turn has a name such as r1t2"},
		{statusUsage, []string{"tools", "check", "--coverage", "loud"}, "see refold tools check --help"},
		{statusUsage, []string{"demo", "--all"}, "--model recorded:FILE"},
		{statusFailed, []string{"demo", "--model", "gpt"}, "refold dev --model KIND:NAME, with KIND openai, openai-chat, anthropic, gemini"},
		{statusFailed, []string{"--nats", "nats://127.0.0.1:1", "view", "s1"}, "no NATS server answers at nats://127.0.0.1:1"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			var out, errOut text
			status := Main(t.Context(), c.args, strings.NewReader(""), &out, &errOut)
			if status != c.status || !strings.Contains(out.String()+errOut.String(), c.want) {
				t.Errorf("status %d, want %d; got %q and %q, want %q", status, c.status, out.String(), errOut.String(), c.want)
			}
			if (status == 0) != (errOut.String() == "") {
				t.Errorf("status %d, and on standard error %q", status, errOut.String())
			}
		})
	}
}

// fullDisk takes no more.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFailedWriteEndsTheCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"streams"}, {"streams", "--json"}, {"completion", "bash"}, {"install", "--builtin", "--dry-run"}} {
		var errOut text
		if status := Main(t.Context(), args, nil, fullDisk{}, &errOut); status != statusFailed || errOut.String() != "refold: no space left on device\n" {
			t.Errorf("%q: status %d, %q", args, status, errOut.String())
		}
	}
}

func TestDevResumesStoredSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, want := range []string{"1", "2"} {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		var out, errOut text
		ended := make(chan int, 1)
		go func() { ended <- Main(ctx, []string{"dev", "--dir", dir, "--port", "0"}, nil, &out, &errOut) }()
		url := out.shows(t, `run at (\S+)`)[1]
		var said text
		if status := Main(ctx, []string{"--nats", url, "run", "s1", "hi"}, nil, &said, io.Discard); status != 0 || !strings.Contains(said.String(), "hi") {
			t.Errorf("run: status %d, %q", status, said.String())
		}
		var refused text
		status := Main(ctx, []string{"dev", "--dir", dir, "--port", "0"}, nil, io.Discard, &refused)
		if said := refused.String(); status != statusFailed || !strings.Contains(said, "is in use by process") || !strings.Contains(said, url) {
			t.Errorf("a second dev: status %d, %q, want %d, and who has the directory at %s", status, said, statusFailed, url)
		}
		var view text
		if status := Main(ctx, []string{"--nats", url, "view", "s1"}, nil, &view, io.Discard); status != 0 || !strings.Contains(view.String(), `"number": `+want) {
			t.Errorf("view: status %d, want run %s in %s", status, want, view.String())
		}
		stop()
		if status := <-ended; status != 0 {
			t.Errorf("dev: status %d: %s", status, errOut.String())
		}
	}
}
