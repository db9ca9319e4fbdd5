package bridgecheck

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// A mistake is what the foreign bridge does wrong.
type mistake string

// foreign is a bridge that knows NATS and docs/bridges.md alone. It makes one
// mistake, or none.
type foreign struct {
	t    *testing.T
	nc   *nats.Conn
	js   jetstream.JetStream
	does mistake
	self string

	mu      sync.Mutex
	beats   map[string]time.Time // when an instance was heard last
	running map[string]*callRun  // by session and effect
	settled map[string]bool
	stopped chan struct{} // closed by stop
	working sync.WaitGroup
}

// callRun is a call that runs.
type callRun struct {
	msg    jetstream.Msg
	cancel context.CancelFunc
}

const foreignTarget = "echo"

// startForeign starts a bridge, which ends with the test.
func startForeign(t *testing.T, url string, does mistake) *foreign {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	f := &foreign{
		t: t, nc: nc, js: js, does: does, self: "foreign-1",
		beats: map[string]time.Time{}, running: map[string]*callRun{}, settled: map[string]bool{}, stopped: make(chan struct{}),
	}
	config := jetstream.ConsumerConfig{
		Durable: "tool-" + foreignTarget, FilterSubject: "refold.fx.tool." + foreignTarget + ".*.*", AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: time.Second, MaxDeliver: -1, MaxAckPending: 10000,
	}
	if does == "max_deliver" {
		config.MaxDeliver = 5
	}
	consumer, err := js.CreateOrUpdateConsumer(t.Context(), "REFOLD_FX", config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.working.Wait()
		nc.Close()
	})
	f.listen()
	f.working.Go(func() { f.beat(ctx) })
	if does != "no pull" {
		f.working.Go(func() { f.pull(ctx, consumer) })
	}
	return f
}

