package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filled is a server's configuration with the values of secrets: the
// environment of its program, or the headers of its requests.
type filled struct {
	environ []string
	header  map[string]string
}

func (f filled) same(other filled) bool {
	return slices.Equal(f.environ, other.environ) && maps.Equal(f.header, other.header)
}

// SecretNames returns the secrets in the server's headers and environment, sorted.
func (s *Server) SecretNames() []string {
	var names []string
	for _, text := range slices.Concat(slices.Collect(maps.Values(s.Headers)), s.Env) {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if m[1] != "" {
				names = append(names, m[2])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SecretNames returns the secrets of all servers.
func (s *Servers) SecretNames() (names []string) {
	for _, server := range s.servers {
		names = append(names, server.config.SecretNames()...)
	}
	return names
}

// fill looks up the secrets of the server; for a call of a pack's tool, those
// of the pack. The values are redacted from the server's texts from now on. The
// error names a missing secret.
func (s *server) fill(ctx context.Context, pack string) (filled, error) {
	values := map[string]string{}
	for _, name := range s.config.SecretNames() {
		value, err := s.sources.Secret(ctx, pack, name)
		switch {
		case err != nil:
			return filled{}, err
		case value == "":
			return filled{}, fmt.Errorf("secret %s is missing: give this program a file with it (--secret %s=FILE)", name, name)
		case s.config.URL != "" && strings.ContainsAny(value, "\r\n"):
			return filled{}, fmt.Errorf("secret %s has more than one line, and is for a header", name)
		}
		s.given.Add(value)
		values[name] = value
	}
	return filled{s.config.environ(s.env, values), s.config.header(s.env, values)}, nil
}

// valuesOf returns the values of environment variables in headers.
func (s *Server) valuesOf(env map[string]string) (values []string) {
	for _, text := range s.Headers {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if m[1] == "" {
				values = append(values, env[m[2]])
			}
		}
	}
	return values
}

// hide removes secrets from a server's text.
func (s *server) hide(text string) string { return s.given.Redactor().Text(text) }

// clip returns the beginning of a server's text without secrets.
func (s *server) clip(text string, bytesMax int) string {
	return s.given.Redactor().Clip(text, bytesMax)
}

// outOfError returns an error whose text has no secrets.
func (s *server) outOfError(err error) error {
	if err == nil || s.hide(err.Error()) == err.Error() {
		return err
	}
	return &hidden{err, s.hide(err.Error())}
}

// hidden is an error with another text.
type hidden struct {
	err  error
	text string
}

func (h *hidden) Error() string { return h.text }

func (h *hidden) Unwrap() error { return h.err }
