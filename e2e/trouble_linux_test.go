package e2e_test

// What a person sees when something does not work, on a terminal and in a pipe.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/subjects"
)

// provider is a provider of the test's that does what it is told.
type provider struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	p := new(provider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.answer.Load())(w, r) }))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) does(answer http.HandlerFunc) { p.answer.Store(&answer) }

// refuses answers with a status.
func refuses(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, `{"error":{"message":"not now"}}`, status)
	}
}

// says streams texts; before each but the first it waits for a go.
func says(on <-chan struct{}, texts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(choice object) {
			chunk, _ := json.Marshal(object{"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": list{choice}})
			fmt.Fprintf(w, "data: %s\n\n", chunk)
			w.(http.Flusher).Flush()
		}
		for i, text := range texts {
			if i > 0 {
				select {
				case <-on:
				case <-r.Context().Done():
					return
				}
			}
			send(object{"index": 0, "delta": object{"role": "assistant", "content": text}})
		}
		send(object{"index": 0, "delta": object{}, "finish_reason": "stop"})
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// shown is refold as it runs, on a terminal or with pipes.
type shown struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *output // the same on a terminal
	close    func()
}

// inPipe starts refold with pipes.
func inPipe(t *testing.T, args ...string) *shown {
	t.Helper()
	s := &shown{t: t, out: &output{}, err: &output{}, close: func() {}}
	s.cmd = exec.CommandContext(t.Context(), program("refold"), args...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.err
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// onTTY starts refold on a terminal.
func onTTY(t *testing.T, args ...string) *shown {
	t.Helper()
	tty := openTerminal(t)
	s := &shown{t: t, out: &tty.output, err: &tty.output, close: func() { tty.theirs.Close(); <-tty.over }}
	s.cmd = tty.start(context.WithoutCancel(t.Context()), t, args...)
	return s
}

// prints waits until standard error has what a pattern matches.
func (s *shown) prints(pattern string) {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("refold %v prints\n%s", s.cmd.Args[1:], s.err)
		}
	})
	until(s.t, time.Minute, "a line like "+pattern, func() bool { return re.MatchString(s.err.String()) })
}

// ends waits for the end, and returns what was printed, with the lines of a
// terminal ended as those of a pipe.
func (s *shown) ends(status int) (out, errOut string) {
	s.t.Helper()
	_ = s.cmd.Wait()
	s.close()
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		s.t.Errorf("refold %v: status %d, want %d\n%s%s", s.cmd.Args[1:], got, status, s.out, s.err)
	}
	return strings.ReplaceAll(s.out.String(), "\r\n", "\n"), strings.ReplaceAll(s.err.String(), "\r\n", "\n")
}

// TestProviderThatIsDown: a run reports that its provider fails and waits on;
// the view and the doctor report it too; then the run reports its end.
func TestProviderThatIsDown(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	p := startProvider(t)
	p.does(refuses(http.StatusServiceUnavailable, ""))
	startDaemon(t, "bridge", "--nats", s.url, "--name", "b1", "--model", "down=openai-chat:"+p.URL+"/v1")
	ask := func(sid string) []string {
		return []string{"run", sid, "hi", "--provider", "down", "--model", "m", "--nats", s.url}
	}
	tty, pipe := onTTY(t, ask("s1")...), inPipe(t, ask("s2")...)
	for sid, run := range map[string]*shown{"s1": tty, "s2": pipe} {
		run.prints(`retrying: ` + sid + ` waits for llm/down \(r1t1\): overloaded: \S+ answered 503: not now; since \d\d:\d\d:\d\dZ, `)
	}
	tty.prints(`llm/down \d+s, llm/down: overloaded, next try in \d+s`)
	view, _ := runOnce(t, 0, nil, "view", "s1", "--nats", s.url)
	if !regexp.MustCompile(`(?s)"troubles": \[.*"target": "llm/down",\s*"code": "overloaded",\s*"detail": "\S+ answered 503: not now",\s*"since": \d+,\s*"next": \d+,\s*"effects": \[\s*"r1t1"`).MatchString(view) {
		t.Errorf("the view has no trouble: %s", view)
	}
	if doctor, _ := runOnce(t, 0, nil, "bridge", "doctor", "--nats", s.url); !strings.Contains(doctor, "retrying: b1, llm/down: overloaded: ") || !strings.Contains(doctor, "the problems are listed above") {
		t.Errorf("the doctor prints %q", doctor)
	}
	p.does(refuses(http.StatusTooManyRequests, "1"))
	for _, run := range []*shown{tty, pipe} {
		run.prints(`rate_limited: \S+ answered 429: not now`)
	}
	p.does(says(nil, "hello"))
	const closing = `run 1: 1 turn, 0 calls, \d+\.\d s\n$`
	out, errOut := pipe.ends(0)
	if out != "hello\n" || !regexp.MustCompile(`(?s)over: llm/down of s2 \((overloaded|rate_limited)\), after \d+.*\n`+closing).MatchString(errOut) {
		t.Errorf("in a pipe: %q and %q", out, errOut)
	}
	out, _ = tty.ends(0)
	left := regexp.MustCompile(`[^\n]*`+regexp.QuoteMeta(clearStatus)).ReplaceAllString(out, "") // what a person sees in the end
	if !regexp.MustCompile(`over: llm/down of s1 \(.*\), after \d+.*\nhello\n` + closing).MatchString(left) {
		t.Errorf("on a terminal: %q", out)
	}
}

