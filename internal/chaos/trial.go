package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/subjects"
)

// Limits of one trial.
const (
	readyWithin   = 30 * time.Second
	viewWithin    = 5 * time.Second
	restEvery     = 100 * time.Millisecond
	restLooks     = 3 // in a row: a count that is 0 once may be one that is not told yet
	accountGlobal = "$G"
)

// trial is one conversation on a store of its own.
type trial struct {
	explorer *Explorer
	dir      string
	names    subjects.Names
	server   *server.Server
	client   *client.Client
	proxies  map[Part]*proxy
	running  map[Part]*process
	failed   chan error
}

// outcome is what a trial came to.
type outcome struct {
	end     *End
	points  []Point // that its processes came by
	said    string  // what its processes logged last
	revived int     // how often one that could not run was started again
	reached bool    // the process was killed where it should be
}

// try holds the conversation and kills a process at the point, if one is
// given. An error says that no end was reached, or could be looked at.
func (x *Explorer) try(ctx context.Context, at *Point) (out outcome, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, x.options.Within, fmt.Errorf("no end within %v", x.options.Within))
	defer cancel()
	t := &trial{explorer: x, proxies: map[Part]*proxy{}, running: map[Part]*process{}, failed: make(chan error, 8)}
	if t.dir, err = os.MkdirTemp(x.options.Dir, "trial-"); err != nil {
		return out, err
	}
	defer func() {
		t.stop()
		err = errors.Join(err, os.RemoveAll(t.dir))
	}()
	if err := t.start(ctx, at); err != nil {
		return out, because(ctx, err)
	}
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	struck := t.watch(ctx, at, give)
	out.end, err = t.hold(ctx)
	out.said, out.revived = t.said(), t.running[SessionActor].revivals()+t.running[Bridge].revivals()
	if err != nil {
		return out, because(ctx, err)
	}
	select {
	case <-struck:
		out.reached = true
	default:
	}
	for _, part := range Parts() {
		out.points = append(out.points, t.proxies[part].points()...)
	}
	return out, nil
}

// said returns what the processes logged last, for people.
func (t *trial) said() string {
	var all strings.Builder
	for _, part := range Parts() {
		for line := range strings.Lines(t.running[part].said.String()) {
			fmt.Fprintf(&all, "%s: %s\n", part, strings.TrimSpace(line))
		}
	}
	return all.String()
}

