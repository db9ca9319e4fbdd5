package worker

// A Transport in memory that keeps the promises of wire.go, so that tests run in
// virtual time; contract_test.go checks it and the real one.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// world is the part of NATS that bridges see.
type world struct {
	mu          sync.Mutex
	claims      map[subjects.ClaimName]Claim
	events      []session.Event // sequence n at n-1
	ids         map[string]int  // Nats-Msg-Id to index of events
	blobs       map[codec.Ref][]byte
	heard       map[string]time.Time
	beating     map[string]bool
	views       map[string]session.View
	live        []string
	requests    []int // for events: how many in each
	incarnation uint64

	// Faults, called without the lock; nil: none. claimLost runs after a claim
	// was stored: its error is what the caller gets instead of the answer.
	claimLost   func(name subjects.ClaimName) error
	publishLost func(payload []byte) error
	eventsLost  func() error
	blobsLost   func() error // runs before a blob is stored
	payloadMax  int
}

func newWorld() *world {
	return &world{
		claims: make(map[subjects.ClaimName]Claim), ids: make(map[string]int), blobs: make(map[codec.Ref][]byte),
		heard: make(map[string]time.Time), beating: make(map[string]bool), views: make(map[string]session.View),
		payloadMax: 1 << 20,
	}
}

// inWorld runs a test in virtual time, with a world and a queue of its own.
func inWorld(t *testing.T, play func(t *testing.T, w *world, q *queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(t, newWorld(), newQueue()) })
}

func (w *world) claim(ctx context.Context, name subjects.ClaimName, c Claim) (Claim, bool, error) {
	if err := ctx.Err(); err != nil {
		return Claim{}, false, errors.Join(journal.ErrUnknownOutcome, err)
	}
	w.mu.Lock()
	stands, ok := w.claims[name]
	if !ok {
		w.claims[name], stands = c, c
	}
	lost := w.claimLost
	w.mu.Unlock()
	if lost != nil {
		if err := lost(name); err != nil {
			return Claim{}, false, err
		}
	}
	return stands, stands == c, nil
}

func (w *world) BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) func() (Claim, bool, error) {
	var stands Claim
	var won bool
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		stands, won, err = w.claim(ctx, name, c)
	}()
	return func() (Claim, bool, error) {
		<-done
		return stands, won, err
	}
}

func (w *world) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, errors.Join(journal.ErrUnknownOutcome, err)
	}
	if limit := min(w.payloadMax, session.EventBytesMax); len(payload) > limit {
		return 0, &natsio.MaxPayloadError{Bytes: len(payload), Limit: limit}
	}
	if w.publishLost != nil {
		if err := w.publishLost(payload); err != nil {
			return 0, err
		}
	}
	payload = bytes.Clone(payload) // it is the caller's
	w.mu.Lock()
	defer w.mu.Unlock()
	key := subjects.EventID(sid, id)
	if at, ok := w.ids[key]; ok && id != "" {
		if e := w.events[at]; e.Session == sid && e.Door == door && string(e.Payload) == string(payload) {
			return e.Seq, nil
		}
		return 0, journal.ErrIDTaken
	}
	w.ids[key] = len(w.events)
	return w.add(door, sid, payload), nil
}

// add appends an event. The caller holds the lock.
func (w *world) add(door session.Door, sid string, payload []byte) uint64 {
	seq := uint64(len(w.events) + 1)
	w.events = append(w.events, session.Event{Session: sid, Door: door, Seq: seq, Time: time.Now().UnixMilli(), Payload: payload})
	return seq
}

// say appends an event of another publisher and returns its sequence.
func (w *world) say(t *testing.T, door session.Door, sid, typ string, data any) uint64 {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.add(door, sid, event(t, typ, data))
}

func (w *world) LastModelEvent(_ context.Context, sid string) (session.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.events) - 1; i >= 0; i-- {
		if e := w.events[i]; e.Session == sid && e.Door == session.DoorLLM {
			return e, nil
		}
	}
	return session.Event{}, natsio.ErrNotFound
}

func (w *world) View(_ context.Context, sid string) (session.View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	view, ok := w.views[sid]
	if !ok {
		return session.View{}, natsio.ErrNoView
	}
	return view, nil
}

