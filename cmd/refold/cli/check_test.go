package cli

// refold tools check: which bridges serve what, what is missing, and the exit
// status.

import (
	"context"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/planner"
)

// registry makes a registry of tools, each given as tool_id, kind and target.
func registry(t *testing.T, tools ...[3]string) *planner.Registry {
	t.Helper()
	schema, err := codec.FromJSON([]byte(`{"type":"object"}`))
	bustest.OK(t, err)
	var specs []planner.ToolSpec
	for _, tool := range tools {
		specs = append(specs, planner.ToolSpec{
			ToolID: tool[0], ToolName: strings.ReplaceAll(tool[0], ".", "_"), ArgsSchema: schema,
			Executor: planner.Executor{Kind: tool[1], Target: tool[2]},
		})
	}
	reg, err := planner.NewRegistry(specs, nil, "", nil)
	bustest.OK(t, err)
	return reg
}

// A target that is served is not enough: the bridges that serve it report their
// tools.
func TestCoverageComparesTools(t *testing.T) {
	t.Parallel()
	reg := registry(t, [3]string{"host.exce", "effect", "host"}, [3]string{"host.exec", "effect", "host"},
		[3]string{"mail.read", "effect", "mail"}, [3]string{"mail.send", "effect", "mail"})
	c := coverage{
		registry: reg, served: map[string]int{"tool/host": 1, "tool/mail": 3},
		heard: []presence.BridgeHeard{
			{Heartbeat: presence.Heartbeat{Targets: []string{"tool/host", "tool/mail"}, Tools: map[string][]string{"tool/host": {"host.exec"}, "tool/mail": {"mail.read", "mail.send"}}}},
			{Heartbeat: presence.Heartbeat{Targets: []string{"tool/mail"}, Tools: map[string][]string{"tool/mail": {"mail.read"}}}},
			{Heartbeat: presence.Heartbeat{Targets: []string{"tool/mail"}}}, // it may have any
		},
	}
	if c.isServed() {
		t.Error("host.exce is served by nobody, and it says so of nothing")
	}
	got := warnings(uncovered(c.needs()))
	want := []string{
		`1 of 1 bridge of tool/host does not have it; did you mean "host.exec"? (host.exce)`,
		`1 of 3 bridges of tool/mail does not have it; did you mean "mail.read"? (mail.send)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings: got %q, want %q", got, want)
	}
}

func TestCoverageNamesUnservedTools(t *testing.T) {
	t.Parallel()
	reg := registry(t, [3]string{"mail.send", "effect", "mail"}, [3]string{"app.ask", "host_loop", "app"},
		[3]string{"mail.read", "effect", "mail"}, [3]string{"fs.stat", "effect", "host"})
	c := coverage{
		registry: reg, config: &session.RunConfig{Provider: "openai", Model: "m", StepHook: &session.StepHook{Hook: "gate"}},
		served: map[string]int{"tool/host": 2, "llm/mail": 1, "tool/other": 3},
		absent: map[planner.ToolIndex]bool{1: true}, // by tool_id: app.ask, fs.stat, mail.read, mail.send
	}
	if got, want := c.targets(), []string{"llm/openai", "step/gate", "tool/host", "tool/mail"}; !slices.Equal(got, want) {
		t.Errorf("targets: got %q, want %q", got, want)
	}
	if c.isServed() {
		t.Error("tool/mail is not served, and it says so of nothing")
	}
	var out strings.Builder
	printNeeds(&out, c.needs())
	const want = `TOOL              EXECUTOR       SERVED BY
app.ask           host_loop/app  the program that drives the session
fs.stat           tool/host      2 bridges; its descriptor is not stored: a session-actor stores it, start one
mail.read         tool/mail      no bridge serves it: start refold bridge serve --tools mail=TOOLS, or a program that serves it with package bridge
mail.send         tool/mail      no bridge serves it: start refold bridge serve --tools mail=TOOLS, or a program that serves it with package bridge
config.provider   llm/openai     no bridge serves it: start refold bridge serve --model openai
config.step_hook  step/gate      no bridge serves it: start a program that serves it with package bridge
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	missing := uncovered(c.needs())
	if got, want := warnings(missing), []string{
		"its descriptor is not stored: a session-actor stores it, start one (fs.stat)",
		"tool/mail: no bridge serves it: start refold bridge serve --tools mail=TOOLS, or a program that serves it with package bridge (mail.read, mail.send)",
		"llm/openai: no bridge serves it: start refold bridge serve --model openai (config.provider)",
		"step/gate: no bridge serves it: start a program that serves it with package bridge (config.step_hook)",
	}; !slices.Equal(got, want) {
		t.Errorf("warnings: got %q, want %q", got, want)
	}
	if got, want := c.tally(), "1 of 4 tools, 0 of 2 in the config"; got != want {
		t.Errorf("tally: got %q, want %q", got, want)
	}
	c.served["tool/mail"], c.served["llm/openai"], c.served["step/gate"], c.absent = 1, 1, 1, nil
	if missing := uncovered(c.needs()); !c.isServed() || len(missing) != 0 {
		t.Errorf("all is served, and it misses %+v", missing)
	}
}

// serves announces a bridge until the test ends.
func (w *world) serves(targets string) {
	w.t.Helper()
	stop, err := w.bus.Register(w.ctx, presence.Service{Kind: "bridge", Version: "1.0.0", Metadata: map[string]string{"targets": targets}})
	bustest.OK(w.t, err)
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Error(err)
		}
	})
}

