package chaos

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// process is a daemon that is killed and started again. Its standard input is
// open as long as whoever started it lives: it ends with it.
type process struct {
	part Part
	argv []string
	said lastWords

	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.Closer
	ended  chan struct{} // of cmd
	killed bool
	over   bool        // it is not started again
	again  int         // how often it was started again after it had ended by itself
	failed func(error) // called when it ends although nobody killed it
}

// environ is what processes have in their environment beside this process's:
// they live for seconds, and rather take memory than time.
var environ = []string{"GOGC=400"}

// start starts it, again after a kill. It does nothing if it runs, and after
// stop.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.runs() {
		return nil
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.stdin, p.ended, p.killed = cmd, stdin, ended, false
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		killed := p.killed
		p.mu.Unlock()
		close(ended)
		if !killed {
			p.revive(cmd.ProcessState.ExitCode(), err)
		}
	}()
	return nil
}

// runs reports that it has been started and has not ended. The lock is held.
func (p *process) runs() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
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

// statusCantRun is the exit status of a daemon that says why it can't run: the
// server did not answer in time, say. Whoever runs daemons starts it again.
const statusCantRun = 1

// errEnded stands for an end without an error.
var errEnded = errors.New("it said nothing")

// revivalsMax is how often a process that can't run is started again.
const revivalsMax = 5

// revive starts a process again that has ended by itself, if it only could not
// run; any other end is a fault.
func (p *process) revive(status int, ended error) {
	p.mu.Lock()
	p.again++
	again := p.again
	p.mu.Unlock()
	if status != statusCantRun || again > revivalsMax {
		p.failed(fmt.Errorf("%s ended by itself, with status %d: %w", p.part, status, cmp.Or(ended, errEnded)))
		return
	}
	if err := p.start(); err != nil {
		p.failed(err)
	}
}

// kill ends it at once (SIGKILL) and returns when it is gone.
func (p *process) kill() {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.killed = true
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	cmd.Process.Kill() //nolint:errcheck // it has ended by itself then
	<-ended
}

// stop kills it for good.
func (p *process) stop() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.kill()
}

// wordsMax is how much is kept of what a process says last.
const wordsMax = 4 << 10

// lastWords keeps the end of what a process writes.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	if over := len(w.text) - wordsMax; over > 0 {
		w.text = w.text[over:]
	}
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.text))
}
