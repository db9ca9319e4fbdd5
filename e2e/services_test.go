package e2e_test

// NATS services as tools: the examples run as processes, and a session uses
// their tools.

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
)

// TestServiceInGo: the example in Go; then it is killed, and a call waits for
// it.
func TestServiceInGo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "examples", "service-go")
	build := exec.Command("go", "build", "-o", program("orders"), "./"+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	s := startServiceSystem(t, dir)
	orders := startDaemon(t, "orders", "--nats", s.url)
	s.playService(dir, "orders.find", "orders.place")
	s.wantCalls("s1", "orders_find", "orders_place", "orders_find")

	// Nobody is there, and the server knows: a call waits, and the next service
	// answers it.
	orders.kill()
	until(t, time.Minute, "nobody listens", func() bool {
		_, err := s.nc.Request("orders.find", []byte("{}"), time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	s.run(session.DoorIn, "s2", "Order three pieces of tea.", nil)
	s.view("s2", "its first calls", func(v session.View) bool { return v.Batch != nil && len(v.Batch.Calls) == 2 })
	orders.start()
	s.wantEnd("s2", 1, session.Completed, "")
}

// startServiceSystem starts a system without tools, and the model of an
// example.
func startServiceSystem(t *testing.T, dir string) *system {
	t.Helper()
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{}, "config": object{"provider": "scripted", "model": "any"}})
	script, err := os.ReadFile(filepath.Join(dir, "model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.models(string(script), "scripted")
	// Tools are imported on top of the record that is there: without one, of the
	// built-in, which has no config.
	until(t, time.Minute, "the install record is stored", func() bool {
		m, err := s.nc.Request("$JS.API.DIRECT.GET.REFOLD_LOG", []byte(`{"last_by_subj":"refold.install"}`), time.Second)
		return err == nil && m.Header.Get("Status") == ""
	})
	return s
}

// playService does what the README of an example says, whose service runs: the
// session s1 ends with the answer that stands there.
func (s *system) playService(dir string, tools ...string) {
	s.t.Helper()
	startDaemon(s.t, "bridge", "--nats", s.url, "--tools", "services")
	var record, said string
	until(s.t, time.Minute, "the service offers its tools", func() bool {
		var status int
		record, said, status = run(s.t, time.Minute, nil, "refold", "--nats", s.url, "tools", "import", "services")
		return status == 0 && !slices.ContainsFunc(tools, func(tool string) bool { return !strings.Contains(record, `"`+tool+`"`) })
	}) // it offers them one after the other
	for _, tool := range tools {
		if !strings.Contains(said, tool+": service ") {
			s.t.Errorf("the import says %q, and prints %s: %s is missing", said, record, tool)
		}
	}
	if out, errOut, status := run(s.t, time.Minute, []byte(record), "refold", "--nats", s.url, "install", "-"); status != 0 {
		s.t.Fatalf("install: %s%s", out, errOut)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(readme), "    Done: ")
	want, _, _ = strings.Cut("Done: "+want, "\n")
	out, errOut, status := run(s.t, time.Minute, nil, "refold", "--nats", s.url, "run", "s1", "Do as your script says.")
	if status != 0 || out != want+"\n" {
		s.t.Errorf("the run prints %q and %q, status %d; want %q", out, errOut, status, want)
	}
}
