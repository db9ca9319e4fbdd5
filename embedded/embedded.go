// Package embedded is a log in a directory of this machine, with all that carries
// sessions in this process: refold.Open(ctx, embedded.Dir("data")). A program that
// imports it needs no server and no daemon.
//
// # Path
//
// Open locks the directory, starts a NATS server with JetStream on it, and a
// session-actor. Close ends them. The next Open on the directory resumes its sessions,
// also after the process was killed. Programs that outgrow it use refold.NATS: the
// same program, with servers of its own.
//
// # Laws
//
//   - One process at a time has the directory: another one gets a *refold.InUseError,
//     with the process and the file by which to join it.
//   - What the log acknowledged is on disk, unless SyncInterval says otherwise.
//   - The server listens on loopback alone, and accepts only users with a key. The keys
//     are files in the directory that this user alone can read.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/source"
)

// Option is an option of Dir.
type Option struct{ apply func(*directory) }

// Port is the port on loopback where other programs of this machine join; the default
// is any free one.
func Port(port int) Option { return Option{func(d *directory) { d.port = port }} }

// SyncInterval makes the log sync to disk so often, instead of before each
// acknowledgement. That is faster, and a power failure loses what was acknowledged
// since; the death of the process loses nothing.
func SyncInterval(each time.Duration) Option { return Option{func(d *directory) { d.sync = each }} }

// Dir returns the log in a directory, which is created if it doesn't exist.
func Dir(path string, o ...Option) refold.Source {
	d := &directory{path: path}
	for _, option := range o {
		if option.apply != nil {
			option.apply(d)
		}
	}
	return d
}

type directory struct {
	path string
	port int
	sync time.Duration
}

// record is what sessions start with: nothing. Agents bring their config and tools.
var record = fmt.Appendf(nil, `{"v":%d,"rules":%d,"tools":[]}`, session.Version, session.RulesVersion)

// Open starts the server and the session-actor.
func (d *directory) Open(ctx context.Context, o source.Options) (*source.Opened, error) {
	if d.path == "" {
		return nil, errors.New("embedded.Dir: name a directory")
	}
	if d.sync < 0 {
		return nil, fmt.Errorf("embedded.Dir: a sync interval of %v: it is not negative", d.sync)
	}
	dir, err := filepath.Abs(d.path) // other programs use the files, too
	if err != nil {
		return nil, fmt.Errorf("embedded.Dir: %w", err)
	}
	options := devserver.Options{
		Dir: dir, Port: d.port, Prefix: o.Prefix, Install: record, Logger: o.Logger, Roles: true, KeysOnly: true,
		Durability: natsio.DurabilityAlways, SyncInterval: d.sync,
	}
	if d.sync > 0 {
		options.Durability = natsio.DurabilityInterval
	}
	server, err := devserver.Start(ctx, options)
	var inUse *devserver.InUseError
	switch {
	case errors.As(err, &inUse):
		return nil, &refold.InUseError{
			Dir: dir, PID: inUse.PID(), ContextFile: devserver.ContextIn(dir, o.Prefix, devserver.Admin), Cause: err,
		}
	case err != nil:
		return nil, fmt.Errorf("embedded.Dir: %w", err)
	}
	user := server.Context(devserver.Admin)
	return &source.Opened{
		InProcess: server.InProcess(), Context: user, ContextFile: user, Failed: server.Failed(), Close: server.Stop,
	}, nil
}
