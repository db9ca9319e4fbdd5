package settings

import (
	"context"
	"io"
	"log/slog"
)

// TraceIDs returns the ids of an effect's span. They are empty if its run is not
// traced, or if effect is "".
type TraceIDs func(session, effect string) (trace, span string)

// Logger returns a logger to w, configured by --log-level and --log-format. Lines
// about a session get the trace_id and span_id that ids returns; nil adds none.
func (d *Daemon) Logger(w io.Writer, ids TraceIDs) (*slog.Logger, error) {
	level, err := d.Level()
	if err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if d.LogFormat == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(WithIDs(handler, ids)), nil
}

// Level returns the level that --log-level names.
func (d *Daemon) Level() (level slog.Level, err error) {
	err = level.UnmarshalText([]byte(d.LogLevel))
	return level, err
}

// WithIDs returns a handler that adds trace ids to lines. A nil ids adds none.
func WithIDs(handler slog.Handler, ids TraceIDs) slog.Handler {
	if ids == nil {
		return handler
	}
	return &traced{Handler: handler, ids: ids}
}

// traced adds trace ids to lines.
type traced struct {
	slog.Handler
	ids             TraceIDs
	session, effect string // from WithAttrs: every line has them
}

// Handle writes a line, with trace ids if it is about a traced run.
func (t *traced) Handle(ctx context.Context, r slog.Record) error {
	of := *t
	r.Attrs(func(a slog.Attr) bool {
		of.note(a)
		return true
	})
	if of.session == "" {
		return t.Handler.Handle(ctx, r)
	}
	if trace, span := t.ids(of.session, of.effect); trace != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", trace), slog.String("span_id", span))
	}
	return t.Handler.Handle(ctx, r)
}

func (t *traced) note(a slog.Attr) {
	switch a.Key {
	case "session":
		t.session = a.Value.String()
	case "effect":
		t.effect = a.Value.String()
	}
}

// WithAttrs returns a handler that adds attributes to every line.
func (t *traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *t
	for _, a := range attrs {
		next.note(a)
	}
	next.Handler = t.Handler.WithAttrs(attrs)
	return &next
}

// WithGroup returns a handler that puts later attributes into a group.
func (t *traced) WithGroup(name string) slog.Handler {
	next := *t
	next.Handler = t.Handler.WithGroup(name)
	return &next
}
