package main

// The daemon in this process, against unusable servers, and against one with a
// session-actor, where it does real work.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/planner"
)

const patience = 60 * time.Second

func TestServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	narrow := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { users: [ { user: u, password: p, permissions {
			publish: [ "$JS.API.INFO", "$JS.API.STREAM.INFO.>", "refold.>" ], subscribe: [ "_INBOX.>", "refold.>", "$SRV.>" ] } } ] }`)
	for _, c := range []struct{ name, url, want string }{
		{"missing", "nats://127.0.0.1:1", "no NATS server answers"},
		{"too old", oldServer(t), "2.14"},
		{"no JetStream", bustest.Configured(t, `port: -1`).URL(), "-js"},
		{"may not make streams", strings.Replace(narrow.URL(), "nats://", "nats://u:p@", 1), "does not allow"},
	} {
		for _, provision := range []string{"--provision", "--no-provision"} {
			t.Run(c.name+provision, func(t *testing.T) {
				t.Parallel()
				var stderr bytes.Buffer
				status := Main(t.Context(), []string{"--model", "scripted:echo", "--log-level", "error", provision}, []string{"NATS_URL=" + c.url}, io.Discard, &stderr)
				var said []string
				for line := range strings.Lines(stderr.String()) {
					if strings.HasPrefix(line, "refold-bridge: ") {
						said = append(said, line)
					}
				}
				want := c.want
				if c.name == "may not make streams" && provision == "--no-provision" {
					want = "REFOLD_FX" // it is not there, and nobody asks this bridge to make it
				}
				if status != settings.StatusFailed || len(said) != 1 || !strings.Contains(said[0], want) {
					t.Errorf("status %d, %q; want %d and one line with %q", status, stderr.String(), settings.StatusFailed, want)
				}
				if strings.Contains(stderr.String(), ":p@") {
					t.Error("the password is told")
				}
			})
		}
	}
}

// TestUnexpectedDurabilityStopsTheStart: a bridge logs the servers' sync
// setting, also without provisioning, and does not start if it is not the
// expected one.
func TestUnexpectedDurabilityStopsTheStart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, func(o *server.Options) { o.HTTPHost, o.HTTPPort = "127.0.0.1", server.RANDOM_PORT })
	monitor := node.Raw().MonitorAddr().String()
	for _, provision := range []string{"--provision", "--no-provision"} {
		t.Run(provision, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			args := []string{"--model", "scripted:echo", "--monitor", monitor, provision}
			env := []string{"NATS_URL=" + node.URL(), "REFOLD_DURABILITY=interval"}
			if status := Main(t.Context(), args, env, io.Discard, &stderr); status != settings.StatusFailed || strings.Count(stderr.String(), "\n") != 1 ||
				!strings.Contains(stderr.String(), "sync always") || !strings.Contains(stderr.String(), "--durability always") {
				t.Errorf("status %d, %q; want %d and one line", status, stderr.String(), settings.StatusFailed)
			}
		})
	}
	// It ends by itself, for there are no streams; before that it says so.
	var stderr bytes.Buffer
	Main(t.Context(), []string{"--model", "scripted:echo", "--monitor", monitor, "--no-provision", "--durability", "always", "--prefix", "none"},
		[]string{"NATS_URL=" + node.URL()}, io.Discard, &stderr)
	if n := strings.Count(stderr.String(), "msg=durability is=always server=\"sync always\""); n != 1 {
		t.Errorf("it tells its durability %d times, want once: %s", n, stderr.String())
	}
}

// oldServer says that it is of the last version that is too old.
func oldServer(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprint(conn, `INFO {"server_id":"F","version":"2.13.9","max_payload":1048576,"proto":1,"headers":true,"jetstream":true}`+"\r\n")
				for in := bufio.NewScanner(conn); in.Scan(); {
					if strings.HasPrefix(in.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

// system is a server with a session-actor.
type system struct {
	server *bustest.Node
	nc     *nats.Conn
	bus    *bus.Bus
}

func startSystem(t *testing.T, install []byte) *system {
	t.Helper()
	server := bustest.Server(t)
	s := &system{server: server, bus: testbus.Provisioned(t, server)}
	if _, err := engine.EnsureInstall(t.Context(), s.bus, install); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := engine.New(s.bus, slog.New(slog.DiscardHandler), engine.Options{}).Run(ctx); err != nil {
			t.Errorf("session-actor: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	s.nc, _ = testbus.JS(t, server)
	return s
}

// daemon runs Main until stop, which returns its status and what it logged.
func (s *system) daemon(t *testing.T, environ []string, args ...string) (stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- Main(ctx, args, append(environ, "NATS_URL="+s.server.URL()), io.Discard, &stderr)
	}()
	stop = sync.OnceValues(func() (int, string) {
		cancel()
		select {
		case got := <-status:
			return got, stderr.String()
		case <-time.After(patience):
			t.Error("the daemon does not stop")
			return -1, ""
		}
	})
	t.Cleanup(func() { stop() })
	return stop
}

// ask asks for a run as nats pub does, and returns the notice of its end.
func (s *system) ask(t *testing.T, sid, text string) session.RunFinished {
	t.Helper()
	return s.askWith(t, sid, text, nil)
}

// askWith asks for a run with a config, nil for none.
func (s *system) askWith(t *testing.T, sid, text string, config map[string]any) session.RunFinished {
	t.Helper()
	notices, err := s.nc.SubscribeSync("refold.out." + sid)
	bustest.OK(t, err)
	defer notices.Unsubscribe()
	door := "refold.in."
	data := map[string]any{"input": map[string]any{"text": text}}
	if config != nil {
		door, data["config"] = "refold.ctl.", config
	}
	request, err := json.Marshal(map[string]any{"type": "RunRequested", "data": data})
	bustest.OK(t, err)
	bustest.OK(t, s.nc.Publish(door+sid, request))
	for {
		msg, err := notices.NextMsg(patience)
		if err != nil {
			t.Fatalf("waiting for the end of the run %q: %v", text, err)
		}
		for line := range bytes.Lines(msg.Data) {
			var notice struct {
				Type string              `json:"type"`
				Data session.RunFinished `json:"data"`
			}
			bustest.OK(t, json.Unmarshal(line, &notice))
			if notice.Type == "EventRejected" && !isLate(line) {
				t.Errorf("%s", line)
			}
			if notice.Type == "RunFinished" {
				return notice.Data
			}
		}
	}
}

// isLate reports whether a notice rejects the settlement of a cancelled turn: it is
// stale once the next turn has begun, and settled before.
func isLate(line []byte) bool {
	return bytes.Contains(line, []byte(`"code":"stale"`)) || bytes.Contains(line, []byte(`"code":"effect_settled"`))
}

// A scripted model opens a host session and runs a command in it.
func TestRunsWithHostTools(t *testing.T) {
	t.Parallel()
	d := planner.Builtin()
	install, err := codec.Marshal(session.InstallRecord{
		Config:         &session.RunConfig{Provider: "echo", Model: "echo"},
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	})
	bustest.OK(t, err)
	s := startSystem(t, install)
	dir := filepath.Join(t.TempDir(), "hosts")
	stop := s.daemon(t, []string{"OPENAI_API_KEY=sk-very-secret"}, "--model", "echo=scripted:echo", "--model", "openai", "--tools", "host", "--workdir", dir, "--worker", "w1")
	end := s.ask(t, "s1", "run echo 40 + 2 > sum; cat sum")
	if end.Lifecycle != session.Completed || end.Output == nil || !strings.Contains(end.Output.Text, "40 + 2") {
		t.Errorf("run: got %+v, output %+v", end, end.Output)
	}
	sums, err := filepath.Glob(filepath.Join(dir, "*", "sum"))
	if err != nil || len(sums) != 1 {
		t.Fatalf("the file is in %q (%v), want one", sums, err)
	}
	if got, err := os.ReadFile(sums[0]); err != nil || string(got) != "40 + 2\n" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	// A second run of the session is shown what the first one said.
	if end := s.ask(t, "s1", "hello"); end.Output == nil || end.Output.Text != "You said: hello" {
		t.Errorf("second run: got %+v, output %+v", end, end.Output)
	}
	status, log := stop()
	if status != settings.StatusDone {
		t.Errorf("status: got %d, want %d", status, settings.StatusDone)
	}
	for _, want := range []string{"msg=bridge_starts", `targets="llm/echo llm/openai tool/host tool/host-w1 tool/refold"`, "msg=sandbox", "openai_key_given=true", "prefix=refold", "concurrency=16", "msg=bridge_stopped", "started=6 settled=6"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "secret") {
		t.Error("the log tells the key")
	}
}

// TestRunsRecording: two daemons share the work of a recorded conversation; the
// ledger has each execution once.
func TestRunsRecording(t *testing.T) {
	t.Parallel()
	const file = "../../testdata/recordings/warehouse.jsonl"
	recording, err := recorded.Load(file)
	bustest.OK(t, err)
	tools, err := recorded.LoadTools(recorded.ToolsFile(file))
	bustest.OK(t, err)
	install, _, err := recording.Install(tools, nil)
	bustest.OK(t, err)
	s := startSystem(t, install)
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	var stops []func() (int, string)
	for range 2 {
		stops = append(stops, s.daemon(t, nil, "--model", "recorded:"+file, "--tools", "recorded:"+file, "--ledger", ledger, "--concurrency", "4"))
	}
	conversations := recording.Conversations()
	if len(conversations) > 3 {
		conversations = conversations[:3]
	}
	var want []recorded.Entry
	for _, c := range conversations {
		want = append(want, c.Ledger(c.Session())...)
		for i, text := range c.Users() {
			end := s.ask(t, c.Session(), text)
			if end.Lifecycle != session.Completed && end.Code != "recording_ended" {
				t.Errorf("%s, run %d: got %+v", c.ID, i+1, end)
			}
		}
	}
	settled := 0
	for _, stop := range stops {
		status, log := stop()
		if status != settings.StatusDone {
			t.Errorf("status: got %d, want %d", status, settings.StatusDone)
		}
		m := regexp.MustCompile(` settled=(\d+) given_back`).FindStringSubmatch(log)
		if m == nil {
			t.Fatalf("the log has no account: %s", log)
		}
		n, err := strconv.Atoi(m[1])
		bustest.OK(t, err)
		settled += n
	}
	got, err := recorded.ReadLedger(ledger)
	bustest.OK(t, err)
	if err := recorded.Tally(want, got).Err(); err != nil {
		t.Errorf("the ledger: %v", err)
	}
	if len(want) == 0 || settled <= len(want) { // the turns are settled too
		t.Errorf("%d executions were to be had, %d effects were settled", len(want), settled)
	}
}

// TestStopDrains: a daemon that gets SIGTERM during a turn lets it end.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	script := write(t, "slow.yaml", "rules:\n  - say: done\n")
	d := planner.Builtin()
	install, err := codec.Marshal(session.InstallRecord{
		Config:         &session.RunConfig{Provider: "scripted", Model: "m"},
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	})
	bustest.OK(t, err)
	s := startSystem(t, install)
	first := s.daemon(t, nil, "--model", "scripted:"+script)
	if end := s.ask(t, "s1", "one"); end.Lifecycle != session.Completed {
		t.Errorf("first run: got %+v", end)
	}
	if status, log := first(); status != settings.StatusDone || !strings.Contains(log, "started=1 settled=1 given_back=0") {
		t.Errorf("first daemon: status %d, log %s", status, log)
	}
	s.daemon(t, nil, "--model", "scripted:"+script, "--no-provision")
	if end := s.ask(t, "s1", "two"); end.Lifecycle != session.Completed {
		t.Errorf("second run: got %+v", end)
	}
}
