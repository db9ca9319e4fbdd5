package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/subjects"
)

// wirePatience is for what takes milliseconds on a machine that does nothing else.
const wirePatience = 60 * time.Second

// TestWire runs a session-actor, a bridge for a model, a bridge for tools and a
// client, each with the rights that refold roles gives it, and
// looks at every message that passes: it is one of its schema. And all that
// should pass did.
func TestWire(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.observe()
	w.actor()
	w.bridges()
	chat := w.plain("chat")
	out := w.follow(chat, "refold.out.s1")

	// A run with calls, one of which is not retry-safe, so that it is claimed.
	w.said(chat, "refold.in.s1", `{"type":"RunRequested","by":"ann","data":{"input":{"text":"work"},"submission":"a"}}`)
	if end := out.finished(1); end.Lifecycle != session.Completed || end.Output == nil || end.Output.Text != strings.Repeat("word ", 10_000) {
		t.Fatalf("run 1: got %+v", end)
	}
	// An event that is none, and one that clients may not say.
	w.said(chat, "refold.in.s1", `{"type":"RunImagined"}`)
	w.said(chat, "refold.in.s1", `{"type":"RunRequested","data":{"input":{"text":"x"},"config":{"provider":"openai","model":"m","force":["shell"]}}}`)
	// A model that hangs, until the session withdraws its turn.
	w.said(chat, "refold.in.s1", `{"type":"RunRequested","data":{"input":{"text":"hang"}}}`)
	<-w.model.hanging
	w.said(chat, "refold.in.s1", `{"type":"RunRequested","data":{"input":{"text":"work"}}}`)
	// The wake of run 1 comes before the deadline of run 2, and asks for one that doesn't.
	operator := w.plain("admin")
	w.said(operator, "refold.wake.s1", `{"type":"WakeSettled","data":{"effect":"w1"}}`)
	w.said(operator, "refold.wake.s1", `{"type":"WakeSettled","data":{"effect":"w2"}}`)
	if end := out.finished(2); end.Code != session.CodeDeadlineExceeded {
		t.Fatalf("run 2: got %+v", end)
	}
	<-w.model.stopped
	if end := out.finished(3); end.Lifecycle != session.Completed {
		t.Fatalf("run 3: got %+v", end)
	}
	w.check("View", w.request(chat, "refold.view.s1").Data)
	w.driven(operator)
	w.controlled(operator, chat)
	w.stateless(chat)
	w.guest()
	w.atRest()
	w.verdict()
}

// driven runs a session with tools of its own, by hand: its step hook and its
// host loop are this test.
func (w *wire) driven(operator *nats.Conn) {
	w.t.Helper()
	out := w.follow(operator, "refold.out.s2")
	w.said(operator, "refold.ctl.s2", `{"type":"ToolRegistrySet","data":{"tools":[{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"desk"}}]}}`)
	w.said(operator, "refold.ctl.s2", `{"type":"ToolOverridesSet","data":{"scope":"session","force":["ask"]}}`)
	w.said(operator, "refold.ctl.s2", `{"type":"RunRequested","data":{"input":{"text":"work"},"roles":["editor"],"config":{"provider":"openai","model":"m1","step_hook":{"hook":"desk"}}}}`)
	w.said(operator, "refold.step.s2", `{"type":"StepPrepared","data":{"effect":"r1t1s","status":"ok","active_tools":["ask"],"context":{"phase":"ask"}}}`)
	var planned session.CallsPlanned
	out.next(session.NoticeCallsPlanned, &planned)
	view := w.request(operator, "refold.view.s2").Data
	w.check("View", view)
	var v session.View
	if err := json.Unmarshal(view, &v); err != nil || v.WaitsFor != "host_loop" || v.Batch == nil || v.Batch.PlanHash != planned.PlanHash || v.Batch.Calls[0].HostLoop != "desk" {
		w.t.Fatalf("the view of a host loop: %s, %v", view, err)
	}
	w.said(operator, "refold.tool.s2", `{"type":"ToolBatchSettled","data":{"batch":"r1t1","plan_hash":"`+planned.PlanHash+`","results":[{"effect":"r1t1c0","status":"succeeded","output":{"text":"so it is"}}]}}`)
	w.said(operator, "refold.step.s2", `{"type":"StepPrepared","data":{"effect":"r1t2s","status":"failed","error":{"code":"hook_failed"}}}`)
	if end := out.finished(1); end.Lifecycle != session.Completed {
		w.t.Fatalf("a driven run: got %+v", end)
	}
}

