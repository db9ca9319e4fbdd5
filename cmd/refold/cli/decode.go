package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

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

// streamsCommand prints the declarations of streams.conf.
type streamsCommand struct {
	Name string `arg:"" optional:"" help:"Print only this one, as the JetStream API takes it: REFOLD_LOG, l0, tool-host, …"`
	asJSON
}

func (c streamsCommand) Run(s streams, conn connection) error {
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
