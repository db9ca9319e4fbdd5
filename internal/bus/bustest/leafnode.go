package bustest

import (
	"fmt"
	"net/url"
	"testing"

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
