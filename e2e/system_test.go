package e2e_test

// A system for one test: a server, a session-actor, and bridges that the test
// starts or plays. Offered tools are read from REFOLD_FX and REFOLD_BLOBS, as
// any program can.

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// object is a JSON object as a test writes it.
type object = map[string]any

// list is a JSON list as a test writes it.
type list = []any

// scripted is the config of runs that a script answers.
var scripted = object{"provider": "scripted", "model": "m"}

// tool returns a ToolSpec for the executor `lab`; more wins over what stands
// here.
func tool(name string, more object) object {
	spec := object{
		"tool_id": "lab." + name, "tool_name": name, "description": "The tool " + name + ".", "args_schema": object{"type": "object"},
		"executor": object{"kind": "effect", "target": "lab"}, "parallel_safe": true, "retry_safe": true,
	}
	for key, value := range more {
		spec[key] = value
	}
	return spec
}

// system is a server and a session-actor.
type system struct {
	t     *testing.T
	url   string
	nc    *nats.Conn
	js    jetstream.JetStream
	names subjects.Names
	actor *daemon

	mu    sync.Mutex
	blobs map[codec.Hash]string // names of tools by their descriptors
}

// startSystem starts a system with an install record; nil is the built-in one.
func startSystem(t *testing.T, record object) *system {
	t.Helper()
	url := startNATS(t)
	return startSystemOn(t, url, []string{"--nats", url}, record)
}

// startSystemOn does so on a server that runs: url is how the test connects, and
// args are how the session-actor does.
func startSystemOn(t *testing.T, url string, args []string, record object) *system {
	t.Helper()
	if record != nil {
		args = append(args, "--install", writeFile(t, "install.json", jsonText(t, record)))
	}
	s := &system{t: t, url: url, blobs: map[codec.Hash]string{}}
	s.actor = startDaemon(t, "session-actor", args...)
	s.nc = connect(t, s.url)
	var err error
	if s.js, err = jetstream.New(s.nc); err == nil {
		s.names, err = subjects.New("")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// as returns a server's URL for a user, if there are users.
func as(t *testing.T, server, user string, users bool) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	if users {
		u.User = url.UserPassword(user, "change-me")
	}
	return u.String()
}

// models starts a bridge that serves providers with one script.
func (s *system) models(script string, providers ...string) *daemon {
	s.t.Helper()
	path := writeFile(s.t, "script.yaml", script)
	args := []string{"--nats", s.url}
	for _, provider := range providers {
		args = append(args, "--model", provider+"=scripted:"+path)
	}
	return startDaemon(s.t, "bridge", args...)
}

// lab carries out the tools of the executor `lab` in this process, and keeps
// what it did.
type lab struct {
	mu      sync.Mutex
	calls   []executor.Call
	outputs map[string]string        // by tool_name; else "done"
	hold    map[string]chan struct{} // by tool_name: until it is closed
}

// Execute answers a call.
func (l *lab) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	l.mu.Lock()
	l.calls = append(l.calls, call)
	l.mu.Unlock()
	if hold := l.hold[call.ToolName]; hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return executor.Result{}, ctx.Err()
		}
	}
	return executor.Result{Output: cmp.Or(l.outputs[call.ToolName], "done")}, nil
}

// did returns the calls that ran, in order.
func (l *lab) did() []executor.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// ran returns the names of the calls that ran, in order.
func (l *lab) ran() string {
	var names []string
	for _, c := range l.did() {
		names = append(names, c.ToolName)
	}
	return strings.Join(names, " ")
}

// serve starts a bridge in this process.
func (s *system) serve(give func(b *bridge.Bridge) error) {
	s.t.Helper()
	serveBridge(s.t, bridge.Options{URL: s.url, Provision: true, Name: "e2e", Grace: time.Second}, give)
}

// serveBridge runs a bridge until the test ends.
func serveBridge(t *testing.T, options bridge.Options, give func(b *bridge.Bridge) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b, err := bridge.Connect(ctx, options)
	if err == nil {
		err = give(b)
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("bridge: %v", err)
		}
		b.Close()
	})
}

// tools serves the executor `lab`.
func (s *system) tools(l *lab) {
	s.t.Helper()
	s.serve(func(b *bridge.Bridge) error { return b.Tool("lab", l) })
}

// say publishes an event and returns its sequence.
func (s *system) say(door session.Door, sid, typ string, data any) uint64 {
	s.t.Helper()
	subject, err := s.names.Log(door, sid)
	if err != nil {
		s.t.Fatal(err)
	}
	return publish(s.t, s.nc, subject, envelope(s.t, typ, data))
}

// run asks for a run through a door.
func (s *system) run(door session.Door, sid, text string, config object) uint64 {
	s.t.Helper()
	data := object{"input": object{"text": text}}
	if config != nil {
		data["config"] = config
	}
	return s.say(door, sid, session.TypeRunRequested, data)
}

