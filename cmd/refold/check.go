package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/planner"
)

// toolsCommand is about the tools of sessions.
type toolsCommand struct {
	Check checkCommand `cmd:"" help:"Say who serves each tool of the install record, and its model, and what nobody serves."`
}

// checkCommand checks the coverage of an install record.
type checkCommand struct {
	File     string        `arg:"" optional:"" help:"Record to check instead of the one that new sessions pin; - reads standard input."`
	Coverage string        `enum:"warn,fail," default:"" placeholder:"warn|fail" help:"What to do if something is missing: warn, or fail with exit status 1. Default: what the record's policy says, else warn."`
	Within   time.Duration `default:"2s" help:"For how long to wait for bridges that don't answer, as after a start of everything."`
}

// Help is what the help says beside the flags.
func (checkCommand) Help() string {
	return `A tool is covered if a running bridge serves its executor and its descriptor is
stored; a record with a default config also needs a bridge for its provider. A
tool of the kind host_loop needs no bridge.

    refold tools check                                   what is missing now
    refold tools check --coverage fail --within 1m       wait for a deployment, fail if it is not whole
    refold tools check record.json                       before it is published`
}

// The values of --coverage.
const (
	coverageWarn = "warn"
	coverageFail = "fail"
)

// discoverEach is the least time between two questions who is there.
const discoverEach = 100 * time.Millisecond

// Run prints who serves what, and the verdict.
func (c checkCommand) Run(ctx context.Context, s streams, conn connection) error {
	var checked *session.Install
	if c.File != "" {
		record, err := readRecord(c.File, s.in)
		if err != nil {
			return err
		}
		if checked, err = session.ParseInstall(record); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	newest, found, err := pinned(ctx, b)
	switch {
	case err != nil:
		return err
	case checked == nil && !found:
		return bus.ErrNoInstall
	case checked == nil && newest.install == nil:
		return fmt.Errorf("the record at %d: %w", newest.seq, newest.fault)
	}
	where := fmt.Sprintf("the record at %d", newest.seq)
	stored := true // before it is published, nobody stores descriptors
	if checked == nil {
		checked = newest.install
	} else if newest.hash != checked.Hash {
		where, stored = c.File+", which is not published", false
	}
	covered := &coverage{registry: checked.Registry, config: checked.Record.Config}
	if stored {
		if covered.absent, err = absentDescriptors(ctx, b, checked.Registry); err != nil {
			return err
		}
	}
	if err := c.discover(ctx, b, covered); err != nil {
		return err
	}
	return c.tell(s, covered, where, coverageOf(checked))
}

// coverageOf returns what the record's policy says.
func coverageOf(*session.Install) string { return coverageWarn }

// absentDescriptors returns the tools of which a descriptor is not stored.
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

// discover asks who serves what until nothing is missing or the time is over.
func (c checkCommand) discover(ctx context.Context, b *bus.Bus, covered *coverage) error {
	within := time.NewTimer(c.Within)
	defer within.Stop()
	for last := false; ; {
		running, err := b.Discover(ctx, "bridge")
		if err != nil {
			return err
		}
		covered.served = map[string]int{}
		for _, bridge := range running {
			for _, target := range strings.Fields(bridge.Metadata["targets"]) {
				covered.served[target]++
			}
		}
		if last || covered.isServed() {
			return nil
		}
		again := time.NewTimer(discoverEach)
		select {
		case <-again.C:
		case <-within.C:
			last = true // what came up meanwhile counts
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
		again.Stop()
	}
}

// tell prints the table and the verdict, and fails if it must.
func (c checkCommand) tell(s streams, covered *coverage, where, policy string) error {
	needs := covered.needs()
	if err := printNeeds(s.out, needs); err != nil {
		return err
	}
	missing := uncovered(needs)
	all := fmt.Sprintf("%d tools", covered.registry.Len())
	if covered.config != nil {
		all += " and the model"
	}
	if len(missing) == 0 {
		_, err := fmt.Fprintf(s.out, "\ncovered: %s of %s\n", all, where)
		return err
	}
	verdict := fmt.Sprintf("NOT covered: %d of %s of %s", len(missing), all, where)
	if _, err := fmt.Fprintf(s.out, "\n%s\n", verdict); err != nil {
		return err
	}
	for _, line := range warnings(missing) {
		fmt.Fprintln(s.err, "refold: warning:", line)
	}
	if c.Coverage != "" {
		policy = c.Coverage
	}
	if policy == coverageFail {
		return &statusError{statusFailed, ""}
	}
	return nil
}
