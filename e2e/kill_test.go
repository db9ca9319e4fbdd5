package e2e_test

// Kills. A recorded conversation with groups of parallel calls, none of them
// retry-safe, runs on real processes; at a point of the run one of them is
// killed (SIGKILL) and started again. No call runs twice: the ledger, which the
// executor syncs before it returns, has each settled call once, and a call with
// an unknown outcome at most once. The log folds again to the same bytes.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

const (
	killRecording = "../testdata/recordings/warehouse.jsonl"
	killTools     = "../testdata/recordings/warehouse-tools.json"
	killSession   = "warehouse-audit" // one run, 30 calls in groups of 1, 4, 8, 2, 10, 5
	killCalls     = 30
	// endWithin is how long a run may take whose bridge died: its effects come
	// again after their ack_wait, and five seconds of silence tell that the
	// holder of a claim is gone.
	endWithin = 90 * time.Second
)

// point is a moment of the run: the nth message on a subject.
type point struct {
	what    string
	subject string
	n       int
}

func killPoints() []point {
	return []point{
		{"first turn asked", "refold.fx.llm.>", 1},
		{"second claim", "refold.fx.claim.>", 2},
		{"sixth claim, inside a group", "refold.fx.claim.>", 6},
		{"group of eight asked", "refold.fx.tool.>", 9},
		{"seventh settlement", "refold.tool.*", 7},
		{"fourth turn settled", "refold.llm.*", 4},
		{"twentieth settlement", "refold.tool.*", 20},
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"bridge", "session-actor", "nats"} {
		for _, p := range killPoints() {
			t.Run(victim+"/"+p.what, func(t *testing.T) {
				t.Parallel()
				killAt(t, victim, p)
			})
		}
	}
}

