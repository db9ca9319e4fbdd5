package natsio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// natsContext is the part of a context file of the nats tool that is needed to
// connect.
type natsContext struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`
	Domain      string `json:"jetstream_domain"`
	APIPrefix   string `json:"jetstream_api_prefix"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	NSC         string `json:"nsc"`
}

// readContext reads a context by its name or the path of its file. The nats tool
// stores contexts in the user's configuration directory, or in ~/.config if that is
// a different one.
func readContext(name string) (c natsContext, err error) {
	paths := []string{name}
	if !strings.ContainsRune(name, filepath.Separator) {
		config, err := os.UserConfigDir()
		if err != nil {
			return c, fmt.Errorf("NATS context %q: %w", name, err)
		}
		file := filepath.Join("nats", "context", name+".json")
		paths = []string{filepath.Join(config, file)}
		if home, err := os.UserHomeDir(); err == nil {
			paths = append(paths, filepath.Join(home, ".config", file))
		}
	}
	var data []byte
	for _, path := range paths {
		if data, err = os.ReadFile(path); err == nil {
			if err = json.Unmarshal(data, &c); err != nil {
				return c, fmt.Errorf("NATS context %q: %s: %w", name, path, err)
			}
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return c, fmt.Errorf("NATS context %q: %w: list them with `nats context ls`", name, err)
}

// options returns the context's options for authentication and TLS.
func (c natsContext) options() ([]nats.Option, error) {
	var opts []nats.Option
	switch {
	case c.Creds != "":
		// Checked here, since nats.Connect would report a failed connection.
		if _, err := os.Stat(expand(c.Creds)); err != nil {
			return nil, fmt.Errorf("credentials file: %w: check --creds, NATS_CREDS or NATS_CONTEXT", err)
		}
		opts = append(opts, nats.UserCredentials(expand(c.Creds)))
	case c.NSC != "":
		return nil, fmt.Errorf("NATS context: nsc %s is not supported: export a credentials file, and name that in creds", c.NSC)
	case c.UserJWT != "" && c.UserSeed != "":
		opts = append(opts, nats.UserJWTAndSeed(c.UserJWT, c.UserSeed))
	case c.NKey != "":
		opt, err := nats.NkeyOptionFromSeed(expand(c.NKey))
		if err != nil {
			return nil, fmt.Errorf("NATS context: nkey %s: %w", c.NKey, err)
		}
		opts = append(opts, opt)
	case c.User != "":
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	}
	if c.Token != "" {
		opts = append(opts, nats.Token(expand(c.Token)))
	}
	if c.Cert != "" {
		opts = append(opts, nats.ClientCert(expand(c.Cert), expand(c.Key)))
	}
	if c.CA != "" {
		opts = append(opts, nats.RootCAs(expand(c.CA)))
	}
	if c.TLSFirst {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	if c.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(c.InboxPrefix))
	}
	return opts, nil
}

// expand replaces a leading ~ and environment variables, as the nats tool does.
func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	return os.ExpandEnv(path)
}

// ConnectSystem connects as a user of the system account. path names a context file
// of the nats tool (JSON), or a credentials file, which is used with the address and
// TLS settings of this connection. The caller closes the connection.
func (c *Conn) ConnectSystem(path string) (*nats.Conn, error) {
	data, err := os.ReadFile(expand(path))
	if err != nil {
		return nil, fmt.Errorf("--system-creds: %w", err)
	}
	system := natsContext{Creds: path, Cert: c.context.Cert, Key: c.context.Key, CA: c.context.CA, TLSFirst: c.context.TLSFirst}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		system = natsContext{}
		if err := json.Unmarshal(data, &system); err != nil {
			return nil, fmt.Errorf("--system-creds: NATS context %s: %w", path, err)
		}
	}
	auth, err := system.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(cmp.Or(system.URL, redact(c.url)), append(auth, nats.Name("refold-durability"), nats.Timeout(connectTimeout), nats.NoReconnect())...)
	if err != nil {
		return nil, fmt.Errorf("connect with --system-creds %s: %w", path, withoutAddress(err))
	}
	return nc, nil
}
