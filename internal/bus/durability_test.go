package bus_test

// How the servers sync, found out from each place that tells it; and what
// follows for an operator who wants something. The servers are real.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	refold "github.com/refold/refold"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
)

// monitored starts a server with a monitoring port that syncs at this interval;
// 0: always.
func monitored(t *testing.T, every time.Duration) (node *bustest.Node, url string) {
	t.Helper()
	node = bustest.Server(t, func(o *server.Options) {
		o.SyncAlways, o.SyncInterval = every == 0, every
		o.HTTPHost, o.HTTPPort = "127.0.0.1", server.RANDOM_PORT
	})
	return node, "http://" + node.Raw().MonitorAddr().String()
}

// said connects and provisions, and returns what is known then, with the line
// that is logged.
func said(t *testing.T, o bus.Options) (d bus.Durability, line string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b, err := bus.Connect(ctx, o)
	if err != nil {
		return bus.DurabilityUnknown, "", err
	}
	defer b.Close()
	conf, err := bus.ParseConf(refold.StreamsConf, b.Names())
	if err != nil {
		t.Fatal(err)
	}
	err = b.Provision(ctx, conf, 0)
	for one := range strings.Lines(log.String()) {
		if strings.Contains(one, "msg=durability ") {
			line += one
		}
	}
	return b.Durability(), line, err
}

func TestDurabilityIsFoundOut(t *testing.T) {
	t.Parallel()
	always, atAlways := monitored(t, 0)
	interval, atInterval := monitored(t, 2*time.Minute)
	_, atOften := monitored(t, 3*time.Second)
	plain := bustest.Configured(t, "http: 127.0.0.1:-1") // without JetStream
	atPlain := "http://" + plain.Raw().MonitorAddr().String()
	silent := silentAt(t)
	for name, c := range map[string]struct {
		o    bus.Options
		want bus.Durability
		line []string
	}{
		"in process":             {bus.Options{InProcess: always}, bus.DurabilityAlways, []string{"is=always", `server="sync always"`, "log_copies=1"}},
		"the server itself":      {bus.Options{InProcess: interval.Raw()}, bus.DurabilityInterval, []string{"is=interval", `server="sync every 2m"`}},
		"monitoring":             {bus.Options{URL: always.URL(), Monitor: []string{atAlways}}, bus.DurabilityAlways, []string{`server="sync always"`, "monitoring"}},
		"the weakest counts":     {bus.Options{URL: always.URL(), Monitor: []string{atAlways, atInterval, atOften}}, bus.DurabilityInterval, []string{`server="sync every 2m"`, "3 of 3 servers"}},
		"whatever the order":     {bus.Options{URL: always.URL(), Monitor: []string{atOften, atInterval, atAlways}}, bus.DurabilityInterval, []string{`server="sync every 2m"`}},
		"one keeps nothing":      {bus.Options{URL: always.URL(), Monitor: []string{atPlain, atAlways}}, bus.DurabilityAlways, []string{`server="sync always"`}},
		"none keeps anything":    {bus.Options{URL: always.URL(), Monitor: []string{atPlain}}, bus.DurabilityUnknown, []string{"no server there has JetStream"}},
		"one is silent":          {bus.Options{URL: always.URL(), Monitor: []string{atAlways, silent}}, bus.DurabilityUnknown, []string{`server="sync unknown"`, silent}},
		"silent, one is weak":    {bus.Options{URL: always.URL(), Monitor: []string{atInterval, silent}}, bus.DurabilityInterval, []string{`server="sync every 2m"`, silent}},
		"another program":        {bus.Options{URL: always.URL(), Monitor: []string{atAlways + "/varz?"}}, bus.DurabilityUnknown, []string{`server="sync unknown"`}},
		"nobody asked":           {bus.Options{URL: always.URL()}, bus.DurabilityUnknown, []string{"is=unknown", "--monitor", "--durability"}},
		"the operator's word":    {bus.Options{URL: always.URL(), Durability: bus.DurabilityAlways}, bus.DurabilityAlways, []string{"is=always", `server="sync unknown"`, "wanted=always", "operator's word"}},
		"another word":           {bus.Options{URL: interval.URL(), Durability: bus.DurabilityInterval}, bus.DurabilityInterval, []string{"is=interval", "operator's word"}},
		"as the operator says":   {bus.Options{URL: always.URL(), Monitor: []string{atAlways}, Durability: bus.DurabilityAlways}, bus.DurabilityAlways, []string{"wanted=always", `server="sync always"`}},
		"silent, and a word":     {bus.Options{URL: always.URL(), Monitor: []string{silent}, Durability: bus.DurabilityAlways}, bus.DurabilityAlways, []string{"operator's word", silent}},
		"no such credentials":    {bus.Options{URL: always.URL(), SystemCreds: "/none.creds"}, bus.DurabilityUnknown, []string{"/none.creds"}},
		"credentials of nothing": {bus.Options{URL: always.URL(), SystemCreds: write(t, "c.creds", "x")}, bus.DurabilityUnknown, []string{"--system-creds"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Prefix = prefixOf(name)
			got, line, err := said(t, c.o)
			if err != nil || got != c.want {
				t.Errorf("durability: got %v (%v), want %v", got, err, c.want)
			}
			if n := strings.Count(line, "\n"); n != 1 {
				t.Errorf("got %d lines, want 1: %s", n, line)
			}
			for _, want := range c.line {
				if !strings.Contains(line, want) {
					t.Errorf("got %q, which does not tell of %s", line, want)
				}
			}
		})
	}
}

