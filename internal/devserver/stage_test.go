package devserver_test

// A server with sessions that replay recorded conversations, each for as many
// events as a test allows, and a record of their events for the test.

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/subjects"
)

// callsAtOnce is how many calls of all sessions the stage's bridge executes at
// once. Calls that may not end keep their slots: of a batch of 30 none of which
// may end, 14 are not claimed when it is withdrawn.
const callsAtOnce = 16

// stage is the server, and the record of its sessions.
type stage struct {
	t         *testing.T
	ctx       context.Context
	server    *devserver.Server
	client    *client.Client
	recording *recorded.Recording
	model     *recorded.Model
	executor  *recorded.Executor
	ledger    string // path

	mu      sync.Mutex
	changed *sync.Cond
	spare   map[string]int // by session: how many effects may still end
	held    map[string]int // by session: how many are in progress that may not end
	starts  map[string]int // by effect, as in claims: how often it was started
	shown   map[string][]executor.Message
	events  map[string][]session.Event
	ends    map[string][]session.RunFinished
}

// startStage starts the server with the project's recordings. No tool is
// retry-safe, and a tool that changes the warehouse shares no group with others.
func startStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	s := &stage{
		t: t, ctx: ctx, ledger: filepath.Join(t.TempDir(), "ledger.jsonl"), spare: map[string]int{}, held: map[string]int{},
		starts: map[string]int{}, shown: map[string][]executor.Message{}, events: map[string][]session.Event{}, ends: map[string][]session.RunFinished{},
	}
	s.changed = sync.NewCond(&s.mu)
	record := s.load("../../testdata/recordings/warehouse.jsonl")
	ledger, err := recorded.OpenLedger(s.ledger)
	s.must(err)
	t.Cleanup(func() { ledger.Close() })
	s.model, s.executor = recorded.NewModel(s.recording), recorded.NewExecutor(s.recording, ledger)
	s.server, err = devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: record, Serve: func(b *bridge.Bridge) error {
		s.must(b.Model("recorder", recorder{s}))
		s.must(b.Model(recorded.ModelName, actor{s}))
		return b.Tool(recorded.Target, hands{s}, bridge.Concurrency(callsAtOnce))
	}})
	s.must(err)
	t.Cleanup(s.server.Stop)
	s.client, err = client.Connect(ctx, client.Options{InProcess: s.server.InProcess()})
	s.must(err)
	t.Cleanup(s.client.Close)
	s.watch()
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// load reads the recordings and returns their install record.
func (s *stage) load(file string) []byte {
	s.t.Helper()
	var err error
	s.recording, err = recorded.Load(file)
	s.must(err)
	tools, err := recorded.LoadTools(recorded.ToolsFile(file))
	s.must(err)
	text, _, err := s.recording.Install(tools, nil)
	s.must(err)
	var record map[string]any
	s.must(json.Unmarshal(text, &record))
	for _, tool := range record["tools"].([]any) {
		spec := tool.(map[string]any)
		switch spec["tool_name"] {
		case "move_stock", "create_order", "send_label":
			spec["parallel_safe"] = false
		}
	}
	text, err = json.Marshal(record)
	s.must(err)
	return text
}

// watch starts to record the events and the ends of runs of all sessions.
func (s *stage) watch() {
	ctx, cancel := context.WithCancel(s.ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for e, err := range s.client.Events(ctx, "", 1) {
			if err != nil {
				return
			}
			s.change(func() { s.events[e.Session] = append(s.events[e.Session], e) })
		}
	})
	watching.Go(func() {
		for n, err := range s.client.Notices(ctx, "", 1) {
			if err != nil {
				return
			}
			if end, ok := n.Body().(session.RunFinished); ok {
				s.change(func() { s.ends[n.Session] = append(s.ends[n.Session], end) })
			}
		}
	})
	waken := context.AfterFunc(s.ctx, func() { s.change(func() {}) })
	s.t.Cleanup(func() {
		waken()
		cancel()
		watching.Wait()
	})
}

// change changes the record.
func (s *stage) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	s.changed.Broadcast()
}

// wait waits until a condition on the record holds; false if it never does.
func (s *stage) wait(sid, what string, holds func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !holds() {
		if s.ctx.Err() != nil {
			s.t.Errorf("%s: not in time: %s; %d events, %d effects held, runs ended %+v", sid, what, len(s.events[sid]), s.held[sid], s.ends[sid])
			return false
		}
		s.changed.Wait()
	}
	return true
}