func (w *world) Events(_ context.Context, sid string, seqs []uint64) ([]session.Event, error) {
	if w.eventsLost != nil {
		if err := w.eventsLost(); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, len(seqs))
	events := make([]session.Event, len(seqs))
	for i, seq := range seqs {
		if seq < 1 || seq > uint64(len(w.events)) || w.events[seq-1].Session != sid {
			return nil, natsio.ErrNotFound
		}
		events[i] = w.events[seq-1]
	}
	return events, nil
}

func (w *world) PutBlob(_ context.Context, content []byte) (codec.Ref, error) {
	if w.blobsLost != nil {
		if err := w.blobsLost(); err != nil {
			return codec.Ref{}, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := codec.RefOf(content)
	w.blobs[ref] = append([]byte(nil), content...)
	return ref, nil
}

func (w *world) Blob(_ context.Context, ref codec.Ref) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	content, ok := w.blobs[ref]
	if !ok {
		return nil, natsio.ErrNotFound
	}
	switch {
	case len(content) > prompt.BlobBytesMax:
		return nil, journal.ErrTooLarge
	case codec.RefOf(content) != ref:
		return nil, journal.ErrOtherBytes
	}
	return content, nil
}

func (w *world) Live(_ string, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = append(w.live, string(payload))
	return nil
}

func (w *world) KeepBlob(_ context.Context, ref codec.Ref) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.blobs[ref]
	return ok, nil
}

func (w *world) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}

func (w *world) Incarnation() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.incarnation
}

// Heard answers as if a live instance beat every aliveEvery.
func (w *world) Heard(instance string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beating[instance] {
		w.heard[instance] = time.Now().Truncate(aliveEvery)
	}
	at, ok := w.heard[instance]
	return at, ok
}

// beat begins and ends the heartbeats of an instance.
func (w *world) beat(instance string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beating[instance] && !on {
		w.heard[instance] = time.Now().Truncate(aliveEvery)
	}
	w.beating[instance] = on
}

func (w *world) setClaim(name subjects.ClaimName, c Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[name] = c
}

// claimOf returns a claim without its hash.
func (w *world) claimOf(name subjects.ClaimName) (Claim, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.claims[name]
	c.Hash = ""
	return c, ok
}

func (w *world) setView(sid string, v session.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[sid] = v
}

// settlements returns the settlements through the doors of bridges, as text:
// "r1t1c0 succeeded", "r1t1c0 failed deadline_exceeded", "r1t1 calls 2".
func (w *world) settlements(t *testing.T) []string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		if e.Door != session.DoorLLM && e.Door != session.DoorTool && e.Door != session.DoorStep && e.Door != session.DoorSpace {
			continue
		}
		all = append(all, settlementText(t, e))
	}
	return all
}

// wantSettled wants these settlements, in this order.
func (w *world) wantSettled(t *testing.T, want ...string) {
	t.Helper()
	if got := w.settlements(t); !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
}

