package roles

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/refold/refold/subjects"
)

// Names that --rotate takes besides those of users and servers.
const (
	routesName    = "routes"
	authorityName = "ca"
)

const (
	routesFile = "routes.conf" // in serverDir; only the servers may read it
	routesPort = "6222"
)

// Server is a NATS server of the cluster.
type Server struct {
	Name string
	Host string // at which the others reach its port for routes
	Port string
}

// Addr is the address for routes.
func (s Server) Addr() string { return net.JoinHostPort(s.Host, s.Port) }

// RoutesFile is the file that each server's configuration includes in its block
// cluster.
func RoutesFile(dir string) string { return filepath.Join(dir, serverDir, routesFile) }

// parseServer parses NAME, NAME=HOST or NAME=HOST:PORT.
func parseServer(text string) (Server, error) {
	name, at, given := strings.Cut(text, "=")
	s := Server{Name: name, Host: name, Port: routesPort}
	if given {
		s.Host = at
		if host, port, err := net.SplitHostPort(at); err == nil {
			s.Host, s.Port = host, port
		}
	}
	switch {
	case subjects.ValidInstance(name) != nil || name == routesName || name == authorityName:
		return s, fmt.Errorf("servers: %q: a name is 1 to 64 of A-Z a-z 0-9 _ -, and neither %s nor %s", text, routesName, authorityName)
	case s.Host == "" || strings.ContainsAny(s.Addr(), " \t\r\n\"\\/@?#"):
		return s, fmt.Errorf("servers: %q: write NAME, NAME=HOST or NAME=HOST:PORT, as in nats1=10.0.0.1:6222", text)
	}
	return s, nil
}

// cluster returns the servers, or every problem of the file's list.
func (f *File) cluster() (all []Server, err error) {
	var wrong []error
	for _, text := range f.Servers {
		s, err := parseServer(text)
		if err == nil && slices.ContainsFunc(all, func(other Server) bool { return other.Name == s.Name }) {
			err = fmt.Errorf("servers: %s is named twice", s.Name)
		}
		all, wrong = append(all, s), append(wrong, err)
	}
	if f.TLS != "" && len(all) == 0 {
		wrong = append(wrong, errors.New("tls: name the servers that get a certificate, as in --server nats1"))
	}
	return all, errors.Join(wrong...)
}

// ofServers reports whether a name to rotate belongs to the servers.
func (f *File) ofServers(name string) bool {
	return len(f.Servers) > 0 && (name == routesName || name == authorityName ||
		slices.ContainsFunc(f.Servers, func(text string) bool { s, _ := parseServer(text); return s.Name == name }))
}

var routesPassword = regexp.MustCompile(`password: "([A-Z2-7]{26,})"`)

// writeRoutes writes the credentials with which the servers accept each other. It
// keeps an existing password unless another is asked for, and returns an error if
// somebody has edited the file. made reports a new password.
func writeRoutes(dir string, servers []Server, another bool) (made bool, err error) {
	path := RoutesFile(dir)
	before, err := readSigned(path)
	if err != nil {
		return false, err
	}
	password := rand.Text()
	if m := routesPassword.FindSubmatch(before); m != nil && !another {
		password = string(m[1])
	} else {
		made = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The servers accept each other by this password. Whoever has it, and a certificate if\n# they use TLS, may publish as anybody: give it to no program.\n")
	fmt.Fprintf(&b, "authorization {user: %q, password: %q, timeout: 5}\nroutes: [\n", routesName, password)
	for _, s := range servers {
		fmt.Fprintf(&b, "  %q\n", "nats://"+routesName+":"+password+"@"+s.Addr())
	}
	b.WriteString("]\n")
	return made, replace(path, signed(b.String()), 0o600)
}

// readSigned returns a file that refold roles has written, or nil if there is none.
// It fails if the file was edited.
func readSigned(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, conf, _ := strings.Cut(string(text), "\n"); !bytes.Equal(text, signed(conf)) {
		return nil, fmt.Errorf("%s was edited: move it away, or undo that, and run this again", path)
	}
	return text, nil
}
