package provider

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// Server is where a model is, and the key to it.
type Server struct {
	BaseURL string
	Key     string // empty: none is sent
}

// Server returns the server that the environment names: another address, and the key.
// url, if given, is in place of them: a server that is not the provider's gets no key
// from the environment.
func (p Provider) Server(getenv func(name string) string, url string) Server {
	if url != "" {
		return Server{BaseURL: url}
	}
	return Server{BaseURL: cmp.Or(getenv(p.BaseURLVariable()), p.BaseURL), Key: getenv(p.KeyVariable())}
}

// LacksKey reports whether s is the provider's own server, which refuses requests, and
// has no key.
func (p Provider) LacksKey(s Server) bool { return s.Key == "" && s.BaseURL == p.BaseURL }

// ReadKey returns the key in a file.
func ReadKey(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return key, nil
}
