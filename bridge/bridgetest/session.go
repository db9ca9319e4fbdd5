package bridgetest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/natsio"
)

// Options configure a session. Tools and Turns are enough for most tests.
type Options struct {
	Tools []*function.Function // offered to the model, and served
	Turns []Turn               // the model's turns, in order, over all runs
	Model executor.Model       // in place of Turns

	// Record is the rest of the install record, as function.InstallRecord accepts
	// it: capabilities, policy, a config.
	Record []byte
	// Serve, if given, adds targets to each bridge: executors of tools in Record,
	// step hooks.
	Serve func(*bridge.Bridge) error

	Concurrency int           // of each target; 0: the bridge's default
	Patience    time.Duration // the limit of a run; 0: a minute
	Logger      *slog.Logger  // of all components; nil: no logs
}

// Names of the session and its provider; Options.Record may set another provider.
const (
	sessionID    = "test"
	providerName = "bridgetest"
	patience     = time.Minute
)

// Session is a session, with its server, session-actor and bridge.
type Session struct {
	t        T
	options  Options
	provider string
	server   *devserver.Server
	client   *client.Client

	mu      sync.Mutex
	ended   bool
	process *process // the living bridge
	dead    sync.WaitGroup
	shown   []executor.Message
	ledger  []*Start
}

// New starts a server, a session-actor and a bridge that serves o's tools and
// model. They end with the test. Invalid options fail the test.
func New(t T, o Options) *Session {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = patience
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Model == nil {
		o.Model = turns(o.Turns)
	}
	s := &Session{t: t, options: o}
	dir := t.TempDir()
	t.Cleanup(s.end)
	if err := s.start(dir); err != nil {
		t.Fatalf("start a session: %v", err)
	}
	return s
}

func (s *Session) start(dir string) error {
	record, err := s.record()
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(s.t.Context())
	s.server, err = devserver.Start(ctx, devserver.Options{
		Dir: dir, Install: record, Logger: s.options.Logger, Durability: natsio.DurabilityInterval,
	})
	if err != nil {
		return err
	}
	if s.client, err = client.Connect(ctx, client.Options{InProcess: s.server.InProcess(), Name: "bridgetest"}); err != nil {
		return err
	}
	s.process, err = s.startBridge(1)
	return err
}

// record returns the install record of the options, with the tools and a model.
func (s *Session) record() ([]byte, error) {
	record := map[string]json.RawMessage{}
	config := map[string]any{"provider": providerName, "model": "scripted"}
	if len(s.options.Record) > 0 {
		if err := json.Unmarshal(s.options.Record, &record); err != nil {
			return nil, err
		}
	}
	if record["config"] != nil {
		var given map[string]any
		if err := json.Unmarshal(record["config"], &given); err != nil {
			return nil, err
		}
		maps.Copy(config, given)
	}
	s.provider, _ = config["provider"].(string)
	var err error
	if record["config"], err = json.Marshal(config); err != nil {
		return nil, err
	}
	if record["tools"] == nil {
		record["tools"] = json.RawMessage("[]")
	}
	base, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	return function.InstallRecord(base, s.options.Tools...)
}

// end ends everything. It waits for the dead bridges, whose functions may still
// run.
func (s *Session) end() {
	s.mu.Lock()
	s.ended = true
	last := s.process
	s.mu.Unlock()
	if last != nil {
		if err := last.stop(); err != nil {
			s.t.Errorf("the bridge: %v", err)
		}
	}
	s.dead.Wait()
	if s.client != nil {
		s.client.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
}

// ID returns the session's id.
func (s *Session) ID() string { return sessionID }

// Client returns a client of the session's server, for operations that Session
// lacks. It is closed when the test ends.
func (s *Session) Client() *client.Client { return s.client }

// Run requests a run and waits for its end. It fails the test if the run does not
// end in time, if the session refuses it, or if the run needs more turns than
// there are. The result reports any other end.
func (s *Session) Run(text string) Run {
	s.t.Helper()
	return s.Begin(text)()
}

// Begin requests a run. The returned function waits for its end, as Run does.
func (s *Session) Begin(text string) (end func() Run) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.options.Patience)
	from, err := s.client.LastNotice(ctx)
	var seq uint64
	if err == nil {
		seq, err = s.client.Run(ctx, sessionID, text, client.RunOptions{Operator: true})
	}
	if err != nil {
		cancel()
		s.t.Fatalf("request a run: %v", err)
	}
	return func() Run {
		s.t.Helper()
		defer cancel()
		end, err := s.client.End(ctx, sessionID, seq, from+1, nil)
		if err != nil {
			s.t.Fatalf("the run of event %d did not end: %v; %s", seq, err, s.waits())
		}
		if end.Code == codeTurnsEnded {
			s.t.Fatalf("%s", end.Detail)
		}
		return s.run(ctx, end)
	}
}

// waits returns a text that says what the session waits for.
func (s *Session) waits() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 2*time.Second)
	defer cancel()
	view, err := s.client.View(ctx, sessionID)
	if err != nil {
		return "no view of it: " + err.Error()
	}
	text := "it waits for " + view.WaitsFor
	for _, e := range view.Open {
		text += ", " + e.Effect + " of " + string(e.Class) + "/" + e.Target + " is open"
	}
	return text
}

// Replay folds the session's log again, from its first event, and compares the
// effects and snapshots with the stored ones. It fails the test if they differ.
func (s *Session) Replay() *client.Replayed {
	s.t.Helper()
	r, err := s.client.Replay(s.t.Context(), sessionID, 0, nil)
	if err != nil {
		s.t.Fatalf("replay: %v", err)
	}
	for _, difference := range r.Differences {
		s.t.Errorf("replay: %s", difference)
	}
	return r
}

// Transcript returns the conversation as the model was last shown it, and its
// answer, if that made no calls.
func (s *Session) Transcript() []executor.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shown)
}

var errEnded = errors.New("the test has ended")
