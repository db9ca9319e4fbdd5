// The program of TestUpgrade that people would write themselves: a bridge with a tool of
// its own, or clients. The test builds it with the old and the new module, so it uses
// only what both have.
//
//	peer tools NATS NAME URL
//	peer clients NATS NAME JOURNAL
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := peer(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func peer(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: peer tools|clients NATS NAME URL|JOURNAL")
	}
	if args[0] == "tools" {
		return serveTools(ctx, args[1], args[2], args[3])
	}
	return playClients(ctx, args[1], args[2], args[3])
}

const (
	slots  = 8 // sessions of one process at the same time
	runs   = 2 // of each session
	pace   = 400 * time.Millisecond
	within = 4 * time.Minute // for a run
)

// clients are the clients of one process. The journal has the sessions that the clients
// of this name have begun and ended: the next process goes on with the others.
type clients struct {
	client  *client.Client
	name    string
	journal *os.File

	mu    sync.Mutex
	some  sync.Cond // a run has ended, or the time is over
	next  int       // number of the next session
	open  []string  // sessions that an earlier process has begun
	ended map[string]uint32
	done  bool // no session begins any more
}

// playClients holds sessions until SIGHUP, and then ends those that have begun; or until
// ctx ends, in the middle of them.
func playClients(ctx context.Context, url, name, path string) error {
	c := &clients{name: name, ended: map[string]uint32{}}
	c.some.L = &c.mu
	var err error
	if c.journal, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	defer c.journal.Close()
	if err := c.resume(); err != nil {
		return err
	}
	if c.client, err = client.Connect(ctx, client.Options{URL: url}); err != nil {
		return err
	}
	defer c.client.Close()
	finish := make(chan os.Signal, 1)
	signal.Notify(finish, syscall.SIGHUP)
	go func() {
		<-finish
		c.mu.Lock()
		c.done = true
		c.mu.Unlock()
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(ctx, c.wake)
	var all, tail sync.WaitGroup
	tail.Go(func() { c.follow(ctx) })
	failed := make([]error, slots)
	for i := range slots {
		all.Go(func() { failed[i] = c.play(ctx) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	stop()
	tail.Wait()
	return errors.Join(failed...)
}

func (c *clients) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some.Broadcast()
}

// resume reads the journal.
func (c *clients) resume() error {
	begun := map[string]bool{}
	var order []string
	lines := bufio.NewScanner(c.journal)
	for lines.Scan() {
		what, sid, _ := strings.Cut(lines.Text(), " ")
		begun[sid] = what == "begun"
		if begun[sid] {
			order = append(order, sid)
		}
	}
	for _, sid := range order {
		c.next++
		if begun[sid] {
			c.open = append(c.open, sid)
		}
	}
	return lines.Err()
}

// play holds one session after the other.
func (c *clients) play(ctx context.Context) error {
	for ctx.Err() == nil {
		sid, err := c.take()
		if err != nil || sid == "" {
			return err
		}
		for run := range uint32(runs) {
			if err := c.request(ctx, sid, run+1); err != nil {
				return err
			}
			if err := c.await(ctx, sid, run+1); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if _, err := fmt.Fprintln(c.journal, "ended", sid); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pace):
		}
	}
	return nil
}

// take returns a session that has begun, or the next one; none if there is nothing to do.
func (c *clients) take() (sid string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) > 0 {
		sid, c.open = c.open[0], c.open[1:]
		return sid, nil
	}
	if c.done {
		return "", nil
	}
	c.next++
	sid = fmt.Sprint(c.name, "-", c.next)
	_, err = fmt.Fprintln(c.journal, "begun", sid)
	return sid, err
}

// request asks for a run until it is acknowledged, under one id: it is one request,
// however often it arrives, and whichever process asks.
func (c *clients) request(ctx context.Context, sid string, run uint32) error {
	for began := time.Now(); ctx.Err() == nil; {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := c.client.Run(once, sid, fmt.Sprint("run ", run, " of ", sid), client.RunOptions{ID: fmt.Sprint(sid, "-", run)})
		cancel()
		if err == nil {
			return nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("run %d of %s is not acknowledged within %v: %w", run, sid, within, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// await waits for the end of a session's nth run.
func (c *clients) await(ctx context.Context, sid string, run uint32) error {
	late := time.AfterFunc(within, c.wake)
	defer late.Stop()
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.ended[sid] < run && ctx.Err() == nil {
		if time.Since(began) >= within {
			return fmt.Errorf("run %d of %s does not end within %v", run, sid, within)
		}
		c.some.Wait()
	}
	return nil
}

// follow reads the notices of all sessions from the first one on, again from where it
// was if the servers did not answer.
func (c *clients) follow(ctx context.Context) {
	for from := uint64(1); ctx.Err() == nil; {
		for n, err := range c.client.Notices(ctx, "", from) {
			if err != nil {
				break
			}
			from = n.StreamSeq + 1
			if end, is := n.Body().(session.RunFinished); is {
				c.mu.Lock()
				c.ended[n.Session] = max(c.ended[n.Session], end.Run)
				c.some.Broadcast()
				c.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
