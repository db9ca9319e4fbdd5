package roles

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// How long certificates are valid. A server's is renewed by the first run of refold
// roles in its last month.
const (
	authorityValid   = 10 * 365 * 24 * time.Hour
	certificateValid = 365 * 24 * time.Hour
	renewBefore      = 30 * 24 * time.Hour
	clockSkew        = time.Hour // a certificate is valid from this long before it is made
)

// The files of a server's directory. A certificate and its key are one file, so that
// both are replaced at once.
const (
	certificateFile = "server.pem" // key and certificate
	trustedFile     = "ca.pem"     // the authorities that the server trusts
	authorityFile   = "authority.pem"
)

// Certificate is that of a server, or of the authority that signs all others.
type Certificate struct {
	Name    string // of the server
	Expires time.Time
	Made    bool // now; otherwise it was kept
}

// pair is a certificate with its key.
type pair struct {
	tls.Certificate        // the current one first; of an authority, the former ones follow
	Made            bool   // now
	pem             []byte // key, then certificates
}

// writeCertificates writes an authority, and for each server a directory with its
// certificate, its key and the authorities to trust. It keeps what exists and is
// valid, except for what is to be rotated, and returns an error if a file is not of
// its making.
func writeCertificates(dir string, servers []Server, rotate []string, now time.Time) (all []Certificate, err error) {
	authority, err := authorityOf(filepath.Join(dir, authorityName, authorityFile), slices.Contains(rotate, authorityName), now)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	var trustedPEM []byte
	for _, der := range authority.Certificate.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		trusted.AddCert(cert)
		trustedPEM = append(trustedPEM, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	all = append(all, Certificate{Name: authorityName, Expires: authority.Leaf.NotAfter, Made: authority.Made})
	for _, s := range servers {
		path := filepath.Join(dir, s.Name, certificateFile)
		p, err := readPair(path)
		switch {
		case err != nil:
			return nil, err
		case p != nil:
			if _, err := p.Leaf.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: p.Leaf.NotBefore.Add(clockSkew)}); err != nil {
				return nil, fmt.Errorf("%s was not signed by the authority in %s: move it away, and run this again: %w", path, dir, err)
			}
		}
		if p == nil || slices.Contains(rotate, s.Name) || now.After(p.Leaf.NotAfter.Add(-renewBefore)) || p.Leaf.VerifyHostname(s.Host) != nil {
			if p, err = makePair(certificateOf(s, now), authority); err == nil {
				err = replace(path, p.pem, 0o600)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := replace(filepath.Join(dir, s.Name, trustedFile), trustedPEM, 0o600); err != nil {
			return nil, err
		}
		all = append(all, Certificate{Name: s.Name, Expires: p.Leaf.NotAfter, Made: p.Made})
	}
	return all, nil
}

// authorityOf returns the authority in a file, and makes a new one if there is none
// or if again is set. A new one keeps the certificate of the one before, so that
// servers trust both until all have certificates of the new one.
func authorityOf(path string, again bool, now time.Time) (*pair, error) {
	former, err := readPair(path)
	if err != nil || former != nil && !again {
		return former, err
	}
	p, err := makePair(&x509.Certificate{
		Subject: pkix.Name{CommonName: "Refold NATS servers, " + now.UTC().Format(time.DateOnly)}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityValid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return nil, err
	}
	if former != nil {
		der := former.Certificate.Certificate[0]
		p.Certificate.Certificate = append(p.Certificate.Certificate, der)
		p.pem = append(p.pem, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return p, replace(path, p.pem, 0o600)
}

// certificateOf returns what the certificate of a server says. It serves programs and
// other servers, and is shown to the latter.
func certificateOf(s Server, now time.Time) *x509.Certificate {
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: s.Name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateValid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range []string{s.Name, s.Host} {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else if !slices.Contains(c.DNSNames, host) {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return c
}

// makePair makes a key, and a certificate that an authority signs; without one it
// signs itself.
func makePair(template *x509.Certificate, authority *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := errors.Join(
		pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
	); err != nil {
		return nil, err
	}
	p := &pair{Made: true, pem: b.Bytes()}
	p.Certificate, err = tls.X509KeyPair(p.pem, p.pem)
	return p, err
}

// readPair reads a key and its certificates, nil if there is no such file.
func readPair(path string) (*pair, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	p := &pair{pem: text}
	if p.Certificate, err = tls.X509KeyPair(text, text); err != nil {
		return nil, fmt.Errorf("%s holds no key with its certificate: move it away to have new ones (%w)", path, err)
	}
	return p, nil
}
