package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/natsio"
)

// Part is one process's program, when each program of a row has its own.
type Part struct {
	Role       string // PartServer, PartActor or PartBridge
	URL        string // of the server; "" for the server itself
	Dir        string // of the server's files
	Always     bool   // the server syncs each write
	Durability string // durability option of the bridge; "": default options
}

// Roles of a Part.
const (
	PartServer = "server"
	PartActor  = "session-actor"
	PartBridge = "bridge"
)

// Play plays a part until in ends; in ends with the parent process. When the part
// is ready it writes a line: the URL of a server.
func (p Part) Play(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &servers{url: p.URL}
	y := &system{watch: &Watch{Stop: func() {}}}
	defer func() { y.stop() }()
	var err error
	switch o := (row{replicas: 1}); p.Role {
	case PartServer:
		if s, err = startServers(p.Dir, 1, p.Always); err == nil {
			defer s.stop() //nolint:errcheck // the process ends with it
			s.url = s.nodes[0].ClientURL()
		}
	case PartActor:
		o.hostOnly = true
		y, err = startSystem(ctx, s, o, fail)
	case PartBridge:
		o.bridgeDurability = p.Durability
		err = y.startBridge(ctx, s, o, fail)
	default:
		err = fmt.Errorf("no part %q", p.Role)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, s.url)
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// player is a process that plays a part.
type player struct {
	cmd *exec.Cmd
	in  io.Closer
	url string
}

// play starts a process, and returns when it is ready.
func (o Options) play(ctx context.Context, part Part) (p *player, err error) {
	p = &player{cmd: o.Processes(part)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.in.Close() })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(out, lineBytesMax)).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the %s is not ready: %w", part.Role, err), p.stop())
	}
	p.url = strings.TrimSpace(line)
	return p, nil
}

// lineBytesMax bounds the line that a process prints when it is ready.
const lineBytesMax = 4 << 10

// stopWithin is how long a process may take to end.
const stopWithin = 20 * time.Second

func (p *player) stop() error {
	_ = p.in.Close()
	late := time.AfterFunc(stopWithin, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	return p.cmd.Wait()
}

// startServerProcess is startServers in a separate process.
func (r row) startServerProcess(ctx context.Context) (*servers, error) {
	p, err := r.play(ctx, Part{Role: PartServer, Dir: r.Dir, Always: r.durability == natsio.DurabilityAlways})
	if err != nil {
		return nil, err
	}
	return &servers{url: p.url, process: p}, nil
}

// players are the processes of a side.
type players struct {
	all  []*player
	fail func(error)
}

func (p *players) stop() {
	for _, one := range p.all {
		if err := one.stop(); err != nil {
			p.fail(err)
		}
	}
}

// processes measures Refold with a process for each program.
func (r row) processes(ctx context.Context) (Side, error) {
	return r.side(ctx, nil, func(ctx context.Context, s *servers, fail func(error)) (started, error) {
		playing := &players{fail: fail}
		for _, part := range []Part{{Role: PartActor, URL: s.url}, {Role: PartBridge, URL: s.url, Durability: r.bridgeDurability}} {
			p, err := r.play(ctx, part)
			if err != nil {
				playing.stop()
				return nil, err
			}
			playing.all = append(playing.all, p)
		}
		return playing, nil
	})
}

// bridgeOptions returns the options of the nth program.
func (s *servers) bridgeOptions(n int, o row, watch *Watch) bridge.Options {
	opts := bridge.Options{URL: s.url, Name: "refold-bench", Durability: o.bridgeDurability, Logger: o.daemonLog(), Grace: time.Second, Observe: watch.Observe}
	if s.url == "" {
		opts.InProcess = s.of(n)
	}
	return opts
}
