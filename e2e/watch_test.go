package e2e_test

// What operators see of running bridges, with only an auditor's rights: their
// counts from `nats micro stats`, and refold bridge doctor.

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
)

// watchScript opens a host session, then calls two tools, of which one fails.
const watchScript = `rules:
  - shown: {last: user}
    calls: [{tool: open_session}]
  - shown: {results: [{tool: open_session, error: false}]}
    calls: [{tool: read_file, arguments: {path: missing.txt}}, {tool: write_file, arguments: {path: a.txt, content: a}}]
  - say: done
`

// TestWatchingBridges: the counts of two bridges agree with the log.
func TestWatchingBridges(t *testing.T) {
	t.Parallel()
	guarded := startGuarded(t)
	s := guarded.start(nil)
	s.at("s0", publish(t, s.nc, "refold.in.s0", []byte("{}"))) // all streams are there
	startDaemon(t, "bridge", guarded.daemon("models", "--name", "models", "--model", "openai=scripted:"+writeFile(t, "script.yaml", watchScript))...)
	startDaemon(t, "bridge", guarded.daemon("tools", "--name", "tools", "--tools", "host", "--workdir", t.TempDir(), "--worker", "w1")...)
	for _, sid := range []string{"s1", "s2"} {
		s.run(session.DoorIn, sid, "go", object{"provider": "openai", "model": "m"})
		s.wantEnd(sid, 1, session.Completed, "")
	}

	denied := make(chan error, 8)
	nc := guarded.connect("auditor", nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	for target, want := range map[string]bridge.TargetStats{"llm/openai": {Done: 6}, "tool/host": {Done: 2}, "tool/host-w1": {Done: 2, Failed: 2}} {
		var got bridge.TargetStats
		// A settlement is in the log before it is counted.
		until(t, time.Minute, target+" has done all", func() bool {
			got = targetStats(t, nc, target)
			return got.Done+got.Failed >= want.Done+want.Failed
		})
		if got.Done != want.Done || got.Failed != want.Failed || got.InFlight != 0 || got.Retried != 0 || got.LatencyMS <= 0 || got.LatencyMaxMS < got.LatencyMS {
			t.Errorf("%s: got %+v, want %d done and %d failed", target, got, want.Done, want.Failed)
		}
	}
	var failed int
	for _, sid := range []string{"s1", "s2"} {
		for _, e := range logOf(t, s.nc, session.DoorTool, sid) {
			if regexp.MustCompile(`"?status"?.{0,3}failed`).Match(e) {
				failed++
			}
		}
	}
	if failed != 2 {
		t.Errorf("the log has %d failed calls, want 2", failed)
	}

	var out string
	until(t, time.Minute, "the doctor finds both", func() bool { // it misses a bridge that is too busy to answer
		var errOut string
		var status int
		out, errOut, status = run(t, time.Minute, nil, "refold", guarded.as("auditor", "bridge", "doctor")...)
		if status != 0 || errOut != "" {
			t.Fatalf("the doctor says, with status %d:\n%s%s", status, out, errOut)
		}
		return regexp.MustCompile(`(?m)^llm/openai +1 *$`).MatchString(out) && regexp.MustCompile(`(?m)^tool/host +1 *$`).MatchString(out)
	})
	// Nothing else: an auditor says nothing.
	for _, subject := range []string{"$JS.API.CONSUMER.CREATE.REFOLD_LOG", "refold.in.s1", "refold.ctl.s1"} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-denied:
			if !strings.Contains(err.Error(), `Publish to "`+subject+`"`) {
				t.Errorf("%s: the server says %v", subject, err)
			}
		case <-time.After(endWithin):
			t.Errorf("%s: the server does not say that it is denied", subject)
		}
	}
}

// targetStats asks the bridges for their counts, and returns those of a target.
func targetStats(t *testing.T, nc *nats.Conn, target string) bridge.TargetStats {
	t.Helper()
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err == nil {
		err = nc.PublishRequest("$SRV.STATS.refold-bridge", inbox, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Unsubscribe()
	for range 2 {
		m, err := answers.NextMsg(endWithin)
		if err != nil {
			t.Fatalf("two bridges run, and fewer tell their counts: %v", err)
		}
		var said struct {
			Endpoints []struct {
				Data bridge.Stats `json:"data"`
			} `json:"endpoints"`
		}
		if err := json.Unmarshal(m.Data, &said); err != nil {
			t.Fatalf("%v: %s", err, m.Data)
		}
		for _, e := range said.Endpoints {
			if stats, ok := e.Data.Targets[target]; ok {
				return stats
			}
		}
	}
	t.Fatalf("no bridge counts %s", target)
	return bridge.TargetStats{}
}