// mailRecord has a tool that bridges serve as mail, and a model of openai.
const mailRecord = `{"v":1,"rules":1,"config":{"provider":"openai","model":"m"},"tools":[
	{"tool_id":"mail.send","tool_name":"send","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"mail"}}]}`

func TestToolsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("tool/host llm/openai")
	unpublished := file(t, mailRecord)
	out, errOut := w.does(0, "tools", "check", unpublished, "--within", "1ms")
	like(t, "unpublished", out, `(?s)^TOOL .*\nmail\.send +tool/mail +no bridge serves it: [^;\n]*\nconfig\.provider +llm/openai +1 bridge\n`+
		`\nNOT covered: 0 of 1 tools, 1 of 1 in the config, for `+regexp.QuoteMeta(unpublished)+`, which new sessions don't pin\n$`)
	like(t, "unpublished", errOut, `^refold: warning: tool/mail: no bridge serves it: .* \(mail\.send\)\n$`)
	out, _ = w.does(0, "tools", "check", unpublished, "--within", "1ms", "--json")
	like(t, "as JSON", out, `^\{"need":"mail\.send","target":"tool/mail","bridges":0,"missing":\["no bridge serves it: [^"]*"\]\}\n`+
		`\{"need":"config\.provider","target":"llm/openai","bridges":1,"served_by":"1 bridge"\}\n`+
		`\{"covered":false,"of":"`+regexp.QuoteMeta(unpublished)+`, which new sessions don't pin","summary":"0 of 1 tools, 1 of 1 in the config"\}\n$`)
	w.does(0, "install", unpublished)

	failing := []string{"tools", "check", "--within", "1ms", "--coverage", "fail"}
	if _, errOut = w.does(statusFailed, failing...); !strings.Contains(errOut, "tool/mail: no bridge serves it") {
		t.Errorf("fail: got %q", errOut)
	}
	_, _ = w.does(0, "tools", "check", "--within", "1ms", "--coverage", "warn")

	// The session-actor of this world stores the descriptors when it sees the record.
	bustest.Until(t, "the descriptor is stored", func() bool {
		install, err := session.ParseInstall([]byte(mailRecord))
		bustest.OK(t, err)
		there, err := w.bus.HasBlob(w.ctx, install.Registry.Ref(0))
		return err == nil && there
	})
	waiting := w.begin("", "tools", "check", "--coverage", "fail", "--within", "1m") // as at a deployment
	w.serves("tool/mail")
	out, errOut = w.end(waiting, 0)
	like(t, "covered", out+errOut, `(?s)\nmail\.send +tool/mail +1 bridge\n.*\n\ncovered: 1 of 1 tools, 1 of 1 in the config, for the record at 2\n$`)
	same := file(t, mailRecord)
	out, _ = w.does(0, "tools", "check", same)
	like(t, "a file that is published", out, `for the record at 2\n$`)
}

