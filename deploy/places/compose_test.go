package places_test

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestComposeFileRuns: docker-compose.yml comes up as it stands, does what its first lines
// tell, and loses each of its services, one after the other, while a run is in progress.
// Every run ends, and writes each line once: only a command that was running in a killed
// bridge may be one of which nobody knows whether it wrote. All sessions then have the
// state that their events fold to.
func TestComposeFileRuns(t *testing.T) {
	t.Parallel()
	e := load(t, "../../docker-compose.yml", "OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://"+subnet+"1:8080/v1")
	serveModel(t, subnet+"1:8080")
	e.up()
	for port := 4222; port <= 4224; port++ {
		if got := firstLine(t, fmt.Sprint("127.0.0.1:", port)); !strings.HasPrefix(got, "INFO ") {
			t.Errorf("port %d says %q, want a NATS server", port, got)
		}
	}
	out, status := e.run("client", "run", "s1", "--provider", "openai", "--model", "gpt-4.1", "What is in your working directory?")
	if status != 0 || !strings.Contains(out, "The end, with 0 unknown.") {
		t.Fatalf("a run: status %d: %s", status, out)
	}
	tail := e.oneOff("operator")
	watches := tail.daemon(t, append(tail.argv[:1:1], "tail")...)
	for _, name := range slices.Sorted(maps.Keys(e.services)) {
		if c := e.services[name]; c.service.Restart != "" {
			e.lose(c)
		}
	}
	watches.says(t, "tools_2")
	if out, status := e.run("operator", "verify", "--all"); status != 0 {
		t.Errorf("refold verify: status %d: %s", status, out)
	} else {
		t.Log(out)
	}
}

// lose kills a service while a run is in progress, and checks the run.
func (e *engine) lose(c *container) {
	t := e.t
	t.Helper()
	began, sid := time.Now(), strings.ReplaceAll(c.name, "-", "_")
	type result struct {
		out    string
		status int
	}
	ended := make(chan result, 1)
	client := e.oneOff("client")
	go func() {
		out, status := client.run(t, endWithin, append(client.argv[:1:1], "run", sid, "--provider", "openai", "--model", "gpt-4.1", "write "+sid)...)
		ended <- result{out, status}
	}()
	until(t, endWithin, "the run writes", func() bool { return len(e.ledger(sid)) > 1 })
	if wrote := len(e.ledger(sid)); wrote >= steps {
		t.Errorf("%s: the run has written %d lines before anything is killed", c.name, wrote)
	}
	c.kill(t)
	back := time.Since(began)
	r := <-ended
	lines, unknown := e.ledger(sid), -1
	if at := strings.Index(r.out, "The end, with "); at >= 0 {
		_, _ = fmt.Sscanf(r.out[at:], "The end, with %d unknown.", &unknown)
	}
	t.Logf("%s: killed and healthy after %v, the run ended after %v, %d unknown, %v", c.name, back.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond), unknown, lines)
	bridge := c.service.Build.Target == "bridge"
	if r.status != 0 || unknown < 0 || unknown > 0 && !bridge || unknown > 1 {
		t.Errorf("%s: status %d, %d unknown: %s", c.name, r.status, unknown, r.out)
	}
	want := make([]string, steps)
	for i := range want {
		want[i] = fmt.Sprint(i + 1)
	}
	if missing := steps - len(lines); !slices.Equal(lines, want) && (missing < 0 || missing > unknown || len(slices.Compact(slices.Clone(lines))) != len(lines)) {
		t.Errorf("%s: the commands wrote %v, want %v", c.name, lines, want)
	}
}

// ledger returns the lines that the commands of a session wrote.
func (e *engine) ledger(sid string) []string {
	found, _ := filepath.Glob(filepath.Join(e.volume("work"), "*", sid))
	if len(found) != 1 {
		return nil
	}
	text, _ := os.ReadFile(found[0])
	return strings.Fields(string(text))
}

// firstLine reads what a server says first.
func firstLine(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return line
}
