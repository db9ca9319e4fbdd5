package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/planner"
)

// checkCommand checks the coverage of an install record.
type checkCommand struct {
	File     string        `arg:"" optional:"" help:"Record to check instead of the one that new sessions pin; - reads standard input."`
	Session  string        `placeholder:"SESSION" help:"Check this session's registry and config instead."`
	Coverage string        `enum:"warn,fail," default:"" placeholder:"warn|fail" help:"What to do if something is missing: warn, or fail with exit status 1. Default: the record's policy, else warn."`
	Within   time.Duration `default:"2s" help:"How long to wait for bridges that don't answer yet, for example after a start."`
	asJSON
}

// Help returns the help text above the flags.
func (checkCommand) Help() string {
	return `A tool is covered if a running bridge serves its executor, no bridge that does
so reports its tools without it, and its descriptor is stored. A default config needs a bridge for its provider, and one for its step
hook. A tool of the kind host_loop needs none. A grant needs a bridge that reads
the workspace, and the workspace tools that its catalogs name, and stored files.

    refold tools check                                   what is missing now
    refold tools check --coverage fail --within 1m       wait for a deployment, fail if it is not whole
    refold tools check record.json                       before it is published`
}

// checked is what a check covers.
type checked struct {
	coverage
	where  string // its name in the verdict
	policy string // of its install record; "": warn
	stored bool   // its descriptors should be stored by now
}

// Run prints the bridges, what they serve, and the verdict.
func (c checkCommand) Run(ctx context.Context, s streams, conn connection) error {
	if c.File != "" && c.Session != "" {
		return &statusError{statusUsage, "tools check: FILE or --session, not both"}
	}
	var given *session.Install
	if c.File != "" {
		record, err := readRecord(c.File, s.in)
		if err != nil {
			return err
		}
		if given, err = session.ParseInstall(record); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var what *checked
	if c.Session != "" {
		what, err = c.ofSession(ctx, conn, b)
	} else {
		what, err = c.ofRecord(ctx, b, given)
	}
	if err != nil {
		return err
	}
	if what.stored {
		if what.absent, err = absentDescriptors(ctx, b, what.registry); err != nil {
			return err
		}
	}
	bridges, err := listen(ctx, s, b, c.Within, func(f *presence.Fleet) bool {
		what.served, what.heard = f.Served(), f.Heard
		return what.isServed()
	})
	if err != nil {
		return err
	}
	what.served, what.heard = bridges.Served(), bridges.Heard
	return c.tell(s, what)
}

// ofRecord returns the needs of a given record, else of the one that sessions
// pin.
func (c checkCommand) ofRecord(ctx context.Context, b *bus.Bus, given *session.Install) (*checked, error) {
	newest, found, err := pinned(ctx, b)
	switch {
	case err != nil:
		return nil, err
	case given == nil && !found:
		return nil, journal.ErrNoInstall
	case given == nil && newest.install == nil:
		return nil, fmt.Errorf("the record at %d: %w", newest.seq, newest.fault)
	}
	what := &checked{where: fmt.Sprintf("the record at %d", newest.seq), stored: true}
	switch {
	case given == nil:
		given = newest.install
	case !found || newest.hash != given.Hash:
		what.where, what.stored = c.File+", which new sessions don't pin", false
	}
	what.registry, what.config, what.policy = given.Offered(), given.Record.Config, given.Record.Policy.Coverage
	what.spaces, err = spaceNeedsOf(ctx, b, given, session.New(given, ""))
	return what, err
}

// ofSession returns the needs of the session's own registry and config, which its
// next turn uses, and its next run unless it brings a config.
func (c checkCommand) ofSession(ctx context.Context, conn connection, b *bus.Bus) (*checked, error) {
	reader, err := conn.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	replayed, err := reader.Replay(ctx, c.Session, 0, nil)
	if err != nil {
		return nil, err
	}
	state := replayed.State
	install, err := journal.NewInstalls(b, slog.New(slog.DiscardHandler), nil).Named(ctx)(state.Install)
	if err != nil {
		return nil, err
	}
	what := &checked{where: "session " + c.Session, policy: install.Record.Policy.Coverage, stored: true}
	what.registry, what.config = state.NextRegistry(), install.Record.Config
	if state.Config != nil {
		what.config = &state.Config.Run
	}
	what.spaces, err = spaceNeedsOf(ctx, b, install, state)
	return what, err
}

// absentDescriptors returns the tools whose descriptors are not all stored.
func absentDescriptors(ctx context.Context, b *bus.Bus, registry *planner.Registry) (map[planner.ToolIndex]bool, error) {
	absent := map[planner.ToolIndex]bool{}
	for _, blob := range registry.Blobs() {
		there, err := b.HasBlob(ctx, blob.Ref)
		if err != nil {
			return nil, err
		}
		if t, known := registry.LookupRef(blob.Ref); known && !there {
			absent[t] = true
		}
	}
	return absent, nil
}

// tell prints what each bridge serves and the verdict, and returns its error.
func (c checkCommand) tell(s streams, what *checked) error {
	needs := what.needs()
	missing := uncovered(needs)
	if c.JSON {
		c.printJSON(s.out, what, needs)
	} else {
		c.print(s.out, what, needs)
	}
	for _, line := range warnings(missing) {
		fmt.Fprintln(s.err, "refold: warning:", line)
	}
	if len(missing) > 0 && cmp.Or(c.Coverage, what.policy) == session.CoverageFail {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// print prints the table and the verdict for people.
func (checkCommand) print(out io.Writer, what *checked, needs []need) {
	printNeeds(out, needs)
	verdict := "covered"
	if len(uncovered(needs)) > 0 {
		verdict = "NOT covered"
	}
	fmt.Fprintf(out, "\n%s: %s, for %s\n", verdict, what.tally(), what.where)
}

// needJSON is a need as JSON.
type needJSON struct {
	Need     string   `json:"need"`
	Target   string   `json:"target"`
	Bridges  int      `json:"bridges"`
	ServedBy string   `json:"served_by,omitempty"`
	Missing  []string `json:"missing,omitempty"`
}

// verdictJSON is the result of a check as JSON.
type verdictJSON struct {
	Covered bool   `json:"covered"`
	Of      string `json:"of"`
	Summary string `json:"summary"`
}

// printJSON prints the needs and, last, the verdict.
func (checkCommand) printJSON(out io.Writer, what *checked, needs []need) {
	for _, n := range needs {
		printJSON(out, needJSON{n.what, n.target, what.served[n.target], n.by, n.lacking})
	}
	printJSON(out, verdictJSON{len(uncovered(needs)) == 0, what.where, what.tally()})
}