// stateless looks at the view of a session that is quarantined before its first event:
// it has no state to show.
func (w *wire) stateless(chat *nats.Conn) {
	w.t.Helper()
	b, err := bus.Connect(w.ctx, w.as("actor"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	if err := b.PutQuarantine(w.ctx, "s9", []byte(`{"seq":1,"reason":"a test"}`)); err != nil {
		w.t.Fatal(err)
	}
	w.said(chat, "refold.in.s9", `{"type":"RunRequested","data":{"input":{"text":"work"}}}`)
	view := w.request(chat, "refold.view.s9").Data
	w.check("View", view)
	if got, want := string(view), `{"session":"s9","quarantined":{"seq":1,"reason":"a test"}}`; got != want {
		w.t.Errorf("the view of a session without state: got %s, want %s", got, want)
	}
}

// wire is a server with the accounts that refold roles writes.
type wire struct {
	t       *testing.T
	ctx     context.Context
	dir     string // of the users' files
	node    *bustest.Node
	schemas *schemas
	model   *idleModel

	mu     sync.Mutex
	seen   map[string]int             // by schema
	fields map[string]map[string]bool // of messages that have no Go struct to compare with
}

func newWire(t *testing.T) *wire {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wirePatience)
	t.Cleanup(cancel)
	dir := t.TempDir()
	tenant := roles.DefaultTenant()
	tenant.Clients = []string{"chat"}
	file := &roles.File{Tenants: map[string]*roles.Tenant{subjects.DefaultPrefix: tenant}}
	if _, err := file.Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	rights, err := server.ProcessConfigFile(roles.AccountsFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	return &wire{
		t: t, ctx: ctx, dir: dir, schemas: readSchemas(t), seen: map[string]int{}, fields: map[string]map[string]bool{},
		node:  bustest.Server(t, func(o *server.Options) { o.Accounts, o.Nkeys = rights.Accounts, rights.Nkeys }),
		model: &idleModel{hanging: make(chan struct{}), stopped: make(chan struct{})},
	}
}

// user is a user of the server.
func user(name string) roles.User { return roles.User{Prefix: subjects.DefaultPrefix, Name: name} }

// as is how a program of a user connects.
func (w *wire) as(name string) natsio.Options {
	return natsio.Options{URL: w.node.URL(), Context: roles.ContextFile(w.dir, user(name)), Logger: w.logger(name)}
}

// auth is a user's key.
func (w *wire) auth(name string) nats.Option {
	w.t.Helper()
	auth, err := nats.NkeyOptionFromSeed(roles.SeedFile(w.dir, user(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return auth
}

// plain connects as any NATS program does.
func (w *wire) plain(name string) *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.node.URL(), w.auth(name), nats.CustomInboxPrefix(user(name).Inbox()), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		w.t.Errorf("%s: %v", name, err)
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

// logger fails the test on a line that says that something is not permitted.
func (w *wire) logger(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("permission")) || bytes.Contains(line, []byte("level=ERROR")) {
			w.t.Errorf("%s: %s", who, line)
		}
		return len(line), nil
	}), nil))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// observe looks at all that is published.
func (w *wire) observe() {
	names, err := subjects.New("")
	if err != nil {
		w.t.Fatal(err)
	}
	nc := w.plain("admin")
	if _, err := nc.Subscribe("refold.>", func(m *nats.Msg) { w.look(names, m) }); err != nil {
		w.t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// look checks one message.
func (w *wire) look(names subjects.Names, m *nats.Msg) {
	tokens := strings.Split(m.Subject, ".")
	effect, err := names.ParseEffect(m.Subject)
	_, claimErr := names.ParseClaim(m.Subject)
	switch {
	case err == nil:
		w.packed(w.schemas.effects[effect.Class], m.Data)
	case claimErr == nil:
		w.check("Claim", m.Data)
	case tokens[1] == "timer":
		w.packed(w.schemas.effects[session.ClassWake], m.Data)
	case slices.Contains(subjects.Doors(), session.Door(tokens[1])):
		env, ok := envelopeOf(m.Data)
		if !ok || !slices.Contains(session.EventTypes(), env.Type) {
			return // it is to be rejected
		}
		w.packed("Envelope", canonical(w.t, m.Data))
		w.count(env.Type)
	case tokens[1] == "install":
		w.packed("InstallRecord", canonical(w.t, m.Data))
	case tokens[1] == "out":
		w.lines("Notice", m.Data)
	case tokens[1] == "live":
		w.check("LiveDelta", m.Data)
	case tokens[1] == "progress":
		w.lines("Progress", m.Data)
	case tokens[1] == "alive":
		w.check("Heartbeat", m.Data)
	case tokens[1] == "cancel":
		w.check("Cancel", m.Data)
	case tokens[1] == "view": // a request says nothing
	default:
		w.t.Errorf("%s: docs/protocol.md has no such subject", m.Subject)
	}
}

func (w *wire) packed(name string, message []byte) {
	text, err := codec.ToJSON(message)
	if err != nil {
		w.t.Errorf("%s: %v", name, err)
		return
	}
	w.check(name, text)
}

func (w *wire) check(name string, message []byte) {
	if err := w.schemas.check(name, message); err != nil {
		w.t.Errorf("%s\n%.2000s", err, message)
	}
	w.count(name)
	var fields map[string]any
	if json.Unmarshal(message, &fields) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fields[name] == nil {
		w.fields[name] = map[string]bool{}
	}
	for field := range fields {
		w.fields[name][field] = true
	}
}

// lines checks the lines of a message of notices or of progress.
func (w *wire) lines(name string, message []byte) {
	for line := range bytes.Lines(message) {
		w.check(name, line)
		var n struct{ Type string }
		if err := json.Unmarshal(line, &n); err != nil {
			w.t.Error(err)
		}
		w.count(n.Type)
	}
}

func (w *wire) count(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[name]++
}

// actor runs a session-actor until the test ends.
func (w *wire) actor() {
	b, err := bus.Connect(w.ctx, w.as("actor"))
	if err != nil {
		w.t.Fatal(err)
	}
	conf := testbus.Conf(w.t, "")
	if err := b.Provision(w.ctx, conf, 1); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range []struct {
		class  session.Class
		target string
	}{{session.ClassLLM, "openai"}, {session.ClassTool, "host"}} {
		if _, err := b.EnsureBridge(w.ctx, conf, c.class, c.target); err != nil {
			w.t.Fatal(err)
		}
	}
	var record session.InstallRecord
	if err := codec.Unmarshal(session.BuiltinInstall(), &record); err != nil {
		w.t.Fatal(err)
	}
	record.Config = &session.RunConfig{Provider: "openai", Model: "m1"}
	payload, err := codec.Marshal(record)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := engine.EnsureInstall(w.ctx, b, payload); err != nil {
		w.t.Fatal(err)
	}
	w.run(b.Close, engine.New(b, w.logger("actor"), engine.Options{SnapshotEach: 1}).Run)
}

// guest is another session-actor, which shares the lanes for a while.
func (w *wire) guest() {
	b, err := bus.Connect(w.ctx, w.as("actor"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	ctx, leave := context.WithCancel(w.ctx)
	h, done := engine.New(b, w.logger("guest"), engine.Options{}), make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	select {
	case <-h.Ready():
	case <-w.ctx.Done():
		w.t.Error("the guest does not join")
	}
	leave()
	if err := <-done; err != nil {
		w.t.Error(err)
	}
	bustest.Until(w.t, "the guest has said that it leaves", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.fields["Heartbeat"]["leaving"]
	})
}

// run runs something until the test ends, then closes its connection.
func (w *wire) run(end func(), run func(context.Context) error) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		end()
	})
}

// bridges runs one bridge for the model and one for the tools.
func (w *wire) bridges() {
	for name, serve := range map[string]func(*bridge.Bridge) error{
		"models": func(b *bridge.Bridge) error { return b.Model("openai", w.model, bridge.Lacks("no key")) },
		"tools":  func(b *bridge.Bridge) error { return b.Tool("host", idleTools{}) },
	} {
		b, err := bridge.Connect(w.ctx, bridge.Options{
			URL: w.node.URL(), Context: roles.ContextFile(w.dir, user(name)), Name: name, Grace: time.Second, Logger: w.logger(name),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := serve(b); err != nil {
			w.t.Fatal(err)
		}
		w.run(b.Close, b.Run)
	}
}

// idleModel answers by what it is shown.
type idleModel struct {
	hanging, stopped chan struct{} // closed when it hangs, and when it doesn't any more
}

func (m *idleModel) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	last := r.Messages[len(r.Messages)-1]
	switch {
	case last.Text == "hang":
		close(m.hanging)
		<-ctx.Done()
		close(m.stopped)
		return executor.Answer{}, ctx.Err()
	case last.Role == "user" && len(r.Tools) == 1: // open_session alone: no host session yet
		return executor.Answer{Text: "I begin.", Calls: []executor.AnswerCall{{ID: "c1", Name: r.Tools[0].Name, Arguments: "{}"}}}, nil
	case last.Role == "user" || last.Text == "open":
		return executor.Answer{
			Calls: []executor.AnswerCall{{ID: "c2", Name: "shell", Arguments: `{"command":"true"}`}, {ID: "c3", Name: "nosuch"}},
			Usage: executor.Usage{InputTokens: 5, OutputTokens: 1}, Opaque: json.RawMessage(`{"id":"rs_1"}`),
		}, nil
	}
	text := strings.Repeat("word ", 10_000)
	delta(text)
	return executor.Answer{Text: text, Model: "m1-2026", FinishReason: "stop"}, nil
}

// idleTools does nothing, and says what is too large for an event.
type idleTools struct{}

// ToolIDs are in the heartbeats of its bridge.
func (idleTools) ToolIDs() []string { return []string{"host.shell"} }

func (idleTools) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	if call.ToolName == "open_session" {
		return executor.Result{Output: "open", HostSession: &executor.HostSession{ID: "h1", Status: "ready"}}, nil
	}
	return executor.Result{Output: strings.Repeat("x", session.TextBytesMax+1)}, nil
}

// said publishes an event and waits until it is stored.
func (w *wire) said(nc *nats.Conn, subject, event string) {
	w.t.Helper()
	answer := w.request(nc, subject, event)
	var ack struct {
		Stream string
		Seq    uint64
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Stream != "REFOLD_LOG" || ack.Seq == 0 {
		w.t.Fatalf("%s: got %s", subject, answer.Data)
	}
}

func (w *wire) request(nc *nats.Conn, subject string, body ...string) *nats.Msg {
	w.t.Helper()
	answer, err := nc.RequestWithContext(w.ctx, subject, []byte(strings.Join(body, "")))
	if err != nil {
		w.t.Fatalf("%s: %v", subject, err)
	}
	return answer
}

// followed is a session's notices as a client sees them.
type followed struct {
	w   *wire
	sub *nats.Subscription

	lines [][]byte // of the last message, not read yet
}

func (w *wire) follow(nc *nats.Conn, subject string) *followed {
	w.t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &followed{w: w, sub: sub}
}

// finished waits for the end of a run.
func (f *followed) finished(run uint32) (end session.RunFinished) {
	f.w.t.Helper()
	for {
		f.next(session.NoticeRunFinished, &end)
		if end.Run == run {
			return end
		}
	}
}

// next waits for the next notice of a type, and reads its data.
func (f *followed) next(typ string, data any) {
	f.w.t.Helper()
	for {
		for len(f.lines) == 0 {
			m, err := f.sub.NextMsgWithContext(f.w.ctx)
			if err != nil {
				f.w.t.Fatalf("no %s comes: %v", typ, err)
			}
			f.lines = bytes.Split(m.Data, []byte("\n"))
		}
		var n struct {
			Type string
			Data json.RawMessage
		}
		if err := json.Unmarshal(f.lines[0], &n); err != nil {
			f.w.t.Fatal(err)
		}
		if f.lines = f.lines[1:]; n.Type != typ {
			continue
		}
		if err := json.Unmarshal(n.Data, data); err != nil {
			f.w.t.Fatal(err)
		}
		return
	}
}

// atRest looks at what is kept: snapshots, one of them too large for the
// bucket, and descriptors of tools.
func (w *wire) atRest() {
	operator, err := bus.Connect(w.ctx, w.as("admin"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer operator.Close()
	bustest.Until(w.t, "a snapshot is stored", func() bool {
		data, found, err := operator.GetSnapshot(w.ctx, "s1")
		if err != nil {
			w.t.Fatal(err)
		}
		if found {
			w.packed("Snapshot", data)
		}
		return found
	})
	large, err := codec.Marshal(map[string]string{"state": strings.Repeat("x", 600<<10)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := operator.PutSnapshot(w.ctx, "s2", 7, large); err != nil {
		w.t.Fatal(err)
	}
	js, err := jetstream.New(w.plain("admin"))
	if err != nil {
		w.t.Fatal(err)
	}
	kv, err := js.KeyValue(w.ctx, "REFOLD_SNAPSHOTS")
	if err != nil {
		w.t.Fatal(err)
	}
	entry, err := kv.Get(w.ctx, "s.s2")
	if err != nil {
		w.t.Fatal(err)
	}
	w.check("SnapshotBlob", entry.Value())
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, blob := range install.Registry.Blobs() {
		content, err := operator.GetBlob(w.ctx, blob.Ref)
		if err != nil {
			w.t.Fatal(err)
		}
		w.check("ToolDescriptor", content)
	}
}

// verdict says what did not pass, and which fields of the messages without a
// Go struct were never sent.
func (w *wire) verdict() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range []string{
		session.TypeRunRequested, session.TypeToolCallsObserved, session.TypeGenerationSettled, session.TypeToolCallSettled, session.TypeWakeSettled,
		session.NoticeSessionOpened, session.NoticeRunQueued, session.NoticeRunStarted, session.NoticeRunFinished, session.NoticeEventRejected,
		session.NoticeToolRejected, session.TypeToolRegistrySet, session.TypeToolOverridesSet, session.TypeToolBatchSettled,
		session.TypeStepPrepared, session.NoticeCallsPlanned, session.TypeSteerRequested, session.TypeRunCancelRequested, session.TypeRunInterrupt,
		session.TypeRunPauseRequested, session.TypeRunResumeRequested, session.TypeRunEdited, session.TypeRunCompleted, session.TypeRunFailed,
		session.TypeSessionClosed, session.TypeApprovalDecided, session.NoticeApprovalRequested, session.ProgressTurnSettled, session.ProgressCallSettled, "Generation", "ToolCall", "Step", "Wake", "Claim", "InstallRecord", "LiveDelta", "Heartbeat", "Cancel", "View",
	} {
		if w.seen[name] == 0 {
			w.t.Errorf("no %s passed", name)
		}
	}
	if w.seen["LiveDelta"] < 4 { // 50,000 bytes twice, at most 32 KiB each
		w.t.Errorf("%d deltas passed, want 4", w.seen["LiveDelta"])
	}
	for _, name := range []string{"Notice", "Progress", "Heartbeat", "Cancel", "SnapshotBlob", "LiveDelta"} {
		properties, _ := w.schemas.docs[name]["properties"].(map[string]any)
		for field := range properties {
			if !w.fields[name][field] && field != "clock_ahead_ms" && field != "not_ready" { // nothing is wrong here
				w.t.Errorf("no %s had the field %q", name, field)
			}
		}
	}
}

// TestAttackAnswerToADoor: a server sends what somebody stored to whatever subject
// a request names for its answer. From an account of its own no user reaches a
// door so: neither a client, nor an auditor, nor a bridge, which may both read the
// log. From the streams' account it does; that shows that the test would see it.
func TestAttackAnswerToADoor(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.actor()
	chat := w.plain("chat")
	out := w.follow(chat, "refold.out.s1")
	forged := `{"type":"FactsSet","data":{"facts":{"a":"b"}}}`
	w.said(chat, "refold.in.s1", forged)
	if _, err := out.sub.NextMsgWithContext(w.ctx); err != nil { // the session-actor is at work
		t.Fatal(err)
	}
	ask := func(who, prefix string, to ...string) {
		nc, err := nats.Connect(w.node.URL(), w.auth(who), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		for _, subject := range append(to, prefix+"DIRECT.GET.REFOLD_LOG", prefix+"STREAM.MSG.GET.REFOLD_LOG") {
			for _, door := range []string{"ctl", "approve", "install"} {
				if err := nc.PublishRequest(subject, "refold."+door+".s1", []byte(`{"seq":2}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	ask("chat", "$JS.API.", "refold.in.s1", "refold.view.s1")
	ask("chat", "refold.api.")
	for _, who := range []string{"auditor", "models", "tools", "approver"} {
		ask(who, "$JS.API.", "refold.view.s1")
		ask(who, "refold.api.")
	}
	w.said(chat, "refold.in.s1", `{"type":"RunImagined"}`)
	ask("admin", "$JS.API.")
	admin, err := client.Connect(w.ctx, client.Options{URL: w.node.URL(), Context: roles.ContextFile(w.dir, user("admin"))})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	within := false // what comes now, the administrator made
	for e, err := range admin.Events(w.ctx, "s1", 1) {
		switch {
		case err != nil:
			t.Fatal(err)
		case bytes.Contains(e.Payload, []byte("RunImagined")):
			within = true
		case e.Door != session.DoorIn && within:
			return
		case e.Door != session.DoorIn:
			t.Errorf("event %d came through %s: %s", e.Seq, e.Door, e.Payload)
		}
	}
}
