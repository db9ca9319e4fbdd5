package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/subjects"
)

// Limits of one trial.
const (
	killWithin = 30 * time.Second // added for each kill after the first
	viewWithin = 5 * time.Second
	askWithin  = 15 * time.Second // for an acknowledgement, before the request is sent again with its id
	restEvery  = 100 * time.Millisecond
	restLooks  = 3 // in a row: a count of 0 may be outdated
)

// trial is one conversation on its own store.
type trial struct {
	explorer *Explorer
	dir      string
	names    subjects.Names
	server   *natsProcess
	client   *client.Client
	aim      *aim
	proxies  []*proxy
	spans    *collector
	running  map[Part]*process // the daemons
	failed   chan error

	killed sync.WaitGroup // the goroutines that start processes again
	mu     sync.Mutex
	kills  int  // kills that are done, and whose processes run again
	over   bool // nothing is started again
}

// outcome is the result of a trial.
type outcome struct {
	end      *End
	points   []Point // that its processes passed
	order    []Point // Before each message, of all processes in order of arrival
	hits     []hit   // kills that began
	recovery []Point // since the last kill
	logs     string  // the latest logs of its processes
	revived  int     // how often a process that could not run was started again
	missed   Course  // kills that were not done
	drained  time.Duration
}

// try runs the conversation with the kills of the course. It returns an error if
// no end was reached, or if the end could not be read.
func (x *Explorer) try(ctx context.Context, course Course) (out outcome, err error) {
	within := x.options.Within + time.Duration(max(0, len(course)-1))*killWithin
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no end within %v", within))
	defer cancel()
	t := &trial{explorer: x, running: map[Part]*process{}, failed: make(chan error, 8)}
	if t.dir, err = os.MkdirTemp(x.options.Dir, "trial-"); err != nil {
		return out, err
	}
	defer func() {
		t.stop()
		err = errors.Join(err, os.RemoveAll(t.dir))
	}()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	go watch(ctx, t.failed, give)
	if err := t.start(ctx, course); err != nil {
		return out, because(ctx, err)
	}
	out.end, err = t.hold(ctx)
	out.logs = t.logs()
	for _, p := range t.running {
		out.revived += p.revivals()
		out.drained = max(out.drained, p.longestDrain())
	}
	if err != nil {
		return out, because(ctx, err)
	}
	out.missed, out.hits = t.missed(), t.aim.hits()
	var since int
	out.order, since = t.aim.order()
	out.points, out.recovery = bothSides(out.order), bothSides(out.order[since:])
	return out, nil
}

// missed returns the kills that were not done, or whose victims don't run again.
func (t *trial) missed() Course {
	left := t.aim.left()
	t.mu.Lock()
	defer t.mu.Unlock()
	hits := t.aim.hits()
	for _, h := range hits[min(t.kills, len(hits)):] {
		left = append(left, h.kill)
	}
	return left
}

// logs returns the latest logs of the processes, for people.
func (t *trial) logs() string {
	return latestLogs(t.running[SessionActor], t.running[Bridge], &t.server.process)
}

// because adds the cause of a context's end to err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// start starts the server and the client, and prepares the daemons.
func (t *trial) start(ctx context.Context, course Course) (err error) {
	if t.names, err = subjects.New(""); err != nil {
		return err
	}
	if err := t.explorer.cast.prepare(t.dir); err != nil {
		return err
	}
	failed := func(err error) { t.failed <- err }
	t.aim = newAim(namer{t.names}, course)
	t.aim.alive = func(part Part, instance string) { t.running[part].alive(instance) }
	t.server = newNATSProcess(t.explorer.argv(Server, "", t.dir), failed)
	if err := t.server.run(ctx); err != nil {
		return err
	}
	if t.spans, err = newCollector(); err != nil {
		return err
	}
	for _, part := range Parts() {
		through, err := newProxy(part, t.server.address, t.aim, func(s Kill) { t.kill(ctx, s) })
		if err != nil {
			return err
		}
		t.proxies = append(t.proxies, through)
		t.running[part] = &process{part: part, argv: t.explorer.argv(part, through.url(), t.dir), env: []string{t.spans.environ()}, pause: revivePause, failed: failed}
	}
	// The client uses a proxy too; its messages are not points.
	through, err := newProxy("", t.server.address, newAim(namer{t.names}, nil), nil)
	if err != nil {
		return err
	}
	t.proxies = append(t.proxies, through)
	return t.retry(ctx, func(context.Context) (err error) { // a busy machine may take longer than a client's timeout
		t.client, err = client.Connect(ctx, client.Options{URL: through.url(), Name: "refold-chaos"})
		return err
	})
}