// begin counts a start.
func (s *stage) begin(sid, effect string) {
	s.change(func() { s.starts[sid+"."+effect]++ })
}

// end returns when an effect of a session may end, or with an error when it is
// withdrawn.
func (s *stage) end(ctx context.Context, sid, effect string) error {
	free := false
	s.change(func() {
		if free = s.spare[sid] > 0; free {
			s.spare[sid]--
		} else {
			s.held[sid]++
		}
	})
	if free {
		return nil
	}
	select { // its session is about to be cancelled, or the test fails
	case <-ctx.Done():
	case <-s.ctx.Done():
		s.t.Errorf("%s of %s was started, and nobody stops it", effect, sid)
	}
	return ctx.Err()
}

// actor gives the recorded model's answers, when it may.
type actor struct{ *stage }

// Generate returns the recorded answer.
func (a actor) Generate(ctx context.Context, req executor.Request, delta func(string)) (executor.Answer, error) {
	a.begin(req.Session, req.Effect)
	answer, err := a.model.Generate(ctx, req, delta)
	if err != nil {
		return answer, err
	}
	return answer, a.end(ctx, req.Session, req.Effect)
}

// hands gives the recorded tools' results, when it may.
type hands struct{ *stage }

// Execute returns the recorded result.
func (h hands) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	h.begin(call.Session, call.Effect)
	result, err := h.executor.Execute(ctx, call)
	if err != nil {
		return result, err
	}
	return result, h.end(ctx, call.Session, call.Effect)
}

// recorder is a model that keeps its requests.
type recorder struct{ *stage }

// Generate answers anything.
func (w recorder) Generate(_ context.Context, req executor.Request, _ func(string)) (executor.Answer, error) {
	w.begin(req.Session, req.Effect)
	w.change(func() { w.shown[req.Session] = req.Messages })
	return executor.Answer{Text: "I see."}, nil
}

// stored is the content of REFOLD_FX, by effect: s1.r1t1c0.
type stored struct {
	asked  map[string]session.Class
	claims map[string]claimed
}

// claimed is the body of a claim.
type claimed struct {
	By        string `json:"by"`
	Withdrawn bool   `json:"withdrawn"`
}

// stored waits until the bridge has acked all effects, so that it starts nothing
// more, and reads the effects and claims.
func (s *stage) stored() stored {
	s.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s.server.InProcess()))
	s.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	s.must(err)
	names, err := subjects.New("")
	s.must(err)
	stream, err := js.Stream(s.ctx, names.EffectsStream())
	s.must(err)
	s.acked(stream, names, session.ClassLLM, recorded.ModelName)
	s.acked(stream, names, session.ClassLLM, "recorder")
	s.acked(stream, names, session.ClassTool, recorded.Target)
	info, err := stream.Info(s.ctx)
	s.must(err)
	reader, err := js.OrderedConsumer(s.ctx, names.EffectsStream(), jetstream.OrderedConsumerConfig{})
	s.must(err)
	all, err := reader.Messages()
	s.must(err)
	defer all.Stop()
	fx := stored{asked: map[string]session.Class{}, claims: map[string]claimed{}}
	for seq := uint64(0); seq < info.State.LastSeq; {
		msg, err := all.Next(jetstream.NextContext(s.ctx))
		s.must(err)
		meta, err := msg.Metadata()
		s.must(err)
		seq = meta.Sequence.Stream
		if name, err := names.ParseClaim(msg.Subject()); err == nil {
			var c claimed
			s.must(json.Unmarshal(msg.Data(), &c))
			fx.claims[name.Session+"."+name.Effect] = c
			continue
		}
		name, err := names.ParseEffect(msg.Subject())
		s.must(err)
		fx.asked[name.Session+"."+name.Effect] = name.Class
	}
	return fx
}

// acked waits until a target's newest effect and all before it are acked.
func (s *stage) acked(stream jetstream.Stream, names subjects.Names, class session.Class, target string) {
	s.t.Helper()
	filter, err := names.BridgeFilter(class, target)
	s.must(err)
	consumer, err := subjects.BridgeName(class, target)
	s.must(err)
	newest, err := stream.GetLastMsgForSubject(s.ctx, filter)
	s.must(err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		of, err := stream.Consumer(s.ctx, consumer)
		s.must(err)
		if of.CachedInfo().AckFloor.Stream >= newest.Sequence {
			return
		}
		<-tick.C
	}
}
