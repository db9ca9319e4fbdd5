package places_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"golang.org/x/sys/unix"
)

// container is a service, or one command of it.
type container struct {
	process
	name    string
	service types.ServiceConfig
	argv    []string
	out     *output

	mu       sync.Mutex
	running  *daemon
	starts   int
	healthy  bool
	finished bool // with status 0, and for good
	stopped  bool // nobody restarts it
}

// up reports whether the service is healthy, or has done what it is for.
func (c *container) up() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished || c.starts > 0 && (c.healthy || c.service.HealthCheck == nil && c.service.Restart != "")
}

// supervise starts the program, and again when it has ended, as its service says.
func (c *container) supervise(ctx context.Context) {
	wait := 100 * time.Millisecond
	for {
		d := &daemon{Cmd: c.command(c.argv...), out: c.out, ended: make(chan struct{})}
		d.Stdout, d.Stderr = d.out, d.out
		d.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS // its processes end with it
		c.mu.Lock()
		if c.stopped {
			c.mu.Unlock()
			return
		}
		err := c.start(d.Cmd)
		c.running, c.healthy, c.starts = d, false, c.starts+1
		c.mu.Unlock()
		if err != nil {
			fmt.Fprintf(c.out, "%s does not start: %v\n", c.name, err)
			return
		}
		err = d.Wait()
		close(d.ended)
		c.mu.Lock()
		c.healthy, c.finished = false, err == nil && c.service.Restart == ""
		c.mu.Unlock()
		if c.service.Restart == "" || !pause(ctx, wait) {
			return
		}
		wait *= 2
	}
}

// checkHealth runs the health check of the service, as often as it says.
func (c *container) checkHealth(ctx context.Context) {
	check := c.service.HealthCheck
	if check == nil {
		return
	}
	for pause(ctx, time.Duration(*check.Interval)) {
		c.mu.Lock()
		of := c.starts
		c.mu.Unlock()
		argv := check.Test[1:] // CMD
		cmd := c.command(append([]string{"/usr/bin/" + argv[0]}, argv[1:]...)...)
		err := c.start(cmd)
		if err == nil {
			late := time.AfterFunc(time.Duration(*check.Timeout), func() { _ = cmd.Process.Kill() })
			err = cmd.Wait()
			late.Stop()
		}
		c.mu.Lock()
		if of == c.starts {
			c.healthy = err == nil
		}
		c.mu.Unlock()
	}
}

// kill ends the program at once, with all that it started, and waits until it runs again
// and is healthy.
func (c *container) kill(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	of, d := c.starts, c.running
	c.mu.Unlock()
	if err := d.Process.Kill(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	until(t, endWithin, c.name+" is back", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.starts > of && c.healthy
	})
}

// stop ends the container for good.
func (c *container) stop(t testing.TB) {
	c.mu.Lock()
	c.stopped = true
	d := c.running
	c.mu.Unlock()
	if d != nil && d.Process != nil {
		_ = d.Process.Kill()
		<-d.ended
	}
	if t.Failed() {
		t.Logf("%s, started %d times:\n%s", c.name, c.starts, tail(c.out.String()))
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
