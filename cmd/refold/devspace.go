package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// devSpace is the folder that every new session of dev starts with; nil is none.
type devSpace struct {
	*bundled
	stamp string // of the folder, before it was read
}

// devLook is how often dev looks whether the folder was edited.
const devLook = time.Second

// openWorkspace reads the folder of --workspace.
func (d devCommand) openWorkspace(ctx context.Context, s streams) (*devSpace, error) {
	if d.Workspace == "" {
		return nil, nil
	}
	stamp := stampOf(d.Workspace)
	b, err := bundle(ctx, s, "", d.Workspace)
	if err != nil {
		return nil, fmt.Errorf("dev: --workspace %w", err)
	}
	return &devSpace{b, stamp}, nil
}

// serve has the bridge read the folder when a session syncs it, and carry out the
// tools that sessions have of their own.
func (w *devSpace) serve(ctx context.Context, b *bridge.Bridge) error {
	err := b.SessionTools(ctx, sessiontools.New(b.Blob))
	if w != nil {
		err = errors.Join(err, b.Space(w.name, bridge.Folder{Dir: w.dir}))
	}
	return err
}

// install puts the manifest into the record that new sessions pin, and does so
// again after every edit of the folder until ctx ends. Sessions that are open keep
// what they have.
func (w *devSpace) install(ctx context.Context, s streams, b *bus.Bus, record []byte) error {
	if w == nil {
		return nil
	}
	if err := w.embed(ctx, s, b, record); err != nil {
		return err
	}
	go w.follow(ctx, s, b, record)
	return nil
}

// follow looks at the folder. An edit that cannot be read is told, and new
// sessions start with what was read before.
func (w *devSpace) follow(ctx context.Context, s streams, b *bus.Bus, record []byte) {
	tick := time.NewTicker(devLook)
	defer tick.Stop()
	for seen := w.stamp; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stampOf(w.dir)
		if now == seen {
			continue
		}
		seen = now
		next, err := bundle(ctx, s, w.name, w.dir)
		if err == nil {
			err = (&devSpace{next, now}).embed(ctx, s, b, record)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(s.err, "refold: warning: dev: --workspace %v; new sessions start with what was read before\n", err)
		default:
			fmt.Fprintf(s.out, "Workspace: %s was edited: %s. New sessions start with that.\n", w.name, summary(next.built.Manifest))
		}
	}
}

// stampOf returns a text that changes when a file of the folder does.
func stampOf(dir string) string {
	var b strings.Builder
	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // whoever reads the folder says what is wrong
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return b.String()
}

// embed puts the manifest into the record that new sessions pin, else into the
// given one, and publishes it if that changes anything. It is the record's only
// workspace then.
func (w *devSpace) embed(ctx context.Context, s streams, b *bus.Bus, record []byte) error {
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

// tell says what new sessions start with, and how an edit is adopted.
func (w *devSpace) tell(out io.Writer) {
	if w == nil {
		return
	}
	fmt.Fprintf(out, "Workspace: %s, from %s. Sessions that open from now on start with it.\n"+
		"After an edit:  refold space sync SESSION %s --apply next_run  (new sessions start with it)\n", summary(w.built.Manifest), w.dir, w.name)
}