func (f *foreign) listen() {
	hear := func(m *nats.Msg) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.beats[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]] = time.Now()
	}
	cancelled := func(m *nats.Msg) {
		var said struct{ Effects []string }
		_ = json.Unmarshal(m.Data, &said)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, effect := range said.Effects {
			if r := f.running[m.Subject[len("refold.cancel."):]+"."+effect]; r != nil && f.does != "cancel ignored" {
				r.cancel()
			}
		}
	}
	for subject, fn := range map[string]nats.MsgHandler{"refold.alive.bridge.*": hear, "refold.cancel.*": cancelled} {
		if _, err := f.nc.Subscribe(subject, fn); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *foreign) beat(ctx context.Context) {
	body, every := `{"targets":["tool/`+foreignTarget+`"],"rules":1}`, 500*time.Millisecond
	switch f.does {
	case "no heartbeat":
		return
	case "slow heartbeat":
		every = 2 * time.Second
	case "no rules":
		body = `{"targets":["tool/` + foreignTarget + `"]}`
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_ = f.nc.Publish("refold.alive.bridge."+f.self, []byte(body))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (f *foreign) pull(ctx context.Context, consumer jetstream.Consumer) {
	for ctx.Err() == nil {
		if f.ended() {
			return
		}
		batch, err := consumer.Fetch(4, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			continue
		}
		for m := range batch.Messages() {
			f.working.Go(func() { f.take(ctx, m) })
		}
	}
}

// ended reports that the bridge takes nothing any more.
func (f *foreign) ended() bool {
	select {
	case <-f.stopped:
		return true
	default:
		return false
	}
}

// take carries one delivery to its end.
func (f *foreign) take(ctx context.Context, m jetstream.Msg) {
	var call session.ToolCall
	subject := strings.Split(m.Subject(), ".")
	key := subject[4] + "." + subject[5]
	err := codec.Unmarshal(m.Data(), &call)
	if f.ended() {
		return
	}
	var fields codec.Pairs
	whole := codec.IsMap(m.Data()) && codec.Unmarshal(m.Data(), &fields) == nil
	switch {
	case err != nil && f.does == "unreadable settled":
		f.settle(&session.ToolCall{Session: subject[4], Effect: subject[5]}, "failed", "executor_error", "")
		_ = m.Ack()
		return
	case err != nil && f.does == "dies of it" && !whole:
		close(f.stopped)
		return
	case err != nil && whole && f.does == "unknown field passed over":
		_ = codec.Unmarshal(mustMarshal(fields[:len(fields)-1]), &call)
	case (err != nil && whole || call.V > 1) && f.does == "unknown acknowledged":
		_ = m.Ack()
		return
	case (err != nil && whole || call.V > 1) && f.does == "given back at once":
		_ = m.Nak()
		return
	case err != nil && whole || call.V > 1 && f.does != "version passed over":
		_ = m.NakWithDelay(10 * time.Second)
		return
	case err != nil || call.Effect != subject[5] && f.does != "subject passed over":
		_ = m.Ack()
		return
	}
	f.mu.Lock()
	if r := f.running[key]; r != nil && f.does != "run twice at once" {
		r.msg = m
		f.mu.Unlock()
		_ = m.InProgress()
		return
	}
	if f.settled[key] && f.does != "run again" {
		f.mu.Unlock()
		_ = m.Ack()
		return
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &callRun{m, cancel}
	f.running[key] = r
	f.mu.Unlock()
	if f.carry(running, r, &call, key) {
		f.mu.Lock()
		f.settled[key] = true
		m = r.msg
		f.mu.Unlock()
		_ = m.Ack()
	}
	f.mu.Lock()
	delete(f.running, key)
	f.mu.Unlock()
}

// carry claims, runs and settles. It reports whether the delivery is to be
// acknowledged.
func (f *foreign) carry(ctx context.Context, r *callRun, call *session.ToolCall, key string) bool {
	start := time.UnixMilli(call.StartBy)
	late := time.Now().After(start) && f.does != "late run"
	if !call.RetrySafe && f.does != "no claim" {
		hash := codec.Sum([]byte(cmp.Or(map[mistake]string{"other hash": "x"}[f.does], string(r.msg.Data()))))
		body := `{"by":"` + cmp.Or(map[mistake]string{"other name": "somebody"}[f.does], f.self) + `","hash":"` + hash.String() + `"}`
		if late && f.does != "late not withdrawn" {
			body = `{"withdrawn":true}`
		}
		switch stands := f.claim(call, body); {
		case stands == body && !late || stands == body && f.does == "late not withdrawn":
		case late && stands == body:
		case strings.Contains(stands, "withdrawn") && f.does == "withdrawn run":
		case strings.Contains(stands, "withdrawn") && f.does == "withdrawn settled":
			return f.settle(call, "cancelled", "cancelled", "")
		case strings.Contains(stands, "withdrawn"):
			return true
		case f.does == "lost run":
		case f.lives(stands) && f.does == "lost acknowledged":
			return true
		case f.lives(stands):
			_ = r.msg.NakWithDelay(2 * time.Second)
			return false
		case f.does == "gone run":
		default:
			return f.settle(call, "outcome_unknown", "outcome_unknown", "")
		}
	}
	if late {
		return f.settle(call, "failed", "deadline_exceeded", "")
	}
	if f.does == "acknowledged first" {
		_ = r.msg.Ack()
	}
	return f.run(ctx, r, call)
}

// claim returns the claim that stands.
func (f *foreign) claim(call *session.ToolCall, body string) string {
	subject := "refold.fx.claim.tool." + foreignTarget + "." + call.Session + "." + call.Effect
	m := nats.NewMsg(subject)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", "0")
	m.Data = []byte(body)
	if _, err := f.js.PublishMsg(context.Background(), m); err == nil {
		return body
	}
	stream, err := f.js.Stream(context.Background(), "REFOLD_FX")
	if err != nil {
		return ""
	}
	stands, err := stream.GetLastMsgForSubject(context.Background(), subject)
	if err != nil {
		return ""
	}
	return string(stands.Data)
}

func (f *foreign) lives(claim string) bool {
	var c struct{ By string }
	_ = json.Unmarshal([]byte(claim), &c)
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.beats[c.By]) < 5*time.Second
}

// run waits for as long as the arguments say, and settles.
func (f *foreign) run(ctx context.Context, r *callRun, call *session.ToolCall) bool {
	var in struct{ Ms, Bytes int }
	_ = json.Unmarshal([]byte(call.Arguments), &in)
	if f.does != "run_ms ignored" {
		limited, cancel := context.WithTimeout(ctx, time.Duration(call.RunMS)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	end := time.NewTimer(time.Duration(in.Ms) * time.Millisecond)
	defer end.Stop()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return f.settle(call, "succeeded", "", strings.Repeat("x", in.Bytes)+fmt.Sprint(time.Now().UnixNano()))
		case <-ctx.Done():
			status := cmp.Or(map[mistake]string{"cancel fails": "failed"}[f.does], "outcome_unknown")
			return f.settle(call, status, "outcome_unknown", "")
		case <-f.stopped:
			if f.does == "stop drops" {
				return false
			}
			return f.settle(call, "outcome_unknown", "outcome_unknown", "")
		case <-tick.C:
			f.mu.Lock()
			if f.does != "no lease" {
				_ = r.msg.InProgress()
			}
			f.mu.Unlock()
		}
	}
}

func (f *foreign) settle(call *session.ToolCall, status, code, text string) bool {
	data := map[string]any{"effect": call.Effect, "status": status, "plan_hash": call.PlanHash.String()}
	if code != "" {
		data["error"] = map[string]any{"code": code}
	}
	switch {
	case text != "" && len(text) > session.TextBytesMax && f.does != "large inline":
		ref := codec.RefOf([]byte(text))
		data["output"] = map[string]any{"blob": ref.String(), "size": len(text), "media_type": "text/plain"}
		if f.does != "blob missing" {
			_, chunk := f.js.Publish(context.Background(), "$O.REFOLD_BLOBS.C."+call.Effect, []byte(text))
			description := fmt.Sprintf(`{"name":%q,"bucket":"REFOLD_BLOBS","nuid":%q,"size":%d,"chunks":1,"digest":"SHA-256=%s"}`,
				ref, call.Effect, len(text), base64.URLEncoding.EncodeToString(ref.Hash[:]))
			_, described := f.js.Publish(context.Background(), "$O.REFOLD_BLOBS.M."+base64.URLEncoding.EncodeToString([]byte(ref.String())), []byte(description))
			if err := errors.Join(chunk, described); err != nil {
				f.t.Error(err)
			}
		}
	case text != "":
		data["output"] = map[string]any{"text": text}
	}
	switch f.does {
	case "other plan":
		data["plan_hash"] = strings.Repeat("0", 64)
	case "field too many":
		data["note"] = "hello"
	case "bad status":
		data["status"] = "done"
	case "never settled":
		return true
	}
	event, err := json.Marshal(map[string]any{"type": "ToolCallSettled", "data": data})
	if err != nil {
		f.t.Error(err)
	}
	subject := "refold.tool." + call.Session
	if f.does == "core publish" {
		return f.nc.Publish(subject, event) == nil
	}
	_, err = f.js.Publish(context.Background(), subject, event)
	return err == nil && f.does != "never acknowledged"
}

// stop is SIGTERM.
func (f *foreign) stop(ctx context.Context) error {
	if f.does == "stop ignored" {
		return fmt.Errorf("it did not end within %v", time.Second)
	}
	close(f.stopped)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		f.mu.Lock()
		n := len(f.running)
		f.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func mustMarshal(v any) []byte {
	b, err := codec.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