// because says why a context ended, if that is the reason of err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// start starts the server, the processes and the client.
func (t *trial) start(ctx context.Context, at *Point) (err error) {
	if t.names, err = subjects.New(""); err != nil {
		return err
	}
	if err := t.explorer.cast.prepare(t.dir); err != nil {
		return err
	}
	t.server, err = server.NewServer(&server.Options{
		ServerName: "refold-chaos", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: filepath.Join(t.dir, "nats"), SyncAlways: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	go t.server.Start()
	if !t.server.ReadyForConnections(readyWithin) {
		return fmt.Errorf("the NATS server was not ready within %v", readyWithin)
	}
	address := t.server.Addr().(*net.TCPAddr).String()
	for _, part := range Parts() {
		var target *Point
		if at != nil && at.Part == part {
			target = at
		}
		p := &process{part: part, failed: func(err error) { t.failed <- err }}
		t.running[part] = p
		if t.proxies[part], err = newProxy(part, address, t.names, target, p.kill); err != nil {
			return err
		}
		p.argv = t.explorer.argv(part, t.proxies[part].url(), t.dir)
	}
	t.client, err = client.Connect(ctx, client.Options{InProcess: t.server, Name: "refold-chaos"})
	return err
}

// watch starts the process again when it was killed, and gives up when another
// ends by itself. The channel is closed when the process runs again.
func (t *trial) watch(ctx context.Context, at *Point, give context.CancelCauseFunc) <-chan struct{} {
	again := make(chan struct{})
	var struck <-chan struct{}
	if at != nil {
		struck = t.proxies[at.Part].struck
	}
	go func() {
		for {
			select {
			case <-struck:
				struck = nil
				if err := t.running[at.Part].start(); err != nil {
					give(err)
				}
				close(again)
			case err := <-t.failed:
				give(err)
			case <-ctx.Done():
				return
			}
		}
	}()
	return again
}

// stop ends everything that runs.
func (t *trial) stop() {
	if t.client != nil {
		t.client.Close()
	}
	for _, p := range t.running {
		p.stop()
	}
	for _, p := range t.proxies {
		p.close()
	}
	if t.server != nil {
		t.server.Shutdown()
		t.server.WaitForShutdown()
	}
}

// hold holds the conversation, waits for rest, and gathers what is left.
func (t *trial) hold(ctx context.Context) (*End, error) {
	conversation := t.explorer.conversation
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	from := uint64(0)
	for i, text := range conversation.Says {
		seq, err := t.client.Run(ctx, conversation.Session, text, client.RunOptions{})
		if err == nil && conversation.Cancelled {
			err = t.cancel(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("ask for run %d: %w", i+1, err)
		}
		_, err = t.client.End(ctx, conversation.Session, seq, from+1, func(n client.Notice) { from = n.StreamSeq })
		if err != nil {
			return nil, fmt.Errorf("wait for the end of run %d: %w", i+1, err)
		}
	}
	if conversation.Cancelled {
		if err := t.running[Bridge].start(); err != nil {
			return nil, err
		}
	}
	// A session-actor that answers has been started again; what it does then may
	// cause work.
	if _, err := t.view(ctx); err != nil {
		return nil, err
	}
	if err := t.rest(ctx); err != nil {
		return nil, err
	}
	g := gather{client: t.client, view: t.view, cast: t.explorer.cast, dir: t.dir, sid: conversation.Session}
	return g.end(ctx)
}

// cancel cancels the run when its turn is asked.
func (t *trial) cancel(ctx context.Context) error {
	err := t.until(ctx, "no turn is asked", func() bool {
		view, err := t.view(ctx)
		return err == nil && slices.ContainsFunc(view.Open, func(e session.ViewEffect) bool { return e.Class == session.ClassLLM })
	})
	if err != nil {
		return err
	}
	_, err = t.client.Cancel(ctx, t.explorer.conversation.Session, client.ControlOptions{})
	return err
}

// begin starts the processes: the bridge when the session-actor has created
// what they work on, so that what each of them sends is its own in every trial.
func (t *trial) begin(ctx context.Context) error {
	if err := t.running[SessionActor].start(); err != nil {
		return err
	}
	err := t.until(ctx, "the streams are not there", func() bool {
		last, err := t.client.LastEvent(ctx) // the install record's, which comes when all streams and lanes are there
		return err == nil && last > 0
	})
	if err != nil {
		return err
	}
	if t.explorer.conversation.Cancelled {
		return nil // it comes later
	}
	return t.running[Bridge].start()
}

// rest waits until every message has been delivered and acknowledged.
func (t *trial) rest(ctx context.Context) error {
	looks, busy := 0, ""
	err := t.until(ctx, "no rest", func() bool {
		looks++
		if busy = t.busy(); busy != "" {
			looks = 0
		}
		return looks >= restLooks
	})
	if err != nil && busy != "" {
		return fmt.Errorf("%w: %s", err, busy)
	}
	return err
}

// busy names a consumer that has not done its work; empty: all have.
func (t *trial) busy() string {
	info, err := t.server.Jsz(&server.JSzOptions{Account: accountGlobal, Streams: true, Consumer: true})
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
	for _, class := range []session.Class{session.ClassLLM, session.ClassTool, session.ClassWake} {
		if !served[class] {
			return "no bridge has come that serves " + string(class)
		}
	}
	return ""
}

// view returns what the session-actor has of the session; one that was killed
// has it once it is there again.
func (t *trial) view(ctx context.Context) (view session.View, err error) {
	ended := t.until(ctx, "no view", func() bool {
		asking, cancel := context.WithTimeout(ctx, viewWithin)
		defer cancel()
		view, err = t.client.View(asking, t.explorer.conversation.Session)
		return err == nil
	})
	return view, errors.Join(ended, err)
}

// until looks again and again.
func (t *trial) until(ctx context.Context, what string, holds func() bool) error {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New(what)
		}
	}
	return nil
}

// argv returns how a process of a trial is started.
func (x *Explorer) argv(part Part, url, dir string) []string {
	s := x.options.Source
	argv := append(append([]string{}, x.options.Program...),
		"--part", string(part), "--url", url, "--dir", dir, "--model", s.Model)
	if s.Tools != "" {
		argv = append(argv, "--tools", s.Tools)
	}
	if len(s.RetrySafe) > 0 {
		argv = append(argv, "--retry-safe", strings.Join(s.RetrySafe, ","))
	}
	return argv
}
