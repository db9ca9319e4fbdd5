package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/transcript"
)

// installCommand publishes an install record, or shows published ones.
type installCommand struct {
	File    string `arg:"" optional:"" help:"Record to publish, JSON or msgpack; - reads standard input."`
	Builtin bool   `help:"Publish the built-in record."`
	DryRun  bool   `help:"Only check the record. Needs no server."`
	AsIs    bool   `help:"Publish the record as it is. Otherwise a default config without a context gets one, with the tokens that its model accepts, if these are known and the log does not have the record."`
	Show    bool   `help:"Print the record that new sessions pin as JSON; it can be edited, and published again."`
	Seq     uint64 `placeholder:"N" help:"With --show: the record at this sequence of the log."`
	Hash    string `placeholder:"HASH" help:"With --show: the record with this hash or prefix of a hash."`
	List    bool   `help:"List all records, the oldest first."`
	JSON    bool   `name:"json" help:"With --list or --show: print JSON, an object a line."`

	Space []string `sep:"none" placeholder:"NAME=DIR" help:"Start new sessions with this workspace or pack: store its files, and add its manifest to the record. Without another record: to the one that new sessions pin."`
}

// Help returns the help text above the flags.
func (installCommand) Help() string {
	return `An install record holds the tools, profiles, policy and default config of the
sessions that open after it. Publishing one changes no session that has an event.

    refold install --builtin                  publish the built-in record
    refold install --show > record.json       print the present one, to edit it
    refold install record.json                publish it, if it is valid and new
    refold install --space support=agents/support
                                              the same record again, with this workspace in it`
}

func (c installCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := c.usage(); err != nil {
		return err
	}
	bundles, err := parseBundles(ctx, s, c.Space)
	if err != nil {
		return err
	}
	var record []byte
	var install *session.Install
	var fitted *fitted
	if c.File != "" || c.Builtin {
		if record, err = c.read(s.in); err == nil {
			install, record, err = assemble(s, c.source(), record, bundles)
		}
		if err == nil && !c.AsIs {
			fitted, err = fit(record)
		}
		if err != nil {
			return err
		}
	}
	if c.DryRun {
		if fitted != nil {
			install = fitted.tell(s.err)
		}
		fmt.Fprintf(s.out, "valid: %s, rules %d; nothing is published\n", content(install), install.Rules)
		return nil
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	switch {
	case c.List:
		return list(ctx, s.out, b, c.JSON)
	case c.Show:
		return c.show(ctx, s, b)
	case install == nil:
		if install, record, err = renewed(ctx, s, b, bundles); err != nil {
			return err
		}
	case fitted != nil:
		if known, err := wasPublished(ctx, b, install.Hash); err != nil {
			return err
		} else if !known {
			install, record = fitted.tell(s.err), fitted.record
		}
	}
	return publish(ctx, s.out, b, install, record, bundles)
}

// usage returns an error if the arguments don't go together.
func (c installCommand) usage() error {
	ways, alone := 0, len(c.Space) > 0 // without another record, spaces go into the present one
	for _, chosen := range []bool{c.File != "", c.Builtin, c.Show, c.List} {
		if chosen {
			ways++
		}
	}
	switch {
	case ways > 1 || ways == 0 && !alone:
		return &statusError{statusUsage, "install: give one of FILE, --builtin, --show, --list, or --space alone"}
	case alone && (c.Show || c.List):
		return &statusError{statusUsage, "install: --space goes with FILE or --builtin, or stands alone"}
	case c.DryRun && (c.Show || c.List || ways == 0):
		return &statusError{statusUsage, "install: --dry-run goes with FILE or --builtin"}
	case c.JSON && !c.Show && !c.List:
		return &statusError{statusUsage, "install: --json goes with --show or --list"}
	case !c.Show && (c.Seq != 0 || c.Hash != ""):
		return &statusError{statusUsage, "install: --seq and --hash go with --show"}
	case c.Seq != 0 && c.Hash != "":
		return &statusError{statusUsage, "install: --seq or --hash, not both"}
	}
	return nil
}

// source names the origin of the record.
func (c installCommand) source() string {
	switch {
	case c.Builtin:
		return "the built-in record"
	case c.File == "-":
		return "standard input"
	}
	return c.File
}

// read returns the record to publish.
func (c installCommand) read(in io.Reader) ([]byte, error) {
	if c.Builtin {
		return session.BuiltinInstall(), nil
	}
	return readRecord(c.File, in)
}

// assemble puts the manifests of folders into a record and checks the result.
func assemble(s streams, source string, record []byte, bundles []*bundled) (*session.Install, []byte, error) {
	var err error
	for _, one := range bundles {
		if record, err = one.into(record); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", source, err)
		}
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		return nil, nil, fmt.Errorf("%s%s: %w", source, position(record, err), err)
	}
	for _, one := range bundles {
		if err := one.warn(s, install); err != nil {
			return nil, nil, err
		}
	}
	warnOfRules(s.err, install)
	return install, record, nil
}

