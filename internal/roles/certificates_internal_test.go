package roles

import (
	"crypto/x509"
	"path/filepath"
	"testing"
	"time"
)

// TestCertificatesAreRenewedInTheirLastMonth: and when their server has another
// address. Each serves and shows itself to other servers.
func TestCertificatesAreRenewedInTheirLastMonth(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	server := Server{Name: "nats1", Host: "10.0.0.1", Port: routesPort}
	for _, c := range []struct {
		after time.Duration
		host  string
		made  bool
	}{
		{0, "10.0.0.1", true}, {certificateValid - renewBefore - time.Minute, "10.0.0.1", false}, {certificateValid - renewBefore + time.Minute, "10.0.0.1", true},
		{certificateValid, "10.0.0.2", true}, {certificateValid, "10.0.0.2", false},
	} {
		server.Host = c.host
		all, err := writeCertificates(dir, []Server{server}, nil, now.Add(c.after))
		if err != nil || len(all) != 2 || all[1].Made != c.made {
			t.Fatalf("after %v, at %s: got %+v, %v; want one made %t", c.after, c.host, all, err, c.made)
		}
	}
	p, err := readPair(filepath.Join(dir, "nats1", certificateFile))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := readPair(filepath.Join(dir, authorityName, authorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Leaf)
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		for _, host := range []string{"nats1", "10.0.0.2", "localhost", "127.0.0.1"} {
			if _, err := p.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{use}, CurrentTime: now.Add(certificateValid)}); err != nil {
				t.Errorf("use %d as %s: %v", use, host, err)
			}
		}
	}
}
