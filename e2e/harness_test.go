package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// daemon is a running program.
type daemon struct {
	t    testing.TB
	name string
	args []string
	env  []string // beside this process's
	host string   // see onHost
	cmd  *exec.Cmd
	out  *output
}

// startDaemon starts a program under test; it is ended with the test.
func startDaemon(t testing.TB, name string, args ...string) *daemon {
	t.Helper()
	return startDaemonWith(t, nil, name, args...)
}

// startDaemonWith is startDaemon with more variables in the environment.
func startDaemonWith(t testing.TB, env []string, name string, args ...string) *daemon {
	t.Helper()
	return (&daemon{t: t, name: name, args: args, env: env, out: &output{}}).begin()
}

// begin starts a daemon, which is ended with the test.
func (d *daemon) begin() *daemon {
	t := d.t
	t.Helper()
	d.start()
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("%s %v:\n%s", d.name, d.args, tail(d.out.String(), 4000))
		}
	})
	return d
}

func (d *daemon) start() {
	d.t.Helper()
	d.cmd = onHost(d.host, program(d.name), d.args...)
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	d.cmd.Env = append(os.Environ(), d.env...)
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// onHost returns a command in a host's network namespace; empty: in this process's own.
func onHost(host, program string, args ...string) *exec.Cmd {
	if host == "" {
		return exec.Command(program, args...)
	}
	return exec.Command("ip", append([]string{"netns", "exec", host, program}, args...)...) // it becomes the program
}

// kill ends the process at once (SIGKILL).
func (d *daemon) kill() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	d.cmd = nil
}

// drain asks the process to end (SIGTERM) and waits for its exit status.
func (d *daemon) drain(within time.Duration) error {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.cmd.Wait() }()
	select {
	case err := <-ended:
		d.cmd = nil
		return err
	case <-time.After(within):
		return fmt.Errorf("%s does not end within %v", d.name, within)
	}
}

// run runs a program to its end and returns what it printed and its status.
func run(t testing.TB, within time.Duration, stdin []byte, name string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(name), args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s %v does not end within %v:\n%s%s", name, args, within, tail(out.String(), 2000), tail(errOut.String(), 2000))
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// tail returns the end of a text.
func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}

// until waits for a condition; it is the only waiting that tests here do.
func until(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// connect returns a plain NATS connection. A server on a busy machine may take
// its time to greet.
func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(30*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// notice is what tests read on refold.out.<sid>.
type notice struct {
	N    uint64          `json:"n"`
	Type string          `json:"type"`
	Seq  uint64          `json:"seq"`
	Data json.RawMessage `json:"data"`
}

// ear listens to a session's notices on core NATS.
type ear struct {
	mu    sync.Mutex
	heard []notice
}

func listen(t testing.TB, nc *nats.Conn, subject string) *ear {
	t.Helper()
	e := &ear{}
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		for line := range bytes.Lines(m.Data) { // progress may have several
			e.hear(line)
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hear takes in a notice, once.
func (e *ear) hear(text []byte) {
	var n notice
	if json.Unmarshal(text, &n) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, have := range e.heard {
		if have.N == n.N && n.N != 0 {
			return // a repeat
		}
	}
	e.heard = append(e.heard, n)
}

// all returns what was heard.
func (e *ear) all() []notice {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]notice(nil), e.heard...)
}

// count returns how many notices of a type were heard.
func (e *ear) count(typ string) int {
	n := 0
	for _, have := range e.all() {
		if have.Type == typ {
			n++
		}
	}
	return n
}

// publish publishes through JetStream, once, and returns the sequence. An id lets
// it ask again when no answer comes, without being heard twice.
func publish(t testing.TB, nc *nats.Conn, subject string, payload []byte) uint64 {
	t.Helper()
	var seq uint64
	msg := nats.NewMsg(subject)
	msg.Header.Set(nats.MsgIdHdr, rand.Text())
	msg.Data = payload
	until(t, endWithin, "an acknowledgement on "+subject, func() bool {
		answer, err := nc.RequestMsg(msg, 5*time.Second)
		if err != nil {
			return false // nobody listens yet
		}
		var ack struct {
			Seq   uint64          `json:"seq"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Error != nil {
			t.Fatalf("publish to %s: %s", subject, answer.Data)
		}
		seq = ack.Seq
		return true
	})
	return seq
}

// writeFile writes a file of the test.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// verifyAll folds every session again, by the CLI, and fails if one differs.
func verifyAll(t testing.TB, url string) string {
	t.Helper()
	out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", url, "replay", "--all", "--verify")
	if status != 0 {
		t.Fatalf("replay --all --verify: status %d\n%s%s", status, out, errOut)
	}
	return out
}
