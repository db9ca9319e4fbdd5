package chaos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Limits of the NATS server of a trial.
const (
	readyWithin   = 30 * time.Second
	jszWithin     = 10 * time.Second
	accountGlobal = "$G"
)

// serveNATS runs a NATS server with its files in dir, each write synced, on free
// ports. It prints its addresses on one line, for clients and for monitoring.
func serveNATS(ctx context.Context, dir string, stdout io.Writer) error {
	srv, err := server.NewServer(&server.Options{
		ServerName: "refold-chaos", Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"), SyncAlways: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	go srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		return fmt.Errorf("the NATS server was not ready within %v", readyWithin)
	}
	if _, err := fmt.Fprintln(stdout, srv.Addr(), srv.MonitorAddr()); err != nil {
		return err
	}
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// natsProcess is the NATS server of a trial.
type natsProcess struct {
	process

	mu              sync.Mutex
	heard           []byte // the beginning of its line
	client, monitor string // addresses; "" while it is down
	up              chan struct{}
}

func newNATSProcess(argv []string, failed func(error)) *natsProcess {
	s := &natsProcess{process: process{part: Server, argv: argv, failed: failed}, up: make(chan struct{})}
	s.out = s
	return s
}

// Write reads the process's output: its line.
func (s *natsProcess) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, p...)
	if line, _, whole := bytes.Cut(s.heard, []byte("\n")); whole && s.client == "" {
		s.client, s.monitor, _ = strings.Cut(string(line), " ")
		s.heard = nil
		s.begun()
		close(s.up)
	}
	return len(p), nil
}

// forget clears the addresses: whatever listens there next is another server.
func (s *natsProcess) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client, s.monitor, s.heard, s.up = "", "", nil, make(chan struct{})
}

// run starts the server and waits until it is ready.
func (s *natsProcess) run(ctx context.Context) error {
	s.forget()
	if err := s.start(); err != nil {
		return err
	}
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	select {
	case <-up:
		return nil
	case <-late.C:
		return fmt.Errorf("the NATS server's process printed nothing for %v: %s", readyWithin, &s.log)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// address returns the address for clients; "" while it is down.
func (s *natsProcess) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// jsz reads the state of the server's streams and consumers.
func (s *natsProcess) jsz(ctx context.Context) (info *server.JSInfo, err error) {
	s.mu.Lock()
	monitor := s.monitor
	s.mu.Unlock()
	if monitor == "" {
		return nil, errors.New("the NATS server is down")
	}
	ctx, cancel := context.WithTimeout(ctx, jszWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+monitor+"/jsz?streams=true&consumers=true&acc="+accountGlobal, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, answer.Body.Close()) }()
	info = &server.JSInfo{}
	return info, json.NewDecoder(answer.Body).Decode(info)
}

// busy describes a consumer with unfinished work; "": all are done.
func (s *natsProcess) busy(ctx context.Context) string {
	info, err := s.jsz(ctx)
	if err != nil {
		return err.Error()
	}
	served := map[session.Class]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			for _, c := range stream.Consumer {
				class, _, _ := subjects.ParseBridgeName(c.Name)
				served[class] = true
				if lasts(c.Name) && (c.NumPending > 0 || c.NumAckPending > 0) {
					return fmt.Sprintf("%s has %d to deliver, and %d not acknowledged", c.Name, c.NumPending, c.NumAckPending)
				}
			}
		}
	}
	for _, class := range []session.Class{session.ClassLLM, session.ClassTool} {
		if !served[class] {
			return "no bridge has started that serves " + string(class)
		}
	}
	return ""
}