// TestProviderThatRefusesTheKey: the run ends at once, and the doctor still
// reports it.
func TestProviderThatRefusesTheKey(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	p := startProvider(t)
	p.does(refuses(http.StatusUnauthorized, ""))
	startDaemon(t, "bridge", "--nats", s.url, "--name", "b1", "--model", "down=openai-chat:"+p.URL+"/v1")
	out, errOut := inPipe(t, "run", "s1", "hi", "--provider", "down", "--model", "m", "--nats", s.url).ends(1)
	if out != "" || !strings.Contains(errOut, "refold: run 1 failed: auth: ") {
		t.Errorf("it prints %q and %q", out, errOut)
	}
	until(t, time.Minute, "the doctor knows", func() bool {
		doctor, _ := runOnce(t, 0, nil, "bridge", "doctor", "--nats", s.url)
		return strings.Contains(doctor, "failing: b1, llm/down: auth: ")
	})
}

// TestMessageInTheMiddleOfText: views are not answered while a model is within
// a line. On a terminal the message has its own line, and no text is lost.
func TestMessageInTheMiddleOfText(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	p, on := startProvider(t), make(chan struct{})
	p.does(says(on, "hel", "lo"))
	startDaemon(t, "bridge", "--nats", s.url, "--model", "p=openai-chat:"+p.URL+"/v1")
	s.folded()
	run := onTTY(t, "run", "s1", "hi", "--provider", "p", "--model", "m", "--nats", s.url)
	run.prints(`hel$`)
	s.actor.kill()
	run.prints(`no session-actor answers`)
	s.actor.start()
	run.prints(`a session-actor answers again`)
	close(on)
	out, _ := run.ends(0)
	if !regexp.MustCompile(`^hel\nno session-actor answers: .*\na session-actor answers again\nlo\nrun 1: 1 turn, .*\n$`).MatchString(strings.ReplaceAll(out, clearStatus, "")) {
		t.Errorf("it prints %q", out)
	}
}

// TestBridgeKilledInACall: while another bridge serves the target, nothing is
// unserved; the run still reports that the first one is gone.
func TestBridgeKilledInACall(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	script := writeFile(t, "script.yaml", "rules:\n  - {wait: 6s, say: I waited.}\n")
	beats, err := s.nc.SubscribeSync("refold.alive.>")
	if err != nil {
		t.Fatal(err)
	}
	// From its own first heartbeat on the session-actor hears those of bridges.
	if _, err := beats.NextMsg(time.Minute); err != nil {
		t.Fatal(err)
	}
	bridges := map[string]*daemon{}
	for len(bridges) < 2 {
		d := startDaemon(t, "bridge", "--nats", s.url, "--no-session-tools", "--model", "p=scripted:"+script)
		until(t, time.Minute, "a bridge", func() bool {
			m := regexp.MustCompile(`instance=(\S+)`).FindStringSubmatch(d.out.String())
			if m != nil {
				bridges[m[1]] = d
			}
			return m != nil && strings.Contains(d.out.String(), "bridge_starts")
		})
	}
	// A bridge that nobody has heard yet is not missed.
	for heard := map[string]bool{}; len(heard) < 2; {
		beat, err := beats.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(beat.Subject, "refold.alive.bridge.") {
			heard[beat.Subject] = true
		}
	}
	run := onTTY(t, "run", "s1", "hi", "--provider", "p", "--model", "m", "--nats", s.url)
	subject, err := s.names.Claim(subjects.ClaimName{N: 1, EffectName: subjects.EffectName{Class: "llm", Target: "p", Session: "s1", Effect: "r1t1"}})
	if err != nil {
		t.Fatal(err)
	}
	var holder struct{ By string }
	until(t, time.Minute, "a claim", func() bool {
		stream, err := s.js.Stream(t.Context(), s.names.EffectsStream())
		if err != nil {
			return false
		}
		m, err := stream.GetLastMsgForSubject(t.Context(), subject)
		return err == nil && json.Unmarshal(m.Data, &holder) == nil && bridges[holder.By] != nil
	})
	bridges[holder.By].kill()
	run.prints(`bridge gone: s1 waits for llm/p \(r1t1\): the bridge that began it is not heard any more: .*; since \d\d:\d\d:\d\dZ`)
	if out, _ := run.ends(0); !regexp.MustCompile(`(?s)over: llm/p of s1 \(bridge_silent\), after .*I waited\.`).MatchString(out) {
		t.Errorf("it prints %q", out)
	}
}

