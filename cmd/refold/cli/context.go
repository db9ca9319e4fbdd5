package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/llm/provider"
)

// contextOf returns the context of a config that names a model. Without tokens, which
// only a table of models has, the window gets smaller when the model refuses it.
func contextOf(model string) *session.ContextConfig {
	return &session.ContextConfig{Tokens: provider.ContextTokens(model)}
}

// fitted is a record whose default config was given a context.
type fitted struct {
	record  []byte
	install *session.Install
}

// fit gives a record's default config a context with tokens, if the config names a model
// that the table has, and has no context or that of the built-in record. Else it returns
// nil: a record is the operator's, and for another model it says what they mean.
func fit(record []byte) (*fitted, error) {
	r, err := decodeRecord(record)
	if err != nil || r.Config == nil || provider.ContextTokens(r.Config.Model) == 0 {
		return nil, err
	}
	if own := r.Config.Context; own != nil && *own != (session.ContextConfig{}) {
		return nil, nil
	}
	config := *r.Config
	config.Context = contextOf(config.Model)
	r.Config = &config
	f := new(fitted)
	if f.record, err = codec.Marshal(r); err == nil {
		f.install, err = session.ParseInstall(f.record)
	}
	return f, err
}

// tell says what was added, and returns the record.
func (f *fitted) tell(out io.Writer) *session.Install {
	c := f.install.Record.Config
	fmt.Fprintf(out, "config.context: {\"tokens\": %d} is added, for %s; --as-is publishes the record as it is\n", c.Context.Tokens, c.Model)
	return f.install
}

// wasPublished reports whether the log has a record with this hash.
func wasPublished(ctx context.Context, b *bus.Bus, hash codec.Hash) (bool, error) {
	for p, err := range records(ctx, b) {
		if err != nil {
			return false, err
		}
		if p.hash == hash {
			return true, nil
		}
	}
	return false, nil
}