// renewed puts the manifests of folders into the record that new sessions pin.
func renewed(ctx context.Context, s streams, b *bus.Bus, bundles []*bundled) (*session.Install, []byte, error) {
	p, found, err := pinned(ctx, b)
	switch {
	case err != nil:
		return nil, nil, err
	case !found:
		return nil, nil, journal.ErrNoInstall
	case p.install == nil:
		return nil, nil, fmt.Errorf("the record at %d: %w", p.seq, p.fault)
	}
	return assemble(s, fmt.Sprintf("the record at %d", p.seq), p.canonical, bundles)
}

// publish stores the files of a record's manifests and appends the record, unless
// new sessions already pin an equal one.
func publish(ctx context.Context, out io.Writer, b *bus.Bus, install *session.Install, record []byte, bundles []*bundled) error {
	for _, one := range bundles {
		if err := one.store(ctx, b); err != nil {
			return err
		}
	}
	newest, found, err := pinned(ctx, b)
	if err != nil {
		return err
	}
	if found && newest.hash == install.Hash {
		fmt.Fprintf(out, "nothing published: the record at %d is the same: %s\n", newest.seq, content(install))
		return nil
	}
	canonical, err := codec.Canonicalize(record)
	if err != nil {
		return err
	}
	seq, _, err := b.PublishInstall(ctx, canonical, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "published at %d: %s; sessions that have an event keep the record that they pinned\n", seq, content(install))
	return nil
}

// warnOfRules warns of names in the approval policy that no tool of the record has:
// a misspelt name guards nothing.
func warnOfRules(out io.Writer, install *session.Install) {
	for i, rule := range install.Record.Policy.Approval {
		for j, name := range rule.Tools {
			if _, known := install.Registry.Lookup(name); known {
				continue
			}
			fmt.Fprintf(out, "warning: policy.approval[%d].tools[%d]: no tool of the record has the tool_id or tool_name %q: "+
				"the rule holds only for a tool with this tool_id in a session's own registry\n", i, j, name)
		}
	}
}

// content summarises a record.
func content(install *session.Install) string {
	text := fmt.Sprintf("hash %s, %d tools, %d profiles", install.Hash, install.Registry.Len(), len(install.Registry.Profiles()))
	for _, m := range install.Manifests() {
		text += ", " + string(m.Kind) + " " + transcript.Named(m.Space, m.Version)
	}
	return text
}

// show prints one record.
func (c installCommand) show(ctx context.Context, s streams, b *bus.Bus) error {
	p, err := c.wanted(ctx, b)
	if err != nil {
		return err
	}
	if p.canonical == nil {
		return fmt.Errorf("the record at %d: %w", p.seq, p.fault)
	}
	text, err := codec.ToJSONIndent(p.canonical)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "sequence %d, hash %s\n", p.seq, p.hash)
	if p.fault != nil {
		fmt.Fprintf(s.err, "refold: warning: %v\n", p.fault)
	}
	if c.JSON {
		printJSON(s.out, json.RawMessage(text))
	} else {
		fmt.Fprintf(s.out, "%s\n", text)
	}
	return nil
}

// wanted returns the record of --seq or --hash, else the one that new sessions
// pin.
func (c installCommand) wanted(ctx context.Context, b *bus.Bus) (published, error) {
	if c.Seq == 0 && c.Hash == "" {
		p, found, err := pinned(ctx, b)
		if err == nil && !found {
			err = journal.ErrNoInstall
		}
		return p, err
	}
	var matching []published
	for p, err := range records(ctx, b) {
		if err != nil {
			return published{}, err
		}
		if c.Seq != 0 && p.seq == c.Seq || c.Hash != "" && p.canonical != nil && strings.HasPrefix(p.hash.String(), c.Hash) {
			matching = append(matching, p)
		}
	}
	switch {
	case len(matching) == 0 && c.Seq != 0:
		return published{}, fmt.Errorf("no install record is at %d: refold install --list shows their sequences", c.Seq)
	case len(matching) == 0:
		return published{}, fmt.Errorf("no install record has the hash %s: refold install --list shows all", c.Hash)
	}
	for _, p := range matching[1:] {
		if p.hash != matching[0].hash {
			return published{}, fmt.Errorf("the hashes of several install records begin with %s: give more of it", c.Hash)
		}
	}
	return matching[0], nil
}

// list prints a line for each record, the oldest first.
func list(ctx context.Context, out io.Writer, b *bus.Bus, asJSON bool) error {
	var all []published
	for p, err := range records(ctx, b) {
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return journal.ErrNoInstall
	}
	if asJSON {
		for i := range all {
			printJSON(out, all[i].json())
		}
		return nil
	}
	table := newWholeTable(out, "SEQ", "TIME", "HASH", "TOOLS", "PROFILES", "RULES", "NOTE")
	current := slices.IndexFunc(all, func(p published) bool { return p.pinnable() })
	for i, p := range slices.Backward(all) {
		note := ""
		switch {
		case i == current:
			note = "new sessions pin it"
		case !p.pinnable():
			note = "no session pins it: " + oneLine(p.fault)
		}
		table.texts(p.row(note)...)
	}
	table.flush()
	return nil
}

// oneLine returns an error's text on one line, without tabs.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
