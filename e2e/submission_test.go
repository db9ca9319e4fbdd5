package e2e_test

// A thousand clients of three processes publish the same request under the same
// submission, as clients do that don't know whether they have published it. The
// session-actor is killed meanwhile.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// clientsEnv, if set, makes the test binary submissionClients clients of the
// NATS server there.
const clientsEnv = "REFOLD_E2E_CLIENTS"

const (
	submissionClients   = 334 // of one process
	submissionProcesses = 3
	submissionSession   = "s1"
	submissionName      = "order-66"
	submissionText      = "go"
	submissionWithin    = 2 * time.Minute
)

// learned is what the clients of a process print at their end.
type learned struct {
	Runs   map[uint32]int `json:"runs"` // how many clients were told so
	Ends   map[string]int `json:"ends"`
	Errors []string       `json:"errors"`
}

// playClients is the test binary as clients: they connect, say so, wait for a
// line, and submit all at once.
func playClients(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), submissionWithin)
	defer cancel()
	connections := make([]*client.Client, 8)
	for i := range connections {
		c, err := client.Connect(ctx, client.Options{URL: url})
		if err != nil {
			return err
		}
		defer c.Close()
		connections[i] = c
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	all := learned{Runs: map[uint32]int{}, Ends: map[string]int{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range submissionClients {
		asking.Go(func() {
			run, end, err := submit(ctx, connections[i%len(connections)], i < len(connections))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				all.Errors = append(all.Errors, err.Error())
				return
			}
			all.Runs[run]++
			if end != "" {
				all.Ends[end]++
			}
		})
	}
	asking.Wait()
	return json.NewEncoder(os.Stdout).Encode(all)
}

// submit is one client: it asks, learns its run's number, and may wait for its
// end.
func submit(ctx context.Context, c *client.Client, waits bool) (run uint32, end string, err error) {
	last, err := c.LastNotice(ctx)
	if err != nil {
		return 0, "", err
	}
	seq, err := c.Run(ctx, submissionSession, submissionText, client.RunOptions{Submission: submissionName})
	if err != nil {
		return 0, "", err
	}
	if run, err = c.RunOf(ctx, submissionSession, seq); err != nil || !waits {
		return run, "", err
	}
	ended, err := c.End(ctx, submissionSession, seq, last+1, nil)
	if err != nil {
		return run, "", err
	}
	return run, fmt.Sprintf("%d %s %s", ended.Run, ended.Lifecycle, ended.Output.Text), nil
}

// crowd is a process of clients.
type crowd struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// startCrowd starts a process of clients and waits until they are connected.
func startCrowd(t *testing.T, url string) *crowd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), clientsEnv+"="+url)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	c.out = bufio.NewReader(out)
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("clients say %q: %v", line, err)
	}
	return c
}

// ends waits for what the clients learned. The process ends by itself in time.
func (c *crowd) ends() (all learned) {
	c.t.Helper()
	if err := json.NewDecoder(c.out).Decode(&all); err != nil {
		c.t.Fatalf("clients end with %v", err)
	}
	return all
}

// TestThousandClientsSubmitOnce: there is one run, and every client gets its
// number.
func TestThousandClientsSubmitOnce(t *testing.T) {
	t.Parallel()
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{}, "config": scripted})
	s.models("rules: [{shown: {matches: ^go$}, say: Gone.}]\n", "scripted")
	s.at("warm-up", s.say(session.DoorCtl, "warm-up", session.TypeFactsSet, object{"facts": object{}}))
	heard := listen(t, s.nc, "refold.out."+submissionSession)
	crowds := make([]*crowd, submissionProcesses)
	for i := range crowds {
		crowds[i] = startCrowd(t, s.url)
	}
	begun := time.Now()
	for _, c := range crowds {
		if _, err := c.in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
	until(t, submissionWithin, "a third of the requests", func() bool { return s.requested() > submissionClients })
	s.actor.kill()
	s.actor.start()
	early := s.requested()
	const all = submissionClients * submissionProcesses
	told := learned{Runs: map[uint32]int{}, Ends: map[string]int{}}
	for _, c := range crowds {
		said := c.ends()
		for run, n := range said.Runs {
			told.Runs[run] += n
		}
		for end, n := range said.Ends {
			told.Ends[end] += n
		}
		told.Errors = append(told.Errors, said.Errors...)
	}
	t.Logf("%d clients were told after %v; the session-actor was started again after %d requests", all, time.Since(begun).Round(time.Millisecond), early)
	if len(told.Runs) != 1 || told.Runs[1] != all || len(told.Ends) != 1 || told.Ends["1 completed Gone."] == 0 || len(told.Errors) > 0 {
		t.Errorf("the clients were told of the runs %v, which ended %v; %d errors: %s", told.Runs, told.Ends, len(told.Errors), tail(strings.Join(told.Errors, "; "), 500))
	}
	if n := s.requested(); n != all {
		t.Errorf("the log holds %d requests, want %d", n, all)
	}
	s.otherContent()
	// Who knows nothing but NATS hears which run it is.
	for _, h := range heard.all() {
		if h.Type == session.NoticeRunStarted && !strings.Contains(string(h.Data), `"submission":"`+submissionName+`"`) {
			t.Errorf("RunStarted says %s, want the submission", h.Data)
		}
	}
	for typ, want := range map[string]int{session.NoticeRunStarted: 1, session.NoticeRunFinished: 1, session.NoticeRunQueued: 0, session.NoticeEventRejected: 1} {
		if n := heard.count(typ); n != want {
			t.Errorf("%s was said %d times, want %d", typ, n, want)
		}
	}
	if got := s.attempts(submissionSession); got != "r1t1" {
		t.Errorf("asked: %s, want one turn", got)
	}
	verifyAll(t, s.url)
}

// requested returns how many requests the log holds.
func (s *system) requested() uint64 {
	s.t.Helper()
	subject, err := s.names.Stored(session.DoorIn, submissionSession)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.subjectsOf(s.names.LogStream(), subject)[subject]
}

// otherContent submits something else under the same name, which is refused.
func (s *system) otherContent() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), submissionWithin)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	seq, err := c.Run(ctx, submissionSession, "something else", client.RunOptions{Submission: submissionName})
	if err != nil {
		s.t.Fatal(err)
	}
	var refused *client.RejectedError
	if run, err := c.RunOf(ctx, submissionSession, seq); !errors.As(err, &refused) || refused.Code != session.RejectDuplicateSubmission {
		s.t.Errorf("other content is run %d (%v), want %s", run, err, session.RejectDuplicateSubmission)
	}
	s.at(submissionSession, seq)
	s.folded()
}