// envelope is an event's payload.
func envelope(t *testing.T, typ string, data any) []byte {
	t.Helper()
	return []byte(jsonText(t, object{"type": typ, "data": data}))
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// view waits for a View that holds.
func (s *system) view(sid, what string, holds func(session.View) bool) session.View {
	s.t.Helper()
	var v session.View
	until(s.t, time.Minute, what, func() bool {
		v = session.View{}
		answer, err := s.nc.Request("refold.view."+sid, nil, 500*time.Millisecond)
		return err == nil && json.Unmarshal(answer.Data, &v) == nil && holds(v)
	})
	return v
}

// at waits until the session has folded the event at seq.
func (s *system) at(sid string, seq uint64) session.View {
	s.t.Helper()
	return s.view(sid, "the fold of "+sid, func(v session.View) bool { return v.Seq >= seq })
}

// ended waits until the nth run has ended and no other is there.
func (s *system) ended(sid string, run uint32) session.View {
	s.t.Helper()
	return s.view(sid, "the end of a run of "+sid, func(v session.View) bool { return v.Run == nil && v.Last != nil && v.Last.Number == run })
}

// wantEnd waits until the nth run has ended, and checks how.
func (s *system) wantEnd(sid string, run uint32, lifecycle session.Lifecycle, code string) {
	s.t.Helper()
	if v := s.ended(sid, run); v.Last.Lifecycle != lifecycle || v.Last.Code != code {
		s.t.Errorf("run %d of %s ended %s %s (%s), want %s %s", run, sid, v.Last.Lifecycle, v.Last.Code, v.Last.Detail, lifecycle, code)
	}
}

// asked is an effect as REFOLD_FX holds it.
type asked struct {
	name    subjects.EffectName
	payload []byte
}

// asked returns what was asked of a class for a session, in order.
func (s *system) asked(class session.Class, sid string) []asked {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	consumer, err := s.js.OrderedConsumer(ctx, s.names.EffectsStream(), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"refold.fx." + string(class) + ".*." + sid + ".*"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []asked
	for uint64(len(all)) < info.NumPending {
		msg, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			s.t.Fatalf("read %d of %d effects: %v", len(all), info.NumPending, err)
		}
		name, err := s.names.ParseEffect(msg.Subject())
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, asked{name, msg.Data()})
	}
	return all
}

// schedules returns the subjects of what REFOLD_TIMERS holds of a session, or of
// all if sid is "*".
func (s *system) schedules(sid string) (all []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.names.TimersStream())
	if err != nil {
		return []string{err.Error()}
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("refold.*."+sid+".*"))
	if err != nil {
		return []string{err.Error()}
	}
	for subject := range info.State.Subjects {
		all = append(all, subject)
	}
	return all
}

// generations returns the model's turns that were asked, in order.
func (s *system) generations(sid string) []session.Generation {
	s.t.Helper()
	var all []session.Generation
	for _, a := range s.asked(session.ClassLLM, sid) {
		var g session.Generation
		if err := codec.Unmarshal(a.payload, &g); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

// offered returns the names of the tools that a turn offers, in order, as the
// blobs of their descriptors have them.
func (s *system) offered(g session.Generation) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, hash := range g.Tools {
		name, known := s.blobs[hash]
		if !known {
			name = s.descriptor(hash)
			s.blobs[hash] = name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// descriptor reads a descriptor's blob and returns its tool_name.
func (s *system) descriptor(hash codec.Hash) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	blobs, err := s.js.ObjectStore(ctx, s.names.BlobsBucket())
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := blobs.GetBytes(ctx, codec.Ref{Hash: hash}.String())
	if err != nil {
		s.t.Fatalf("descriptor %s: %v", hash, err)
	}
	if codec.Sum(content) != hash {
		s.t.Fatalf("the blob %s has other bytes", hash)
	}
	var d struct {
		ToolName string `json:"tool_name"`
	}
	if err := json.Unmarshal(content, &d); err != nil {
		s.t.Fatal(err)
	}
	return d.ToolName
}

// wantOffered checks what each turn of a session was offered, in order.
func (s *system) wantOffered(sid string, want ...string) {
	s.t.Helper()
	var got []string
	for _, g := range s.generations(sid) {
		got = append(got, s.offered(g))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("turns of %s were offered\n%q, want\n%q", sid, got, want)
	}
}

// wantCalls checks which tool calls were asked, by name.
func (s *system) wantCalls(sid string, want ...string) {
	s.t.Helper()
	var got []string
	for _, a := range s.asked(session.ClassTool, sid) {
		var c session.ToolCall
		if err := codec.Unmarshal(a.payload, &c); err != nil {
			s.t.Fatal(err)
		}
		got = append(got, c.ToolName)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%s asked for the calls %q, want %q", sid, got, want)
	}
}

// wantRejections waits until as many events of a session as codes are given had
// no effect, and checks which and why: "RunRequested unknown_tool".
func (s *system) wantRejections(e *ear, want ...string) {
	s.t.Helper()
	until(s.t, time.Minute, "notices of rejections", func() bool { return e.count(session.NoticeEventRejected) >= len(want) })
	var got []string
	for _, h := range e.all() {
		var d struct {
			Type string `json:"type"`
			Code string `json:"code"`
		}
		if h.Type == session.NoticeEventRejected && json.Unmarshal(h.Data, &d) == nil {
			got = append(got, d.Type+" "+d.Code)
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("rejected: %q, want %q", got, want)
	}
}
