//go:build unix

package e2e_test

// Two live workers answer at once for a killed one; and the result of a
// retry-safe call that ran there.

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// pairRules: a turn of two calls that may run twice, or of one that may not, at
// the worker that has the host session.
const pairRules = opening + `
  - shown: {asked: ^wait, last: user}
    calls: [{tool: shell, arguments: {command: 'read x < GATE'}}]
  - shown: {asked: ^pair, last: user}
    calls: [{tool: stat, arguments: {path: .}}, {tool: exists, arguments: {path: .}}]
  - shown: {asked: ^where, last: user}
    calls: [{tool: shell, arguments: {command: pwd}}]
  - shown: {last: tool}
    say: '${result}'
`

// TestTwoAdoptAtOnce: some calls wait when both begin to answer, and more
// arrive meanwhile.
func TestTwoAdoptAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := startSystem(t, nil)
	s.models(g.in(pairRules), "scripted")
	first := s.worker("w1", t.TempDir(), "--sandbox", "off", "--model-may-control-every-session")
	held := []string{"a0", "a1", "a2", "a3", "a4"}
	later := []string{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"}
	ears := map[string]*ear{}
	alone := []string{"c2", "c3"} // of each of the others, while the other one stands still
	for _, sid := range slices.Concat(held, later, alone) {
		ears[sid] = listen(t, s.nc, "refold.out."+sid)
		s.run(session.DoorIn, sid, "open", scripted)
	}
	for _, sid := range slices.Concat(held, later, alone) {
		s.wantEnd(sid, 1, session.Completed, "")
		s.wantHost(sid, "ready", "host-w1")
	}
	others := []*daemon{s.worker("w2", t.TempDir()), s.worker("w3", t.TempDir())}

	// a0 runs, and stands in the way of the others: they wait when w1 dies.
	want := map[string]string{"a0": "outcome_unknown"}
	s.run(session.DoorIn, "a0", "wait", scripted)
	g.reached()
	ask := func(sids []string) {
		for i, sid := range sids {
			text, calls := "pair", 2
			if i%2 == 1 {
				text, calls = "where", 1
			}
			want[sid] = strings.Repeat(" host_session_lost", calls)[1:]
			s.run(session.DoorIn, sid, text, scripted)
		}
	}
	ask(held[1:])
	for _, sid := range held {
		s.view(sid, "a call at w1", func(v session.View) bool {
			return slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool { return e.Target == "host-w1" })
		})
	}
	first.kill()
	for _, d := range others {
		until(t, time.Minute, "both answer for w1", func() bool { return strings.Contains(d.out.String(), "msg=worker_lost target=host-w1") })
	}
	ask(later)
	lost := func(sid string) {
		t.Helper()
		s.wantEnd(sid, 2, session.Completed, "")
		s.wantHost(sid, "error", "host-w1")
		if got := s.codes(sid, "r2t1"); got != want[sid] {
			t.Errorf("%s: its calls are settled %q, want %q", sid, got, want[sid])
		}
		s.wantOffered(sid, withoutHost, openaiHas, openaiHas, withoutHost)
		s.wantOneSettlement(sid, ears[sid])
	}
	for _, sid := range slices.Concat(held, later) {
		lost(sid)
	}
	// The faster one may have had all of those. Both are at it: each answers while
	// the other one can't.
	for i, sid := range alone {
		answersAlone(t, others[i], others[1-i], func() { ask([]string{sid}) })
		lost(sid)
	}
	verifyAll(t, s.url)
}

