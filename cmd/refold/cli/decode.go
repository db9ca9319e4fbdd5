package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/refold/refold/codec"
	streamconf "github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// decodeCommand converts msgpack to JSON.
type decodeCommand struct {
	File string `arg:"" optional:"" type:"existingfile" help:"File to read instead of standard input."`
}

// Run decodes one value: an effect, a snapshot, an event.
func (d decodeCommand) Run(s streams) error {
	in := s.in
	if d.File != "" {
		f, err := os.Open(d.File)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, codec.BytesMax+1))
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return &statusError{statusUsage, "nothing to decode: pipe msgpack into it, as in: nats stream view REFOLD_FX --translate 'refold decode'"}
	}
	canonical, err := codec.Canonicalize(data)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	text, err := codec.ToJSONIndent(canonical)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	fmt.Fprintf(s.out, "%s\n", text)
	return nil
}

// streamsCommand has the commands about streams.
type streamsCommand struct {
	List    streamsListCommand    `cmd:"" default:"withargs" help:"List the streams, buckets and consumers, or print one as the JetStream API takes it."`
	Convert streamsConvertCommand `cmd:"" help:"Make streams of older commits ones from which refold delete may delete. Stop all daemons first."`
}

// streamsListCommand prints the declarations of streams.conf.
type streamsListCommand struct {
	Name string `arg:"" optional:"" help:"Print only this one, as the JetStream API takes it: REFOLD_LOG, l0, tool-host, …"`
	asJSON
}

func (c streamsListCommand) Run(s streams, conn connection) error {
	names, err := subjects.New(conn.Prefix)
	if err != nil {
		return err
	}
	conf, err := streamconf.ParseConf(streamconf.File, names)
	if err != nil {
		return err
	}
	listed := conf.Names()
	if c.Name != "" {
		listed = []string{c.Name}
	}
	for _, name := range listed {
		text, err := conf.ConfJSON(name)
		switch {
		case err != nil:
			return &statusError{statusUsage, err.Error()}
		case c.JSON:
			printJSON(s.out, json.RawMessage(text))
		case c.Name != "":
			fmt.Fprintf(s.out, "%s\n", text)
		default:
			fmt.Fprintln(s.out, name)
		}
	}
	return nil
}

// streamsConvertCommand lets messages be deleted from streams that deny it.
type streamsConvertCommand struct {
	asJSON
	Dir string `required:"" placeholder:"DIR" help:"Where the backups of the streams go. They stay there; it needs as much room as the streams. The same directory again completes a conversion that did not end."`
}

// convertHears is how long a conversion listens for daemons: more than one interval of
// their heartbeats.
const convertHears = 4 * time.Second

func (c streamsConvertCommand) Run(ctx context.Context, s streams, conn connection) error {
	cl, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	fleet, err := cl.Fleet(ctx, convertHears)
	if err != nil {
		return err
	}
	if n := len(fleet.Actors) + len(fleet.Bridges); n > 0 {
		return fmt.Errorf("streams convert: %d daemons run: stop them all first, for the streams are gone for a while", n)
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Convert(ctx, c.Dir, func(done streamconf.Converted) {
		switch {
		case c.JSON:
			printJSON(s.out, done)
		case done.Done:
			fmt.Fprintf(s.out, "%s  converted: %d messages\n", done.Stream, done.Messages)
		default:
			fmt.Fprintf(s.out, "%s  nothing to do\n", done.Stream)
		}
	})
}
