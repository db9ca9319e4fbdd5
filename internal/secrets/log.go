package secrets

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// givenMax is how many values a Given keeps: the latest.
const givenMax = 1024

// Given keeps the values that calls received, to redact them in log lines, which
// belong to no call. The zero value is ready to use.
type Given struct {
	mu       sync.Mutex
	values   []string
	redactor atomic.Pointer[Redactor]
}

// Add adds values.
func (g *Given) Add(values ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed := false
	for _, v := range values {
		if len(v) >= ValueBytesMin && !slices.Contains(g.values, v) {
			g.values, changed = append(g.values, v), true
		}
	}
	if !changed {
		return
	}
	g.values = g.values[max(0, len(g.values)-givenMax):]
	g.redactor.Store(NewRedactor(g.values...))
}

// Values returns the values.
func (g *Given) Values() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.values)
}

// Redactor returns a redactor of the values so far.
func (g *Given) Redactor() *Redactor { return g.redactor.Load() }

// Handler returns a slog.Handler that passes records to h without the values.
func (g *Given) Handler(h slog.Handler) slog.Handler { return &redacting{given: g, to: h} }

type redacting struct {
	given *Given
	to    slog.Handler
}

// Enabled implements slog.Handler.
func (h *redacting) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *redacting) Handle(ctx context.Context, record slog.Record) error {
	r := h.given.Redactor()
	if r == nil {
		return h.to.Handle(ctx, record)
	}
	clean := slog.NewRecord(record.Time, record.Level, r.Text(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(r.attr(a))
		return true
	})
	return h.to.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h *redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	r, clean := h.given.Redactor(), make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return &redacting{given: h.given, to: h.to.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h *redacting) WithGroup(name string) slog.Handler {
	return &redacting{given: h.given, to: h.to.WithGroup(name)}
}

// attr returns an attribute without the values. A value that is neither text nor
// a group becomes text only if its text contains one.
func (r *Redactor) attr(a slog.Attr) slog.Attr {
	if r == nil {
		return a
	}
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, r.Text(v.String()))
	case slog.KindGroup:
		var members []any
		for _, m := range v.Group() {
			members = append(members, r.attr(m))
		}
		return slog.Group(a.Key, members...)
	case slog.KindAny:
		if text := fmt.Sprintf("%+v", v.Any()); r.Text(text) != text {
			return slog.String(a.Key, r.Text(text))
		}
	}
	return a
}
