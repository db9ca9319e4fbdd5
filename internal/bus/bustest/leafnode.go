package bustest

import (
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Domain gives a server's JetStream a domain, and acknowledgements that name it, as
// docs/operations.md says. The server is called server-<domain> and takes leafnodes.
func Domain(domain string) Option {
	return func(o *server.Options) {
		o.ServerName, o.JetStreamDomain = "server-"+domain, domain
		o.FeatureFlags = map[string]bool{server.FeatureFlagJsAckFormatV2: true}
		o.LeafNode.Host, o.LeafNode.Port = "127.0.0.1", -1
	}
}

// LeafURL is the address that leafnodes connect to, of a server with a Domain.
func (n *Node) LeafURL() *url.URL {
	n.t.Helper()
	z, err := n.srv.Varz(nil)
	OK(n.t, err)
	return &url.URL{Scheme: "nats-leaf", Host: fmt.Sprintf("127.0.0.1:%d", z.LeafNode.Port)}
}

// Join restarts leaf as a leafnode of hub, with the given connections or one of the
// default accounts, and waits until it is connected.
func Join(t testing.TB, hub, leaf *Node, remotes ...*server.RemoteLeafOpts) {
	t.Helper()
	if len(remotes) == 0 {
		remotes = []*server.RemoteLeafOpts{{}}
	}
	for _, r := range remotes {
		r.URLs = []*url.URL{hub.LeafURL()}
	}
	leaf.Stop()
	leaf.Start(func(o *server.Options) { o.LeafNode.Remotes = remotes })
	Until(t, "the leafnode is connected", func() bool { return hub.Raw().NumLeafNodes() == len(remotes) })
}

// SuperCluster starts two clusters of one server each, which gateways connect, and waits
// until they are one JetStream. They end with the test.
func SuperCluster(t testing.TB) []*Node {
	t.Helper()
	ports := freePorts(t, 4)
	gateways := make([]*server.RemoteGatewayOpts, 2)
	for i := range gateways {
		gateways[i] = &server.RemoteGatewayOpts{Name: fmt.Sprintf("c%d", i), URLs: []*url.URL{{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[i])}}}
	}
	nodes := make([]*Node, 2)
	for i := range nodes {
		opts := server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: -1,
			JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"), SyncInterval: time.Minute, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: gateways[i].Name, Host: "127.0.0.1", Port: ports[2+i]},
			Routes:  server.RoutesFromStr(fmt.Sprintf("nats-route://127.0.0.1:%d", ports[2+i])), // itself: JetStream wants one
			Gateway: server.GatewayOpts{Name: gateways[i].Name, Host: "127.0.0.1", Port: ports[i], Gateways: gateways},
		}
		nodes[i] = &Node{t: t, opts: opts}
		nodes[i].launch()
		t.Cleanup(nodes[i].Stop)
	}
	awaitLeader(t, nodes)
	return nodes
}