// silentAt returns an address where whoever connects is left at once.
func silentAt(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// prefixOf makes a test's name a prefix of its own.
func prefixOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, name)
}

// write writes a file for one test.
func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContradictionsAreErrors(t *testing.T) {
	t.Parallel()
	always, atAlways := monitored(t, 0)
	interval, atInterval := monitored(t, time.Minute)
	for name, c := range map[string]struct {
		o    bus.Options
		want []string
	}{
		"always wanted":         {bus.Options{InProcess: interval, Durability: bus.DurabilityAlways}, []string{"sync every 1m", "sync_interval: always", "--durability interval"}},
		"interval wanted":       {bus.Options{InProcess: always, Durability: bus.DurabilityInterval}, []string{"sync always", "--durability always"}},
		"one of two is weak":    {bus.Options{URL: always.URL(), Monitor: []string{atAlways, atInterval}, Durability: bus.DurabilityAlways}, []string{atInterval, "sync every 1m"}},
		"one copy":              {bus.Options{InProcess: always, Durability: bus.DurabilityReplicated}, []string{"REFOLD_", "has 1", "--replicas 3"}},
		"one copy, not asked":   {bus.Options{URL: always.URL(), Durability: bus.DurabilityReplicated}, []string{"has 1", "--replicas 3"}},
		"interval, by a server": {bus.Options{URL: interval.URL(), Monitor: []string{atInterval}, Durability: bus.DurabilityAlways}, []string{"sync every 1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, line, err := said(t, c.o)
			if !errors.Is(err, bus.ErrDurability) {
				t.Fatalf("got %v, want an ErrDurability; it says %q", err, line)
			}
			if line != "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("got more than one line: %q, %q", err, line)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, which does not tell of %s", err, want)
				}
			}
		})
	}
}

// TestSystemAccountTellsDurability asks all servers at once, over a connection
// of a user of the system account.
func TestSystemAccountTellsDurability(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR", sync_interval: always }
		accounts {
			SYS { users: [ { user: admin, password: secret } ] }
			APP { jetstream: enabled, users: [ { user: app, password: app } ] }
		}
		system_account: SYS`)
	url := strings.Replace(node.URL(), "://", "://app:app@", 1)
	for name, c := range map[string]struct {
		user string
		want bus.Durability
		line string
	}{
		"a user of the system account": {"admin:secret", bus.DurabilityAlways, `server="sync always"`},
		"no user of it":                {"app:app", bus.DurabilityUnknown, "system account?"},
		"a wrong password":             {"admin:open", bus.DurabilityUnknown, "--system-creds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, password, _ := strings.Cut(c.user, ":")
			file := write(t, "system.json", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password))
			got, line, err := said(t, bus.Options{URL: url, SystemCreds: file, Prefix: prefixOf(name)})
			if err != nil || got != c.want {
				t.Errorf("durability: got %v (%v), want %v", got, err, c.want)
			}
			if !strings.Contains(line, c.line) {
				t.Errorf("got %q, which does not tell of %s", line, c.line)
			}
		})
	}
}

func TestDurabilityOfACluster(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := bus.Connect(ctx, bus.Options{InProcess: nodes[0], Durability: bus.DurabilityReplicated})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// One of three was asked: the others may do anything.
	if got, want := b.Durability(), bus.DurabilityReplicated; got != want {
		t.Errorf("before its streams are looked at: got %v, want the operator's word, %v", got, want)
	}
	conf, err := bus.ParseConf(refold.StreamsConf, b.Names())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Provision(ctx, conf, 1); !errors.Is(err, bus.ErrDurability) {
		t.Errorf("one copy: got %v, want an ErrDurability", err)
	}
	if err := b.Provision(ctx, conf, 3); err != nil {
		t.Errorf("three copies: %v", err)
	}
	if got, want := b.Durability(), bus.DurabilityReplicated; got != want {
		t.Errorf("three copies: got %v, want %v", got, want)
	}
}

func TestDurabilityInWords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "interval", "replicated", "always"} {
		d, err := bus.ParseDurability(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if want := text; want != "" && d.String() != want {
			t.Errorf("%q: got %v", text, d)
		}
	}
	for _, text := range []string{"unknown", "Always", "never", " always"} {
		if d, err := bus.ParseDurability(text); err == nil || d != bus.DurabilityUnknown || !strings.Contains(err.Error(), "interval, replicated, always") {
			t.Errorf("%q: got %v, %v", text, d, err)
		}
	}
	urls, err := bus.ParseMonitors(" http://a:8222, b:8222 ,,https://c/nats")
	if got, want := strings.Join(urls, " "), "http://a:8222 http://b:8222 https://c/nats"; got != want || err != nil {
		t.Errorf("monitoring addresses: got %q (%v), want %q", got, err, want)
	}
	for _, text := range []string{"nats://a:4222", "http://", "a b"} {
		if urls, err := bus.ParseMonitors(text); err == nil {
			t.Errorf("%q: got %q", text, urls)
		}
	}
}
