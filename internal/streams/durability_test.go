package streams_test

// How the servers sync, asked in each way, and compared with what the operator requires.
// The servers are real.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
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

// said connects and provisions, and returns the durability and the logged line.
func said(t *testing.T, o natsio.Options) (d natsio.Durability, line string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b, err := bus.Connect(ctx, o)
	if err != nil {
		return natsio.DurabilityUnknown, "", err
	}
	defer b.Close()
	conf, err := streams.ParseConf(streams.File, b.Names())
	bustest.OK(t, err)
	err = b.Provision(ctx, conf, 0)
	for one := range strings.Lines(log.String()) {
		if strings.Contains(one, "msg=durability ") {
			line += one
		}
	}
	return b.Durability(), line, err
}

func TestDurabilityIsThatOfTheWeakestServer(t *testing.T) {
	t.Parallel()
	always, atAlways := monitored(t, 0)
	interval, atInterval := monitored(t, 2*time.Minute)
	_, atOften := monitored(t, 3*time.Second)
	plain := bustest.Configured(t, "http: 127.0.0.1:-1") // without JetStream
	atPlain := "http://" + plain.Raw().MonitorAddr().String()
	silent := silentAt(t)
	for name, c := range map[string]struct {
		o    natsio.Options
		want natsio.Durability
		line []string
	}{
		"in process":             {natsio.Options{InProcess: always}, natsio.DurabilityAlways, []string{"is=always", `server="sync always"`, "log_copies=1"}},
		"the server itself":      {natsio.Options{InProcess: interval.Raw()}, natsio.DurabilityInterval, []string{"is=interval", `server="sync every 2m"`}},
		"monitoring":             {natsio.Options{URL: always.URL(), Monitor: []string{atAlways}}, natsio.DurabilityAlways, []string{`server="sync always"`, "monitoring"}},
		"the weakest counts":     {natsio.Options{URL: always.URL(), Monitor: []string{atAlways, atInterval, atOften}}, natsio.DurabilityInterval, []string{`server="sync every 2m"`, "3 of 3 servers"}},
		"whatever the order":     {natsio.Options{URL: always.URL(), Monitor: []string{atOften, atInterval, atAlways}}, natsio.DurabilityInterval, []string{`server="sync every 2m"`}},
		"one keeps nothing":      {natsio.Options{URL: always.URL(), Monitor: []string{atPlain, atAlways}}, natsio.DurabilityAlways, []string{`server="sync always"`}},
		"none keeps anything":    {natsio.Options{URL: always.URL(), Monitor: []string{atPlain}}, natsio.DurabilityUnknown, []string{"no server there has JetStream"}},
		"one is silent":          {natsio.Options{URL: always.URL(), Monitor: []string{atAlways, silent}}, natsio.DurabilityUnknown, []string{`server="sync unknown"`, silent}},
		"silent, one is weak":    {natsio.Options{URL: always.URL(), Monitor: []string{atInterval, silent}}, natsio.DurabilityInterval, []string{`server="sync every 2m"`, silent}},
		"another program":        {natsio.Options{URL: always.URL(), Monitor: []string{atAlways + "/varz?"}}, natsio.DurabilityUnknown, []string{`server="sync unknown"`}},
		"nobody asked":           {natsio.Options{URL: always.URL()}, natsio.DurabilityUnknown, []string{"is=unknown", "--monitor", "--durability"}},
		"the operator's word":    {natsio.Options{URL: always.URL(), Durability: natsio.DurabilityAlways}, natsio.DurabilityAlways, []string{"is=always", `server="sync unknown"`, "wanted=always", "operator's word"}},
		"another word":           {natsio.Options{URL: interval.URL(), Durability: natsio.DurabilityInterval}, natsio.DurabilityInterval, []string{"is=interval", "operator's word"}},
		"as the operator says":   {natsio.Options{URL: always.URL(), Monitor: []string{atAlways}, Durability: natsio.DurabilityAlways}, natsio.DurabilityAlways, []string{"wanted=always", `server="sync always"`}},
		"silent, and a word":     {natsio.Options{URL: always.URL(), Monitor: []string{silent}, Durability: natsio.DurabilityAlways}, natsio.DurabilityAlways, []string{"operator's word", silent}},
		"no such credentials":    {natsio.Options{URL: always.URL(), SystemCreds: "/none.creds"}, natsio.DurabilityUnknown, []string{"/none.creds"}},
		"credentials of nothing": {natsio.Options{URL: always.URL(), SystemCreds: testbus.WriteFile(t, "c.creds", "x")}, natsio.DurabilityUnknown, []string{"--system-creds"}},
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

// silentAt returns an address that closes every connection at once.
func silentAt(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
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

func TestContradictedDurabilityIsAnError(t *testing.T) {
	t.Parallel()
	always, atAlways := monitored(t, 0)
	interval, atInterval := monitored(t, time.Minute)
	for name, c := range map[string]struct {
		o    natsio.Options
		want []string
	}{
		"always wanted":         {natsio.Options{InProcess: interval, Durability: natsio.DurabilityAlways}, []string{"sync every 1m", "sync_interval: always", "--durability interval"}},
		"interval wanted":       {natsio.Options{InProcess: always, Durability: natsio.DurabilityInterval}, []string{"sync always", "--durability always"}},
		"one of two is weak":    {natsio.Options{URL: always.URL(), Monitor: []string{atAlways, atInterval}, Durability: natsio.DurabilityAlways}, []string{atInterval, "sync every 1m"}},
		"one copy":              {natsio.Options{InProcess: always, Durability: natsio.DurabilityReplicated}, []string{"REFOLD_", "has 1", "--replicas 3"}},
		"one copy, not asked":   {natsio.Options{URL: always.URL(), Durability: natsio.DurabilityReplicated}, []string{"has 1", "--replicas 3"}},
		"interval, by a server": {natsio.Options{URL: interval.URL(), Monitor: []string{atInterval}, Durability: natsio.DurabilityAlways}, []string{"sync every 1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, line, err := said(t, c.o)
			if !errors.Is(err, streams.ErrDurability) {
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

// TestSystemAccountReportsDurability asks all servers over a connection of a user of the
// system account.
func TestSystemAccountReportsDurability(t *testing.T) {
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
		want natsio.Durability
		line string
	}{
		"a user of the system account": {"admin:secret", natsio.DurabilityAlways, `server="sync always"`},
		"no user of it":                {"app:app", natsio.DurabilityUnknown, "system account?"},
		"a wrong password":             {"admin:open", natsio.DurabilityUnknown, "--system-creds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, password, _ := strings.Cut(c.user, ":")
			file := testbus.WriteFile(t, "system.json", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password))
			got, line, err := said(t, natsio.Options{URL: url, SystemCreds: file, Prefix: prefixOf(name)})
			if err != nil || got != c.want {
				t.Errorf("durability: got %v (%v), want %v", got, err, c.want)
			}
			if !strings.Contains(line, c.line) {
				t.Errorf("got %q, which does not tell of %s", line, c.line)
			}
		})
	}
}

func TestReplicatedDurabilityNeedsThreeCopies(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := testbus.ConnectWith(t, natsio.Options{InProcess: nodes[0], Durability: natsio.DurabilityReplicated})
	// One of three was asked: the others may do anything.
	if got, want := b.Durability(), natsio.DurabilityReplicated; got != want {
		t.Errorf("before its streams are looked at: got %v, want the operator's word, %v", got, want)
	}
	conf, err := streams.ParseConf(streams.File, b.Names())
	bustest.OK(t, err)
	if err := b.Provision(ctx, conf, 1); !errors.Is(err, streams.ErrDurability) {
		t.Errorf("one copy: got %v, want an ErrDurability", err)
	}
	if err := b.Provision(ctx, conf, 3); err != nil {
		t.Errorf("three copies: %v", err)
	}
	if got, want := b.Durability(), natsio.DurabilityReplicated; got != want {
		t.Errorf("three copies: got %v, want %v", got, want)
	}
}

func TestParseDurabilityAndMonitors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "interval", "replicated", "always"} {
		d, err := natsio.ParseDurability(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if want := text; want != "" && d.String() != want {
			t.Errorf("%q: got %v", text, d)
		}
	}
	for _, text := range []string{"unknown", "Always", "never", " always"} {
		if d, err := natsio.ParseDurability(text); err == nil || d != natsio.DurabilityUnknown || !strings.Contains(err.Error(), "interval, replicated, always") {
			t.Errorf("%q: got %v, %v", text, d, err)
		}
	}
	urls, err := streams.ParseMonitors(" http://a:8222, b:8222 ,,https://c/nats")
	if got, want := strings.Join(urls, " "), "http://a:8222 http://b:8222 https://c/nats"; got != want || err != nil {
		t.Errorf("monitoring addresses: got %q (%v), want %q", got, err, want)
	}
	for _, text := range []string{"nats://a:4222", "http://", "a b"} {
		if urls, err := streams.ParseMonitors(text); err == nil {
			t.Errorf("%q: got %q", text, urls)
		}
	}
}
