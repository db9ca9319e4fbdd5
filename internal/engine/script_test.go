package engine

// A lane that a test plays: it says what is delivered, and sees what is acked.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/delivery"
)

// script is a lane.
type script struct {
	mu    sync.Mutex
	acked map[uint64]bool
	left  uint64 // what a dead owner had been given

	unowned atomic.Bool
	drained chan struct{}
	lingers chan struct{} // if given, Run returns only when this is closed
}

func (*script) Number() int { return 0 }

// Owned reports that this host has the lane; a test may say that nobody has.
func (s *script) Owned() bool { return !s.unowned.Load() }

func (s *script) Left() uint64 { return s.left }

func (s *script) Run(ctx context.Context, _ delivery.LaneOwner) error {
	select {
	case <-ctx.Done():
	case <-s.drained:
	}
	if s.lingers != nil {
		<-s.lingers
	}
	return nil
}

func (s *script) Drain(context.Context) error {
	close(s.drained)
	return nil
}

func (s *script) has(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked[seq]
}

// stage is one lane of one host in a world in memory. All of it runs in a
// bubble of testing/synctest: settle waits until nothing moves, and waiting
// takes no time.
type stage struct {
	t      *testing.T
	mem    *memory
	host   *Host
	lane   *script
	actor  *driver
	cancel context.CancelFunc
	ended  chan error
}

// onStage runs a test in a bubble.
func onStage(t *testing.T, opts Options, play func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, newMemory(t), opts)
		play(t, s)
		s.end()
	})
}

// onStageOf runs one of several such tests.
func onStageOf(t *testing.T, name string, opts Options, play func(t *testing.T, s *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		onStage(t, opts, play)
	})
}

func newStage(t *testing.T, mem *memory, opts Options) *stage {
	opts.Lanes = 1
	s := &stage{t: t, mem: mem, host: newHost(mem, slog.New(slog.DiscardHandler), opts)}
	s.lane = &script{acked: map[uint64]bool{}, drained: make(chan struct{})}
	s.actor = newDriver(s.host, s.lane)
	return s
}

// start runs the lane. What was delivered before is one batch.
func (s *stage) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- s.actor.run(ctx) }()
	s.settle()
}

// settle waits until nothing moves any more.
func (s *stage) settle() { synctest.Wait() }

// pass lets time pass. What is due is settled by the end.
func (s *stage) pass(d time.Duration) {
	<-time.After(d)
	s.settle()
	if s.cancel != nil {
		s.fire()
		s.settle()
	}
}

// stop ends the lane if it runs, as a kill does, and checks what it left.
func (s *stage) stop() error {
	s.t.Helper()
	var err error
	if s.cancel != nil {
		s.cancel()
		err = <-s.ended
		s.cancel = nil
	}
	s.mem.checkSnapshots(s.t)
	return err
}

// end ends the lane, which must not fail.
func (s *stage) end() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Errorf("run: %v", err)
	}
}

// begin runs the lane in a first epoch, in which these events are one batch.
func (s *stage) begin(events ...session.Event) {
	s.epoch()
	s.deliver(events...)
	s.start()
}

// beginAcked is begin, and wants the events acknowledged.
func (s *stage) beginAcked(events ...session.Event) {
	s.t.Helper()
	s.begin(events...)
	s.wantAcked(events...)
}

// deliverAcked delivers events, and wants them acknowledged.
func (s *stage) deliverAcked(events ...session.Event) {
	s.t.Helper()
	s.deliver(events...)
	s.wantAcked(events...)
}

func (s *stage) epoch() { s.actor.Epoch(1) }

// deliver hands events over, in order.
func (s *stage) deliver(events ...session.Event) {
	for _, e := range events {
		s.actor.arrivals.put(arrival{is: &Delivered{Event: e, Ack: func() {
			s.lane.mu.Lock()
			defer s.lane.mu.Unlock()
			s.lane.acked[e.Seq] = true
		}}})
	}
	if s.cancel != nil {
		s.settle()
	}
}

// say appends an event to the log.
func (s *stage) say(door session.Door, sid, typ string, data any) session.Event {
	s.t.Helper()
	var payload bytes.Buffer
	encoder := json.NewEncoder(&payload)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"type": typ, "data": data}); err != nil {
		s.t.Fatal(err)
	}
	return s.mem.append(door, sid, payload.Bytes())
}

// run asks for a run.
func (s *stage) run(sid string) session.Event {
	return s.say(session.DoorIn, sid, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "hi"}, "config": map[string]any{"provider": "openai", "model": "m"},
	})
}

// answer ends a turn.
func (s *stage) answer(sid, effect, text string) session.Event {
	return s.say(session.DoorLLM, sid, session.TypeGenerationSettled, map[string]any{
		"effect": effect, "status": "ok", "text": map[string]any{"text": text},
	})
}

// wrong appends n events that the session refuses.
func (s *stage) wrong(sid string, n int) (events []session.Event) {
	for i := range n {
		events = append(events, s.mem.append(session.DoorIn, sid, fmt.Appendf(nil, `{"type":"Nothing%d"}`, i)))
	}
	return events
}

func (s *stage) wantAcked(events ...session.Event) {
	s.t.Helper()
	for _, e := range events {
		if !s.lane.has(e.Seq) {
			s.t.Errorf("event %d of %s is not acknowledged", e.Seq, e.Session)
		}
	}
}

func (s *stage) wantUnacked(events ...session.Event) {
	s.t.Helper()
	for _, e := range events {
		if s.lane.has(e.Seq) {
			s.t.Errorf("event %d of %s is acknowledged", e.Seq, e.Session)
		}
	}
}

// wantStored checks that all outputs of a session up to an event are stored.
func (s *stage) wantStored(e session.Event) {
	s.t.Helper()
	if missing := s.mem.missing(e.Session, e.Seq); len(missing) > 0 {
		s.t.Errorf("%s up to %d: not stored: %v", e.Session, e.Seq, missing)
	}
}

// wantState wants a session in memory folded up to an event.
func (s *stage) wantState(e session.Event) {
	s.t.Helper()
	if got, want := s.actor.sessions[e.Session].state.Hash(), s.mem.judge(e.Session, e.Seq).state.Hash(); got != want {
		s.t.Errorf("state of %s at %d: got %s, want %s", e.Session, e.Seq, got, want)
	}
}

// putStop has a session quarantined before the lane runs.
func (s *stage) putStop(sid string, stop Stop) {
	s.t.Helper()
	body, err := stop.Bytes()
	if err != nil {
		s.t.Fatal(err)
	}
	s.mem.stops[sid] = body
}

// wantNoStop wants a session not quarantined.
func (s *stage) wantNoStop(sid string) {
	s.t.Helper()
	if stop := s.stopOf(sid); stop != nil {
		s.t.Errorf("%s is quarantined: %+v", sid, stop)
	}
}

// stopOf returns the quarantine of a session, nil if there is none.
func (s *stage) stopOf(sid string) *Stop {
	s.t.Helper()
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	body, found := s.mem.stops[sid]
	if !found {
		return nil
	}
	var stop Stop
	if err := json.Unmarshal(body, &stop); err != nil {
		s.t.Fatal(err)
	}
	return &stop
}
