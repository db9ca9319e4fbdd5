package chaos

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a program that is killed and started again. Its standard input is
// open while its parent lives, and it ends with its parent.
type process struct {
	part Part
	argv []string
	env  []string  // in addition to environ
	out  io.Writer // for its standard output; nil: its log
	log  logTail

	mu      sync.Mutex
	now     *life           // the latest start
	leaving []*life         // earlier starts that got SIGTERM
	over    bool            // it is not started again
	again   int             // how often it was started again after it had ended by itself
	heard   map[string]bool // instances that sent a heartbeat
	drained time.Duration
	pause   time.Duration // before it is started again after it could not run, doubled each time
	failed  func(error)   // called when it ends without a signal from us
}

// life is a process from its start to its end.
type life struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	stopped atomic.Bool // it was killed, or got SIGTERM
	works   atomic.Bool // it has sent its first heartbeat
}

// environ is added to the environment: processes that live for seconds may use
// memory to save time.
var environ = []string{"GOGC=400"}

// start starts it, for the first time or again. It does nothing if the process
// runs and has no SIGTERM, or after stop.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.now.runs() {
		return nil
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = slices.Concat(os.Environ(), environ, p.env)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if p.out != nil {
		cmd.Stdout = p.out
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	l := &life{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	p.now = l
	go func() {
		err := cmd.Wait()
		close(l.ended)
		if !l.stopped.Load() {
			p.revive(l, cmd.ProcessState.ExitCode(), err)
		}
	}()
	return nil
}

// runs reports whether it was started and has neither ended nor been told to.
func (l *life) runs() bool {
	if l == nil || l.stopped.Load() {
		return false
	}
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// revivals returns how often it was started again after it had ended by itself.
func (p *process) revivals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.again
}

// longestDrain returns its longest time from SIGTERM to its end.
func (p *process) longestDrain() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drained
}

// statusCantRun is the exit status of a daemon that can't run and prints why: the
// server did not answer in time, for example. A supervisor would start it again.
const statusCantRun = 1

// errEnded replaces the error of an end without one.
var errEnded = errors.New("it printed nothing")

// revivalsMax is how often a process that can't run is started again, and revivePause
// the time before the first of them: a supervisor gives a server time to come back, too.
const (
	revivalsMax = 5
	revivePause = 100 * time.Millisecond
)

// alive records an instance's heartbeat. A new instance belongs to the latest
// start. Messages before the first heartbeat (streams, the install record,
// descriptors of tools) don't count: the daemon may still find that it can't run.
func (p *process) alive(instance string) {
	p.mu.Lock()
	known := p.heard[instance]
	if p.heard == nil {
		p.heard = map[string]bool{}
	}
	p.heard[instance] = true
	p.mu.Unlock()
	if !known {
		p.begun()
	}
}

// begun records that the latest start works: from here on only a kill may end it.
func (p *process) begun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		p.now.works.Store(true)
	}
}

// revive starts a process again that ended by itself, if it could not run and had
// not worked yet. Any other end is a fault.
func (p *process) revive(l *life, status int, ended error) {
	ended = cmp.Or(ended, errEnded)
	switch {
	case l.works.Load():
		p.failed(fmt.Errorf("%s ended by itself, with status %d, after it had begun to work: it must stay and reconnect: %w", p.part, status, ended))
		return
	case status != statusCantRun:
		p.failed(fmt.Errorf("%s ended by itself, with status %d: %w", p.part, status, ended))
		return
	}
	p.mu.Lock()
	again, pause := p.again < revivalsMax, p.pause<<p.again
	if again {
		p.again++
	}
	p.mu.Unlock()
	if !again {
		p.failed(fmt.Errorf("%s could not start, and was started again %d times: %w", p.part, revivalsMax, ended))
		return
	}
	time.Sleep(pause)
	if err := p.start(); err != nil {
		p.failed(err)
	}
}

// kill ends it at once (SIGKILL), waits for its end, and reports whether it ran.
func (p *process) kill() (ran bool) {
	p.mu.Lock()
	l := p.now
	ran = l.runs()
	p.mu.Unlock()
	if l == nil {
		return false
	}
	l.end()
	return ran
}

func (l *life) end() {
	l.stopped.Store(true)
	l.cmd.Process.Kill() //nolint:errcheck // it fails if the process has ended
	<-l.ended
}

// drainWithin is not a speed limit: a process that takes longer hangs.
const drainWithin = time.Minute

// drain sends SIGTERM, and reports whether the process ran. start may start
// another at once. It is a fault not to end in time and with status 0.
func (p *process) drain() (ran bool, ended <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.now
	if !l.runs() {
		return false, nil
	}
	l.stopped.Store(true)
	p.leaving = append(p.leaving, l)
	began := time.Now()
	l.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it fails if the process has ended
	go func() {
		late := time.NewTimer(drainWithin)
		defer late.Stop()
		select {
		case <-l.ended:
		case <-late.C:
			p.failed(fmt.Errorf("%s got SIGTERM, and still runs %v later", p.part, drainWithin))
			return
		}
		p.mu.Lock()
		p.drained = max(p.drained, time.Since(began))
		over := p.over
		p.mu.Unlock()
		if status := l.cmd.ProcessState.ExitCode(); status != 0 && !over && !l.hardlyBegun() {
			p.failed(fmt.Errorf("%s got SIGTERM, and ended with status %d", p.part, status))
		}
	}()
	return true, l.ended
}

// hardlyBegun reports whether SIGTERM killed the process: it did not handle
// signals yet, and so had done nothing.
func (l *life) hardlyBegun() bool {
	status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// stop kills it for good.
func (p *process) stop() {
	p.mu.Lock()
	p.over = true
	leaving := p.leaving
	p.mu.Unlock()
	for _, l := range leaving {
		l.end()
	}
	p.kill()
}

// logTailMax is how many bytes of a process's latest output are kept.
const logTailMax = 4 << 10

// logTail keeps the end of a process's output.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

func (w *logTail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if over := len(w.text) - logTailMax; over > 0 {
		w.text = w.text[over:]
	}
	return len(p), nil
}

// latestLogs returns the latest logs of processes, for people.
func latestLogs(processes ...*process) string {
	var all strings.Builder
	for _, p := range processes {
		for line := range strings.Lines(p.log.String()) {
			fmt.Fprintf(&all, "%s: %s\n", p.part, strings.TrimSpace(line))
		}
	}
	return all.String()
}

func (w *logTail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.text))
}