// killAt runs the conversation, kills the victim at the point, and checks what
// is left.
func killAt(t *testing.T, victim string, p point) {
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	srv := startNATSProcess(t)
	actor := startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", recordedInstall(t)))
	bridge := startDaemon(t, "bridge", "--nats", srv.url, "--model", "recorded:"+killRecording,
		"--tools", "recorded:"+killRecording, "--ledger", ledger)
	nc := connect(t, srv.url)

	var once sync.Once
	killed := make(chan struct{})
	seen := 0
	_, err := nc.Subscribe(p.subject, func(*nats.Msg) {
		if seen++; seen == p.n {
			once.Do(func() {
				killAndStart(victim, srv, actor, bridge)
				close(killed)
			})
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range userMessages(t, killSession) {
		payload, err := json.Marshal(map[string]any{"type": session.TypeRunRequested, "data": map[string]any{"input": map[string]any{"text": text}}})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, nc, "refold.in."+killSession, payload)
	}
	select {
	case <-killed:
	case <-time.After(endWithin):
		t.Fatalf("the point was never reached: message %d on %s", p.n, p.subject)
	}
	view := ended(t, nc, killSession)
	accounts(t, nc, ledger)
	verifyAll(t, srv.url)
	t.Logf("run %d ended %s %s", view.Last.Number, view.Last.Lifecycle, view.Last.Code)
}

// killAndStart kills the victim and starts it again.
func killAndStart(victim string, srv *natsProcess, actor, bridge *daemon) {
	switch victim {
	case "nats":
		srv.kill()
		srv.start()
	case "bridge":
		bridge.kill()
		bridge.start()
	default:
		actor.kill()
		actor.start()
	}
}

// ended waits until no run of a session is active or queued.
func ended(t *testing.T, nc *nats.Conn, sid string) session.View {
	t.Helper()
	var v session.View
	until(t, endWithin, "the end of all runs of "+sid, func() bool {
		v = session.View{}
		answer, err := nc.Request("refold.view."+sid, nil, 500*time.Millisecond)
		if err != nil || json.Unmarshal(answer.Data, &v) != nil {
			return false
		}
		return v.Run == nil && v.Last != nil && v.Last.Number == uint32(len(userMessages(t, sid)))
	})
	return v
}

// ledgerEntry is the beginning of a line of a bridge's ledger.
var ledgerEntry = regexp.MustCompile(`^\{"session":"([^"]+)","effect":"([^"]+)",`)

// accounts compares the ledger with the log: a call that was settled by its
// bridge ran once, one whose outcome is unknown at most once, and none ran
// that was not asked.
func accounts(t *testing.T, nc *nats.Conn, path string) {
	t.Helper()
	ran := map[string]int{}
	for _, line := range lines(t, path) {
		// A kill may have cut the line off after the name of its effect.
		entry := ledgerEntry.FindSubmatch(line)
		if entry == nil {
			if len(line) > 0 {
				t.Fatalf("ledger: %s", line)
			}
			continue
		}
		ran[string(entry[1])+"."+string(entry[2])]++
	}
	settled := settlements(t, nc, killSession)
	unknown := 0
	for effect, status := range settled {
		times := ran[killSession+"."+effect]
		switch {
		case status == "outcome_unknown" && times <= 1:
			unknown++
		case status != "outcome_unknown" && times == 1:
		default:
			t.Errorf("%s was settled %s, and ran %d times", effect, status, times)
		}
		delete(ran, killSession+"."+effect)
	}
	for key, times := range ran {
		t.Errorf("%s ran %d times, and was never settled", key, times)
	}
	t.Logf("%d of %d calls settled, %d of them with an unknown outcome", len(settled), killCalls, unknown)
	if unknown == 0 && len(settled) != killCalls {
		t.Errorf("%d calls were settled, want %d", len(settled), killCalls)
	}
}

// settlements returns the first settlement of each call of a session, as the
// log has them.
func settlements(t *testing.T, nc *nats.Conn, sid string) map[string]string {
	t.Helper()
	first := map[string]string{}
	for _, payload := range logOf(t, nc, session.DoorTool, sid) {
		canonical, err := codec.Canonicalize(payload)
		if err != nil {
			t.Fatal(err)
		}
		var env session.Envelope
		var body session.ToolCallSettled
		if err := codec.Decode(canonical, &env); err != nil {
			t.Fatal(err)
		}
		if err := codec.Decode(env.Data, &body); err != nil {
			t.Fatal(err)
		}
		if _, again := first[body.Effect]; !again {
			first[body.Effect] = body.Status
		}
	}
	return first
}

// logOf reads a session's events of one door from the log.
func logOf(t *testing.T, nc *nats.Conn, door session.Door, sid string) [][]byte {
	t.Helper()
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	subject, err := names.Stored(door, sid)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, names.LogStream(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var payloads [][]byte
	for uint64(len(payloads)) < info.NumPending {
		batch, err := consumer.FetchNoWait(100)
		if err != nil {
			t.Fatal(err)
		}
		for msg := range batch.Messages() {
			payloads = append(payloads, msg.Data())
		}
		if ctx.Err() != nil {
			t.Fatalf("read %d of %d events", len(payloads), info.NumPending)
		}
	}
	return payloads
}

// lines returns the lines of a file; a file that isn't there has none.
func lines(t *testing.T, path string) [][]byte {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]byte
	for scan := bufio.NewScanner(f); scan.Scan(); {
		all = append(all, append([]byte(nil), scan.Bytes()...))
	}
	return all
}

// userMessages returns what the user says in a conversation of the recording.
func userMessages(t *testing.T, id string) []string {
	t.Helper()
	f, err := os.Open(killRecording)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var conversation struct {
			ID       string `json:"id"`
			Messages []struct {
				Role    string `json:"role"`
				Content any    `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(scan.Bytes(), &conversation); err != nil {
			t.Fatal(err)
		}
		if conversation.ID != id {
			continue
		}
		var users []string
		for _, m := range conversation.Messages {
			if m.Role == "user" {
				users = append(users, fmt.Sprint(m.Content))
			}
		}
		return users
	}
	t.Fatalf("no conversation %q", id)
	return nil
}

// recordedInstall returns an install record with the recording's tools, none of
// them retry-safe, and a config that asks the recorded model.
func recordedInstall(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(killTools)
	if err != nil {
		t.Fatal(err)
	}
	var defined []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(data, &defined); err != nil {
		t.Fatal(err)
	}
	var tools []any
	for _, d := range defined {
		tools = append(tools, map[string]any{
			"tool_id": "recorded." + d.Function.Name, "tool_name": d.Function.Name, "description": d.Function.Description,
			"args_schema": json.RawMessage(`{"type":"object"}`), "executor": map[string]any{"kind": "effect", "target": "recorded"},
			"parallel_safe": true,
		})
	}
	record, err := json.Marshal(map[string]any{
		"v": 1, "rules": 1, "tools": tools, "config": map[string]any{"provider": "recorded", "model": "recorded"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(record)
}
