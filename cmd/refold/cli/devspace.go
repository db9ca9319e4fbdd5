package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/tools/sessiontools"
	"github.com/refold/refold/space"
)

// devSpace is the folder that every new session of dev starts with; nil: none.
type devSpace struct{ *bundled }

// openWorkspace reads the folder of --workspace.
func (d devCommand) openWorkspace(ctx context.Context, s streams) (*devSpace, error) {
	if d.Workspace == "" {
		return nil, nil
	}
	b, err := bundle(ctx, s, "", d.Workspace)
	if err != nil {
		return nil, fmt.Errorf("dev: --workspace %w", err)
	}
	if b.built.Manifest.Kind == space.Pack {
		return nil, fmt.Errorf("dev: --workspace %s: is a pack: a session gets it by a grant; see docs/packs.md", d.Workspace)
	}
	return &devSpace{b}, nil
}

// serve makes the bridge read the folder when a session syncs it, and serve the
// tools that every session has.
func (w *devSpace) serve(ctx context.Context, b *bridge.Bridge, log *slog.Logger) error {
	err := sessiontools.Serve(ctx, b, log)
	if w != nil {
		err = errors.Join(err, b.Space(w.name, bridge.Folder{Dir: w.dir}))
	}
	return err
}

// install makes the manifest the only workspace of the record that new sessions
// pin, or of the given one, and publishes the record if that changed it.
func (w *devSpace) install(ctx context.Context, s streams, b *bus.Bus, record []byte) error {
	if w == nil {
		return nil
	}
	p, found, err := pinned(ctx, b)
	switch {
	case err != nil:
		return err
	case found && p.install == nil:
		return fmt.Errorf("the record at %d: %w", p.seq, p.fault)
	case found:
		record = p.canonical
	}
	if record, err = withoutManifests(record); err != nil {
		return err
	}
	install, record, err := assemble(s, "dev: --workspace", record, []*bundled{w.bundled})
	if err != nil {
		return err
	}
	return publish(ctx, io.Discard, b, install, record, []*bundled{w.bundled})
}

// tell prints what new sessions start with, and how to apply an edit.
func (w *devSpace) tell(out io.Writer) {
	if w == nil {
		return
	}
	fmt.Fprintf(out, "Workspace: %s, from %s. Sessions that open from now on start with it.\n"+
		"After an edit:  refold space sync SESSION %s --apply next_run  (a restart gives it to new sessions)\n", summary(w.built.Manifest), w.dir, w.name)
}