// answersAlone has one worker answer two calls, which nobody claims, for one that
// is lost: another one that may do so too is stopped meanwhile.
func answersAlone(t *testing.T, d, other *daemon, ask func()) {
	t.Helper()
	signal := func(sig syscall.Signal) {
		if err := other.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() int { return strings.Count(d.out.String(), "code=host_session_lost") }
	before := answered()
	signal(syscall.SIGSTOP)
	ask()
	until(t, endWithin, "answers of one worker alone", func() bool { return answered() >= before+2 })
	signal(syscall.SIGCONT)
}

// codes returns the codes that the calls of a turn were settled with.
func (s *system) codes(sid, turn string) string {
	s.t.Helper()
	var codes []string
	for _, payload := range logOf(s.t, s.nc, session.DoorTool, sid) {
		b := settledCall(s.t, payload)
		if strings.HasPrefix(b.Effect, turn) && b.Error != nil {
			codes = append(codes, b.Error.Code)
		}
	}
	return strings.Join(codes, " ")
}

// wantOneSettlement checks that no call of a session was settled twice, but for
// settlements that say the same, and that no event of it had no effect.
func (s *system) wantOneSettlement(sid string, e *ear) {
	s.t.Helper()
	first := map[string]codec.Raw{}
	for _, payload := range logOf(s.t, s.nc, session.DoorTool, sid) {
		var env session.Envelope
		decodeInto(s.t, payload, &env)
		b := settledCall(s.t, payload)
		if was, again := first[b.Effect]; again && !bytes.Equal(was, env.Data) {
			s.t.Errorf("%s %s is settled twice, and differently", sid, b.Effect)
		}
		first[b.Effect] = env.Data
	}
	for _, n := range e.all() {
		if n.Type == session.NoticeEventRejected {
			s.t.Errorf("%s: an event had no effect: %s", sid, n.Data)
		}
	}
}

func settledCall(t *testing.T, payload []byte) (b session.ToolCallSettled) {
	t.Helper()
	var env session.Envelope
	decodeInto(t, payload, &env)
	if err := codec.Decode(env.Data, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func decodeInto(t *testing.T, payload []byte, to *session.Envelope) {
	t.Helper()
	canonical, err := codec.Canonicalize(payload)
	if err == nil {
		err = codec.Decode(canonical, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRetrySafeCallRuns: a retry-safe call runs on the worker when it is
// killed. Such a call has no claim, so its result depends on which worker
// answers next: another worker has neither its files nor its host session, and
// runs nothing; the worker itself, started again in time, runs it again.
func TestRetrySafeCallRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, status, host string
		back               bool
		starts             int
	}{
		{"another worker answers", "failed", "error", false, 1},
		{"the worker comes back", "succeeded", "ready", true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			starts := filepath.Join(t.TempDir(), "starts")
			s := startSystem(t, safeShell(t))
			s.models(strings.ReplaceAll(g.in(opening+`
  - shown: {asked: ^wait, last: user}
    calls: [{tool: shell, arguments: {command: 'echo started >> STARTS; read x < GATE; echo "$x"'}}]
  - shown: {last: tool}
    say: '${result}'
`), "STARTS", starts), "scripted")
			first := s.worker("w1", t.TempDir(), "--sandbox", "off", "--model-may-control-every-session")
			heard := listen(t, s.nc, "refold.out.s1")
			s.run(session.DoorIn, "s1", "open", scripted)
			s.wantEnd("s1", 1, session.Completed, "")
			s.run(session.DoorIn, "s1", "wait", scripted)
			g.reached()
			first.kill()
			if c.back {
				first.start()
				until(t, time.Minute, "a second start", func() bool { return len(lines(t, starts)) == 2 })
				g.pass()
			} else {
				s.worker("w2", t.TempDir())
			}
			s.wantEnd("s1", 2, session.Completed, "")
			s.wantHost("s1", c.host, "host-w1")
			got := settlements(t, s.nc, "s1")["r2t1c0"]
			if n := len(lines(t, starts)); got != c.status || n != c.starts {
				t.Errorf("the call is settled %s after %d starts, want %s after %d", got, n, c.status, c.starts)
			}
			if codes := s.codes("s1", "r2t1"); c.back == (codes == "host_session_lost") {
				t.Errorf("its code is %q", codes)
			}
			s.wantOneSettlement("s1", heard)
			verifyAll(t, s.url)
		})
	}
}

// safeShell is the built-in install record, with a shell that may run twice.
func safeShell(t *testing.T) (record object) {
	t.Helper()
	text, err := codec.ToJSON(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	for _, tool := range record["tools"].(list) {
		if spec := tool.(object); spec["tool_id"] == "host.exec" {
			spec["retry_safe"] = true
			return record
		}
	}
	t.Fatal("the built-in record has no host.exec")
	return nil
}