func settlementText(t *testing.T, e session.Event) string {
	t.Helper()
	var env struct {
		Type string
		Data struct {
			Effect, Status string
			Calls          []any
			Error          session.Fault
		}
	}
	text, err := codec.ToJSON(e.Payload)
	if err == nil {
		err = json.Unmarshal(text, &env)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := env.Data
	switch env.Type {
	case session.TypeToolCallsObserved:
		said.Status = "calls " + strconv.Itoa(len(said.Calls))
	case session.TypeWorkspaceSnapshotReady:
		said.Status = "ready"
	case session.TypeWorkspaceSyncUnchanged:
		said.Status = "unchanged"
	case session.TypeWorkspaceSyncFailed:
		said.Status = "failed"
	}
	return strings.TrimSpace(said.Effect + " " + said.Status + " " + said.Error.Code)
}

func envelopeOf(e session.Event) (session.Envelope, error) { return session.ReadEnvelope(e.Payload) }

// last returns the last event's envelope.
func (w *world) last(t *testing.T) session.Envelope {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	env, err := envelopeOf(w.events[len(w.events)-1])
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func body[T any](t *testing.T, env session.Envelope) T {
	t.Helper()
	var b T
	if err := codec.Unmarshal(env.Data, &b); err != nil {
		t.Fatalf("%s: %v", env.Type, err)
	}
	return b
}

func event(t *testing.T, typ string, data any) []byte {
	t.Helper()
	raw, err := codec.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := codec.Marshal(session.Envelope{V: 1, Type: typ, Data: raw})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// raw returns JSON as canonical bytes.
func raw(t *testing.T, text string) codec.Raw {
	t.Helper()
	r, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// queue is the consumer of one target. It may serve several bridges.
type queue struct {
	waiting chan *message
	again   bool // its messages were delivered before

	mu       sync.Mutex
	returned []time.Duration // delays of what was given back
	acked    int
}

func newQueue() *queue { return &queue{waiting: make(chan *message, 64)} }

// message is one message in a queue.
type message struct {
	traceparent string
	delivered   atomic.Int32 // times
	queue       *queue
	subject     string
	payload     []byte
}

func (m *message) Subject() string { return m.subject }
func (m *message) Payload() []byte { return m.payload }

func (m *message) Name() (subjects.EffectName, error) {
	names, err := subjects.New("")
	if err != nil {
		return subjects.EffectName{}, err
	}
	return names.ParseEffect(m.subject)
}

func (m *message) Ack() {
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	m.queue.acked++
}

func (m *message) Traceparent() string { return m.traceparent }

func (m *message) GiveBack(delay time.Duration) {
	m.queue.mu.Lock()
	m.queue.returned = append(m.queue.returned, delay)
	m.queue.mu.Unlock()
	time.AfterFunc(delay, func() { m.queue.waiting <- m })
}

func (q *queue) counts() (acked, returned int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked, len(q.returned)
}

// offered is one delivery of a message.
type offered struct {
	*message
	to    *consumer
	again bool
	free  func()
}

func (o *offered) Again() bool { return o.again }
func (o *offered) Done()       { o.free() }

func (o *offered) Ack() {
	if o.to.answers(o) {
		o.message.Ack()
	}
}

func (o *offered) GiveBack(delay time.Duration) {
	if o.to.answers(o) {
		o.message.GiveBack(delay)
	}
}

// testLease is how long after a bridge's death its effects are delivered again.
const testLease = 10 * time.Second

// answers reports whether a delivery may be answered: its bridge lives.
func (c *consumer) answers(o *offered) bool {
	c.holds.Lock()
	defer c.holds.Unlock()
	delete(c.held, o)
	return !c.dead
}

// die delivers again what the consumer holds.
func (c *consumer) die() {
	c.holds.Lock()
	defer c.holds.Unlock()
	c.dead = true
	for o := range c.held {
		time.AfterFunc(testLease, func() { c.waiting <- o.message })
	}
}

// consumer is one bridge's end of a queue.
type consumer struct {
	*queue
	holds    sync.Mutex
	held     map[*offered]bool
	dead     bool
	draining chan struct{}
	done     chan struct{}
}

func (q *queue) consumer() *consumer {
	return &consumer{queue: q, held: make(map[*offered]bool), draining: make(chan struct{}), done: make(chan struct{})}
}

func (c *consumer) Run(ctx context.Context, slots int, carry func(Delivery)) error {
	defer close(c.done)
	room := make(chan struct{}, slots)
	var carrying sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.draining:
			carrying.Wait()
			return nil
		case room <- struct{}{}:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.draining:
			carrying.Wait()
			return nil
		case m := <-c.waiting:
			carrying.Add(1)
			one := &offered{message: m, to: c, again: m.delivered.Add(1) > 1, free: sync.OnceFunc(func() {
				<-room
				carrying.Done()
			})}
			c.holds.Lock()
			c.held[one] = true
			c.holds.Unlock()
			go func() {
				carry(one)
				one.Done()
			}()
		}
	}
}

func (c *consumer) Drain(ctx context.Context) error {
	close(c.draining)
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bridgeInWorld is a bridge that runs in a world.
type bridgeInWorld struct {
	*Worker
	world  *world
	stop   func()        // ends it as SIGTERM does, and waits
	die    func()        // ends it as SIGKILL does
	served chan struct{} // closed when it has ended
}

// mortal is a bridge's end of a world.
type mortal struct {
	*world
	dead atomic.Bool
}

func (m *mortal) BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) func() (Claim, bool, error) {
	if m.dead.Load() {
		return func() (Claim, bool, error) { return Claim{}, false, natsio.ErrClosed }
	}
	return m.world.BeginClaim(ctx, name, c)
}

func (m *mortal) Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (uint64, error) {
	if m.dead.Load() {
		return 0, natsio.ErrClosed
	}
	return m.world.Publish(ctx, door, sid, id, payload)
}

func startNames(t *testing.T) subjects.Names {
	t.Helper()
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// startBridge starts a bridge of this name for one target.
func startBridge(t *testing.T, w *world, name string, q *queue, s Target) *bridgeInWorld {
	t.Helper()
	b := &bridgeInWorld{world: w, served: make(chan struct{})}
	life := &mortal{world: w}
	b.Worker = New(life, name, "test/"+name, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	stages, end := NewLifetimes(ctx, GraceDefault)
	end = sync.OnceFunc(end)
	c := q.consumer()
	w.beat(name, true)
	var running sync.WaitGroup
	beside, endBeside := context.WithCancel(context.Background())
	running.Go(func() { b.Watch(beside) })
	if s.Concurrency == 0 {
		s.Concurrency = 4
	}
	go func() {
		defer close(b.served)
		if err := b.Serve(stages, s, c); err != nil {
			t.Error(err)
		}
		w.beat(name, false)
		end()
		endBeside()
		running.Wait()
	}()
	b.die = func() {
		life.dead.Store(true)
		c.die()
		w.beat(name, false)
		cancel()
		end()
	}
	b.stop = func() {
		cancel()
		<-b.served
	}
	return b
}

// ask puts an effect into a queue.
func (q *queue) ask(t *testing.T, class session.Class, target, sid, name string, payload any) {
	t.Helper()
	subject, err := startNames(t).Effect(subjects.EffectName{Class: class, Target: target, Session: sid, Effect: name})
	if err != nil {
		t.Fatal(err)
	}
	data, err := codec.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	m := &message{queue: q, subject: subject, payload: data}
	if q.again {
		m.delivered.Add(1)
	}
	q.waiting <- m
}

const (
	testStartBy = 5 * time.Minute // from the ask
	testRun     = time.Minute
)

func toolCall(name string, safe bool) session.ToolCall {
	now := time.Now()
	return session.ToolCall{
		Arguments: `{"x":1}`, At: now.UnixMilli(), Batch: "r1t1", Class: session.ClassTool, Effect: name,
		IdempotencyKey: "s1." + name, PlanHash: codec.Sum([]byte("plan")), RetrySafe: safe, RunMS: testRun.Milliseconds(),
		Session: "s1", StartBy: now.Add(testStartBy).UnixMilli(), ToolID: "host.fs.stat", ToolName: "stat", V: 1,
	}
}

func generation(name string, items ...session.Item) session.Generation {
	now := time.Now()
	return session.Generation{
		At: now.UnixMilli(), Class: session.ClassLLM, Effect: name, Items: session.ListItems(items...), Model: "m", Provider: "p",
		RunMS: testRun.Milliseconds(), Session: "s1", StartBy: now.Add(testStartBy).UnixMilli(), V: 1,
	}
}

// ledger keeps lines: of its executor and its model, which effects they started.
type ledger struct {
	mu    sync.Mutex
	lines []string
}

func (l *ledger) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *ledger) executor() executorFunc {
	return func(_ context.Context, c executor.Call) (executor.Result, error) {
		l.add(c.Effect)
		return executor.Result{}, nil
	}
}

func (l *ledger) model() modelFunc {
	return func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
		l.add(r.Effect)
		return executor.Answer{Text: "hello"}, nil
	}
}

// executorFunc and modelFunc make functions executors.
type executorFunc func(context.Context, executor.Call) (executor.Result, error)

func (f executorFunc) Execute(ctx context.Context, c executor.Call) (executor.Result, error) {
	return f(ctx, c)
}

type modelFunc func(context.Context, executor.Request, func(string)) (executor.Answer, error)

func (f modelFunc) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	return f(ctx, r, delta)
}

// pass lets virtual time pass, and then waits until all goroutines are idle.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