// kill carries out a kill, and has the processes that ran started again. It
// returns when the victim has ended, or has got SIGTERM.
func (t *trial) kill(ctx context.Context, s Kill) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	var again []func() error
	for _, part := range s.parts() {
		p := t.running[part]
		start := func() error { return p.start() }
		if part == Server {
			p = &t.server.process
			t.server.forget()
			start = func() error { return t.server.run(ctx) }
		}
		var ran bool
		var ended <-chan struct{}
		if s.Term {
			ran, ended = p.drain()
		} else {
			ran = p.kill()
		}
		if part == Server && ended != nil { // the next one needs its files
			begin := start
			start = func() error { <-ended; return begin() }
		}
		if ran {
			again = append(again, start)
		}
	}
	t.aim.done()
	t.killed.Go(func() {
		for _, start := range again {
			if err := start(); err != nil {
				t.failed <- err
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.kills++
	})
}

// watch ends the trial when a process ends by itself, or can't be started.
func watch(ctx context.Context, failed <-chan error, give context.CancelCauseFunc) {
	for {
		select {
		case err := <-failed:
			give(err)
		case <-ctx.Done():
			return
		}
	}
}

// stop ends everything.
func (t *trial) stop() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	if t.server != nil {
		t.server.stop()
	}
	for _, p := range t.running {
		p.stop()
	}
	t.killed.Wait()
	if t.client != nil {
		t.client.Close()
	}
	for _, p := range t.proxies {
		p.close()
	}
	if t.spans != nil {
		t.spans.close()
	}
}

// begin starts the processes. The bridge starts after the session-actor has
// created the streams, so that each sends the same messages in every trial.
func (t *trial) begin(ctx context.Context) error {
	if err := t.running[SessionActor].start(); err != nil {
		return err
	}
	err := until(ctx, "the streams do not exist", func() bool {
		last, err := t.client.LastEvent(ctx) // the install record, which follows all streams and lanes
		return err == nil && last > 0
	})
	if err != nil {
		return err
	}
	if t.explorer.conversation.Cancelled {
		return nil // it starts later
	}
	return t.running[Bridge].start()
}

// rest waits until every message has been delivered and acknowledged.
func (t *trial) rest(ctx context.Context) error {
	looks, busy := 0, ""
	err := until(ctx, "no rest", func() bool {
		looks++
		if busy = t.server.busy(ctx); busy != "" {
			looks = 0
		}
		return looks >= restLooks
	})
	if err != nil && busy != "" {
		return fmt.Errorf("%w: %s", err, busy)
	}
	return err
}

// view returns the session's view, after a kill from the new session-actor.
func (t *trial) view(ctx context.Context) (view session.View, err error) {
	ended := until(ctx, "no view", func() bool {
		asking, cancel := context.WithTimeout(ctx, viewWithin)
		defer cancel()
		view, err = t.client.View(asking, t.explorer.conversation.Session)
		return err == nil
	})
	return view, errors.Join(ended, err)
}

// until polls holds until it returns true.
func until(ctx context.Context, what string, holds func() bool) error {
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

// argv returns the command line of a trial's process.
func (x *Explorer) argv(part Part, url, dir string) []string {
	s := x.options.Source
	argv := append(append([]string{}, x.options.Program...),
		"--part", string(part), "--url="+url, "--dir", dir, "--model", s.Model)
	if s.Tools != "" {
		argv = append(argv, "--tools", s.Tools)
	}
	if len(s.RetrySafe) > 0 {
		argv = append(argv, "--retry-safe", strings.Join(s.RetrySafe, ","))
	}
	return argv
}
