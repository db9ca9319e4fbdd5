package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const readyWithin = time.Minute

// natsOptions are those of a server with JetStream on disk, each write synced,
// on loopback.
func natsOptions(dir string, port int) *server.Options {
	return &server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, SyncAlways: true, NoLog: true, NoSigs: true,
	}
}

// startNATS starts a server in this process and returns its URL.
func startNATS(t testing.TB) string {
	t.Helper()
	return serveOptions(t, natsOptions(t.TempDir(), server.RANDOM_PORT))
}

// serveOptions starts a server of other options likewise.
func serveOptions(t testing.TB, options *server.Options) string {
	t.Helper()
	return serveLogged(t, options, nil)
}

// serveLogged does so, and says to log what it has to say.
func serveLogged(t testing.TB, options *server.Options, log server.Logger) string {
	t.Helper()
	return serve(t, options, log).ClientURL()
}

// serve starts a server and stops it when the test ends.
func serve(t testing.TB, options *server.Options, log server.Logger) *server.Server {
	t.Helper()
	srv, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	if log != nil {
		srv.SetLogger(log, false, false)
	}
	go srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(readyWithin) {
		t.Fatal("the NATS server is not ready")
	}
	return srv
}

// serveNATS is the test binary as a NATS server: it prints its URL and serves
// until it is ended. dir may be followed by ":" and a port.
func serveNATS(dir string) {
	port := server.RANDOM_PORT
	if at := strings.LastIndexByte(dir, ':'); at > 0 {
		if n, err := strconv.Atoi(dir[at+1:]); err == nil {
			dir, port = dir[:at], n
		}
	}
	srv, err := server.NewServer(natsOptions(dir, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		fmt.Fprintln(os.Stderr, "not ready")
		os.Exit(1)
	}
	fmt.Println(srv.ClientURL())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	srv.Shutdown()
}

// natsProcess is a NATS server in a process of its own, which can be killed
// and started again on the same files and port.
type natsProcess struct {
	t    testing.TB
	dir  string
	port int // 0: it has not been started yet
	url  string
	cmd  *exec.Cmd
}

func startNATSProcess(t testing.TB) *natsProcess {
	t.Helper()
	p := &natsProcess{t: t, dir: t.TempDir()}
	p.start()
	t.Cleanup(p.kill)
	return p
}

// start starts it, on the port that it had before if it had one.
func (p *natsProcess) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.port == 0 {
		p.port = freePorts(p.t, 1)[0]
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", serverEnv, p.dir, p.port))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the NATS server's process says nothing: %v", err)
	}
	p.url = strings.TrimSpace(url)
}

// kill ends it at once, as a power cut would end the process.
func (p *natsProcess) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}