// TestNobodyServes: a run whose target has no bridge reports that, and its end;
// so does one whose only bridge is killed.
func TestNobodyServes(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	run := inPipe(t, "run", "s1", "hi", "--provider", "p", "--model", "m", "--nats", s.url)
	run.prints(`unserved: s1 waits for llm/p \(r1t1\): start refold bridge serve --model p=MODEL`)
	d := s.models("rules:\n  - {wait: 20s, say: done}\n", "p")
	run.prints(`no longer unserved: llm/p of s1`)
	d.kill()
	run.prints(`(?s)no longer unserved.*unserved: s1 waits for llm/p`)
	d.start()
	run.prints(`(?s)no longer unserved.*no longer unserved`)
	runOnce(t, 0, nil, "cancel", "s1", "--nats", s.url)
	run.ends(1)
}

// TestSlowTool: a tool that takes longer than a second is shown with its time:
// on a terminal in a line that is rewritten, in a pipe once.
func TestSlowTool(t *testing.T) {
	t.Parallel()
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{tool("look", nil)}})
	s.models("rules:\n  - shown: {last: tool}\n    say: seen\n  - say: I look.\n    calls: [{tool: look}]\n", "scripted")
	hold := make(chan struct{})
	s.serve(func(b *bridge.Bridge) error { return b.Tool("lab", &lab{hold: map[string]chan struct{}{"look": hold}}) })
	ask := func(sid string) []string {
		return []string{"run", sid, "hi", "--provider", "scripted", "--model", "m", "--nats", s.url}
	}
	tty, pipe := onTTY(t, ask("s1")...), inPipe(t, ask("s2")...)
	pipe.prints(`running: look \(r1t1c0\), for more than a second\n`)
	tty.prints(`look 2s`)
	tty.prints(`look 3s`)
	close(hold)
	out, errOut := pipe.ends(0)
	if out != "I look.\nseen\n" || strings.Count(errOut, "running: ") != 1 || !strings.Contains(errOut, "run 1: 2 turns, 1 call, ") {
		t.Errorf("in a pipe: %q and %q", out, errOut)
	}
	out, _ = tty.ends(0)
	if strings.Contains(out, "running: ") || !strings.Contains(out, "look 2s"+clearStatus+"look 3s"+clearStatus) || !regexp.MustCompile(`\x1b\[Ksucceeded look .*\nseen\nrun 1: 2 turns, 1 call, .*\n$`).MatchString(out) {
		t.Errorf("on a terminal: %q", out)
	}
}

// TestForeignBridgeIsCounted: the doctor and the check count a bridge that does
// nothing but send heartbeats.
func TestForeignBridgeIsCounted(t *testing.T) {
	t.Parallel()
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{tool("look", nil)}})
	s.tools(&lab{})
	over := make(chan struct{})
	beats := make(chan error, 1)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := s.nc.Publish("refold.alive.bridge.01K5E2XJ5T6RNE2Y9V2S1P7M3Q", []byte(`{"targets":["tool/lab"],"rules":1}`)); err != nil {
				beats <- err
				return
			}
			select {
			case <-tick.C:
			case <-over:
				beats <- nil
				return
			}
		}
	}()
	for pattern, args := range map[string][]string{
		`(?m)^lab\.look\s+tool/lab\s+2 bridges$`: {"tools", "check", "--nats", s.url},
		`(?m)^tool/lab\s+2\b`:                    {"bridge", "doctor", "--nats", s.url},
	} {
		until(t, time.Minute, pattern, func() bool { // the session-actor may still store the descriptor
			out, errOut := runOnce(t, 0, nil, args...)
			return regexp.MustCompile(pattern).MatchString(out) && errOut == ""
		})
		out, _ := onTTY(t, args...).ends(0)
		progress, rest, _ := strings.Cut(out, clearStatus)
		if !strings.HasPrefix(progress, "listening to bridges: ") || !regexp.MustCompile(pattern).MatchString(strings.ReplaceAll(rest, clearStatus, "\n")) {
			t.Errorf("%v prints on a terminal %q", args, out)
		}
	}
	close(over)
	if err := <-beats; err != nil {
		t.Error(err)
	}
}

// TestRecordingThatEnds: the end of a recording is not printed as a failure.
func TestRecordingThatEnds(t *testing.T) {
	t.Parallel()
	out, errOut := runOnce(t, 0, nil, "demo", "--model", "recorded:../testdata/recordings/warehouse.jsonl", "--all")
	if !strings.Contains(out, "ended where the recording ends\n") || strings.Contains(out+errOut, "fail") {
		t.Errorf("it prints %q and %q", out, errOut)
	}
}
