//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/internal/secrets"
)

// program is a server started by this process, with its descendants.
type program struct {
	log      *slog.Logger
	stdin    *os.File
	stdout   *os.File
	stderr   *os.File
	redactor *secrets.Redactor
	ended    chan struct{} // closed when it has been waited for
	drained  chan struct{} // closed at the end of its standard error

	mu         sync.Mutex
	pid        int
	waited     bool
	state      string
	stderrTail []byte // the end of its standard error
}

// startProgram starts a server in a session of its own. What it writes that is no
// message is redacted before it is split into lines: a secret may have several.
func startProgram(s *Server, environ []string, redactor *secrets.Redactor, log *slog.Logger) (*program, error) {
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.Dir, environ, groupAttr()
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, err
		}
		ours[i], theirs[i] = r, w
	}
	ours[0], theirs[0] = theirs[0], ours[0] // we write its input
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p := &program{log: log, stdin: ours[0], stdout: ours[1], stderr: ours[2], redactor: redactor, ended: make(chan struct{}), drained: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the program when the thread that started it ends.
		// The goroutine keeps its thread, so that the program is killed with
		// the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.wait(cmd)
	}()
	err := <-started
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	go p.readStderr()
	return p, nil
}

// wait waits until the program ends, and then kills the other processes of its
// group.
func (p *program) wait(cmd *exec.Cmd) {
	awaitEnd(p.pid)
	p.mu.Lock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	_ = cmd.Wait()
	p.waited, p.state = true, cmd.ProcessState.String()
	p.mu.Unlock()
	close(p.ended)
}

// signal sends a signal to the whole group, unless it is gone.
func (p *program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		_ = syscall.Kill(-p.pid, s)
	}
}

// stop ends the program: it closes the input, then sends SIGTERM, then SIGKILL.
func (p *program) stop() {
	_ = p.stdin.Close()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if p.within(stopMax) {
			break
		}
		p.signal(s)
	}
	<-p.ended
	_ = p.stdout.Close()
	// Processes outside of the group may still hold it.
	_ = p.stderr.SetReadDeadline(time.Now().Add(stopMax))
	<-p.drained
}

func (p *program) within(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// readStderr reads the program's standard error for the log.
func (p *program) readStderr() {
	defer close(p.drained)
	defer p.stderr.Close()
	to := p.lines(func(line string) {
		p.log.Debug("mcp_server_says", "text", line)
		p.mu.Lock()
		p.stderrTail = append(append(p.stderrTail, line...), '\n')
		p.stderrTail = bytes.Clone(p.stderrTail[max(0, len(p.stderrTail)-stderrBytesMax):])
		p.mu.Unlock()
	})
	_, _ = io.Copy(to, p.stderr) // it ends when the program does
	_ = to.Close()
}

// lines returns a writer of a text that passes on its lines without secrets. Of a
// long line only the beginning is kept.
func (p *program) lines(each func(line string)) io.WriteCloser {
	l := &lineWriter{each: each}
	return &redactedLines{WriteCloser: p.redactor.Writer(l), lines: l}
}

// redactedLines is a redacting writer to lines.
type redactedLines struct {
	io.WriteCloser
	lines *lineWriter
}

func (r *redactedLines) Close() error {
	err := r.WriteCloser.Close()
	r.lines.end()
	return err
}

// lineWriter splits a text into lines, of which it keeps stderrBytesMax bytes.
type lineWriter struct {
	each func(line string)
	line []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		text, after, ended := bytes.Cut(rest, []byte{'\n'})
		l.line = append(l.line, text[:min(len(text), stderrBytesMax-len(l.line))]...)
		if rest = after; ended {
			l.end()
		}
	}
	return len(p), nil
}

// end ends a line.
func (l *lineWriter) end() {
	if line := strings.TrimSpace(strings.ToValidUTF8(string(l.line), "\uFFFD")); line != "" {
		l.each(line)
	}
	l.line = l.line[:0]
}

// lastWords returns how the program ended, if it has, and the end of its
// standard error.
func (p *program) lastWords() (state, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, strings.TrimSpace(strings.ToValidUTF8(string(p.stderrTail), ""))
}

// Connect returns a connection over the program's input and output.
func (p *program) Connect(ctx context.Context) (sdk.Connection, error) {
	io := &sdk.IOTransport{Reader: p.messages(), Writer: p.stdin, MaxLineLength: messageBytesMax}
	inner, err := io.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return progressConnection{inner}, nil
}

// messages returns the program's output without lines that are not messages:
// some servers print other text.
func (p *program) messages() io.ReadCloser {
	lines := bufio.NewScanner(p.stdout)
	lines.Buffer(nil, messageBytesMax)
	garbage := 0
	others := p.lines(func(line string) {
		if garbage++; garbage <= garbageLinesMax {
			p.log.Warn("mcp_server_wrote_garbage", "text", line,
				"do", "a server's standard output is for messages alone, one a line; this is left out")
		}
	})
	return &body{of: p.stdout, more: func() ([]byte, error) {
		for lines.Scan() {
			line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), byteOrderMark))
			messages := legibleLines(line)
			switch {
			case len(line) == 0:
			case messages != nil:
				return messages, nil
			case garbage < garbageLinesMax:
				_, _ = others.Write(append(bytes.Clone(line), '\n')) // it never fails
			}
		}
		_ = others.Close()
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read a server's message: %w", err)
		}
		return nil, io.EOF
	}}
}

// legibleLines returns the messages of a line, one a line, without answers to no
// request; nil if it has none.
func legibleLines(line []byte) (lines []byte) {
	if !json.Valid(line) {
		return nil
	}
	for _, message := range messagesOf(line) {
		if len(message) == 0 || message[0] != '{' {
			continue
		}
		if message = readable(message); message != nil {
			lines = append(append(lines, exact(message)...), '\n')
		}
	}
	return lines
}

// progressConnection is a connection that records each call before it is sent.
type progressConnection struct{ sdk.Connection }

func (m progressConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	progress := callProgressOf(ctx)
	if request, ok := msg.(*jsonrpc.Request); !ok || request.Method != methodCall {
		progress = nil
	}
	progress.setSent(true)
	err := m.Connection.Write(ctx, msg)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		progress.setSent(false) // the program did not read it
	}
	return err
}
