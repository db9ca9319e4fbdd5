package e2e_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// clusterServersEnv, if set, says what the servers of all clusters are.
const clusterServersEnv = "REFOLD_CLUSTER_SERVERS"

// What the servers of a cluster are.
const (
	process  = "process"  // nats-server itself, in a process of its own
	embedded = "embedded" // a server in the process of the test
)

// running is a server that runs.
type running interface {
	// kill ends it at once, with nothing said to anybody and nothing more
	// written.
	kill() error
	// end ends it as SIGTERM does.
	end() error
}

// endsWithin is how long a server may take to end.
const endsWithin = time.Minute

// clusterKind returns what the servers are, and how one is started.
func clusterKind(t testing.TB, otherwise string) func(*clusterServer) (running, error) {
	t.Helper()
	kind := otherwise
	if text := os.Getenv(clusterServersEnv); text != "" {
		kind = text
	}
	switch kind {
	case process:
		return startProcess
	case embedded:
		return startEmbedded
	}
	t.Fatalf("%s is %q, want %s or %s", clusterServersEnv, kind, embedded, process)
	return nil
}

// buildServer builds nats-server itself, of the version that go.mod names, once.
// Its processes are built without the race detector.
var buildServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(bin, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return path, nil
})

// processServer is a server in a process of its own.
type processServer struct{ cmd *exec.Cmd }

func startProcess(s *clusterServer) (running, error) {
	program, err := buildServer()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "-c", s.config)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	return processServer{cmd}, cmd.Start()
}

func (p processServer) kill() error {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return nil
}

func (p processServer) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(endsWithin, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("it does not end within %v", endsWithin)
	}
	return nil
}

// embeddedServer is a server in the test's own process.
type embeddedServer struct {
	srv *server.Server
	s   *clusterServer
}

func startEmbedded(s *clusterServer) (running, error) {
	options, err := server.ProcessConfigFile(s.config)
	if err != nil {
		return nil, err
	}
	options.NoSigs = true
	srv, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	srv.SetLogger(serverLog{s.out}, false, false)
	for _, w := range s.around {
		w.sever(false)
	}
	go srv.Start()
	e := embeddedServer{srv, s}
	if !srv.ReadyForConnections(readyWithin) {
		srv.Shutdown()
		return nil, fmt.Errorf("it is not ready within %v", readyWithin)
	}
	return e, nil
}

// kill is as near to the end of a process as it gets in one that goes on. First
// all connections of the server end, and nobody reaches it any more: what it
// says as it ends, that others should lead, say, nobody hears. Then its files are
// copied, it ends, and the copy takes their place: what it wrote as it ended,
// states of consumers, say, is not there. The copy is of a moment at which nothing
// was written, so, other than by the kill of a process, no write is ever
// interrupted: what the server was about to write when it was cut off, it
// wrote. Like such a kill, and other than a power failure, it keeps what was
// written and not synced.
func (e embeddedServer) kill() error {
	for _, w := range e.s.around {
		w.sever(true)
	}
	kept := e.s.store + ".kept"
	if err := copyAtRest(kept, e.s.store); err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return err
	}
	if err := os.RemoveAll(e.s.store); err != nil {
		return err
	}
	return os.Rename(kept, e.s.store)
}

func (e embeddedServer) end() error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(endsWithin):
		return fmt.Errorf("it does not end within %v", endsWithin)
	}
}

// copyAtRest copies a directory as it was at one moment: again, until nothing was
// written meanwhile. A server that reaches nobody writes little: every few
// seconds, for whom it votes.
func copyAtRest(to, from string) error {
	const tries = 50
	var err error
	for range tries {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		var before, after map[string]string
		if before, err = written(from); err != nil {
			continue // a file went away
		}
		if err = os.CopyFS(to, os.DirFS(from)); err != nil {
			continue
		}
		if after, err = written(from); err == nil && maps.Equal(before, after) {
			return nil
		}
	}
	return fmt.Errorf("%s was written to during each of %d copies (%w)", from, tries, err)
}

// written says when each file in a directory was written, and how long it is.
func written(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all[path] = fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
		}
		return err
	})
	return all, err
}

// serverLog has an embedded server log where a process prints. A server that
// cannot go on ends the test by not getting ready, not its process.
type serverLog struct{ out *output }

func (l serverLog) say(level, format string, v []any) {
	fmt.Fprintf(l.out, time.Now().Format("15:04:05.000")+" ["+level+"] "+format+"\n", v...)
}

func (l serverLog) Noticef(format string, v ...any) { l.say("INF", format, v) }
func (l serverLog) Warnf(format string, v ...any)   { l.say("WRN", format, v) }
func (l serverLog) Errorf(format string, v ...any)  { l.say("ERR", format, v) }
func (l serverLog) Fatalf(format string, v ...any)  { l.say("FTL", format, v) }
func (l serverLog) Debugf(string, ...any)           {}
func (l serverLog) Tracef(string, ...any)           {}
