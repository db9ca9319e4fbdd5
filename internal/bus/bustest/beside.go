package bustest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serveEnv is the environment variable with the store directory of Serve.
const serveEnv = "REFOLD_TEST_SERVE"

// addressBytesMax bounds the line with the server's address.
const addressBytesMax = 1 << 10

// ServerBeside starts a server in a process of its own, and returns its address. The
// package's TestMain must call Serve first.
func ServerBeside(tb testing.TB) string {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+tb.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(io.LimitReader(out, addressBytesMax)).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// Serve runs the server if ServerBeside started this process: it prints the server's
// address, and exits when standard input ends. Otherwise it returns at once.
func Serve() {
	dir := os.Getenv(serveEnv)
	if dir == "" {
		return
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err == nil {
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			err = fmt.Errorf("not ready within a minute")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	fmt.Println(s.ClientURL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	os.Exit(0)
}