// A descriptor that is gone is reported, but not for a record that no session
// pins.
func TestToolsCheckMissesDescriptors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("tool/mail llm/openai")
	w.does(0, "install", file(t, mailRecord))
	w.says(session.DoorCtl, "s1", session.TypeFactsSet, `{"facts":{"a":"b"}}`)
	bustest.Until(t, "it is stored", func() bool {
		out, _ := w.does(0, "tools", "check")
		return !strings.Contains(out, "NOT covered")
	})
	install, err := session.ParseInstall([]byte(mailRecord))
	bustest.OK(t, err)
	w.deletes(install.Registry.Ref(0))
	for _, args := range [][]string{{}, {"--session", "s1"}, {file(t, mailRecord)}} {
		out, errOut := w.does(statusFailed, append([]string{"tools", "check", "--coverage", "fail"}, args...)...)
		like(t, "gone", out, `\nmail\.send +tool/mail +1 bridge; its descriptor is not stored: .*\n(.*\n)*\nNOT covered: 0 of 1 tools, 1 of 1 in the config, `)
		like(t, "gone", errOut, `^refold: warning: its descriptor is not stored: .* \(mail\.send\)\n$`)
	}
	w.does(0, "install", "--builtin")
	out, _ := w.does(0, "tools", "check", file(t, mailRecord), "--coverage", "fail")
	like(t, "not pinned", out, `\ncovered: `)
}

// deletes removes a blob.
func (w *world) deletes(ref codec.Ref) {
	w.t.Helper()
	_, js := testbus.JS(w.t, w.node)
	stream, err := js.Stream(w.ctx, w.bus.Names().BlobsStream())
	bustest.OK(w.t, err)
	bustest.OK(w.t, stream.Purge(w.ctx, jetstream.WithPurgeSubject(w.bus.Names().BlobSubject(base64.URLEncoding.EncodeToString([]byte(ref.String()))))))
}

// The check finds what real bridges publish about their targets.
func TestToolsCheckFindsBridges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, strings.Replace(mailRecord, `"model":"m"`, `"model":"m","step_hook":{"hook":"gate"}`, 1)))
	ctx, stop := context.WithCancel(w.ctx)
	var ended []chan error
	for range 2 {
		b, err := bridge.Connect(ctx, bridge.Options{URL: w.node.URL()})
		bustest.OK(t, err)
		defer b.Close()
		bustest.OK(t, b.Tool("mail", nobody{}))
		bustest.OK(t, b.Model("openai", nobody{}))
		bustest.OK(t, b.Step("gate", executor.PrepareStep(func(context.Context, executor.StepRequest) (executor.StepChoice, error) {
			return executor.StepChoice{}, nil
		})))
		done := make(chan error, 1)
		ended = append(ended, done)
		go func() { done <- b.Run(ctx) }()
	}
	bustest.Until(t, "both are found", func() bool {
		out, _ := w.does(0, "tools", "check")
		return regexp.MustCompile(`tool/mail +2 bridges[;\n](.*\n)*.* llm/openai +2 bridges\n.* step/gate +2 bridges\n`).MatchString(out)
	})
	stop()
	for _, done := range ended {
		if err := <-done; err != nil {
			t.Errorf("bridge: %v", err)
		}
	}
}

// nobody carries out nothing.
type nobody struct{}

func (nobody) Execute(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{}, nil
}

func (nobody) Generate(context.Context, executor.Request, func(string)) (executor.Answer, error) {
	return executor.Answer{}, nil
}
