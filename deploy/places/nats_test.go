package places_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// natsServer is the program of the version in go.mod, which the images of the file are
// of.
func natsServer() string { return filepath.Join(dist, "bin", "nats-server") }

// startNATS starts a server on loopback, with more lines of configuration; ports are free
// ones if there are none.
func startNATS(t testing.TB, name, more string, ports []int) (url string) {
	t.Helper()
	if ports == nil {
		ports = freePorts(t, 2)
	}
	dir := filepath.Join(scratch, "nats-"+name)
	conf := fmt.Sprintf(`listen: "127.0.0.1:%d", http: "127.0.0.1:%d", max_payload: 1MB
jetstream {store_dir: %q, sync_interval: always, max_file_store: 1GB}
feature_flags {js_ack_fc_v2: true}
%s
`, ports[0], ports[1], dir, more)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	process{}.daemon(t, natsServer(), "--config", path).says(t, "Server is ready")
	return fmt.Sprintf("nats://127.0.0.1:%d", ports[0])
}

// freePorts finds free ports of loopback in this network namespace, where nobody else is.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// endWithin is more than any run takes, also if its bridge or a server was killed.
const endWithin = 3 * time.Minute
