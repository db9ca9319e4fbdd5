package e2e_test

// Hard edges on real processes: NATS is gone for longer than pins and claims
// last. Its full disk is in edge_disk_linux_test.go.

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// goneFor is longer than a pin (2 s), than a claim's holder is listened for (5 s),
// and than the leases of effects and of events (10 and 30 s).
const goneFor = time.Minute

// TestEdgeNATSGone: while NATS is gone, daemons wait for it, even during a run.
// When it is back the same processes continue, and no call runs twice.
func TestEdgeNATSGone(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	srv := startNATSProcess(t)
	actor := startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", recordedInstall(t)))
	bridge := startDaemon(t, "bridge", "--nats", srv.url, "--model", "recorded:"+killRecording,
		"--tools", "recorded:"+killRecording, "--ledger", ledger)
	nc := connect(t, srv.url)
	settled, err := nc.SubscribeSync("refold.tool.*")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range userMessages(t, killSession) {
		publish(t, nc, "refold.in."+killSession, envelope(t, session.TypeRunRequested, object{"input": object{"text": text}}))
	}
	if _, err := settled.NextMsg(endWithin); err != nil {
		t.Fatalf("no call is settled: %v", err)
	}
	srv.kill()
	gone := time.After(goneFor)
	for _, d := range []*daemon{actor, bridge} {
		until(t, endWithin, d.name+" hears that NATS is gone", func() bool { return strings.Contains(d.out.String(), "nats_disconnected") })
	}
	<-gone
	srv.start()
	ended(t, nc, killSession) // nobody started a daemon again, so both live
	accounts(t, nc, ledger)
	verifyAll(t, srv.url)
}

// TestEdgeLogFull: a full log stops runs, and nothing else: a bridge's
// settlements wait, clients get an error, and with room everything continues.
// No call runs twice, although none could be settled for a while.
func TestEdgeLogFull(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	srv := startNATSProcess(t)
	actor := startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", recordedInstall(t)))
	startDaemon(t, "bridge", "--nats", srv.url, "--model", "recorded:"+killRecording)
	nc := connect(t, srv.url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	limit := func(change func(*jetstream.StreamInfo) int64) {
		t.Helper()
		stream, err := js.Stream(t.Context(), "REFOLD_LOG")
		if err != nil {
			t.Fatal(err)
		}
		info := stream.CachedInfo()
		info.Config.MaxBytes = change(info)
		if _, err := js.UpdateStream(t.Context(), info.Config); err != nil {
			t.Fatal(err)
		}
	}
	settled, err := nc.SubscribeSync("refold.tool.*")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range userMessages(t, killSession) {
		publish(t, nc, "refold.in."+killSession, envelope(t, session.TypeRunRequested, object{"input": object{"text": text}}))
	}
	// A bridge of tools is there for the first call alone, then for the group of
	// four: when the log is full they are asked, and not settled.
	open := func(batch string) {
		t.Helper()
		until(t, endWithin, batch+" is asked", func() bool {
			var v session.View
			answer, err := nc.Request("refold.view."+killSession, nil, time.Second)
			return err == nil && json.Unmarshal(answer.Data, &v) == nil && v.Batch != nil && v.Batch.Batch == batch && v.WaitsFor == "tools"
		})
	}
	open("r1t1")
	actor.kill()
	bridge := startDaemon(t, "bridge", "--nats", srv.url, "--tools", "recorded:"+killRecording, "--ledger", ledger)
	if _, err := settled.NextMsg(endWithin); err != nil {
		t.Fatalf("no call is settled: %v", err)
	}
	if err := bridge.drain(endWithin); err != nil {
		t.Fatal(err)
	}
	actor.start()
	open("r1t2")
	limit(func(have *jetstream.StreamInfo) int64 { return int64(have.State.Bytes) })
	bridge.start()
	until(t, endWithin, "the bridge can't settle", func() bool { return strings.Contains(bridge.out.String(), "the stream takes no more") })
	_, stderr, status := run(t, endWithin, nil, "refold", "run", "other", "--nats", srv.url, "hello")
	if status == 0 || !strings.Contains(stderr, "raise its limits") {
		t.Errorf("a client: status %d, %q; want what to do", status, stderr)
	}
	limit(func(*jetstream.StreamInfo) int64 { return -1 })
	ended(t, nc, killSession)
	accounts(t, nc, ledger)
	verifyAll(t, srv.url)
}

// TestEdgeLogAlmostFull: a client that fills the log stops no run: clients may
// not use its last tenth, and get an error.
func TestEdgeLogAlmostFull(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	srv := startNATSProcess(t)
	startDaemon(t, "session-actor", "--nats", srv.url, "--install", writeFile(t, "install.json", recordedInstall(t)))
	startDaemon(t, "bridge", "--nats", srv.url, "--model", "recorded:"+killRecording)
	nc := connect(t, srv.url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range userMessages(t, killSession) {
		publish(t, nc, "refold.in."+killSession, envelope(t, session.TypeRunRequested, object{"input": object{"text": text}}))
	}
	until(t, endWithin, "a call is asked", func() bool {
		var v session.View
		answer, err := nc.Request("refold.view."+killSession, nil, time.Second)
		return err == nil && json.Unmarshal(answer.Data, &v) == nil && v.WaitsFor == "tools"
	})
	limit := func(bytes int64) {
		t.Helper()
		stream, err := js.Stream(t.Context(), "REFOLD_LOG")
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.MaxBytes = bytes
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	limit(4 << 20)
	full := envelope(t, session.TypeRunRequested, object{"input": object{"text": strings.Repeat("x", 100<<10)}})
	until(t, endWithin, "the client is refused", func() bool {
		_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: "refold.in.flood", Data: full})
		var api *jetstream.APIError
		return errors.As(err, &api) && strings.Contains(api.Description, "the last tenth is kept for sessions that run")
	})
	_, stderr, status := run(t, endWithin, nil, "refold", "run", "other", "--nats", srv.url, "hello")
	if status == 0 || !strings.Contains(stderr, "the last tenth is kept for sessions that run") {
		t.Errorf("a client: status %d, %q; want what to do", status, stderr)
	}
	startDaemon(t, "bridge", "--nats", srv.url, "--tools", "recorded:"+killRecording, "--ledger", ledger)
	ended(t, nc, killSession)
	limit(-1)
	until(t, endWithin, "the client is heard again", func() bool {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "refold.in.flood", Data: envelope(t, session.TypeRunRequested, object{"input": object{"text": "again"}})})
		return err == nil
	})
	accounts(t, nc, ledger)
	verifyAll(t, srv.url)
}
