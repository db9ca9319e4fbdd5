package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/refold/refold/bridge"
)

// secrets are values of headers that came from the environment. What a server
// says is shown, stored and logged without them, also if it repeats them.
type secrets []string

// secretLeast is how long a value must be to count: of what is shorter, too much
// else would be hidden.
const secretLeast = 4

// secrets returns what the headers take from the environment.
func (s *Server) secrets(env map[string]string) (all secrets) {
	for _, key := range sorted(s.Headers) {
		for _, named := range variable.FindAllStringSubmatch(s.Headers[key], -1) {
			if value := env[named[1]]; len(value) >= secretLeast {
				all = append(all, value)
			}
		}
	}
	return all
}

// hide returns text without secrets.
func (s secrets) hide(text string) string {
	for _, value := range s {
		text = strings.ReplaceAll(text, value, "[secret]")
	}
	return text
}

// outOf returns a result without secrets in its texts.
func (s secrets) outOf(r bridge.Result) bridge.Result {
	r.Output = s.hide(r.Output)
	if r.Error != nil {
		fault := *r.Error
		fault.Detail = s.hide(fault.Detail)
		r.Error = &fault
	}
	return r
}

// outOfError returns an error whose text has no secrets.
func (s secrets) outOfError(err error) error {
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

// Error returns the text.
func (h *hidden) Error() string { return h.text }

// Unwrap returns the error.
func (h *hidden) Unwrap() error { return h.err }

// quiet logs without secrets.
type quiet struct {
	slog.Handler
	secrets secrets
}

// Handle logs a line.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if len(q.secrets) == 0 {
		return q.Handler.Handle(ctx, r)
	}
	clean := slog.NewRecord(r.Time, r.Level, q.secrets.hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if text := fmt.Sprint(a.Value.Any()); q.secrets.hide(text) != text {
			a.Value = slog.StringValue(q.secrets.hide(text))
		}
		clean.AddAttrs(a)
		return true
	})
	return q.Handler.Handle(ctx, clean)
}

// WithAttrs returns the same for lines with more attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.secrets}
}

// WithGroup returns the same for a group of attributes.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.secrets}
}
